#include <assert.h>

#include "base/xalloc.h"
#include "tests/sim/parts.h"

#define LINE_BYTES 100

static struct core_event event_of(const struct sim_attempt *a, enum core_event_kind kind)
{
    return (struct core_event){
        .kind = kind, .program = a->program, .task = a->task, .attempt_no = a->no};
}

static enum sim_fate draw_fate(struct sim *s)
{
    static const enum sim_fate BAD[] = {
        FATE_AGAIN,  FATE_AGAIN,   FATE_CRASH, FATE_CRASH,      FATE_CRASH,          FATE_SILENT,
        FATE_SILENT, FATE_HOST,    FATE_HANG,  FATE_BAD_RESULT, FATE_MEMORY,         FATE_DISK,
        FATE_USER,   FATE_GARBAGE, FATE_HANG,  FATE_BAD_INPUT,  FATE_NOT_MEASURABLE,
    };
    return s->quiet || !sim_chance(s, s->odds.failing) ? FATE_GOOD
                                                       : BAD[rng_below(&s->rng, ARRAY_LEN(BAD))];
}

static enum sim_fate draw_fate_of(struct sim *s, const struct sim_program *p, uint32_t task)
{
    bool of_check = task >= p->n_grid;
    if (!s->quiet && !of_check && task % p->n_stages == p->broken) {
        return p->broken_by;
    }
    return of_check && !s->quiet && sim_chance(s, 250) ? FATE_UNEXPECTED : draw_fate(s);
}

static uint32_t new_attempt(struct sim *s, const struct core_act *act)
{
    const struct sim_program *p = &s->programs[act->program - 1];
    const struct core_plan_stage *stage = sim_stage_of(p, act->task);
    ARRAY_GROW(s->attempts, s->n_attempts, s->cap_attempts);
    struct sim_attempt *a = &s->attempts[s->n_attempts];
    *a = (struct sim_attempt){
        .program = act->program,
        .task = act->task,
        .no = act->attempt_no,
        .fate = draw_fate_of(s, p, act->task),
        .interval_ms = sim_between(s, 50, 20000),
        .n_lines_left = (int)sim_between(s, 0, 6),
        .threads = stage->threads < s->config.cores ? stage->threads : s->config.cores,
        .memory_bytes = stage->memory_bytes,
        .placement = sim_task_at(s, act->program, act->task)->attempt.placement,
        .progress = sim_task_at(s, act->program, act->task)->row.best_done,
        .head = p->n_amended,
        .asked = act->task >= p->n_grid ? p->checks[act->task - p->n_grid].version : 0,
        .metrics = sim_chance(s, 20) && !s->quiet ? 1 : (1u << SIM_METRICS) - 1,
    };
    s->n_by_fate[a->fate]++;
    return s->n_attempts++;
}

void truth_start(struct sim *s, const struct core_act *act)
{
    struct sim_task *t = sim_task_at(s, act->program, act->task);
    uint32_t i = new_attempt(s, act);
    t->current = i;
    s->n_starts++;
    if (!s->quiet && sim_chance(s, s->odds.start_bad)) {
        struct core_event ev = event_of(&s->attempts[i], CORE_START_FAILED);
        ev.start_failure = (enum core_start_failure)rng_below(&s->rng, START_FAILED_NR);
        ev.text = "scripted";
        s->attempts[i].fenced = true;
        sim_tell_surely(s, &ev, sim_between(s, 0, 50));
        if (ev.start_failure == START_FAILED_LOCK) { /* somebody puts it right */
            ev.kind = CORE_RESUME;
            sim_tell_surely(s, &ev, sim_between(s, 1000, 60000));
        }
        return;
    }
    sim_push(s, s->now_ms + sim_between(s, 0, 300), SIM_LAUNCH)->attempt = i;
}

void truth_launch(struct sim *s, uint32_t attempt)
{
    struct sim_attempt *a = &s->attempts[attempt];
    if (a->fenced) {
        return;
    }
    a->launched = true;
    a->alive = true;
    s->used_slots++;
    s->used_threads += a->threads;
    s->used_memory += a->memory_bytes;
    gpus_use(s, &a->placement, 1);
    struct core_event ev = event_of(a, CORE_ATTEMPT_UP);
    sim_tell(s, &ev, sim_between(s, 0, 100));
    sim_push(s, s->now_ms + a->interval_ms, SIM_LINE)->attempt = attempt;
}

/* The shell reads on from where it last read; what it hands on may be lost, then it reads that
 * again. */
static void feed(struct sim *s, struct sim_attempt *a, bool garbage)
{
    bool lost = !s->quiet && sim_chance(s, s->odds.lost);
    struct core_event ev = event_of(a, CORE_WORKER_SAID);
    ev.said.from = a->fed;
    ev.said.to = a->written;
    ev.said.section =
        rng_below(&s->rng, 3) == 0 ? (enum section)rng_below(&s->rng, SECTION_NR) : SECTION_NR;
    ev.said.progressed = !garbage;
    ev.said.done = a->progress;
    ev.said.total = 1000;
    ev.said.checkpoint = rng_below(&s->rng, 4) == 0 ? a->progress : -1;
    ev.said.resumed_from = -1;
    ev.said.malformed = garbage ? 60 : 0;
    if (lost) {
        return;
    }
    a->fed = a->written;
    sim_tell_surely(s, &ev, 0);
    if (sim_chance(s, s->odds.doubled)) {
        sim_tell_surely(s, &ev, sim_between(s, 1, 5000));
    }
}

void truth_line(struct sim *s, uint32_t attempt)
{
    struct sim_attempt *a = &s->attempts[attempt];
    if (!a->alive) {
        return;
    }
    bool garbage = a->fate == FATE_GARBAGE;
    if (a->n_lines_left > 0 || garbage) {
        a->n_lines_left--;
        a->written += LINE_BYTES;
        a->progress += garbage ? 0 : sim_between(s, 0, 3);
        feed(s, a, garbage);
        sim_push(s, s->now_ms + a->interval_ms, SIM_LINE)->attempt = attempt;
        return;
    }
    if (a->fate != FATE_HANG) {
        sim_push(s, s->now_ms + sim_between(s, 0, a->interval_ms), SIM_END)->attempt = attempt;
    }
}

static void set_exit(struct sim_attempt *a, enum end_reason reason, int code, int signal)
{
    a->reason = reason;
    a->code = code;
    a->signal = signal;
    a->ended_known = true;
}

static void draw_end(struct sim_attempt *a)
{
    switch (a->fate) {
    case FATE_GOOD:
    case FATE_UNEXPECTED:
    case FATE_BAD_RESULT: set_exit(a, END_EXITED, 0, 0); break;
    case FATE_AGAIN: set_exit(a, END_EXITED, 75, 0); break;
    case FATE_USER: set_exit(a, END_EXITED, 64, 0); break;
    case FATE_BAD_INPUT: set_exit(a, END_EXITED, 65, 0); break;
    case FATE_NOT_MEASURABLE: set_exit(a, END_EXITED, 69, 0); break;
    case FATE_CRASH: set_exit(a, END_SIGNALLED, -1, 11); break;
    case FATE_MEMORY: set_exit(a, END_MEMORY, -1, 0); break;
    case FATE_DISK: set_exit(a, END_DISK, -1, 0); break;
    case FATE_SILENT: a->reason = END_LOST; break;
    case FATE_HOST: a->reason = END_HOST_LOST; break;
    case FATE_HANG:
    case FATE_GARBAGE:
    case FATE_NR: set_exit(a, END_SIGNALLED, -1, 15); break;
    }
}

static struct core_event ended_event(const struct sim_attempt *a)
{
    struct core_event ev = event_of(a, CORE_ATTEMPT_ENDED);
    ev.ended.reason = a->reason;
    ev.ended.code = a->code;
    ev.ended.signal = a->signal;
    ev.ended.ran_ms = ev.ended.user_ms = ev.ended.system_ms = ev.ended.max_rss_bytes = -1;
    ev.text = "scripted";
    return ev;
}

static void die(struct sim *s, struct sim_attempt *a)
{
    a->alive = false;
    s->used_slots--;
    s->used_threads -= a->threads;
    s->used_memory -= a->memory_bytes;
    gpus_use(s, &a->placement, -1);
}

void truth_end(struct sim *s, uint32_t attempt)
{
    struct sim_attempt *a = &s->attempts[attempt];
    if (!a->alive) {
        return;
    }
    die(s, a);
    draw_end(a);
    struct core_event ev = ended_event(a);
    sim_tell(s, &ev, sim_between(s, 0, 200));
}

/* A worker told to stop mostly checkpoints and exits 75; one that hangs needs the second signal. */
void truth_signal(struct sim *s, const struct core_act *act)
{
    struct sim_attempt *a = &s->attempts[sim_task_at(s, act->program, act->task)->current];
    s->n_kills++;
    if (!a->alive || a->no != act->attempt_no) {
        return;
    }
    bool deaf = a->fate == FATE_HANG && rng_below(&s->rng, 2) == 0;
    if (act->kind == ACT_TERMINATE && deaf) {
        return;
    }
    die(s, a);
    if (act->kind == ACT_KILL) {
        set_exit(a, END_SIGNALLED, -1, 9);
    } else {
        set_exit(a, END_EXITED, 75, 0);
    }
    struct core_event ev = ended_event(a);
    sim_tell(s, &ev, sim_between(s, 0, 2000));
}

static void answer(struct sim *s, const struct sim_attempt *a, enum core_health health)
{
    struct core_event ev = event_of(a, CORE_PROBED);
    ev.health = health;
    sim_tell(s, &ev, sim_between(s, 0, 300));
}

void truth_probe(struct sim *s, const struct core_act *act)
{
    struct sim_task *t = sim_task_at(s, act->program, act->task);
    struct sim_attempt *a = t->current == UINT32_MAX ? NULL : &s->attempts[t->current];
    if (a == NULL || a->no != act->attempt_no) {
        /* committed, but the daemon died before it was begun: nothing of it is there */
        struct core_event ev = {
            .kind = CORE_ATTEMPT_ENDED, .program = act->program, .task = act->task};
        ev.attempt_no = act->attempt_no;
        ev.ended.reason = END_NEVER_LAUNCHED;
        ev.ended.ran_ms = ev.ended.user_ms = ev.ended.system_ms = ev.ended.max_rss_bytes = -1;
        sim_tell(s, &ev, 10);
        return;
    }
    if (!s->quiet && sim_chance(s, s->odds.unknown)) {
        s->n_unknown++;
        answer(s, a, HEALTH_UNKNOWN);
    } else if (a->alive) {
        answer(s, a, HEALTH_ALIVE);
    } else if (a->ended_known || a->reason == END_HOST_LOST) {
        struct core_event ev = ended_event(a);
        sim_tell(s, &ev, sim_between(s, 0, 100));
    } else if (a->launched) {
        answer(s, a, HEALTH_DEAD);
    } else {
        a->fenced = true;
        a->reason = END_NEVER_LAUNCHED;
        struct core_event ev = ended_event(a);
        sim_tell(s, &ev, sim_between(s, 0, 100));
    }
}

void truth_verify(struct sim *s, const struct core_act *act)
{
    const struct sim_task *t = sim_task_at(s, act->program, act->task);
    const struct sim_attempt *a = &s->attempts[t->current];
    struct core_event ev = event_of(a, CORE_RESULT_CHECKED);
    assert(a->no == act->attempt_no && a->ended_known && a->code == 0);
    ev.check.result = RESULT_VALID;
    if (a->fate == FATE_BAD_RESULT) {
        static const enum core_result_check BAD[] = {RESULT_BAD, RESULT_BAD, RESULT_DRIFT,
                                                     RESULT_NO_SPACE};
        ev.check.result = BAD[rng_below(&s->rng, ARRAY_LEN(BAD))];
        ev.text = "scripted";
    }
    ev.check.digest.bytes[0] = (unsigned char)a->no;
    sim_tell(s, &ev, sim_between(s, 0, 500));
}
