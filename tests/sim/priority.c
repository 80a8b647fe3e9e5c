/* S8 between programs: nothing of a program starts while every ready task of one of higher priority
 * would have had room. Which of its tasks is next is not asked, so that this does not rest on the
 * order within a program. */
#include "tests/sim/parts.h"

/* What the started task took, before which it was free. */
struct taken {
    uint32_t threads;
    int64_t memory_bytes;
};

static bool had_room(const struct core_explanation *e, const struct taken *t)
{
    return !e->lacks_gpus && e->threads <= e->free_threads + t->threads &&
           (e->free_memory_bytes == INT64_MAX ||
            e->memory_bytes <= e->free_memory_bytes + t->memory_bytes);
}

static uint32_t n_at_work(const struct sim_program *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        n += p->tasks[i].row.state == TASK_STARTING || p->tasks[i].row.state == TASK_RUNNING;
    }
    return n;
}

/* Whether `no` has ready tasks that may start, and all of them had room. */
static bool was_passed_over(struct sim *s, uint32_t no, const struct taken *t)
{
    const struct sim_program *p = &s->programs[no - 1];
    bool any = false;
    if (p->slots > 0 && n_at_work(p) >= p->slots) {
        return false;
    }
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        struct core_explanation e;
        if (p->tasks[i].row.state != TASK_READY || !core_explain(s->core, no, i, &e) ||
            (e.why != WHY_SLOTS && e.why != WHY_PRIORITY)) {
            continue;
        }
        if (!had_room(&e, t)) {
            return false;
        }
        any = true;
    }
    return any;
}

/* A start while a program of lower priority waits, and one of higher priority. */
static void check_started(struct sim *s, const struct state_row *row)
{
    const struct sim_program *p = &s->programs[row->program - 1];
    const struct core_plan_stage *st = sim_stage_of(p, row->task);
    const struct taken t = {
        .threads = st->threads < s->config.cores ? st->threads : s->config.cores,
        .memory_bytes = st->memory_bytes,
    };
    for (uint32_t no = 1; no <= s->n_programs; no++) {
        if (s->programs[no - 1].priority > p->priority && was_passed_over(s, no, &t)) {
            sim_fail(s, "S8: task %u of program %u started before program %u of higher priority",
                     row->task, row->program, no);
        }
    }
}

/* What is said of a waiting task: it is behind exactly the programs of higher priority. */
static void check_said(struct sim *s, uint32_t no)
{
    const struct sim_program *p = &s->programs[no - 1];
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        struct core_explanation e;
        if (p->tasks[i].row.state != TASK_READY || !core_explain(s->core, no, i, &e) ||
            e.why != WHY_PRIORITY) {
            continue;
        }
        s->n_behind++;
        if (e.ahead == 0 || e.ahead > s->n_programs ||
            s->programs[e.ahead - 1].priority <= p->priority) {
            sim_fail(s, "S8: task %u of program %u is said to wait behind program %u", i, no,
                     e.ahead);
        }
    }
}

void check_priority(struct sim *s)
{
    for (size_t i = 0; i < s->out.n_rows; i++) {
        if (s->out.rows[i].kind == ROW_ATTEMPT_STARTED) {
            check_started(s, &s->out.rows[i]);
        }
    }
    for (uint32_t no = 1; no <= s->n_programs; no++) {
        check_said(s, no);
    }
}
