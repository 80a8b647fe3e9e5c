/*
 * logs TASK: how an attempt ended, and the end of its stderr and stdout. The daemon names the
 * files, this process reads them; with --follow it polls both, and asks the daemon now and then
 * whether the attempt still runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/text/out.h"

#define TAIL_BYTES_MAX ((off_t)1 << 20) /* read from the end of a log */
#define FOLLOW_MS      250
#define LOOK_AGAIN_MS  2000 /* between two questions whether the attempt still runs */

/* One of the two logs of an attempt. */
struct log_file {
    const char *path;
    off_t offset; /* how far it has been printed */
};

/* Where the last n_lines lines of the text begin. */
static size_t tail_start(const char *text, size_t len, int64_t n_lines)
{
    size_t at = len;
    /* the newline at the end does not begin another line */
    if (at > 0 && text[at - 1] == '\n') {
        at--;
    }
    while (at > 0) {
        if (text[at - 1] == '\n' && --n_lines == 0) {
            break;
        }
        at--;
    }
    return at;
}

/* pread() that is repeated when a signal interrupts it. */
static ssize_t read_at(int fd, char *buffer, size_t len, off_t offset)
{
    ssize_t n;
    do {
        n = pread(fd, buffer, len, offset);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* How many bytes can be shown now: an incomplete character at the end waits for its rest. */
static size_t whole_text(const char *text, size_t n)
{
    size_t whole = text_whole_chars(text, n);
    return whole > 0 ? whole : n;
}

/* Prints the end of a log and remembers how far it went. A log that is not there yet is empty. */
static int print_tail(struct log_file *log, int64_t n_lines, struct err *err)
{
    int fd = open(log->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? 0 : err_set_errno(err, errno, "open %s", log->path);
    }
    struct stat st;
    off_t size = fstat(fd, &st) == 0 ? st.st_size : 0;
    /* a very long log is read from near its end only */
    off_t from = size > TAIL_BYTES_MAX ? size - TAIL_BYTES_MAX : 0;
    char *text = xmalloc((size_t)(size - from) + 1);
    ssize_t n = read_at(fd, text, (size_t)(size - from), from);
    if (n > 0) {
        size_t start = tail_start(text, (size_t)n, n_lines);
        n = (ssize_t)whole_text(text, (size_t)n);
        terminal_text(stdout, text + start, (size_t)n - start, false);
        log->offset = from + n;
    }
    free(text);
    (void)close(fd);
    return 0;
}

/* Prints what was appended since the last call. */
static void print_new(struct log_file *log)
{
    int fd = open(log->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    char buffer[65536];
    ssize_t n;
    while ((n = read_at(fd, buffer, sizeof(buffer), log->offset)) > 0) {
        n = (ssize_t)whole_text(buffer, (size_t)n);
        terminal_text(stdout, buffer, (size_t)n, false);
        log->offset += n;
    }
    (void)close(fd);
}

/* The attempts of the task with their files, as the daemon knows them. */
static int fetch(const struct ctl_options *o, cJSON **answer, struct err *err)
{
    cJSON *params = ask_params(o, false);
    json_put_string(params, "task", o->args[0]);
    return ask(o, "logs", params, answer, err);
}

/* The attempt that --attempt names, or the newest; NULL when there is none. */
static const cJSON *pick(const cJSON *answer, int64_t no)
{
    const cJSON *list = json_member(answer, "attempts");
    for (const cJSON *a = list ? list->child : NULL; a != NULL; a = a->next) {
        if (no == 0 || answer_int(a, "no", 0) == no) {
            return a;
        }
    }
    return NULL;
}

/* Asks the daemon whether the attempt still runs. */
static int is_live(const struct ctl_options *o, int64_t no, bool *live, struct err *err)
{
    cJSON *answer = NULL;
    int rc = fetch(o, &answer, err);
    if (rc == 0) {
        const cJSON *attempt = pick(answer, no);
        *live = attempt != NULL && answer_bool(attempt, "live");
    }
    cJSON_Delete(answer);
    return rc;
}

/* Prints new output until the attempt has ended. The files are read after each question, so that
 * what was written while the attempt ended is printed, too. */
static int follow(const struct ctl_options *o, int64_t no, struct log_file logs[2], struct err *err)
{
    bool live = true;
    int64_t waited_ms = LOOK_AGAIN_MS;
    while (live) {
        int rc = 0;
        /* the daemon is asked less often than the files are read */
        if (waited_ms >= LOOK_AGAIN_MS) {
            rc = is_live(o, no, &live, err);
            waited_ms = 0;
        }
        print_new(&logs[0]);
        print_new(&logs[1]);
        if (rc != 0 || (rc = out_flush(err)) != 0) {
            return rc;
        }
        if (live && (rc = out_wait(FOLLOW_MS, err)) != 0) {
            return rc;
        }
        waited_ms += FOLLOW_MS;
    }
    return 0;
}

/* Prints how the attempt ended unless its result was accepted: a result that was refused leaves
 * nothing in its logs. Only explain reads the journal for it. */
static int print_ending(const struct ctl_options *o, int64_t no, struct err *err)
{
    cJSON *answer = NULL;
    cJSON *params = ask_params(o, false);
    json_put_string(params, "task", o->args[0]);
    int rc = ask(o, "explain", params, &answer, err);
    const cJSON *a = NULL;
    const cJSON *list = rc == 0 ? json_member(answer, "attempt_list") : NULL;
    cJSON_ArrayForEach(a, list)
    {
        const char *cause = answer_text(a, "cause", NULL);
        const char *detail = answer_text(a, "detail", NULL);
        if (answer_int(a, "no", 0) == no && cause != NULL) {
            terminal_printf(stdout, "ended as %s%s%s\n", cause, detail == NULL ? "" : ": ",
                            detail == NULL ? "" : detail);
        }
    }
    cJSON_Delete(answer);
    return rc;
}

/* Prints the ends of both logs, and follows them when that was asked for and the attempt runs. */
static int print_attempt(const struct ctl_options *o, const cJSON *attempt, struct err *err)
{
    struct log_file logs[2] = {{answer_text(attempt, "stderr", ""), 0},
                               {answer_text(attempt, "stdout", ""), 0}};
    terminal_printf(stdout, "attempt %lld%s  %s\n", (long long)answer_int(attempt, "no", 0),
                    answer_bool(attempt, "live") ? " (running)" : "",
                    answer_text(attempt, "folder", "?"));
    int rc = answer_bool(attempt, "live") ? 0 : print_ending(o, answer_int(attempt, "no", 0), err);
    for (size_t i = 0; i < 2 && rc == 0; i++) {
        terminal_printf(stdout, "── %s\n", i == 0 ? LAYOUT_STDERR : LAYOUT_STDOUT);
        rc = print_tail(&logs[i], o->lines, err);
    }
    if (rc == 0 && o->follow && answer_bool(attempt, "live")) {
        rc = follow(o, answer_int(attempt, "no", 0), logs, err);
    }
    return rc;
}

/* With --json the attempts are listed, and no log is read. */
int cmd_logs(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    cJSON *answer = NULL;
    int rc = fetch(o, &answer, err);
    if (rc == 0 && o->json) {
        rc = out_json(answer, err);
    } else if (rc == 0) {
        const cJSON *attempt = pick(answer, o->attempt);
        rc = attempt != NULL
                 ? print_attempt(o, attempt, err)
                 : err_set(err, ERR_NOT_FOUND,
                           o->attempt > 0 ? "%s has no such attempt" : "%s has had no attempt yet",
                           o->args[0]);
    }
    cJSON_Delete(answer);
    return rc;
}
