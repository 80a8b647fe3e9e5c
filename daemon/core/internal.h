/* The functions that the files of daemon/core offer each other, by file. Not for use outside. */
#ifndef DAEMON_CORE_INTERNAL_H
#define DAEMON_CORE_INTERNAL_H

#include "base/xalloc.h"
#include "daemon/core/same_work.h"

/* emit.c: rows and acts. A row takes its snapshots when it is made, so the change comes first. */
/* The time of what happens to a program now. It never goes back, so a clock that is set back does
 * not reorder the journal. */
struct wall_time program_time(const struct core *c, const struct core_program *p);
void task_snapshot(const struct core_task *t, struct task_row *out);
struct state_row *emit_program_row(struct core *c, struct core_program *p, enum row_kind kind,
                                   const char *detail);
struct state_row *emit_task_row(struct core *c, struct core_program *p, uint32_t task,
                                enum row_kind kind, enum task_state from);
void emit_act(struct core *c, enum core_act_kind kind, const struct core_program *p);
void emit_task_act(struct core *c, enum core_act_kind kind, const struct core_program *p,
                   uint32_t task);
void emit_live_act(struct core *c, enum core_act_kind kind, const struct live *l);
const char *emit_text(struct core *c,
                      const char *text); /* a copy that lives as long as out; NULL stays NULL */
void emit_refusal(struct core *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* queue.c: the ready queue of a program and the timers of all. */
void ready_push(struct core_program *p, uint32_t task);   /* no-op when it is in, or not wanted */
void ready_remove(struct core_program *p, uint32_t task); /* no-op when it is not */
/* After a check has moved: opens or closes the gate that holds stages back. */
void ready_update_gate(struct core_program *p);
void ready_resort(struct core_program *p); /* after another [run]: stages may run elsewhere */
uint32_t ready_head(const struct core_program *p, enum lane lane); /* or NOWHERE */
void ready_free(struct core_program *p);
void timer_set(struct core *c, const struct core_program *p, uint32_t task, int64_t at_ms);
void timer_clear(struct core *c, const struct core_program *p, uint32_t task);
void timer_rearm(struct core *c); /* emits ARM when the earliest has changed */

/* task.c: moves and what follows from them within the cell, and for other names of the work. */
void task_move(struct core_program *p, uint32_t task, enum task_state to, enum cause cause);
void task_release_dependants(struct core *c, struct core_program *p,
                             uint32_t task); /* it is done */
void task_block_dependants(struct core *c, struct core_program *p,
                           uint32_t task); /* it never will be */
bool task_dependencies_done(const struct core_program *p, uint32_t task);
/* The first stage of its cell it waits for, as a task; NOWHERE when there is none. */
uint32_t task_waits_for(const struct core_program *p, uint32_t task);

/* A task as its row states it, in no queue and without timer or attempt. */
void task_init(struct core_task *t, const struct task_row *row);
/* Resets its budgets; the task becomes ready, or waits for its dependencies. `kind` is the row that
 * records it, `text` (or NULL) the reason in it. */
void task_revive(struct core *c, struct core_program *p, uint32_t task, enum row_kind kind,
                 const char *text);
/* Revives the tasks of its cell that never ran because of it, unless another dependency is dead. */
void task_revive_dependants(struct core *c, struct core_program *p, uint32_t task,
                            enum row_kind kind, const char *text);
/* A dependency that has ended otherwise than done; NOWHERE when there is none. */
uint32_t task_dead_dependency(const struct core_program *p, uint32_t task);

static inline struct core_stage *task_stage(const struct core_program *p, uint32_t task)
{
    if (task_accepts(p, task)) {
        return &p->same->naming[task % p->n_stages];
    }
    return task < p->n_grid ? &p->stages[task % p->n_stages]
                            : &p->stages[p->n_stages + (task - p->n_grid)];
}

/* live.c: the pool, slots, deadlines. */
struct live *live_new(struct core *c, struct core_program *p, uint32_t task);
void live_free(struct core *c, struct live *l);
struct live *live_of(struct core *c, const struct core_program *p, uint32_t task); /* NULL: none */
/* What an attempt of a stage takes. One that asks for more than this machine has gets all of it,
 * and runs alone; another executor has its own limits. */
uint32_t live_threads(const struct core *c, const struct core_stage *s);
int64_t live_memory(const struct core *c, const struct core_stage *s);
/* Decides where a new attempt runs and what it is given there. */
void live_place(const struct core *c, const struct core_stage *s, struct placement *out);
/* Counts what its placement names as used; an adopted attempt of an earlier version is placed
 * first. */
void live_hold(struct core *c, struct live *l);
void live_let_go(struct core *c, struct live *l);
/* Its worker has ended and its result is being verified. When no stage comes after it, its slot is
 * given to another task meanwhile; else it is kept, so that the cell's next stage comes first. */
void live_set_aside(struct core *c, struct live *l);
/* Work was seen: the interval since the last sign is measured, the deadline moves. */
void live_mark(struct core *c, struct live *l);
int64_t live_deadline_span(const struct core *c, const struct live *l);

/* attempt.c: events of attempts. */
void attempt_start(struct core *c, struct core_program *p, uint32_t task);
void attempt_up(struct core *c, struct live *l);
void attempt_start_failed(struct core *c, struct live *l, enum core_start_failure why,
                          const char *text);
void attempt_said(struct core *c, struct live *l, const struct core_event *ev);
void attempt_ended(struct core *c, struct live *l, const struct core_event *ev);
void attempt_checked(struct core *c, struct live *l, const struct core_event *ev);
void attempt_probed(struct core *c, struct live *l, enum core_health health);
void attempt_timer(struct core *c, struct live *l);
void attempt_end_by_person(struct core *c, struct live *l);

/* failures.c: whether the program pauses instead of giving up a task that was just blocked by the
 * end of its attempt; the task is then ready again, or waits. `answered` is the attempt's. */
bool failures_pause(struct core *c, struct core_program *p, uint32_t task, bool answered,
                    const char *text);
void failures_answer(struct core *c, struct core_program *p); /* its pause is lifted */

/* judge.c: what becomes of a task whose attempt has ended without a valid result. */
struct judgement {
    enum task_state to; /* READY or BLOCKED */
    int64_t delay_ms;   /* READY: backoff */
    unsigned pause;     /* PAUSE_DISK or PAUSE_HOST: the program is to pause */
};
/* The upper bound of the backoff after the `step`th end in a row, in ms. */
int64_t backoff_longest_ms(const struct core *c, uint32_t step);
struct judgement judge_end(struct core *c, struct core_task *t, const struct core_stage *s,
                           const struct live *l, enum cause cause);
/* Maps an ended attempt's reason, exit code and signal to its cause. */
enum cause judge_cause(const struct live *l);

/* added.c: whether a program that is added holds together; *fault says what does not. */
bool added_is_sound(const struct core_event *ev, char *fault, size_t size);

/* pause.c: one bit for each reason; a second pause for the same reason changes nothing. */
void program_pause(struct core *c, struct core_program *p, unsigned bit, const char *why);

/* program_add.c */
void program_add(struct core *c, const struct core_event *ev);
/* Another [run] table: what starts from now on has its limits. */
void program_set_run(struct core *c, struct core_program *p, const struct core_event *ev);

/* program.c: a program from its addition to its report. */
struct core_program *program_of(struct core *c, uint32_t no); /* NULL: unknown */
static inline bool program_scores_are_open(const struct core_program *p)
{
    return p->status.unsealed || p->status.unblinded || p->status.verdict;
}
/* Tasks of the grid that have not ended. */
static inline uint32_t program_n_open(const struct core_program *p)
{
    return p->n_grid - p->n_by_state[TASK_DONE] - p->n_by_state[TASK_BLOCKED] -
           p->n_by_state[TASK_NEVER_RUN];
}
void program_free_all(struct core *c);
/* Nothing of it is started any more; its live attempts run to their end. */
void program_damaged(struct core *c, struct core_program *p);
/* Asks for unsealing, verdict and report, each as soon as it is due. After every event. */
void program_advance(struct core *c, struct core_program *p);
void program_unseal(struct core *c, struct core_program *p); /* no-op when it is */

/* amend.c: journals an amendment, or refuses it when its premises changed. */
void program_amend(struct core *c, struct core_program *p, const struct core_event *ev);

/* retry.c */
#define REFUSAL_STOPPING "every task of its program is being cancelled"
/* Why it may not be retried; NULL: it may. */
const char *retry_refusal(const struct core_program *p, uint32_t task);
void retry_task(struct core *c, struct core_program *p, uint32_t task, const char *text);

/* request.c: the other requests of a person. */
void request_cancel(struct core *c, struct core_program *p, uint32_t task, const char *text);
void request_lost(struct core *c, struct core_program *p, uint32_t task, const char *text);
/* Ends a task on a person's request: at once, or with its attempt where one lives. */
void request_end(struct core *c, struct core_program *p, uint32_t task, enum cause cause,
                 const char *text);
void request_resume(struct core *c, struct core_program *p, const struct core_event *ev);
void request_unblind(struct core *c, struct core_program *p, const char *text);
void request_remove(struct core *c, struct core_program *p, const char *text);

/* slices.c: requests about all tasks, a part of them in each step. */
void request_stop(struct core *c, struct core_program *p, const char *text);
/* Retries every blocked task of the grid that may be retried. */
void request_retry_all(struct core *c, struct core_program *p, const char *text);
/* Continues a `cancel --all` that the previous daemon did not finish. */
void slices_recover(struct core *c, struct core_program *p, const char *text);
void slices_on_timer(struct core *c);

/* dispatch.c: starts attempts until nothing more fits. */
void dispatch(struct core *c);
/* The program of a higher priority whose next task is started before any of `p`; NULL: none. */
const struct core_program *dispatch_ahead(const struct core *c, const struct core_program *p,
                                          enum lane lane);

#endif
