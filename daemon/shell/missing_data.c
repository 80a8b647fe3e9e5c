/*
 * Missing things may come back: a disk is mounted again, a file is restored. A program that waits
 * for missing data or cells, or whose verdict they or the lock refused, is checked every few
 * seconds, off the loop, and resumes by itself. Data that came back with other contents are then
 * found as drift.
 */
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/program/amended.h"
#include "daemon/program/cells.h"
#include "daemon/program/prepare.h"
#include "daemon/shell/shell.h"

#define HOST_WAIT_MS     ((int64_t)60 * 1000)
#define HOST_WAIT_MAX_MS ((int64_t)60 * 60 * 1000)

struct look_job {
    struct job job;
    struct shell *shell;
    struct hosted *hosted;
    struct bundle *bundle;
    bool cells_used;
    int rc;
    enum core_start_failure why;
    struct err err;
};

static void on_look_work(struct job *job)
{
    struct look_job *j = (struct look_job *)job;
    j->rc = prepare_check_lock(j->hosted, j->bundle, &j->why, &j->err);
    if (j->rc == 0) { /* the verdict checks them, too */
        j->rc = prepare_check_objects(j->hosted, j->bundle, j->shell->state, &j->why, &j->err);
    }
    if (j->rc == 0) {
        j->rc = cells_check(j->hosted, j->cells_used, &j->err);
        j->why = START_FAILED_MISSING;
    }
}

/* Drift and a refused lock end the wait for data, too: the next start reports them. */
static void take_finding(struct look_job *j)
{
    struct hosted *h = j->hosted;
    struct core_event ev = {.kind = CORE_MENDED, .program = h->no};
    bool waits = (h->status.paused & PAUSE_DATA) != 0;
    if (waits && (j->rc == 0 || j->why == START_FAILED_DRIFT || j->why == START_FAILED_LOCK)) {
        ev.text = "what was missing is there";
    } else if (waits) {
        hosted_set_paused_why(h, PAUSE_DATA, j->err.msg);
        return;
    } else if (h->verdict_waits && j->rc == 0) {
        ev.text = "the lock holds";
        h->verdict_waits = false;
    } else {
        return;
    }
    log_info("%s: %s", h->id, ev.text);
    pump_post(j->shell->pump, &ev);
}

static void on_looked(struct job *job)
{
    struct look_job *j = (struct look_job *)job;
    j->hosted->looked_at = false;
    if (!j->shell->stopping) {
        take_finding(j);
    }
    bundle_unref(j->bundle);
    free(j);
}

/* A machine that could not start attempts is tried again: after a minute, then twice as long each
 * time, up to an hour. */
static void look_at_host(struct shell *sh, struct hosted *h)
{
    int64_t now = clock_mono().ms;
    if ((h->status.paused & PAUSE_HOST) == 0) {
        h->host_due_ms = 0;
    } else if (h->host_due_ms == 0) {
        h->host_wait_ms = h->host_wait_ms == 0 ? HOST_WAIT_MS : 2 * h->host_wait_ms;
        h->host_wait_ms = h->host_wait_ms > HOST_WAIT_MAX_MS ? HOST_WAIT_MAX_MS : h->host_wait_ms;
        h->host_due_ms = now + h->host_wait_ms;
    } else if (now >= h->host_due_ms && h->status.paused == PAUSE_HOST) {
        struct core_event ev = {
            .kind = CORE_MENDED, .program = h->no, .text = "whether attempts start is tried again"};
        h->host_due_ms = 0;
        pump_post(sh->pump, &ev);
    }
}

/* grid.toml could not be written when the last amendment took effect. While the older text is
 * there, the lock refuses every spawn and every resume. */
static void look_at_text(struct hosted *h)
{
    struct err err;
    if (h->text_lags && amended_catch_up(h, &err) == 0) {
        log_info("%s: grid.toml of the last amendment is in place", h->id);
    }
}

/* At most one job for each program, in its lane, since it hashes what is pinned. */
void shell_look_for_mend(struct shell *sh, struct hosted *h)
{
    look_at_host(sh, h);
    look_at_text(h);
    bool waits = (h->status.paused & PAUSE_DATA) != 0 || h->verdict_waits;
    if (!waits || h->looked_at) {
        return;
    }
    struct look_job *j = xcalloc(1, sizeof(*j));
    j->job.work = on_look_work;
    j->job.done = on_looked;
    j->shell = sh;
    j->hosted = h;
    j->bundle = bundle_ref(h->bundle);
    j->cells_used = cells_are_used(h);
    h->looked_at = true;
    job_start_hashing(&sh->loop, &j->job, &h->hash_lane);
}
