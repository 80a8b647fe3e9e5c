/*
 * ACT_REPORT: verdict.json and provenance.json, then prereg-report as a process of its own.
 *
 *   verdict at hand? ──no──► computed again, and must be the digest that was journalled
 *        └─yes─► both files written off the loop ──► prereg-report ──► REPORTED
 *
 * The verdict stands once its files are written: a report that fails is logged, can be made again
 * with `preregctl report`, and holds nothing up.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/provenance.h"
#include "daemon/verdict_job.h"

#define REPORT_LIMIT_MS ((uint64_t)10 * 60 * 1000)
#define AGAIN_MS        5000

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
    uv_process_t process;
    uv_timer_t limit;
};

static void say_reported(struct shell *sh, struct hosted *h)
{
    struct core_event ev = {.kind = CORE_REPORTED, .program = h->no};
    h->report_running = false;
    pump_post(sh->pump, &ev);
}

/* ---- prereg-report ---- */

static void on_report_closed(uv_handle_t *handle)
{
    struct report_process *r = handle->data;
    if (--r->n_open == 0) {
        free(r);
    }
}

void shell_close_report(struct hosted *h)
{
    struct report_process *r = h->report;
    if (r != NULL) {
        h->report = NULL;
        uv_close((uv_handle_t *)&r->process, on_report_closed);
        uv_close((uv_handle_t *)&r->limit, on_report_closed);
    }
}

static void on_report_exit(uv_process_t *process, int64_t code, int sig)
{
    struct report_process *r = process->data;
    shell_close_report(r->hosted);
    r->hosted->report_ready = code == 0 && sig == 0;
    if (!r->hosted->report_ready) {
        log_error("%s: prereg-report ended with code %lld, signal %d; see report.log",
                  r->hosted->id, (long long)code, sig);
    }
    say_reported(r->shell, r->hosted);
}

static void on_report_limit(uv_timer_t *timer)
{
    struct report_process *r = timer->data;
    (void)uv_process_kill(&r->process, SIGKILL);
}

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
    char *log_path = path_join(h->folder, "report.log");
    int log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    (void)uv_timer_init(&sh->loop, &r->limit);
    rc = rc == 0 ? spawn_report(r, program, h->folder, log) : rc;
    if (log >= 0) {
        (void)close(log);
    }
    if (rc == 0) {
        (void)uv_timer_start(&r->limit, on_report_limit, REPORT_LIMIT_MS, 0);
    } else {
        log_error("%s: start %s: %s", h->id, program, uv_strerror(rc));
        shell_close_report(h);
        say_reported(sh, h);
    }
    free(log_path);
    free(program);
    strbuf_release(&own);
}

/* ---- the two files ---- */

static void on_write_work(struct job *job)
{
    struct report_job *j = (struct report_job *)job;
    char *folder = path_join(j->hosted->folder, "report");
    char *verdict = path_join(folder, "verdict.json");
    char *provenance = path_join(folder, "provenance.json");
    if (j->rc == 0) {
        j->rc = dir_make_durable(folder, 0700, &j->err);
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

struct later {
    struct shell *shell;
    uint32_t program;
    uv_timer_t timer;
};

static void on_later_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_later(uv_timer_t *timer)
{
    struct later *l = timer->data;
    if (!l->shell->stopping) {
        write_files(l->shell, shell_program(l->shell, l->program));
    }
    uv_close((uv_handle_t *)timer, on_later_closed);
}

/* A full disk, say: the verdict is in the journal, its file comes when it can. */
static void write_later(struct shell *sh, uint32_t program)
{
    struct later *l = xcalloc(1, sizeof(*l));
    l->shell = sh;
    l->program = program;
    (void)uv_timer_init(&sh->loop, &l->timer);
    l->timer.data = l;
    (void)uv_timer_start(&l->timer, on_later, AGAIN_MS, 0);
}

static void on_written(struct job *job)
{
    struct report_job *j = (struct report_job *)job;
    struct shell *sh = j->shell;
    if (!sh->stopping && j->rc == 0) {
        run_report(sh, j->hosted);
    } else if (!sh->stopping) {
        log_error("%s: %s", j->hosted->id, j->err.msg);
        write_later(sh, j->hosted->no);
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

static void on_computed_again(struct verdict_job *j)
{
    struct hosted *h = j->hosted;
    if (j->rc != 0 || !digest_equal(&j->digest, &h->status.verdict_digest)) {
        log_error("%s: the verdict that was journalled does not come out again: %s", h->id,
                  j->rc != 0 ? j->err.msg : "other bytes");
        h->report_running = false;
        return;
    }
    h->verdict_text = j->text;
    h->verdict_timing = j->timing;
    j->text = NULL;
    j->timing = NULL;
    write_files(j->shell, h);
}

void shell_write_report(struct shell *sh, uint32_t program)
{
    struct hosted *h = shell_program(sh, program);
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
