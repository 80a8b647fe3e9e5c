/* The counted tasks in a program's status: how many are lost, and how many of those losses the rule
 * of the verdict excludes (truthtable/evidence/task_coverage.h). Whether a loss is excluded can
 * depend on the [run] limits that other tasks had; these are read from the journal, and only when
 * there is such a loss, because status is asked for often. Of a long journal an
 * answer reads a part, and the turns of the loop behind it the rest. */
#include "base/json/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/answers/answer.h"
#include "prereg/program/same_work.h"
#include "state/store/run_history.h"
#include "truthtable/evidence/task_coverage.h"

#define STEP_ROWS 1000 /* of a journal, read in one turn of the loop */

/* Reads on, turn by turn, what the answers of the turns before had no time for. */
struct counted_reader {
    uv_timer_t timer;
    struct shell *shell;
};

static bool step(const struct shell *sh, struct hosted *h)
{
    const struct run_bounds bounds = {.rows = sh->checked_rows, .step = STEP_ROWS};
    struct err err;
    if (run_record_follow(sh->store, h->no, h->plan->program, &bounds, &h->followed, &err) != 0) {
        log_warn("%s: what [run] was: %s", h->id, err.msg);
        return false;
    }
    h->following = run_record_is_behind(h->followed);
    return true;
}

/* One program a turn, so that nothing else waits for longer than a step. */
static void on_turn(uv_timer_t *timer)
{
    const struct counted_reader *reader = timer->data;
    struct shell *sh = reader->shell;
    struct hosted *h = NULL;
    for (size_t i = 0; h == NULL && i < sh->cap_programs; i++) {
        h = sh->programs[i] != NULL && sh->programs[i]->following ? sh->programs[i] : NULL;
    }
    if (h == NULL) {
        return;
    }
    h->following = false;
    if (step(sh, h) && !h->following) {
        h->version++;
        sh->replies.note_change(sh->replies.ctx);
    }
    (void)uv_timer_start(timer, on_turn, 1, 0);
}

void counted_open(struct shell *sh)
{
    struct counted_reader *reader = xcalloc(1, sizeof(*reader));
    reader->shell = sh;
    reader->timer.data = reader;
    (void)uv_timer_init(&sh->loop, &reader->timer);
    sh->reader = reader;
}

static void on_closed(uv_handle_t *timer)
{
    free(timer->data);
}

void counted_close(struct shell *sh)
{
    uv_close((uv_handle_t *)&sh->reader->timer, on_closed);
    sh->reader = NULL;
}

/* The history of [run], kept up to date between calls; NULL: not known, or not yet. */
static struct run_record *follow(const struct shell *sh, const struct hosted *hosted)
{
    struct hosted *h = shell_program(sh, hosted->no);
    if (!step(sh, h)) {
        return NULL;
    }
    if (h->following && sh->reader != NULL) {
        (void)uv_timer_start(&sh->reader->timer, on_turn, 1, 0);
    }
    return run_record_is_known(h->followed) ? h->followed : NULL;
}

/* Blocked for a cause that has nothing to do with the scores. */
static bool is_lost_mechanically(const struct hosted *h, uint32_t task)
{
    const struct task_row *t = &h->tasks[task];
    return t->state == TASK_BLOCKED && cause_is_mechanical(t->cause);
}

const char *counted_narrower(const struct shell *sh, const struct hosted *h, uint32_t task)
{
    if (hosted_is_check(h, task) || !is_lost_mechanically(h, task)) {
        return NULL;
    }
    struct run_record *r = follow(sh, h);
    return r == NULL ? NULL : run_record_narrower(r, task, h->tasks[task].cause);
}

static enum task_end end_of(enum task_state s)
{
    return s == TASK_DONE        ? TASK_END_DONE
           : s == TASK_BLOCKED   ? TASK_END_BLOCKED
           : s == TASK_NEVER_RUN ? TASK_END_NEVER_RUN
                                 : TASK_END_PENDING;
}

struct losses {
    int64_t excluded;
    int64_t narrower; /* would be excluded, had others not had wider limits */
};

/* r NULL: as if [run] had never been changed. In the order of tasks: whether a loss counts depends
 * on the stages before it and, of another name of a work, on an earlier cell. */
static struct losses count_losses(const struct hosted *h, struct run_record *r)
{
    const struct plan_program *p = h->bundle->program;
    struct losses n = {0};
    struct loss *losses = xcalloc(p->workers == NULL ? p->n_stages : h->n_tasks, sizeof(*losses));
    for (size_t i = 0; i < h->n_tasks; i++) {
        const struct task_row *t = &h->tasks[i];
        const size_t stage = i % p->n_stages;
        const size_t worker = program_worker_of(p, i);
        struct loss *cell = p->workers == NULL ? losses : &losses[i - stage];
        const char *narrower = r == NULL || !is_lost_mechanically(h, (uint32_t)i)
                                   ? NULL
                                   : run_record_narrower(r, i, t->cause);
        cell[stage] = coverage_loss(&(struct task_ended){end_of(t->state), t->cause, narrower},
                                    &p->stages[stage], cell, worker == i ? NULL : &losses[worker]);
        if (program_stage_is_budgeted(p, stage)) {
            n.excluded +=
                program_stage_is_excludable(p, stage) && coverage_loss_is_chance(&cell[stage]);
            n.narrower += cell[stage].narrower != NULL;
        }
    }
    free(losses);
    return n;
}

/* First counts as if [run] had never changed: without an excluded loss the journal need not be
 * read. */
cJSON *counted_json(const struct shell *sh, const struct hosted *h)
{
    const struct plan_program *p = h->bundle->program;
    int64_t planned = 0;
    int64_t by_state[TASK_STATE_NR] = {0};
    for (size_t i = 0; i < h->n_tasks; i++) {
        const bool counts = program_stage_is_budgeted(p, i % p->n_stages);
        planned += counts;
        by_state[h->tasks[i].state] += counts;
    }
    struct losses n = count_losses(h, NULL);
    bool known = true;
    if (n.excluded > 0) {
        struct run_record *r = follow(sh, h);
        known = r != NULL;
        n = count_losses(h, r);
    }
    cJSON *o = json_object();
    json_put_int(o, "planned", planned);
    json_put_int(o, "done", by_state[TASK_DONE]);
    json_put_int(o, "blocked", by_state[TASK_BLOCKED]);
    json_put_int(o, "never_run", by_state[TASK_NEVER_RUN]);
    json_put_int(o, "excluded", n.excluded);
    if (known) {
        json_put_int(o, "narrower", n.narrower);
    } else {
        json_put_null(o, "narrower");
    }
    json_put_int(o, "budget", (int64_t)coverage_budget(p->exclusion_budget, (size_t)planned));
    return o;
}
