/*
 * ACT_REPORT: verdict.json and provenance.json, then prereg-report as a process of its own.
 *
 *   verdict at hand? ──no──► computed again, and must be the digest that was journalled
 *        └─yes─► both files written off the loop ──► prereg-report ──► REPORTED
 *                                                         └─fails──► again after AGAIN_MS
 *
 * The verdict is final once its files are written: after TRIES_FIRST failures REPORTED is
 * journalled with the reason, so that no client waits for a report that does not come.
 * prereg-report is retried all the same, also after a restart; `status` says why, `preregctl
 * report` runs it at once.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/shell/provenance.h"
#include "daemon/shell/verdict_job.h"

#define REPORT_LIMIT_MS ((uint64_t)10 * 60 * 1000)
#define TRIES_FIRST     3
#define LOG_WORDS_MAX   200

/* Waits before each retry; the last one repeats. */
static const uint64_t AGAIN_MS[] = {1000, 5000, 30000, 120000, 600000};

struct report_job {
    struct job job;
    struct shell *shell;
    struct hosted *hosted;
    struct bundle *bundle;
    struct provenance provenance;
    char *verdict;
    int rc;
    struct err err;
};

struct report_process {
    struct shell *shell;
    struct hosted *hosted;
    unsigned n_open;
    bool late; /* killed for that */
    uv_process_t process;
    uv_timer_t limit;
};

/* Posts REPORTED. why: the reason why only the verdict's files exist; NULL when the report does,
 * too. */
static void say_reported(struct shell *sh, struct hosted *h, const char *why)
{
    struct core_event ev = {.kind = CORE_REPORTED, .program = h->no, .text = why};
    h->report_running = false;
    pump_post(sh->pump, &ev);
}

/* ---- again, later ---- */

struct later {
    struct shell *shell;
    struct hosted *hosted;
    void (*act)(struct shell *sh, struct hosted *h);
    uv_timer_t timer;
};

static void on_later_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void close_later(struct hosted *h)
{
    struct later *l = h->report_later;
    if (l != NULL) {
        h->report_later = NULL;
        uv_close((uv_handle_t *)&l->timer, on_later_closed);
    }
}

static void on_later(uv_timer_t *timer)
{
    const struct later l = *(struct later *)timer->data;
    close_later(l.hosted);
    if (!l.shell->stopping) {
        l.act(l.shell, l.hosted);
    }
}

/* Calls `act` after ms, unless the daemon stops. A program has one such timer: a new one replaces
 * it. */
static void act_later(struct shell *sh, struct hosted *h, uint64_t ms,
                      void (*act)(struct shell *sh, struct hosted *h))
{
    struct later *l = xcalloc(1, sizeof(*l));
    *l = (struct later){.shell = sh, .hosted = h, .act = act};
    close_later(h);
    h->report_later = l;
    (void)uv_timer_init(&sh->loop, &l->timer);
    l->timer.data = l;
    (void)uv_timer_start(&l->timer, on_later, ms, 0);
}

static uint64_t span_after(unsigned n_failed)
{
    const size_t last = ARRAY_LEN(AGAIN_MS) - 1;
    return AGAIN_MS[n_failed == 0 ? 0 : n_failed - 1 < last ? n_failed - 1 : last];
}

/* ---- prereg-report ---- */

static void on_report_closed(uv_handle_t *handle)
{
    struct report_process *r = handle->data;
    if (--r->n_open == 0) {
        free(r);
    }
}

/* Both handles must be closed before the struct is freed; n_open counts them. */
void shell_close_report(struct hosted *h)
{
    struct report_process *r = h->report;
    close_later(h);
    if (r != NULL) {
        h->report = NULL;
        uv_close((uv_handle_t *)&r->process, on_report_closed);
        uv_close((uv_handle_t *)&r->limit, on_report_closed);
    }
}

/* The last line of report.log; empty when there is none. */
static void last_words(const struct hosted *h, char out[LOG_WORDS_MAX])
{
    char tail[LOG_WORDS_MAX];
    char *path = path_join(h->folder, LAYOUT_REPORT_LOG);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    const off_t from = end > (off_t)sizeof(tail) ? end - (off_t)sizeof(tail) : 0;
    ssize_t n = fd < 0 ? 0 : pread(fd, tail, sizeof(tail) - 1, from);
    n = n < 0 ? 0 : n;
    while (n > 0 && tail[n - 1] == '\n') {
        n--;
    }
    tail[n] = '\0';
    const char *line = strrchr(tail, '\n');
    (void)snprintf(out, LOG_WORDS_MAX, "%s", line == NULL ? tail : line + 1);
    text_make_utf8(out);
    if (fd >= 0) {
        (void)close(fd);
    }
    free(path);
}

static void run_again(struct shell *sh, struct hosted *h);

/* Counts the failure, notes its reason for status, and schedules the next run. */
static void report_failed(struct shell *sh, struct hosted *h, const char *how)
{
    char words[LOG_WORDS_MAX];
    char when[64];
    const uint64_t ms = span_after(++h->report_failures);
    last_words(h, words);
    free(h->report_why);
    h->report_why = xasprintf("prereg-report %s%s%s", how, words[0] == '\0' ? "" : ": ", words);
    h->version++;
    log_error("%s: %s; tried again in %s", h->id, h->report_why,
              clock_span_text((int64_t)ms, when, sizeof(when)));
    if (h->report_failures == TRIES_FIRST) {
        char *text = xasprintf("verdict.json and provenance.json alone: %s", h->report_why);
        say_reported(sh, h, text);
        free(text);
    }
    act_later(sh, h, ms, run_again);
}

static void on_report_exit(uv_process_t *process, int64_t code, int sig)
{
    struct report_process *r = process->data;
    struct shell *sh = r->shell;
    struct hosted *h = r->hosted;
    const bool late = r->late;
    shell_close_report(h);
    h->report_ready = code == 0 && sig == 0;
    if (!h->report_ready) {
        char how[80];
        (void)snprintf(how, sizeof(how),
                       late       ? "was ended after %d minutes"
                       : sig != 0 ? "was ended by signal %d"
                                  : "ended with code %d",
                       late       ? (int)(REPORT_LIMIT_MS / 60000)
                       : sig != 0 ? sig
                                  : (int)code);
        report_failed(sh, h, how);
        return;
    }
    free(h->report_why);
    h->report_why = NULL;
    h->report_failures = 0;
    h->version++;
    say_reported(sh, h, NULL);
}

/* prereg-report has a time limit, so that a fault in it cannot occupy the machine for ever. */
static void on_report_limit(uv_timer_t *timer)
{
    struct report_process *r = timer->data;
    r->late = true;
    (void)uv_process_kill(&r->process, SIGKILL);
}

/* Returns libuv's error. Both outputs go to report.log. */
static int spawn_report(struct report_process *r, const char *program, const char *folder, int log)
{
    char *name = xstrdup("prereg-report");
    char *where = xstrdup(folder);
    char *argv[] = {name, where, NULL};
    uv_stdio_container_t io[3] = {{.flags = UV_IGNORE},
                                  {.flags = UV_INHERIT_FD, .data.fd = log},
                                  {.flags = UV_INHERIT_FD, .data.fd = log}};
    uv_process_options_t options = {
        .exit_cb = on_report_exit, .file = program, .args = argv, .stdio_count = 3, .stdio = io};
    int rc = uv_spawn(&r->shell->loop, &r->process, &options);
    free(name);
    free(where);
    return rc;
}

static void run_report(struct shell *sh, struct hosted *h)
{
    struct strbuf own = STRBUF_INIT;
    struct err err;
    struct report_process *r = xcalloc(1, sizeof(*r));
    r->shell = sh;
    r->hosted = h;
    h->report = r;
    r->n_open = 2;
    r->process.data = r->limit.data = r;
    int rc = path_of_self(&own, &err) == 0 ? 0 : UV_ENOENT;
    char *program = path_join(own.buf, "prereg-report");
    char *log_path = path_join(h->folder, LAYOUT_REPORT_LOG);
    int log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    (void)uv_timer_init(&sh->loop, &r->limit);
    if (rc == 0) {
        rc = spawn_report(r, program, h->folder, log);
    }
    if (log >= 0) {
        (void)close(log);
    }
    if (rc == 0) {
        (void)uv_timer_start(&r->limit, on_report_limit, REPORT_LIMIT_MS, 0);
    } else {
        char how[160];
        (void)snprintf(how, sizeof(how), "cannot be started: %s", uv_strerror(rc));
        shell_close_report(h);
        report_failed(sh, h, how);
    }
    free(log_path);
    free(program);
    strbuf_release(&own);
}

/* Runs prereg-report again, unless `preregctl report` has written the report meanwhile. */
static void run_again(struct shell *sh, struct hosted *h)
{
    if (shell_has_report(h)) {
        h->report_ready = true;
        free(h->report_why);
        h->report_why = NULL;
        h->version++;
        say_reported(sh, h, NULL);
    } else {
        run_report(sh, h);
    }
}

static struct timespec changed_at(const struct hosted *h, const char *name, bool *there)
{
    struct stat st = {0};
    char *path = xasprintf("%s/" LAYOUT_REPORT "/%s", h->folder, name);
    *there = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    free(path);
    return st.st_mtim;
}

/* A report is whole when SHA256SUMS, which prereg-report writes last, is not older than
 * verdict.json. */
bool shell_has_report(const struct hosted *h)
{
    bool there[2];
    const struct timespec sums = changed_at(h, LAYOUT_SUMS, &there[0]);
    const struct timespec verdict = changed_at(h, LAYOUT_VERDICT, &there[1]);
    return there[0] && there[1] &&
           (sums.tv_sec > verdict.tv_sec ||
            (sums.tv_sec == verdict.tv_sec && sums.tv_nsec >= verdict.tv_nsec));
}

/* After a restart: runs prereg-report where the verdict is reported and its report is missing or
 * older. */
void shell_mend_report(struct shell *sh, struct hosted *h)
{
    h->report_ready = shell_has_report(h);
    if (h->status.reported && !h->status.removed && !h->report_ready && h->report_later == NULL &&
        h->report == NULL) {
        h->report_failures = TRIES_FIRST; /* its row is in the journal */
        h->report_why = xstrdup("the report is missing, or older than its verdict");
        act_later(sh, h, AGAIN_MS[0], run_again);
    }
}

/* ---- the two files ---- */

/* verdict.json comes first: provenance.json describes how it came about. */
static void on_write_work(struct job *job)
{
    struct report_job *j = (struct report_job *)job;
    char *folder = path_join(j->hosted->folder, LAYOUT_REPORT);
    char *verdict = path_join(folder, LAYOUT_VERDICT);
    char *provenance = path_join(folder, LAYOUT_PROVENANCE);
    if (j->rc == 0) {
        j->rc = dir_make_below(j->hosted->folder, folder, true, &j->err);
    }
    if (j->rc == 0) {
        j->rc = file_write_atomic(verdict, j->verdict, strlen(j->verdict), 0600, &j->err);
    }
    if (j->rc == 0) {
        j->rc = provenance_write(&j->provenance, provenance, &j->err);
    }
    free(provenance);
    free(verdict);
    free(folder);
}

static void write_files(struct shell *sh, struct hosted *h);

static void on_written(struct job *job)
{
    struct report_job *j = (struct report_job *)job;
    struct shell *sh = j->shell;
    if (!sh->stopping && j->rc == 0) {
        run_report(sh, j->hosted);
    } else if (!sh->stopping) {
        log_error("%s: %s", j->hosted->id, j->err.msg);
        /* such as a full disk: the verdict is in the journal, and its file is retried */
        act_later(sh, j->hosted, AGAIN_MS[1], write_files);
    }
    provenance_release(&j->provenance);
    bundle_unref(j->bundle);
    free(j->verdict);
    free(j);
}

static void write_files(struct shell *sh, struct hosted *h)
{
    struct report_job *j = xcalloc(1, sizeof(*j));
    j->job.work = on_write_work;
    j->job.done = on_written;
    j->shell = sh;
    j->hosted = h;
    j->bundle = bundle_ref(h->bundle);
    j->verdict = xstrdup(h->verdict_text);
    j->rc = provenance_collect(sh, h, &j->provenance, &j->err);
    j->provenance.bundle = j->bundle;
    job_start(&sh->loop, &j->job);
}

/* ---- after a restart between verdict and report ---- */

/* The text of a verdict is not stored, so it is computed again from the same records. Its bytes
 * must have the digest that was journalled. */
static void on_computed_again(struct verdict_job *j)
{
    struct hosted *h = j->hosted;
    if (j->rc != 0 || !digest_equal(&j->digest, &h->status.verdict_digest)) {
        log_error("%s: the verdict that was journalled does not come out again: %s", h->id,
                  j->rc != 0 ? j->err.msg : "other bytes");
        h->report_running = false;
        return;
    }
    verdict_job_hand_over(j);
    write_files(j->shell, h);
}

void shell_write_report(struct shell *sh, uint32_t program)
{
    struct hosted *h = shell_program(sh, program);
    if (h->checking) { /* provenance.json says what the check finds */
        h->report_due = true;
        return;
    }
    if (h->report_running) {
        return;
    }
    h->report_running = true;
    if (h->verdict_text == NULL) {
        verdict_job_start(sh, h, on_computed_again);
    } else {
        write_files(sh, h);
    }
}
