/*
 * Adds a program, fresh or recovered from the store, and applies another [run] table.
 *
 * Recovery trusts the rows for what happened and nothing for what is alive: every attempt without
 * an end is probed, and every act that was committed but may not have been done is emitted again.
 * added.c has checked before that plan and rows fit together.
 */
#include "daemon/core/gpus.h"

#include "daemon/core/apparatus.h"
#include "daemon/core/internal.h"
#include <assert.h>

static void set_run(struct core_stage *s, const struct core_plan_stage *from)
{
    s->executor = from->executor;
    s->threads = from->threads > 0 ? from->threads : 1;
    s->memory_bytes = from->memory_bytes > 0 ? from->memory_bytes : 0;
    s->gpu_thousandths = from->gpu_thousandths > 0 ? from->gpu_thousandths : 0;
    s->gpu_memory_bytes = from->gpu_memory_bytes > 0 ? from->gpu_memory_bytes : 0;
    s->crashes = from->crashes;
    s->attempts = from->attempts;
    memcpy(s->deadline_ms, from->deadline_ms, sizeof(s->deadline_ms));
}

static void set_limits(struct core_program *p, const struct core_plan *plan)
{
    p->slots = plan->slots;
    p->max_queued = plan->max_queued;
    p->priority = plan->priority;
    gpus_take_limits(p, plan);
}

/* Deepest stage first; among equals the program's order. */
static void set_order(struct core_program *p)
{
    assert(p->n_stages <= STAGES_MAX);
    uint32_t depth[STAGES_MAX] = {0};
    for (uint32_t s = 0; s < p->n_stages; s++) {
        const struct stage_set *after = &p->stages[s].after;
        for (uint32_t k = stage_set_next(after, 0); k < s; k = stage_set_next(after, k + 1)) {
            depth[s] = depth[k] + 1 > depth[s] ? depth[k] + 1 : depth[s];
        }
    }
    for (uint32_t s = 0; s < p->n_stages; s++) {
        uint32_t order = 0;
        for (uint32_t o = 0; o < p->n_stages; o++) {
            order += depth[o] > depth[s] || (depth[o] == depth[s] && o < s);
        }
        p->stages[s].order = order;
    }
}

static void set_stages(struct core_program *p, const struct core_plan *plan)
{
    p->stages = xcalloc(plan->n_stages, sizeof(*p->stages));
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        const struct core_plan_stage *from = &plan->stages[s];
        struct core_stage *to = &p->stages[s];
        to->name = from->name == NULL ? NULL : xstrdup(from->name);
        to->counted = from->counted;
        to->sealed = from->sealed;
        to->held = from->sealed && from->n_after > 0;
        set_run(to, from);
        for (size_t i = 0; i < from->n_after; i++) {
            stage_set_add(&to->after, from->after[i]);
            stage_set_add(&p->stages[from->after[i]].dependants, s);
        }
    }
    set_order(p);
}

/* All counters of the program follow from the rows here; task_move() keeps them afterwards. A
 * result that was accepted and later lost still counts as accepted: its scores could be seen. */
static void set_tasks(struct core_program *p, const struct task_row *rows)
{
    p->tasks = xcalloc(p->n_tasks, sizeof(*p->tasks));
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        struct core_stage *s = task_stage(p, i);
        struct task_row fresh;
        task_row_init(&fresh, stage_set_is_empty(&s->after) && !task_is_named(p, i) ? TASK_READY
                                                                                    : TASK_WAITING);
        task_init(&p->tasks[i], rows != NULL ? &rows[i] : &fresh);
        const struct core_task *t = &p->tasks[i];
        bool accepted = t->state == TASK_DONE || t->cause == CAUSE_LOST;
        p->n_by_state[t->state] += !task_is_apparatus(p, i);
        p->n_accepted += accepted && !task_is_apparatus(p, i);
        s->n_accepted += accepted;
        p->n_counted += s->counted;
        p->n_counted_open += s->counted && !task_state_is_terminal((enum task_state)t->state);
        p->n_unlinked += t->state == TASK_DONE && !t->linked;
    }
}

/* Adopts an attempt that was alive when the last daemon ended. Nothing is known of it until it is
 * probed, and its failure to launch would be that daemon's. */
static void adopt(struct core *c, struct core_program *p, const struct core_live *from)
{
    assert(from->task < p->n_tasks);
    enum task_state state = (enum task_state)p->tasks[from->task].state;
    struct live *l = live_new(c, p, from->task);
    l->row = from->attempt;
    l->excused = true;
    l->answered = from->answered;
    l->phase = state == TASK_RUNNING ? LIVE_RUNNING : LIVE_STARTING;
    l->progressed =
        l->row.checkpoint >= 0 && l->row.checkpoint >= p->tasks[from->task].best_checkpoint;
    l->progressed |= l->row.done >= 0 && l->row.done >= p->tasks[from->task].best_done;
    l->kill = p->tasks[from->task].ending != CAUSE_NONE ? KILL_WANTED : KILL_NONE;
    l->deadline_ms = c->now_ms + live_deadline_span(c, l);
    live_hold(c, l);
    emit_live_act(c, ACT_PROBE, l);
    timer_set(c, p, from->task, c->now_ms + c->config.probe_ms);
}

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* The rest of a task's backoff after a restart, in ms. The clock may have been far ahead when it
 * was stored, so it is capped by the longest backoff that could be chosen now. */
static int64_t backoff_left_ms(const struct core *c, const struct core_task *t)
{
    uint32_t step = t->spent > t->idle ? t->spent : t->idle;
    step = t->no_space > step ? t->no_space : step;
    return clamp(t->not_before_ms - c->wall.ms, 0, backoff_longest_ms(c, step));
}

/* Moves on the tasks that wait for nothing any more: their row is damaged, or the journal ended
 * between the end of one task and what follows from it. Nothing else would ever start or end them.
 * Stages are in topological order, so one pass suffices. */
static void settle(struct core *c, struct core_program *p)
{
    assert(p->n_grid <= p->n_tasks);
    for (uint32_t i = 0; i < p->n_grid && !p->status.verdict; i++) {
        if (p->tasks[i].state != TASK_WAITING) {
            continue;
        }
        if (task_dependencies_done(p, i)) {
            task_move(p, i, TASK_READY, CAUSE_NONE);
            (void)emit_task_row(c, p, i, ROW_TASK_READY, TASK_WAITING);
        } else if (task_dead_dependency(p, i) != NOWHERE) {
            task_move(p, i, TASK_NEVER_RUN, CAUSE_DEPENDENCY);
            (void)emit_task_row(c, p, i, ROW_TASK_ENDED, TASK_WAITING);
        }
    }
}

/* Emits acts again that were committed and may not have been done, and restarts backoffs. */
static void recover(struct core *c, struct core_program *p)
{
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        const struct core_task *t = &p->tasks[i];
        int64_t wait_ms = t->not_before_ms > 0 ? backoff_left_ms(c, t) : 0;
        if (t->state == TASK_READY && wait_ms > 0) {
            timer_set(c, p, i, c->now_ms + wait_ms);
        } else if (t->state == TASK_READY) {
            ready_push(p, i);
        } else if (t->state == TASK_DONE && !t->linked && !p->status.removed) {
            emit_task_act(c, ACT_LINK, p, i);
        }
    }
    if (p->status.removed) {
        emit_act(c, ACT_REMOVE, p);
    }
    if ((p->status.paused & PAUSE_DISK) != 0) {
        emit_act(c, ACT_WATCH_DISK, p);
    }
    if ((p->status.paused & (PAUSE_DATA | PAUSE_HOST)) != 0) {
        emit_act(c, ACT_WATCH_DATA, p);
    }
}

static void make_room(struct core *c, uint32_t no)
{
    if (no < c->cap_programs) {
        return;
    }
    uint32_t cap = c->cap_programs == 0 ? 16 : c->cap_programs;
    while (cap <= no) {
        cap *= 2;
    }
    c->programs = xreallocarray(c->programs, cap, sizeof(struct core_program *));
    memset(c->programs + c->cap_programs, 0,
           (cap - c->cap_programs) * sizeof(struct core_program *));
    c->cap_programs = cap;
}

/* The order matters: stages before tasks (a task needs its stage), both before the gate, live
 * attempts before settle() and recover(), which skip tasks that are at work. */
void program_add(struct core *c, const struct core_event *ev)
{
    assert(c != NULL && ev != NULL);
    const struct core_plan *plan = &ev->added.plan;
    char fault[160];
    if (program_of(c, ev->program) != NULL) {
        return;
    }
    if (!added_is_sound(ev, fault, sizeof(fault))) {
        emit_refusal(c, "%s", fault);
        return;
    }
    make_room(c, ev->program);
    struct core_program *p = xcalloc(1, sizeof(*p));
    c->programs[ev->program] = p;
    p->no = ev->program;
    p->n_cells = plan->n_cells;
    p->n_stages = plan->n_stages;
    p->n_grid = plan->n_cells * plan->n_stages;
    p->n_tasks = p->n_grid + plan->n_apparatus;
    set_limits(p, plan);
    for (int lane = 0; lane < LANE_NR; lane++) {
        p->starved_since[lane] = INT64_MIN;
    }
    p->retry_from = NOWHERE;
    if (ev->added.status != NULL) {
        p->status = *ev->added.status;
    }
    p->latest = ev->added.latest;
    set_stages(p, plan);
    same_work_set(p, plan);
    apparatus_set(p, plan);
    set_tasks(p, ev->added.tasks);
    p->gate_open = apparatus_holds(p);
    for (size_t i = 0; i < ev->added.n_ends; i++) {
        struct core_task *t = &p->tasks[ev->added.ends[i].task];
        t->end_code = (int16_t)ev->added.ends[i].code;
        t->end_signal = (uint8_t)ev->added.ends[i].signal;
    }
    for (size_t i = 0; i < ev->added.n_live; i++) {
        adopt(c, p, &ev->added.live[i]);
    }
    settle(c, p);
    slices_recover(c, p, ev->added.stop_text);
    recover(c, p);
}

/* Another [run] table: limits change for what starts from now on; what runs keeps what it holds. */
void program_set_run(struct core *c, struct core_program *p, const struct core_event *ev)
{
    assert(c != NULL && p != NULL && ev != NULL);
    const struct core_plan *plan = &ev->added.plan;
    if (plan->n_stages != p->n_stages || plan->n_cells != p->n_cells) {
        emit_refusal(c, "it has other cells or stages: another [run] changes neither");
        return;
    }
    set_limits(p, plan);
    for (uint32_t s = 0; s < p->n_stages; s++) {
        set_run(&p->stages[s], &plan->stages[s]);
    }
    same_work_set_run(p);
    apparatus_set(p, plan);
    (void)emit_program_row(c, p, ROW_RUN_SETTINGS, ev->text);
}
