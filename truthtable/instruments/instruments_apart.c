/*
 * Computes instruments in a child process with a time limit. Instruments read items and fit models
 * on data from strangers; a crash or an endless loop there must cost the report a section, not its
 * existence. The child writes one line of JSON into a pipe; whatever else happens becomes the
 * reason in an otherwise empty file.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "truthtable/instruments/instrument_work.h"

/* instruments.json with a reason. The verdict is not read: it may be what crashed the child. */
static cJSON *none(const struct instruments_input *in, const char *why)
{
    cJSON *o = json_object();
    json_put_int(o, "schema", INSTRUMENTS_SCHEMA);
    json_put_string(o, "program", in->program->name);
    json_put_string(o, "root", in->lock->root);
    json_put_string(o, "head", in->lock->head);
    json_put_bool(o, "binds", false);
    json_put_null(o, "verdict");
    json_put_string(o, "why", why);
    json_put(o, "instruments", json_array());
    json_put(o, "forecasts", json_array());
    json_put_null(o, "forecast_score");
    json_put_null(o, "priors");
    return o;
}

/* Ends by _exit(), so that the parent's buffers are not flushed twice. */
__attribute__((noreturn)) static void run_child(const struct instruments_input *in,
                                                const struct evidence *e, int fd)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    static const int fatal[] = {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < ARRAY_LEN(fatal); i++) {
        (void)signal(fatal[i], SIG_DFL); /* the caller's handlers are not for here */
    }
    (void)alarm(INSTRUMENTS_SECONDS_MAX);
    cJSON *o = e == NULL ? instruments_compute(in) : instruments_of_evidence(in, e);
    int rc = json_line(o, &text, &err);
    if (rc == 0) {
        rc = file_write_all(fd, text.buf, text.len, &err);
    }
    _exit(rc == 0 ? 0 : 1);
}

/* What the child writes; false when it is too much, or reading fails. */
static bool read_all(int fd, struct strbuf *out)
{
    char piece[1 << 14];
    for (;;) {
        ssize_t n = read(fd, piece, sizeof(piece));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n == 0;
        }
        if (out->len + (size_t)n > INSTRUMENTS_BYTES_MAX) {
            return false;
        }
        strbuf_add(out, piece, (size_t)n);
    }
}

/* The signals that mean something here get their own words. */
bool instruments_ended_words(int status, char *why, size_t size)
{
    if (!WIFSIGNALED(status)) {
        return false;
    }
    int no = WTERMSIG(status);
    const char *name = sigabbrev_np(no);
    if (no == SIGALRM) {
        (void)snprintf(why, size, "they took longer than their limit of %u seconds",
                       INSTRUMENTS_SECONDS_MAX);
    } else if (no == SIGABRT) {
        (void)snprintf(why, size, "they were ended by a fault of their own, or had no memory left");
    } else if (name == NULL) {
        (void)snprintf(why, size, "their process was ended by signal %d", no);
    } else {
        (void)snprintf(why, size, "their process was ended by SIG%s", name);
    }
    return true;
}

/* The child's file, or why there is none. */
static cJSON *outcome_of(const struct instruments_input *in, int status, bool whole,
                         const struct strbuf *text)
{
    char why[128];
    struct err err = {0};
    cJSON *o = NULL;
    if (instruments_ended_words(status, why, sizeof(why))) {
        return none(in, why);
    }
    if (!whole || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        (void)snprintf(why, sizeof(why), "the instruments ended before they had said everything");
    } else if (json_parse(text->buf, text->len, &o, &err) == 0) {
        return o;
    } else {
        (void)snprintf(why, sizeof(why), "what the instruments said cannot be read");
    }
    return none(in, why);
}

/* stdio is flushed before the fork. Reading ends at the child's exit or at the byte limit,
 * whichever is first. */
cJSON *instruments_compute_apart(const struct instruments_input *in, const struct evidence *e)
{
    int fds[2];
    struct strbuf text = STRBUF_INIT;
    int status = 0;
    (void)fflush(NULL);
    if (pipe(fds) != 0) {
        return none(in, "no pipe for the instruments");
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(fds[0]);
        run_child(in, e, fds[1]);
    }
    (void)close(fds[1]);
    bool whole = pid > 0 && read_all(fds[0], &text);
    (void)close(fds[0]); /* a child that has more to say ends by SIGPIPE */
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    cJSON *o =
        pid > 0 ? outcome_of(in, status, whole, &text) : none(in, "no process for the instruments");
    strbuf_release(&text);
    return o;
}
