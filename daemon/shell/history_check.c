/* Checks in the background a journal that is too long for the store to check at once. Verdict and
 * report of its program wait for the end of the check, and start from here. A journal that cannot
 * be read proves nothing: the check is repeated, ever more rarely. */
#include "daemon/shell/shell.h"

#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"

#define CHECK_AGAIN_MS     2000
#define CHECK_AGAIN_MAX_MS ((uint64_t)5 * 60 * 1000)

struct check_job {
    struct job job;
    struct shell *shell;
    uint32_t program;
    int64_t n_rows;
    char *state;
    uv_timer_t timer;       /* until it is tried again */
    uint64_t wait_ms;       /* and how long after the next failure */
    struct check_job *next; /* of those that wait */
    int rc;
    struct err err;
};

static void on_check_work(struct job *job)
{
    struct check_job *j = (struct check_job *)job;
    j->rc = store_check_journal(j->state, j->program, j->n_rows, &j->err);
}

/* The check is over: starts the verdict and the report that waited for it. */
static void let_go(struct shell *sh, struct hosted *h)
{
    h->checking = false;
    h->version++;
    if (h->verdict_due) {
        h->verdict_due = false;
        shell_compute_verdict(sh, h->no);
    }
    if (h->report_due) {
        h->report_due = false;
        shell_write_report(sh, h->no);
    }
}

static void keep_why(struct hosted *h, const char *why)
{
    free(h->history_why);
    h->history_why = why == NULL ? NULL : xstrdup(why);
    h->version++;
}

static void on_check_closed(uv_handle_t *handle)
{
    struct check_job *j = handle->data;
    free(j->state);
    free(j);
}

static void check_done(struct check_job *j)
{
    uv_close((uv_handle_t *)&j->timer, on_check_closed);
}

static void on_check_again(uv_timer_t *timer)
{
    struct check_job *j = timer->data;
    struct check_job **at = &j->shell->waiting_checks;
    while (*at != j) {
        at = &(*at)->next;
    }
    *at = j->next;
    job_start(&j->shell->loop, &j->job);
}

void history_check_close(struct shell *sh)
{
    while (sh->waiting_checks != NULL) {
        struct check_job *j = sh->waiting_checks;
        sh->waiting_checks = j->next;
        check_done(j);
    }
}

/* A journal that cannot be read proves nothing: it is checked again, after a wait that doubles each
 * time because every check begins at row 1, and status shows why the verdict waits. */
static void check_later(struct check_job *j, struct hosted *h)
{
    if (h->history_why == NULL || strcmp(h->history_why, j->err.msg) != 0) {
        log_warn("%s: its journal cannot be checked: %s", h->id, j->err.msg);
        keep_why(h, j->err.msg);
    }
    j->next = j->shell->waiting_checks;
    j->shell->waiting_checks = j;
    (void)uv_timer_start(&j->timer, on_check_again, j->wait_ms, 0);
    j->wait_ms = 2 * j->wait_ms < CHECK_AGAIN_MAX_MS ? 2 * j->wait_ms : CHECK_AGAIN_MAX_MS;
}

/* The finding is kept in memory only: the next start checks again and sees whether it was
 * repaired. */
static void on_checked(struct job *job)
{
    struct check_job *j = (struct check_job *)job;
    struct hosted *h = j->shell->stopping ? NULL : shell_served(j->shell, j->program);
    if (h != NULL && j->rc != 0 && j->rc != ERR_CORRUPT) {
        check_later(j, h);
        return;
    }
    if (h != NULL) {
        h->unverified |= j->rc != 0;
        keep_why(h, j->rc != 0 ? j->err.msg : NULL);
        if (j->rc != 0) {
            log_error("%s: UNVERIFIED HISTORY: %s", h->id, j->err.msg);
        }
        let_go(j->shell, h);
    }
    check_done(j);
}

int history_check_start(struct shell *sh, struct hosted *h, struct err *err)
{
    struct digest head;
    int64_t n_rows = 0;
    int rc = store_journal_head(sh->store, h->no, &head, &n_rows, err);
    if (rc != 0 || n_rows <= sh->checked_rows) {
        return rc;
    }
    struct check_job *j = xcalloc(1, sizeof(*j));
    j->job.work = on_check_work;
    j->job.done = on_checked;
    j->shell = sh;
    j->program = h->no;
    j->n_rows = n_rows;
    j->wait_ms = CHECK_AGAIN_MS;
    j->state = xstrdup(sh->state);
    (void)uv_timer_init(&sh->loop, &j->timer);
    j->timer.data = j;
    h->checking = true;
    job_start(&sh->loop, &j->job);
    return 0;
}
