/* Shims as they really are, and what a look at their folders shows: files that appear late, nodes
 * that are cut off and write nothing until they are back. */
#include "tests/sim/slurm/parts.h"

/* Most files are seen at once, some up to 29 s later (rule 17). */
static int64_t seen_at(struct farm *f)
{
    if (!farm_chance(f, 500)) {
        return f->now_ms;
    }
    f->n_faults[FAULT_FILE_LATE]++;
    return f->now_ms + farm_between(f, 1000, 29000);
}

static bool is_cut_off(const struct farm *f, const struct farm_job *j)
{
    return j->node != NONE && f->nodes[j->node].cut_off_ms != INT64_MAX;
}

static void become(struct farm *f, uint32_t job, int64_t delay_ms, enum slurm_state state)
{
    struct farm_item *it = farm_push(f, delay_ms, FARM_STATE, job);
    it->state = state;
    it->generation = f->jobs[job].restarts;
}

static void leave(struct farm *f, uint32_t job)
{
    become(f, job, 50, SLURM_COMPLETED);
}

void shim_start(struct farm *f, uint32_t job)
{
    struct farm_job *j = &f->jobs[job];
    struct farm_attempt *a = &f->attempts[j->attempt];
    if (j->state != SLURM_RUNNING || j->alive) {
        return;
    }
    /* The shim's rules: fenced, superseded, run twice by the site, claimed by another job. */
    bool superseded = f->tasks[a->task].n_attempts > a->no;
    if (a->fenced || superseded) {
        f->n_faults[FAULT_FENCED]++;
        leave(f, job);
        return;
    }
    if (a->claim != NONE) {
        a->refused = a->refused || j->restarts > 0;
        f->n_faults[j->restarts > 0 ? FAULT_REFUSED_RESTART : FAULT_CLAIMED]++;
        leave(f, job);
        return;
    }
    if (f->config.unfit && j->node == 0) {
        f->n_faults[FAULT_UNFIT]++;
        a->unfit_seen_ms = seen_at(f);
        become(f, job, 50, SLURM_FAILED);
        return;
    }
    if (!a->live) {
        farm_fail(f, "attempt %u of task %u begins to work after its end", a->no, a->task);
    }
    a->claim = job;
    a->start_seen_ms = seen_at(f);
    a->beat_lag_ms = farm_chance(f, 500) ? farm_between(f, 1000, 29000) : 0;
    j->alive = true;
    j->began_ms = f->now_ms;
    int64_t work = farm_between(f, f->config.work_ms / 2, f->config.work_ms * 3 / 2);
    farm_push(f, work, FARM_JOB_END, job)->generation = j->restarts;
}

static void write_exit(struct farm *f, struct farm_attempt *a, enum end_reason reason, int code)
{
    a->end = (struct attempt_end){.reason = reason,
                                  .code = reason == END_EXITED ? code : -1,
                                  .signal = reason == END_SIGNALLED ? 9 : 0};
    a->exit_seen_ms = seen_at(f);
}

void shim_kill(struct farm *f, uint32_t job)
{
    f->jobs[job].alive = false;
}

/* SIGTERM: the worker checkpoints and exits 75, which the shim writes down. */
void shim_term(struct farm *f, uint32_t job)
{
    struct farm_job *j = &f->jobs[job];
    if (j->alive && !is_cut_off(f, j) && !f->attempts[j->attempt].fenced) {
        j->alive = false;
        write_exit(f, &f->attempts[j->attempt], END_EXITED, 75);
    }
}

/* A second life of the job in the queue, by the site. */
static void requeue(struct farm *f, uint32_t job)
{
    struct farm_job *j = &f->jobs[job];
    shim_kill(f, job);
    if (j->present && j->state == SLURM_RUNNING) {
        cluster_move(f, job, SLURM_PENDING);
        j->restarts++;
        j->fate = FATE_GOOD;
        cluster_wait(f, job);
    }
}

static void end_as_fated(struct farm *f, uint32_t job)
{
    struct farm_job *j = &f->jobs[job];
    struct farm_attempt *a = &f->attempts[j->attempt];
    int64_t soon = farm_between(f, 10, 2000);
    j->alive = false;
    switch (j->fate) {
    case FATE_CODE:
        write_exit(f, a, END_EXITED, 1);
        become(f, job, soon, SLURM_FAILED);
        return;
    case FATE_SILENT: become(f, job, soon, SLURM_FAILED); return;
    case FATE_TIME: become(f, job, soon, SLURM_TIMEOUT); return;
    case FATE_MEMORY: become(f, job, soon, SLURM_OUT_OF_MEMORY); return;
    case FATE_HAND: become(f, job, 0, SLURM_CANCELLED); return;
    case FATE_PREEMPT:
        write_exit(f, a, END_EXITED, 75);
        become(f, job, soon, SLURM_PREEMPTED);
        return;
    case FATE_PREEMPT_AT_ONCE: become(f, job, soon, SLURM_PREEMPTED); return;
    case FATE_VANISH:
        if (j->present) {
            cluster_move(f, job, SLURM_CANCELLED);
            cluster_purge(f, job);
        }
        return;
    case FATE_REQUEUE: requeue(f, job); return;
    case FATE_GOOD:
    case FATE_STEPD:
    case FATE_BAD_START:
    case FATE_HAND_PENDING:
    case FATE_ODD_STATE:
    case FATE_NR: break;
    }
    write_exit(f, a, END_EXITED, 0);
    become(f, job, soon, SLURM_COMPLETED);
}

void shim_end(struct farm *f, uint32_t job)
{
    struct farm_job *j = &f->jobs[job];
    struct farm_attempt *a = &f->attempts[j->attempt];
    if (!j->alive) {
        return;
    }
    if (is_cut_off(f, j)) {
        farm_push(f, 1000, FARM_JOB_END, job)->generation = j->restarts;
        return;
    }
    /* Before it writes exit.json it reads whether its attempt is still the task's (rule 19). */
    if (a->fenced || f->tasks[a->task].n_attempts > a->no) {
        f->n_faults[FAULT_FENCED]++;
        j->alive = false;
        become(f, job, 100, SLURM_COMPLETED);
        return;
    }
    if (!cluster_is_live(j->state) || !j->present) {
        f->n_faults[FAULT_ORPHAN]++;
        j->fate = FATE_GOOD; /* Slurm does nothing to it any more */
    }
    end_as_fated(f, job);
}

static int64_t beat_of(const struct farm *f, const struct farm_attempt *a)
{
    const struct farm_job *j = &f->jobs[a->claim];
    int64_t until = f->now_ms - a->beat_lag_ms;
    if (is_cut_off(f, j) && f->nodes[j->node].cut_off_ms < until) {
        until = f->nodes[j->node].cut_off_ms;
    }
    if (!j->alive && j->changed_ms < until) {
        until = j->changed_ms;
    }
    return until >= j->began_ms ? (until - j->began_ms) / 10000 + 1 : 0;
}

void shim_look(struct farm *f, const struct attempt_key *key)
{
    uint32_t at = farm_attempt_of(f, key);
    if (at == NONE) {
        farm_fail(f, "a look at an attempt that is not there");
    }
    struct farm_attempt *a = &f->attempts[at];
    check_look(f, at);
    int64_t delay = farm_chance(f, 20) ? farm_between(f, 1000, 90000) : farm_between(f, 1, 50);
    struct slurm_event *ev = &farm_push(f, delay, FARM_ANSWER, NONE)->ev;
    ev->kind = SLURM_EVENT_FILES;
    ev->key = *key;
    ev->files.listed = !farm_chance(f, 100);
    if (!ev->files.listed) {
        f->n_faults[FAULT_UNLISTED]++;
        return;
    }
    if (a->exit_seen_ms <= f->now_ms) {
        ev->files.end = &a->end; /* the pointer is refreshed when the event is delivered */
    }
    ev->files.launched = a->claim != NONE && a->start_seen_ms <= f->now_ms;
    ev->files.refused = a->refused;
    if (a->unfit_seen_ms <= f->now_ms) {
        ev->files.unfit_node = "n0";
        ev->files.unfit_has = "another GPU";
    }
    ev->files.beat = a->claim != NONE ? beat_of(f, a) : 0;
}
