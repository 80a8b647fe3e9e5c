/* Invariants, each where it could break. */
#include "tests/sim/slurm/parts.h"

#include <string.h>

/* One call of a kind at a time, and no more of all than the bucket allows: in a minute a minute's
 * worth and a burst of half of that (rule 10). */
void check_call(struct farm *f, const struct slurm_act *act)
{
    enum slurm_act_kind kind = act->kind == SLURM_ACT_NAMES ? SLURM_ACT_QUEUE : act->kind;
    if (f->under_way[kind]) {
        farm_fail(f, "two calls of kind %d at once", (int)kind);
    }
    f->under_way[kind] = true;
    f->n_calls_of[act->kind]++;
    const uint32_t most = 180;
    int64_t before = f->n_calls >= most ? f->calls_ms[(f->n_calls - most) % 256] : INT64_MIN / 2;
    if (f->now_ms - before < 60000) {
        farm_fail(f, "more than %u calls in a minute", most);
    }
    f->calls_ms[f->n_calls++ % 256] = f->now_ms;
}

void check_submit(struct farm *f, uint32_t attempt)
{
    const struct farm_attempt *a = &f->attempts[attempt];
    if (!a->live) {
        farm_fail(f, "attempt %u of task %u is submitted after its end", a->no, a->task);
    }
    /* Rule 1: never a second time while the first may be in the queue. */
    if ((a->n_live_jobs > 0 || a->in_flight) && !a->late) {
        farm_fail(f, "attempt %u of task %u is submitted twice", a->no, a->task);
    }
    if (a->claim != NONE && !a->late) {
        farm_fail(f, "attempt %u of task %u is submitted after it began", a->no, a->task);
    }
}

/* Rule 2: only what is to end, or is one too many. */
void check_cancelled(struct farm *f, uint32_t job)
{
    const struct farm_job *j = &f->jobs[job];
    const struct farm_attempt *a = &f->attempts[j->attempt];
    if (a->live && a->want == ASK_NOTHING && a->n_live_jobs < 2 && j->restarts == 0 && !a->late) {
        farm_fail(f, "job %u_%u of attempt %u of task %u is cancelled for nothing", j->base,
                  j->index, a->no, a->task);
    }
}

/* Rule 2: an id is cancelled under our name, and only one that was a job's of that name when the
 * queue was asked last. So another's job that has it by now is spared by --name. */
void check_foreign(struct farm *f, const struct slurm_act *act, uint32_t job)
{
    const struct farm_job *foreign = &f->jobs[job];
    bool was_ours = false;
    f->n_faults[FAULT_FOREIGN_ID]++;
    for (uint32_t i = 0; !was_ours && i < f->n_jobs; i++) {
        const struct farm_job *j = &f->jobs[i];
        was_ours = j->attempt != NONE && j->base == foreign->base && j->index == foreign->index &&
                   strcmp(f->batches[j->batch].name, act->name) == 0 &&
                   f->now_ms - j->changed_ms < 120000;
    }
    if (!was_ours) {
        farm_fail(f, "job %u of another is cancelled", foreign->base);
    }
}

void check_ended(struct farm *f, uint32_t attempt, const struct slurm_act *act)
{
    const struct farm_attempt *a = &f->attempts[attempt];
    if (!a->live) {
        farm_fail(f, "attempt %u of task %u ends twice", a->no, a->task);
    }
    if (!act->fence) {
        if (a->exit_seen_ms > f->now_ms || act->end->reason != a->end.reason ||
            act->end->code != a->end.code) {
            farm_fail(f, "attempt %u of task %u ends as no file says", a->no, a->task);
        }
        return;
    }
    if (act->end->unfit && a->unfit_seen_ms > f->now_ms) {
        farm_fail(f, "attempt %u of task %u ends as unfit, and no file says so", a->no, a->task);
    }
    /* Rules 15, 17: what waits in the queue is not given up, however long nobody can ask. */
    const struct farm_job *last = a->last_job != NONE ? &f->jobs[a->last_job] : NULL;
    if (last != NULL && last->present && last->state == SLURM_PENDING && last->restarts == 0 &&
        a->want == ASK_NOTHING && !a->late && f->now_ms - last->accepted_ms > 60000) {
        farm_fail(f, "attempt %u of task %u is given up and waits in the queue", a->no, a->task);
    }
    /* Rules 17, 19, 20: whatever Slurm shows, what beats is not given up. */
    if (a->claim != NONE) {
        const struct farm_job *j = &f->jobs[a->claim];
        const struct farm_node *n = &f->nodes[j->node];
        bool unseen = n->cut_off_ms != INT64_MAX || f->now_ms - n->back_ms < 120000;
        if (j->alive && !unseen && f->now_ms - j->began_ms > 60000) {
            farm_fail(f, "attempt %u of task %u is given up and works", a->no, a->task);
        }
        if (a->exit_seen_ms <= f->now_ms - 60000) {
            farm_fail(f, "attempt %u of task %u is given up and has ended", a->no, a->task);
        }
    }
}

/* Rule 17: nothing is opened while the job only waits. */
void check_look(struct farm *f, uint32_t attempt)
{
    const struct farm_attempt *a = &f->attempts[attempt];
    if (a->last_job == NONE || a->adopted || a->late || a->began || a->n_live_jobs != 1) {
        return;
    }
    const struct farm_job *j = &f->jobs[a->last_job];
    if (j->present && j->state == SLURM_PENDING && f->now_ms - j->accepted_ms > 300000) {
        farm_fail(f, "attempt %u of task %u is looked at while it waits", a->no, a->task);
    }
}

void check_step(struct farm *f)
{
    size_t known = slurm_book_count(f->book);
    if (known > f->n_live) {
        farm_fail(f, "the book has %zu attempts, %u live", known, f->n_live);
    }
    /* Results that were being verified when a daemon died are attempts again. */
    if (known > f->config.max_queued && known > f->n_live_at_rise) {
        farm_fail(f, "%zu attempts of %u", known, f->config.max_queued);
    }
    if (f->core == NULL && f->n_todo + f->n_live + f->n_done != f->config.n_tasks) {
        farm_fail(f, "a task is lost: %u to do, %u live, %u done", f->n_todo, f->n_live, f->n_done);
    }
    int64_t next = slurm_book_next_ms(f->book);
    bool waits = f->under_way[SLURM_ACT_QUEUE] || f->under_way[SLURM_ACT_SUBMIT] ||
                 f->under_way[SLURM_ACT_TEST];
    if (known > 0 && next == INT64_MAX && !waits) {
        farm_fail(f, "the book waits for nothing");
    }
}

void check_finish(struct farm *f)
{
    if (slurm_book_count(f->book) != 0) {
        farm_fail(f, "all tasks are done, the book has %zu attempts", slurm_book_count(f->book));
    }
    for (uint32_t i = 0; i < f->config.n_tasks; i++) {
        const struct farm_task *t = &f->tasks[i];
        if (f->core != NULL && !t->done) {
            continue; /* cancelled */
        }
        const struct farm_attempt *a = &f->attempts[t->current];
        if (!t->done || a->end.reason != END_EXITED || a->end.code != 0 ||
            a->exit_seen_ms == INT64_MAX) {
            farm_fail(f, "task %u is done without a result", i);
        }
    }
}
