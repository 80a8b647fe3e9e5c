/*
 * A world for the scheduler core to live in: virtual time, attempts with scripted ends, messages
 * that get lost, doubled or late, probes that cannot tell, daemons that die at every boundary, full
 * disks, jumping clocks, people.
 *
 * Three copies of the truth are kept apart: what really happens (struct sim_attempt), what is
 * committed (view and durable rows, as the store would hold them), and what the core believes
 * (asked through its public questions). Everything follows from the seed.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include "base/rng.h"
#include "daemon/core/core.h"
#include "daemon/core/explain.h"

#define SIM_STAGES_MAX 5

/* Chances are in thousandths. */
struct sim_odds {
    unsigned lost;      /* a message never arrives */
    unsigned doubled;   /* it arrives twice */
    unsigned late;      /* it takes minutes */
    unsigned unknown;   /* a probe cannot tell */
    unsigned restart;   /* the daemon dies, per step, in ten-thousandths */
    unsigned failing;   /* an attempt ends otherwise than well */
    unsigned start_bad; /* it cannot be started */
    unsigned person;    /* somebody asks for something, per step, in ten-thousandths */
};

/* What an attempt will do when it is let go. */
enum sim_fate {
    FATE_GOOD,
    FATE_BAD_RESULT,
    FATE_AGAIN, /* exit 75 */
    FATE_CRASH,
    FATE_USER,
    FATE_BAD_INPUT,
    FATE_NOT_MEASURABLE,
    FATE_MEMORY,
    FATE_DISK,
    FATE_SILENT, /* shim and worker killed: no exit.json */
    FATE_HOST,
    FATE_HANG,
    FATE_GARBAGE,
    FATE_NR
};

struct sim_attempt {
    uint32_t program;
    uint32_t task;
    uint32_t no;
    enum sim_fate fate;
    bool launched;
    bool fenced; /* said to be gone before it ever ran: it never will */
    bool alive;
    bool ended_known; /* exit.json lies there */
    enum end_reason reason;
    int code;
    int signal;
    int64_t written; /* bytes of events.jsonl */
    int64_t fed;     /* taken in by the shell of today */
    int64_t progress;
    int64_t interval_ms; /* between two lines */
    int n_lines_left;
    enum core_health told; /* the last answer the core got about it */
    bool was_told;
    uint32_t threads;
    int64_t memory_bytes;
};

struct sim_task {
    struct task_row row;     /* with every row handed out so far */
    struct task_row durable; /* with those that survive a death now */
    struct attempt_row attempt;
    struct attempt_row durable_attempt;
    uint32_t current; /* index of the sim_attempt, or UINT32_MAX */
    uint32_t crashes; /* counted here, from causes alone */
    uint32_t spent;
};

struct sim_program {
    uint32_t n_cells;
    uint32_t n_stages;
    uint32_t n_tasks;
    struct core_stage stages[SIM_STAGES_MAX];
    uint32_t after[SIM_STAGES_MAX][SIM_STAGES_MAX];
    uint32_t slots;
    struct sim_task *tasks;
    struct program_row row;
    struct program_row durable;
    uint32_t n_terminal;
    uint32_t n_counted_open;
    uint32_t n_unlinked;
    unsigned n_verdicts;
    unsigned n_unsealed;
    unsigned n_reported;
};

enum sim_kind { SIM_EVENT, SIM_LINE, SIM_END, SIM_LAUNCH, SIM_TIMER };

struct sim_item {
    int64_t at_ms;
    uint64_t seq;
    enum sim_kind kind;
    uint32_t attempt;     /* LINE, END, LAUNCH */
    unsigned generation;  /* TIMER: of the daemon that armed it; EVENT: 0 survives daemons */
    struct core_event ev; /* EVENT */
};

struct sim {
    uint64_t seed;
    struct rng rng;
    struct sim_odds odds;
    bool full_checks;
    bool quiet; /* no more faults: let it come to its end */
    struct core_config config;
    struct core *core;
    struct core_out out;
    struct sim_program *programs; /* number 1 is programs[0] */
    uint32_t n_programs;
    struct sim_attempt *attempts;
    uint32_t n_attempts;
    uint32_t cap_attempts;
    struct sim_item *items; /* heap by time */
    size_t n_items;
    size_t cap_items;
    uint64_t n_seq;
    struct state_row *lazy; /* handed out, not durable yet */
    size_t n_lazy;
    size_t cap_lazy;
    int64_t now_ms;
    int64_t wall_shift_ms;
    unsigned generation;
    int64_t armed_ms;
    bool armed;
    uint32_t used_slots; /* by attempts that really live */
    uint32_t used_threads;
    int64_t used_memory;
    uint64_t n_steps;
    uint64_t n_restarts;
    uint64_t n_starts;
    uint64_t n_kills;
    uint64_t n_unknown;
    uint64_t n_early; /* results verified before the rows of that step were committed */
    uint64_t n_by_fate[FATE_NR];
    const struct core_event *in_step;
};

struct sim_config {
    uint64_t seed;
    uint32_t n_tasks; /* about: over one to three programs */
    bool full_checks;
};

/* Runs a world to its end; aborts with seed, step and reason when an invariant does not hold. */
void sim_run(const struct sim_config *config, struct sim *totals);

/* For the parts of the simulation. */
void sim_fail(const struct sim *s, const char *fmt, ...) PRINTF_LIKE(2, 3)
    __attribute__((noreturn));
bool sim_chance(struct sim *s, unsigned per_mille);
int64_t sim_between(struct sim *s, int64_t low, int64_t high);
struct sim_item *sim_push(struct sim *s, int64_t at_ms, enum sim_kind kind);
/* A message to the core, with the world's chances of loss, doubling and lateness. */
void sim_tell(struct sim *s, const struct core_event *ev, int64_t delay_ms);
/* One that cannot get lost while this daemon lives (its own threads and callbacks). */
void sim_tell_surely(struct sim *s, const struct core_event *ev, int64_t delay_ms);

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

/* check.c: invariants. */
void check_rows(struct sim *s); /* takes the rows of s->out over into the view */
void check_act(struct sim *s, const struct core_act *act);   /* before it is done */
void check_early(struct sim *s, const struct core_act *act); /* before it, without a commit */
void check_step(struct sim *s);                              /* after every step */
void check_end(struct sim *s);                               /* nothing is left to do */
void check_settle_lazy(struct sim *s, bool survive);         /* what was lazy is durable, or lost */

static inline struct sim_task *sim_task_at(struct sim *s, uint32_t program, uint32_t task)
{
    return &s->programs[program - 1].tasks[task];
}

static inline uint32_t sim_idle_max(const struct core_stage *stage)
{
    return stage->crashes > 3 ? stage->crashes : 3;
}

#endif
