/*
 * Makes the rows and acts of a step. A row copies the task, the attempt or the program as it is at
 * that moment, so callers change the state first and emit afterwards.
 *
 * Rows of a damaged program, and its acts except those that watch or end an attempt, are written
 * into a dummy (c->no_row, c->no_act): callers may always set members of what they get.
 */
#include <assert.h>
#include <stdarg.h>

#include "daemon/core/internal.h"

struct wall_time program_time(const struct core *c, const struct core_program *p)
{
    assert(c != NULL && p != NULL);
    return c->wall.ms > p->latest.ms ? c->wall : p->latest;
}

/* A row's time never goes back within its program; behind_ms says by how much the clock did. */
static struct state_row *new_row(struct core *c, enum row_kind kind, struct core_program *p)
{
    assert(c->out != NULL); /* only within a step */
    struct wall_time time = program_time(c, p);
    struct core_out *out = c->out;
    struct state_row *row = &c->no_row;
    if (!p->damaged) {
        ARRAY_GROW(out->rows, out->n_rows, out->cap_rows);
        row = &out->rows[out->n_rows++];
    }
    *row = (struct state_row){
        .kind = kind, .program = p->no, .time = time, .behind_ms = time.ms - c->wall.ms};
    if (row_kind_is_journalled(kind)) {
        p->latest = time;
    }
    return row;
}

void task_snapshot(const struct core_task *t, struct task_row *out)
{
    assert(t != NULL && out != NULL);
    *out = (struct task_row){
        .state = (enum task_state)t->state,
        .cause = (enum cause)t->cause,
        .linked = t->linked,
        .ending = (enum cause)t->ending,
        .n_attempts = t->n_attempts,
        .spent = t->spent,
        .crashes = t->crashes,
        .idle = t->idle,
        .no_space = t->no_space,
        .best_done = t->best_done,
        .best_checkpoint = t->best_checkpoint,
        .not_before = {t->not_before_ms},
    };
}

struct state_row *emit_program_row(struct core *c, struct core_program *p, enum row_kind kind,
                                   const char *detail)
{
    assert(!row_kind_is_of_task(kind));
    struct state_row *row = new_row(c, kind, p);
    row->status = p->status;
    row->detail = emit_text(c, detail);
    return row;
}

struct state_row *emit_task_row(struct core *c, struct core_program *p, uint32_t task,
                                enum row_kind kind, enum task_state from)
{
    assert(row_kind_is_of_task(kind));
    struct state_row *row = new_row(c, kind, p);
    row->task = task;
    row->from = from;
    task_snapshot(&p->tasks[task], &row->after);
    const struct live *l = live_of(c, p, task);
    if (l != NULL) {
        row->attempt = l->row;
    } else {
        attempt_row_init(&row->attempt);
    }
    return row;
}

/* A damaged program's attempts are probed, and ended when they hang; every other act is dropped. */
static bool is_wanted(const struct core_program *p, enum core_act_kind kind)
{
    return p == NULL || !p->damaged || kind == ACT_PROBE || kind == ACT_TERMINATE ||
           kind == ACT_KILL;
}

/* An act of no program (p is NULL) has the number 0. */
static struct core_act *new_act(struct core *c, enum core_act_kind kind,
                                const struct core_program *p)
{
    assert(c->out != NULL);
    struct core_out *out = c->out;
    struct core_act *act = &c->no_act;
    if (is_wanted(p, kind)) {
        ARRAY_GROW(out->acts, out->n_acts, out->cap_acts);
        act = &out->acts[out->n_acts++];
    }
    *act = (struct core_act){.kind = kind, .program = p != NULL ? p->no : 0};
    return act;
}

void emit_act(struct core *c, enum core_act_kind kind, const struct core_program *p)
{
    assert(c != NULL && c->out != NULL);
    (void)new_act(c, kind, p);
}

void emit_task_act(struct core *c, enum core_act_kind kind, const struct core_program *p,
                   uint32_t task)
{
    assert(task < p->n_tasks);
    struct core_act *act = new_act(c, kind, p);
    act->task = task;
    act->attempt_no = p->tasks[task].n_attempts;
}

void emit_live_act(struct core *c, enum core_act_kind kind, const struct live *l)
{
    assert(c != NULL && l != NULL && l->program < c->cap_programs);
    struct core_act *act = new_act(c, kind, c->programs[l->program]);
    act->task = l->task;
    act->attempt_no = l->row.no;
    memcpy(act->attempt_id, l->row.id, sizeof(act->attempt_id));
}

void timer_rearm(struct core *c)
{
    assert(c != NULL && c->out != NULL);
    int64_t at = core_next_timer_ms(c);
    if (at == c->armed_ms) {
        return;
    }
    c->armed_ms = at;
    new_act(c, ACT_ARM, NULL)->at_ms = at;
}

const char *emit_text(struct core *c, const char *text)
{
    assert(c != NULL && c->out != NULL);
    return text == NULL ? NULL : arena_strdup(&c->out->texts, text);
}

void emit_refusal(struct core *c, const char *fmt, ...)
{
    assert(c != NULL && c->out != NULL && fmt != NULL);
    char text[256];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    c->out->refusal = arena_strdup(&c->out->texts, text);
}
