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
#include "tests/sim/amend.h"
#include "tests/sim/gpus.h"

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
    FATE_UNEXPECTED, /* of an apparatus check: whole, and not what was expected */
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
    struct placement placement;
    uint32_t head;    /* amendments of its program when it began */
    uint32_t asked;   /* of an apparatus check: its version then */
    uint32_t metrics; /* that its result has, as bits */
};

struct sim_task {
    struct task_row row;     /* with every row handed out so far */
    struct task_row durable; /* with those that survive a death now */
    struct attempt_row attempt;
    struct attempt_row durable_attempt;
    uint32_t current; /* index of the sim_attempt, or UINT32_MAX */
    uint32_t crashes; /* counted here, from causes alone */
    uint32_t spent;
    uint32_t answered; /* its attempt at work when a pause for failures was lifted; 0: none */
    uint32_t accepted; /* index of the sim_attempt whose result it has, or UINT32_MAX */
};

struct sim_program {
    uint32_t n_cells;
    uint32_t n_stages;
    uint32_t n_grid;
    uint32_t n_tasks; /* with the checks, which lie behind the grid */
    struct core_plan_stage stages[SIM_STAGES_MAX];
    uint32_t after[SIM_STAGES_MAX][SIM_STAGES_MAX];
    uint32_t *workers;                             /* of each task of the grid; NULL: itself */
    struct core_plan_stage naming[SIM_STAGES_MAX]; /* of tasks that another one does the work of */
    uint32_t slots;
    int32_t priority;
    struct sim_task *tasks;
    struct program_row row;
    struct wall_time latest; /* of its journal's rows */
    struct wall_time durable_latest;
    struct program_row durable;
    struct state_row last; /* row of this step; its texts are not to be read */
    uint32_t n_terminal;
    uint32_t n_counted_open;
    uint32_t n_unlinked;
    unsigned n_verdicts;
    unsigned n_unsealed;
    unsigned n_reported;
    struct sim_check checks[SIM_CHECKS_MAX];
    struct core_plan_stage check_stages[SIM_CHECKS_MAX];
    uint32_t n_checks;
    uint32_t metric;
    uint32_t n_amended;
    uint32_t verdict_head; /* what the verdict that is being computed reads */
    unsigned n_mendings;
    uint32_t n_accepted;                         /* results of the grid, ever */
    uint32_t stage_accepted[2 * SIM_STAGES_MAX]; /* of works, then of their other names */
    uint32_t broken; /* a stage of which every attempt meets broken_by, or n_stages */
    enum sim_fate broken_by;
    unsigned n_repairs; /* that many pauses for it until somebody finds out why; 0: nobody does */
    unsigned n_failing; /* such pauses so far */
    struct sim_journal *journal; /* or NULL */
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
    struct sim_gpus gpu;
    uint64_t n_steps;
    uint64_t n_restarts;
    uint64_t n_starts;
    uint64_t n_kills;
    uint64_t n_stops; /* rows that came while a program was being cancelled */
    uint64_t n_unknown;
    uint64_t n_early; /* results verified before the rows of that step were committed */
    uint64_t n_by_fate[FATE_NR];
    const struct core_event *in_step;
    struct sim_amend *amends; /* prepared; an event's task is the place */
    uint32_t n_amends;
    uint32_t cap_amends;
    struct sim_amend_totals amended;
    uint64_t n_failing; /* pauses because a stage fails the same way in every cell */
    uint64_t n_revived; /* tasks that were not given up for it */
    uint64_t n_removed;
    uint64_t n_behind;   /* tasks seen waiting behind a program of higher priority */
    uint64_t n_let_fail; /* somebody said that they may fail */
};

struct sim_config {
    uint64_t seed;
    uint32_t n_tasks; /* about: over one to three programs */
    bool full_checks;
};

/* Runs a world to its end; aborts with seed, step and reason when an invariant does not hold. */
void sim_run(const struct sim_config *config, struct sim *totals);

#endif
