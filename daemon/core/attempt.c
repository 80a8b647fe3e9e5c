/* The life of an attempt (diagram in model.h): each function applies one event to the attempt it
 * concerns. Time only ever makes an attempt `overdue`; it is ended when a probe then finds it alive
 * (S4). A failed end asks judge.c what becomes of the task and failures.c whether the program
 * pauses instead. */
#include "daemon/core/gpus.h"

#include "daemon/core/apparatus.h"
#include "daemon/core/internal.h"
#include <assert.h>

#define VERIFY_AGAIN_MS (10 * 60 * 1000)

static struct core_program *program_at(struct core *c, const struct live *l)
{
    return c->programs[l->program];
}

static struct core_task *task_at(struct core *c, const struct live *l)
{
    return &program_at(c, l)->tasks[l->task];
}

static void set_timer(struct core *c, const struct live *l, int64_t at_ms)
{
    timer_set(c, program_at(c, l), l->task, at_ms);
}

static void probe(struct core *c, const struct live *l)
{
    emit_live_act(c, ACT_PROBE, l);
    set_timer(c, l, c->now_ms + c->config.probe_ms);
}

/* A version 4 UUID from the core's own generator: the attempt has its name before any act is done,
 * and a replay gives it the same one. */
static void make_id(struct core *c, char id[UUID_TEXT_SIZE])
{
    assert(c->out != NULL);
    uint64_t a = (rng_next(&c->rng) & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
    uint64_t b = (rng_next(&c->rng) & ~(UINT64_C(3) << 62)) | (UINT64_C(2) << 62);
    (void)snprintf(id, UUID_TEXT_SIZE, "%08llx-%04llx-%04llx-%04llx-%012llx",
                   (unsigned long long)(a >> 32), (unsigned long long)(a >> 16 & 0xffff),
                   (unsigned long long)(a & 0xffff), (unsigned long long)(b >> 48),
                   (unsigned long long)(b & UINT64_C(0xffffffffffff)));
}

void attempt_start(struct core *c, struct core_program *p, uint32_t task)
{
    assert(task < p->n_tasks);
    assert(p->tasks[task].state == TASK_READY && !p->damaged);
    struct core_task *t = &p->tasks[task];
    ready_remove(p, task);
    struct live *l = live_new(c, p, task);
    t->n_attempts++;
    t->not_before_ms = 0;
    l->row.no = t->n_attempts;
    l->row.state = ATTEMPT_STARTING;
    l->row.started = program_time(c, p);
    make_id(c, l->row.id);
    live_place(c, task_stage(p, task), &l->row.placement);
    gpus_assign(c, p, task_stage(p, task), &l->row.placement);
    live_hold(c, l);
    task_move(p, task, TASK_STARTING, CAUSE_NONE);
    (void)emit_task_row(c, p, task, ROW_ATTEMPT_STARTED, TASK_READY);
    emit_live_act(c, ACT_START, l);
    set_timer(c, l, c->now_ms + c->config.start_ms);
    p->served = ++c->n_starts;
}

/* S4: every step of force rests on a proof of life; deadline_ms is when the next one is due. */
static void force_step(struct core *c, struct live *l)
{
    assert(l->kill != KILL_NONE && l->health == HEALTH_ALIVE && l->phase == LIVE_RUNNING);
    if (l->kill == KILL_WANTED) {
        l->kill = KILL_TERMINATED;
        l->deadline_ms = c->now_ms + c->config.grace_ms;
        emit_live_act(c, ACT_TERMINATE, l);
    } else if (c->now_ms >= l->deadline_ms) {
        l->kill = KILL_KILLED;
        l->deadline_ms = c->now_ms + c->config.probe_ms;
        emit_live_act(c, ACT_KILL, l);
    }
    set_timer(c, l, l->deadline_ms);
}

/* It waits in another scheduler's queue, which is asked to drop it: it has no worker. Repeated
 * until its end comes, or it has begun after all. */
static void leave_queue(struct core *c, struct live *l)
{
    assert(l->kill != KILL_NONE && l->health == HEALTH_QUEUED && l->phase == LIVE_STARTING);
    emit_live_act(c, ACT_TERMINATE, l);
    set_timer(c, l, c->now_ms + c->config.grace_ms);
}

/* Records that the attempt has to end, once; the first step of force waits for a proof of life.
 * `cause` is NONE when a person asked. An attempt that is being verified has ended already. */
static void want_end(struct core *c, struct live *l, enum cause cause)
{
    if (l->phase == LIVE_VERIFYING || l->kill != KILL_NONE) {
        return;
    }
    l->kill = KILL_WANTED;
    l->kill_cause = cause;
    if (l->phase == LIVE_STARTING && l->health == HEALTH_QUEUED) {
        leave_queue(c, l);
        return;
    }
    if (l->phase == LIVE_STARTING && l->row.placement.executor == EXECUTOR_LOCAL) {
        return; /* UP, START_FAILED or the timer comes next */
    }
    if (l->phase == LIVE_RUNNING && l->health == HEALTH_ALIVE) {
        force_step(c, l);
    } else {
        probe(c, l);
    }
}

void attempt_end_by_person(struct core *c, struct live *l)
{
    assert(c != NULL && l != NULL);
    want_end(c, l, CAUSE_NONE);
}

static void move_deadline(struct core *c, struct live *l)
{
    l->deadline_ms = c->now_ms + live_deadline_span(c, l);
    set_timer(c, l, l->deadline_ms);
}

/* Something of it ran for certain: the budgets for failed starts are whole again. */
static void note_launched(struct core *c, const struct live *l)
{
    program_at(c, l)->n_unlaunched = 0;
    task_at(c, l)->n_outdated = 0;
}

/* Its worker has started, or its job in another scheduler's queue has: the row may be lost (lazy),
 * since a later start of the daemon probes the attempt anyway. */
static void become_running(struct core *c, struct live *l)
{
    assert(task_at(c, l)->state == TASK_STARTING);
    l->phase = LIVE_RUNNING;
    l->row.state = ATTEMPT_RUNNING;
    l->mark_ms = c->now_ms;
    if (l->row.placement.executor == EXECUTOR_LOCAL) {
        note_launched(c, l);
    }
    task_move(program_at(c, l), l->task, TASK_RUNNING, CAUSE_NONE);
    emit_task_row(c, program_at(c, l), l->task, ROW_ATTEMPT_RUNNING, TASK_STARTING)->lazy = true;
}

/* Seen alive for the first time. */
static void come_alive(struct core *c, struct live *l)
{
    assert(l->phase == LIVE_STARTING);
    l->health = HEALTH_ALIVE;
    become_running(c, l);
    if (l->kill == KILL_WANTED) {
        force_step(c, l);
    } else {
        move_deadline(c, l);
    }
}

/* It has start.json. A queue may have shown its job active before. */
void attempt_up(struct core *c, struct live *l)
{
    assert(c != NULL && l != NULL);
    if (l->phase != LIVE_VERIFYING) {
        note_launched(c, l);
    }
    if (l->phase == LIVE_STARTING) {
        come_alive(c, l);
    }
}

/* The attempt is over without a valid result: writes its row and decides what becomes of the task.
 * `l` is freed here. */
static void fail(struct core *c, struct live *l, enum cause cause, const char *text)
{
    assert(l->row.no == task_at(c, l)->n_attempts);
    struct core_program *p = program_at(c, l);
    struct core_task *t = task_at(c, l);
    uint32_t task = l->task;
    enum task_state from = (enum task_state)t->state;
    struct judgement j = {.to = TASK_BLOCKED};
    enum cause end = cause;
    const bool answered = l->answered;
    if (t->ending != CAUSE_NONE) {
        end = (enum cause)t->ending;
        cause = end;
    } else {
        j = judge_end(c, t, task_stage(p, task), l, cause);
    }
    live_let_go(c, l);
    l->row.state = ATTEMPT_ENDED;
    l->row.cause = cause;
    l->row.ended = program_time(c, p);
    t->ending = CAUSE_NONE;
    t->end_code = (int16_t)l->row.code;
    t->end_signal = (uint8_t)l->row.signal;
    t->not_before_ms = j.delay_ms > 0 ? c->wall.ms + j.delay_ms : 0;
    task_move(p, task, j.to, j.to == TASK_BLOCKED ? end : CAUSE_NONE);
    emit_task_row(c, p, task, ROW_ATTEMPT_ENDED, from)->detail = emit_text(c, text);
    live_free(c, l);
    if (j.pause != 0) {
        program_pause(c, p, j.pause, text);
    }
    if (j.to == TASK_BLOCKED && failures_pause(c, p, task, answered, text)) {
        return;
    }
    if (j.to == TASK_BLOCKED && task_is_apparatus(p, task)) {
        apparatus_blocked(c, p, task, text);
    } else if (j.to == TASK_BLOCKED) {
        task_block_dependants(c, p, task);
    } else if (j.delay_ms > 0) {
        timer_set(c, p, task, c->now_ms + j.delay_ms);
    } else {
        ready_push(p, task);
    }
}

void attempt_start_failed(struct core *c, struct live *l, enum core_start_failure why,
                          const char *text)
{
    assert(c != NULL && l != NULL);
    if (l->phase != LIVE_STARTING) {
        return;
    }
    enum cause cause = CAUSE_HOST_LOST;
    l->row.reason = END_SPAWN_FAILED;
    switch (why) {
    case START_FAILED_HOST: break;
    case START_FAILED_NO_SPACE:
        l->row.reason = END_DISK;
        cause = CAUSE_NO_SPACE;
        break;
    case START_FAILED_LOCK:
        l->row.reason = END_NEVER_LAUNCHED;
        cause = CAUSE_DRIFT;
        program_pause(c, program_at(c, l), PAUSE_LOCK, text);
        break;
    case START_FAILED_DRIFT: cause = CAUSE_DRIFT; break;
    case START_FAILED_USER: cause = CAUSE_USER_ERROR; break;
    case START_FAILED_MISSING:
        l->row.reason = END_NEVER_LAUNCHED;
        program_pause(c, program_at(c, l), PAUSE_DATA, text);
        break;
    case START_FAILED_OUTDATED:
        l->row.reason = END_NEVER_LAUNCHED;
        /* an amendment explains one or two; without a limit it could repeat for ever */
        l->excused = task_at(c, l)->n_outdated < OUTDATED_MAX;
        task_at(c, l)->n_outdated += l->excused;
        break;
    case START_FAILED_NR: return;
    }
    fail(c, l, cause, text);
}

/* Only a new best of done or checkpoint counts as progress: a worker that repeats lost work has not
 * advanced the task. */
static void note_progress(struct core *c, struct live *l, const struct core_event *ev)
{
    struct core_task *t = task_at(c, l);
    if (ev->said.progressed) {
        l->row.done = ev->said.done;
        l->row.total = ev->said.total;
        if (ev->said.done > t->best_done) {
            t->best_done = ev->said.done;
            l->progressed = true;
        }
    }
    if (ev->said.checkpoint >= 0) {
        l->row.checkpoint = ev->said.checkpoint;
        if (ev->said.checkpoint > t->best_checkpoint) {
            t->best_checkpoint = ev->said.checkpoint;
            l->progressed = true;
        }
    }
    if (ev->said.resumed_from >= 0) {
        l->row.resumed_from = ev->said.resumed_from;
    }
}

void attempt_said(struct core *c, struct live *l, const struct core_event *ev)
{
    assert(c != NULL && l != NULL && ev != NULL);
    if (ev->said.from != l->row.offset || ev->said.to <= ev->said.from) {
        return; /* S6: ingested before, or out of order */
    }
    l->row.offset = ev->said.to;
    l->row.malformed += ev->said.malformed;
    if (ev->said.progressed || ev->said.checkpoint >= 0 || ev->said.section < SECTION_NR) {
        live_mark(c, l);
    }
    if (ev->said.section < SECTION_NR) {
        l->row.section = ev->said.section;
    }
    note_progress(c, l, ev);
    struct state_row *row = emit_task_row(c, program_at(c, l), l->task, ROW_PROGRESS,
                                          (enum task_state)task_at(c, l)->state);
    row->lazy = true;
    if (l->phase == LIVE_RUNNING && l->kill == KILL_NONE) {
        l->deadline_ms = l->mark_ms + live_deadline_span(c, l);
        set_timer(c, l, l->deadline_ms);
    }
    if (l->row.malformed > CORE_MALFORMED_MAX) {
        want_end(c, l, CAUSE_BAD_RESULT);
    }
}

/* Ends that only a worker that was executed can have. A job may also be preempted while it waits in
 * a queue, or find no room for its files: then nothing has run. */
static bool has_run(const struct attempt_row *a)
{
    switch (a->reason) {
    case END_EXITED:
    case END_SIGNALLED:
    case END_DEADLINE:
    case END_MEMORY: return true;
    case END_DISK:
    case END_PREEMPTED: return a->ran_ms >= 0;
    case END_SPAWN_FAILED:
    case END_LOST:
    case END_HOST_LOST:
    case END_NEVER_LAUNCHED:
    case END_REASON_NR: break;
    }
    return false;
}

/* Exit 0 with a readable events.jsonl goes to verification; every other end fails the attempt. */
static void end_attempt(struct core *c, struct live *l, const char *text)
{
    assert(l->row.reason < END_REASON_NR && l->phase != LIVE_VERIFYING);
    bool unseen = l->phase == LIVE_STARTING; /* it was never seen running */
    bool may_be_done =
        l->row.reason == END_EXITED && l->row.code == 0 && l->row.malformed <= CORE_MALFORMED_MAX;
    l->health = HEALTH_DEAD;
    if (task_at(c, l)->ending == CAUSE_NONE && may_be_done) {
        note_launched(c, l);
        if (unseen) {
            l->mark_ms = c->now_ms; /* its row is written with the result's: one commit less */
        }
        live_mark(c, l);
        l->phase = LIVE_VERIFYING;
        live_set_aside(c, l);
        emit_live_act(c, ACT_VERIFY, l);
        set_timer(c, l, c->now_ms + VERIFY_AGAIN_MS);
        return;
    }
    if (has_run(&l->row)) {
        note_launched(c, l);
    }
    if (unseen && has_run(&l->row)) {
        become_running(c, l);
    }
    fail(c, l, judge_cause(l), text);
}

void attempt_ended(struct core *c, struct live *l, const struct core_event *ev)
{
    assert(c != NULL && l != NULL && ev != NULL);
    if (l->phase == LIVE_VERIFYING || ev->ended.reason >= END_REASON_NR) {
        return;
    }
    l->row.reason = ev->ended.reason;
    if (l->row.reason == END_NEVER_LAUNCHED && l->phase == LIVE_RUNNING && !ev->ended.unfit) {
        l->row.reason = END_HOST_LOST; /* it was seen alive, so its files were removed since */
    }
    l->excused = l->excused || ev->ended.excused;
    l->row.code = ev->ended.reason == END_EXITED ? ev->ended.code : -1;
    l->row.signal = ev->ended.reason == END_SIGNALLED ? ev->ended.signal : 0;
    l->row.ran_ms = ev->ended.ran_ms;
    l->row.user_ms = ev->ended.user_ms;
    l->row.system_ms = ev->ended.system_ms;
    l->row.max_rss_bytes = ev->ended.max_rss_bytes;
    l->row.ended = program_time(c, program_at(c, l));
    end_attempt(c, l, ev->text);
}

/* Its result is accepted: the task is done, its dependants may start, and the result is linked. */
static void finish(struct core *c, struct live *l, const struct core_event *ev)
{
    assert(task_at(c, l)->state == TASK_RUNNING);
    struct core_program *p = program_at(c, l);
    uint32_t task = l->task;
    l->row.state = ATTEMPT_ENDED;
    task_move(p, task, TASK_DONE, CAUSE_NONE);
    struct state_row *row = emit_task_row(c, p, task, ROW_ATTEMPT_ENDED, TASK_RUNNING);
    row->has_result = true;
    row->result_digest = ev->check.digest;
    row->detail = emit_text(c, task_is_apparatus(p, task) ? ev->text : NULL);
    /* of a sealed stage the row names the digest alone until the scores are open (invariant 8) */
    row->sealed = task_stage(p, task)->sealed && !p->status.unsealed && !p->status.unblinded;
    row->lazy =
        l->aside && p->n_ready > 0; /* no task waits for it: it is committed with the next start */
    emit_live_act(c, ACT_LINK, l);
    live_free(c, l);
    task_release_dependants(c, p, task);
}

/* A second run of a check that held is of no use when the grid has gone on since it started. */
static enum core_result_check result_of(const struct live *l, enum core_result_check result)
{
    return result == RESULT_VALID && l->reopened ? RESULT_STALE : result;
}

void attempt_checked(struct core *c, struct live *l, const struct core_event *ev)
{
    assert(c != NULL && l != NULL && ev != NULL);
    if (l->phase != LIVE_VERIFYING) {
        return;
    }
    if (task_at(c, l)->state == TASK_STARTING) {
        become_running(c, l);
    }
    if (task_at(c, l)->ending != CAUSE_NONE) {
        fail(c, l, CAUSE_NONE, ev->text);
        return;
    }
    switch (result_of(l, ev->check.result)) {
    case RESULT_VALID: finish(c, l, ev); break;
    case RESULT_BAD: fail(c, l, CAUSE_BAD_RESULT, ev->text); break;
    case RESULT_DRIFT: fail(c, l, CAUSE_DRIFT, ev->text); break;
    case RESULT_NO_SPACE: fail(c, l, CAUSE_NO_SPACE, ev->text); break;
    case RESULT_UNEXPECTED: fail(c, l, CAUSE_APPARATUS, ev->text); break;
    case RESULT_STALE:
        l->row.reason = END_PREEMPTED; /* it did its work; the check asks something else now */
        fail(c, l, CAUSE_PREEMPTED,
             l->reopened ? "a task of the grid was tried again meanwhile" : ev->text);
        break;
    }
}

/* Alive and overdue is a hang. This is the only place where a deadline has consequences. */
static void found_alive(struct core *c, struct live *l)
{
    assert(l->health == HEALTH_ALIVE);
    if (l->phase == LIVE_STARTING) {
        come_alive(c, l);
        return;
    }
    if (l->overdue && l->kill == KILL_NONE) {
        l->kill = KILL_WANTED;
        l->kill_cause = CAUSE_HANG;
    }
    if (l->kill != KILL_NONE) {
        force_step(c, l);
    } else {
        set_timer(c, l, l->deadline_ms);
    }
}

/* It has no deadline while it waits; that it begins is reported without being asked for. One that
 * was seen running has been put back by its cluster: its shim will not run twice. */
static void found_queued(struct core *c, struct live *l)
{
    if (l->phase == LIVE_RUNNING) {
        set_timer(c, l, c->now_ms + c->config.probe_ms);
    } else if (l->kill != KILL_NONE) {
        leave_queue(c, l);
    } else {
        set_timer(c, l, c->now_ms + QUEUED_AGAIN_MS);
    }
}

void attempt_probed(struct core *c, struct live *l, enum core_health health)
{
    assert(c != NULL && l != NULL);
    if (l->phase == LIVE_VERIFYING) {
        return;
    }
    l->health = health;
    switch (health) {
    case HEALTH_ALIVE: found_alive(c, l); break;
    case HEALTH_DEAD:
        l->row.reason = END_LOST;
        l->row.ended = program_time(c, program_at(c, l));
        end_attempt(c, l, NULL);
        break;
    case HEALTH_UNKNOWN: set_timer(c, l, c->now_ms + c->config.probe_ms); break; /* S4 */
    case HEALTH_QUEUED: found_queued(c, l); break;
    }
}

/* STARTING: it did not report in time, so it is probed. VERIFYING: the act may be lost, so it is
 * repeated. RUNNING: its section is up, a step of force is due, or it did not answer a probe. */
void attempt_timer(struct core *c, struct live *l)
{
    assert(c != NULL && l != NULL);
    switch (l->phase) {
    case LIVE_STARTING: probe(c, l); break;
    case LIVE_VERIFYING:
        emit_live_act(c, ACT_VERIFY, l);
        set_timer(c, l, c->now_ms + VERIFY_AGAIN_MS);
        break;
    case LIVE_RUNNING:
        if (l->kill == KILL_NONE && c->now_ms >= l->deadline_ms) {
            l->overdue = true;
        }
        if (l->overdue || l->kill != KILL_NONE || l->health != HEALTH_ALIVE) {
            probe(c, l);
        } else {
            set_timer(c, l, l->deadline_ms);
        }
        break;
    }
}
