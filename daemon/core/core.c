/*
 * The step function: routes an event to the file that handles it, then dispatches and re-arms the
 * timer.
 *
 * The order within a step matters. First the event changes tasks and attempts, then
 * program_advance() asks for what has become due, then dispatch() fills the slots that came free,
 * and timer_rearm() comes last because all of these set timers. Events about an attempt are dropped
 * here unless it is the task's current one (S5).
 */
#include "daemon/core/gpus.h"

#include "daemon/core/internal.h"
#include <assert.h>

void core_config_default(struct core_config *c)
{
    assert(c != NULL);
    *c = (struct core_config){
        .cores = 1,
        .backoff_ms = 1000,
        .backoff_max_ms = 5 * 60 * 1000,
        .grace_ms = 30 * 1000,
        .probe_ms = 5 * 1000,
        .start_ms = 10 * 1000,
        .deadline_floor_ms = 60 * 1000,
        .deadline_first_ms = 30 * 60 * 1000,
        .slice_tasks = 250,
    };
}

struct core *core_create(const struct core_config *config)
{
    assert(config->cores > 0 && config->probe_ms > 0 && config->slice_tasks > 0);
    struct core *c = xcalloc(1, sizeof(*c));
    c->config = *config;
    rng_seed(&c->rng, config->seed);
    c->free_live = NOWHERE;
    c->armed_ms = INT64_MAX;
    c->slice_due_ms = INT64_MAX;
    c->now_ms = INT64_MIN;
    return c;
}

void core_free(struct core *c)
{
    if (c == NULL) {
        return;
    }
    program_free_all(c);
    free(c->live);
    free(c->gpus);
    free(c->timers);
    free(c);
}

/* Every timer that is due: an attempt's, or the end of a task's backoff. */
static void on_timer(struct core *c)
{
    while (c->n_timers > 0 && c->timers[0].at_ms <= c->now_ms) {
        struct timer t = c->timers[0];
        struct core_program *p = c->programs[t.program];
        struct live *l = live_of(c, p, t.task);
        timer_clear(c, p, t.task);
        if (l != NULL) {
            attempt_timer(c, l);
            program_advance(c, p);
        } else {
            ready_push(p, t.task); /* its backoff is over */
        }
    }
    slices_on_timer(c);
}

static void on_attempt(struct core *c, struct core_program *p, const struct core_event *ev)
{
    if (ev->task >= p->n_tasks) {
        return;
    }
    struct live *l = live_of(c, p, ev->task);
    if (l == NULL || l->row.no != ev->attempt_no) {
        return; /* S5: an attempt that is no longer the current one changes nothing */
    }
    switch ((int)ev->kind) {
    case CORE_ATTEMPT_UP: attempt_up(c, l); break;
    case CORE_START_FAILED: attempt_start_failed(c, l, ev->start_failure, ev->text); break;
    case CORE_WORKER_SAID: attempt_said(c, l, ev); break;
    case CORE_ATTEMPT_ENDED: attempt_ended(c, l, ev); break;
    case CORE_RESULT_CHECKED: attempt_checked(c, l, ev); break;
    default: attempt_probed(c, l, ev->health); break;
    }
}

/* A person's request about one task, or LINKED, which counts only for the newest attempt. */
static void on_task(struct core *c, struct core_program *p, const struct core_event *ev)
{
    if (ev->task >= p->n_tasks) {
        emit_refusal(c, "there is no such task");
        return;
    }
    struct core_task *t = &p->tasks[ev->task];
    if (ev->kind == CORE_RETRY) {
        retry_task(c, p, ev->task, ev->text);
    } else if (ev->kind == CORE_CANCEL) {
        request_cancel(c, p, ev->task, ev->text);
    } else if (ev->kind == CORE_LOST) {
        request_lost(c, p, ev->task, ev->text);
    } else if (t->state == TASK_DONE && !t->linked && ev->attempt_no == t->n_attempts) {
        t->linked = true;
        p->n_unlinked--;
        emit_task_row(c, p, ev->task, ROW_TASK_LINKED, TASK_DONE)->lazy = true;
    }
}

static void on_disk(struct core *c, struct core_program *p, const struct core_event *ev)
{
    if (ev->disk_full) {
        program_pause(c, p, PAUSE_DISK, ev->text);
    } else if ((p->status.paused & PAUSE_DISK) != 0) {
        p->status.paused &= ~(unsigned)PAUSE_DISK;
        (void)emit_program_row(c, p, ROW_RESUMED, ev->text);
    }
}

/* Also lets a verdict that failed be asked for again. After PAUSE_HOST the budget allows one
 * failure only. */
static void on_mended(struct core *c, struct core_program *p, const struct core_event *ev)
{
    const unsigned mends = PAUSE_DATA | PAUSE_HOST;
    p->verdict_failed = false;
    if ((p->status.paused & PAUSE_HOST) != 0) {
        p->n_unlaunched = UNLAUNCHED_MAX - 1; /* one try */
    }
    if ((p->status.paused & mends) != 0) {
        p->status.paused &= ~mends;
        (void)emit_program_row(c, p, ROW_RESUMED, ev->text);
    }
}

/* The verdict opens the scores, even of a program that never had an accepted result. */
static void on_verdict(struct core *c, struct core_program *p, const struct core_event *ev)
{
    if (!p->verdict_asked) {
        return; /* S7 */
    }
    p->verdict_asked = false;
    if (ev->kind == CORE_VERDICT_FAILED) {
        p->verdict_failed = true;
        (void)emit_program_row(c, p, ROW_VERDICT_REFUSED, ev->text);
        return;
    }
    program_unseal(c, p);
    p->status.verdict = true;
    (void)snprintf(p->status.outcome, sizeof(p->status.outcome), "%s", ev->verdict.outcome);
    p->status.verdict_digest = ev->verdict.digest;
    (void)emit_program_row(c, p, ROW_VERDICT, ev->text);
}

static void on_reported(struct core *c, struct core_program *p, const struct core_event *ev)
{
    if (!p->report_asked || p->status.reported) {
        return;
    }
    p->status.reported = true;
    (void)emit_program_row(c, p, ROW_REPORTED, ev->text);
}

static void on_program(struct core *c, struct core_program *p, const struct core_event *ev)
{
    switch (ev->kind) {
    case CORE_PROGRAM_SETTINGS: program_set_run(c, p, ev); break;
    case CORE_ATTEMPT_UP:
    case CORE_START_FAILED:
    case CORE_WORKER_SAID:
    case CORE_ATTEMPT_ENDED:
    case CORE_RESULT_CHECKED:
    case CORE_PROBED: on_attempt(c, p, ev); break;
    case CORE_LINKED:
    case CORE_RETRY:
    case CORE_LOST:
    case CORE_CANCEL: on_task(c, p, ev); break;
    case CORE_RETRY_ALL: request_retry_all(c, p, ev->text); break;
    case CORE_STOP: request_stop(c, p, ev->text); break;
    case CORE_PAUSE: program_pause(c, p, PAUSE_PERSON, ev->text); break;
    case CORE_RESUME: request_resume(c, p, ev); break;
    case CORE_REMOVE: request_remove(c, p, ev->text); break;
    case CORE_UNBLIND: request_unblind(c, p, ev->text); break;
    case CORE_AMEND: program_amend(c, p, ev); break;
    case CORE_DISK: on_disk(c, p, ev); break;
    case CORE_MENDED: on_mended(c, p, ev); break;
    case CORE_WITHHELD: p->withheld = ev->withheld; break;
    case CORE_VERDICT_COMPUTED:
    case CORE_VERDICT_FAILED: on_verdict(c, p, ev); break;
    case CORE_REPORTED: on_reported(c, p, ev); break;
    case CORE_DAMAGED: program_damaged(c, p); break;
    case CORE_PROGRAM_ADDED:
    case CORE_ALL_ADDED:
    case CORE_TIMER:
    case CORE_STOPPING:
    case CORE_MACHINE:
    case CORE_QUEUE:
    case CORE_GPUS:
    case CORE_EVENT_NR: break;
    }
}

static bool is_of_attempt(enum core_event_kind kind)
{
    return kind >= CORE_ATTEMPT_UP && kind <= CORE_PROBED;
}

/* The events that concern the machine or all programs, then those of one program. */
static void take(struct core *c, const struct core_event *ev)
{
    if (ev->kind == CORE_TIMER) {
        c->armed_ms = INT64_MAX; /* it has fired: the next one must be armed again */
        on_timer(c);
        return;
    }
    if (ev->kind == CORE_ALL_ADDED || ev->kind == CORE_STOPPING) {
        c->begun = ev->kind == CORE_ALL_ADDED;
        return;
    }
    if (ev->kind == CORE_MACHINE) {
        c->config.slots = ev->machine.slots;
        c->config.cores = ev->machine.cores > 0 ? ev->machine.cores : 1;
        c->config.memory_bytes = ev->machine.memory_bytes;
        return;
    }
    if (ev->kind == CORE_QUEUE) {
        assert(ev->queue.executor < EXECUTOR_NR);
        c->full[ev->queue.executor] = ev->queue.full;
        return;
    }
    if (ev->kind == CORE_GPUS) {
        gpus_set(c, ev->gpus.list, ev->gpus.n);
        c->gpus_known = ev->gpus.known;
        return;
    }
    if (ev->kind == CORE_PROGRAM_ADDED) {
        program_add(c, ev);
    }
    struct core_program *p = program_of(c, ev->program);
    if (p == NULL && c->out->refusal != NULL) {
        return; /* it was not added; the refusal says why */
    }
    if (p == NULL) {
        emit_refusal(c, "there is no such program");
        return;
    }
    /* Its live attempts still hold the machine, so their ends must be heard. */
    if (p->damaged && !is_of_attempt(ev->kind)) {
        emit_refusal(c, "its rows in the database are damaged");
        return;
    }
    on_program(c, p, ev);
    program_advance(c, p);
}

void core_step(struct core *c, const struct core_event *ev, struct core_out *out)
{
    assert(out != NULL && c->out == NULL); /* a step never runs within a step */
    assert(ev->kind < CORE_EVENT_NR);
    out->refusal = NULL;
    c->out = out;
    c->now_ms = ev->mono.ms > c->now_ms ? ev->mono.ms : c->now_ms;
    c->wall = ev->wall;
    take(c, ev);
    dispatch(c);
    timer_rearm(c);
    c->out = NULL;
}
