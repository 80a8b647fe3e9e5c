/* Fills a program's mirror from the store at its loading: tasks, checks, pauses with their reasons,
 * running times, and the attempts without a recorded end. */
#include "daemon/program/mirror.h"

#include "base/xalloc.h"
#include "daemon/program/amended.h"
#include "daemon/program/apparatus.h"
#include "daemon/program/clocks.h"
#include "state/store/answered.h"

/* Collects the open attempts, which the core adopts. */
static int take_attempt(void *ctx, uint32_t task, const struct attempt_row *a, struct err *err)
{
    struct live_list *live = ctx;
    (void)err;
    ARRAY_GROW(live->items, live->n, live->cap);
    live->items[live->n++] = (struct core_live){.task = task, .attempt = *a};
    return 0;
}

struct past {
    struct hosted *hosted;
    struct live_list *live;
};

/* Past attempts give malformed lines, running times, and how the last attempt of a blocked task
 * ended. */
static int take_past(void *ctx, uint32_t task, const struct attempt_row *a, struct err *err)
{
    const struct past *past = ctx;
    struct hosted *h = past->hosted;
    struct live_list *live = past->live;
    if (task >= h->n_tasks + h->n_checks) {
        return err_set(err, ERR_CORRUPT,
                       "the store has an attempt of task %u, the program %zu tasks", task,
                       h->n_tasks + h->n_checks);
    }
    if (a->state == ATTEMPT_ENDED) {
        h->malformed += a->malformed;
        hosted_note_time(h, task, a);
        if (h->tasks[task].state == TASK_BLOCKED && h->tasks[task].n_attempts == a->no) {
            ARRAY_GROW(live->ends, live->n_ends, live->cap_ends);
            live->ends[live->n_ends++] = (struct core_end){task, a->code, a->signal};
        }
    }
    return 0;
}

struct pauses {
    struct hosted *hosted;
    unsigned before;
};

/* Replays the pauses, so that each bit gets the reason of the row that set it. */
static int take_pause(void *ctx, unsigned paused, const char *why, struct err *err)
{
    struct pauses *p = ctx;
    (void)err;
    hosted_note_pauses(p->hosted, p->before, paused, why);
    p->before = paused;
    return 0;
}

/* The reason of a pause is in the journal only. */
static int load_pauses(struct store *store, struct hosted *h, struct err *err)
{
    struct pauses p = {.hosted = h};
    return h->status.paused == 0 ? 0 : store_pauses(store, h->no, take_pause, &p, err);
}

/* What a person answered to a pause for failures holds for the attempts that were at work then,
 * whichever daemon sees them end. Apparatus checks never pause for failures. */
static int load_answered(struct store *store, const struct hosted *h, struct live_list *live,
                         struct err *err)
{
    struct store_answer *answers = xcalloc(live->n + 1, sizeof(*answers));
    size_t n = 0;
    while (n < live->n && live->items[n].task < h->n_tasks) { /* they are in order of task */
        answers[n] = (struct store_answer){.task = live->items[n].task,
                                           .attempt_no = live->items[n].attempt.no};
        n++;
    }
    const uint32_t n_stages = (uint32_t)h->plan->program->n_stages;
    int rc = store_answered(store, h->no, n_stages, answers, n, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        live->items[i].answered = answers[i].answered;
    }
    free(answers);
    return rc;
}

/* The order matters: checks before tasks (their number counts in), tasks before attempts. */
int mirror_load(struct store *store, struct hosted *h, const struct store_program *row,
                struct live_list *live, struct err *err)
{
    struct task_row *rows = NULL;
    size_t n = 0;
    const struct plan_program *p = h->bundle->program;
    int rc = apparatus_load(store, h, row->status.verdict, err);
    if (rc != 0 || (rc = store_task_rows(store, h->no, &rows, &n, err)) != 0) {
        return rc;
    }
    if (n != program_n_tasks(p) + h->n_checks) {
        free(rows);
        return err_set(err, ERR_CORRUPT, "the store has %zu tasks, the program %zu", n,
                       program_n_tasks(p) + h->n_checks);
    }
    hosted_set_tasks(h, rows, n);
    h->status = row->status;
    h->unverified = row->unverified_history;
    h->submitted = row->submitted;
    struct past past = {h, live};
    if ((rc = amended_verdict_head(store, h, h->verdict_head, err)) != 0 ||
        (rc = h->status.reported ? store_reported_time(store, h->no, &h->finished, err) : 0) != 0 ||
        (rc = store_attempts(store, h->no, UINT32_MAX, take_past, &past, err)) != 0 ||
        (rc = load_pauses(store, h, err)) != 0 || (rc = clocks_at_start(store, h, err)) != 0 ||
        (rc = store_live_attempts(store, h->no, take_attempt, live, err)) != 0) {
        return rc;
    }
    return load_answered(store, h, live, err);
}
