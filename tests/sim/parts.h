/* What the parts of the simulation offer each other. */
#ifndef TESTS_SIM_PARTS_H
#define TESTS_SIM_PARTS_H

#include "tests/sim/world.h"

void sim_fail(const struct sim *s, const char *fmt, ...) PRINTF_LIKE(2, 3)
    __attribute__((noreturn));
bool sim_chance(struct sim *s, unsigned per_mille);
int64_t sim_between(struct sim *s, int64_t low, int64_t high);
struct sim_item *sim_push(struct sim *s, int64_t at_ms, enum sim_kind kind);
/* A message to the core, with the world's chances of loss, doubling and lateness. */
void sim_tell(struct sim *s, const struct core_event *ev, int64_t delay_ms);
/* One that cannot get lost while this daemon lives (its own threads and callbacks). */
void sim_tell_surely(struct sim *s, const struct core_event *ev, int64_t delay_ms);

/* Tasks up to n_tasks, as new as a program's. */
void sim_add_tasks(struct sim_program *p, uint32_t n_tasks);

/* truth.c: attempts as they really are. */
void truth_start(struct sim *s, const struct core_act *act);
void truth_launch(struct sim *s, uint32_t attempt);
void truth_line(struct sim *s, uint32_t attempt);
void truth_end(struct sim *s, uint32_t attempt);
void truth_signal(struct sim *s, const struct core_act *act);
void truth_probe(struct sim *s, const struct core_act *act);
void truth_verify(struct sim *s, const struct core_act *act);

/* people.c */
void people_ask(struct sim *s);
/* A program has paused because a stage fails: somebody looks, mends it or not, and resumes. */
void people_see_failures(struct sim *s, uint32_t program);

/* check.c: invariants. */
void check_rows(struct sim *s); /* takes the rows of s->out over into the view */
void check_act(struct sim *s, const struct core_act *act);   /* before it is done */
void check_early(struct sim *s, const struct core_act *act); /* before it, without a commit */
void check_step(struct sim *s);                              /* after every step */
void check_priority(struct sim *s);                  /* priority.c: the same, between programs */
void check_end(struct sim *s);                       /* nothing is left to do */
void check_settle_lazy(struct sim *s, bool survive); /* what was lazy is durable, or lost */

/* gpus.c */
void gpus_draw(struct sim *s); /* those of the world */
void gpus_draw_stage(struct sim *s, struct core_plan_stage *st);
void gpus_list(struct sim *s, struct core_event *ev); /* a CORE_GPUS as it is now */
void gpus_change(struct sim *s);                      /* soon the core gets one */
void gpus_use(struct sim *s, const struct placement *at, int sign);
void gpus_check_start(struct sim *s, const struct core_act *act);

/* journal.c: the lines that the committed rows make, and what they alone bring back. */
struct sim_journal *journal_new(void);
void journal_take(struct sim *s, const struct state_row *row);
void journal_check(struct sim *s, const struct sim_program *p);
void journal_free(struct sim_journal *j);

static inline struct sim_task *sim_task_at(struct sim *s, uint32_t program, uint32_t task)
{
    return &s->programs[program - 1].tasks[task];
}

/* The task that does its work. */
static inline uint32_t sim_worker(const struct sim_program *p, uint32_t task)
{
    return p->workers == NULL || task >= p->n_grid ? task : p->workers[task];
}

static inline const struct core_plan_stage *sim_stage_of(const struct sim_program *p, uint32_t task)
{
    if (sim_worker(p, task) != task) {
        return &p->naming[task % p->n_stages];
    }
    return task < p->n_grid ? &p->stages[task % p->n_stages] : &p->check_stages[task - p->n_grid];
}

/* Which count of accepted results is a task's. */
static inline uint32_t sim_accepted_as(const struct sim_program *p, uint32_t task)
{
    return task % p->n_stages + (sim_worker(p, task) != task ? SIM_STAGES_MAX : 0);
}

static inline uint32_t sim_idle_max(const struct core_plan_stage *stage)
{
    return stage->crashes > 3 ? stage->crashes : 3;
}

#endif
