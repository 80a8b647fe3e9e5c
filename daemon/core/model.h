/*
 * The core's own state; for the files of daemon/core only.
 *
 * Layout: a task is 64 bytes, so that a million of them fit; what only a live attempt needs is
 * in the `live` pool. Every task has at most one timer (backoff, or its attempt's) and at most one
 * place in its program's ready queue, and knows both positions.
 */
#ifndef DAEMON_CORE_MODEL_H
#define DAEMON_CORE_MODEL_H

#include <assert.h>

#include "base/rng.h"
#include "daemon/core/core.h"
#include "prereg/program/stage_set.h"

#define NOWHERE         UINT32_MAX
#define WIDEN           5  /* of a measured section */
#define MEASURED_MIN    3u /* intervals seen before a measured deadline is believed */
#define DEADLINE_MAX_MS (INT64_C(24) * 60 * 60 * 1000) /* of a measured deadline */
#define STARVE_MS       (5 * 60 * 1000)
#define UNLAUNCHED_MAX  6u               /* attempts in a row that this machine could not start */
#define QUEUED_AGAIN_MS (10 * 60 * 1000) /* between probes of what waits in another queue */
#define OUTDATED_MAX    3u /* of a task in a row that an amendment made outdated, at once again */

struct core_task {
    int64_t best_done;
    int64_t best_checkpoint;
    int64_t not_before_ms; /* wall */
    uint32_t n_attempts;
    uint32_t spent;
    uint32_t crashes;
    uint32_t ready_pos; /* in the program's ready queue, or NOWHERE */
    uint32_t timer_pos; /* in the timer heap, or NOWHERE */
    uint32_t live;      /* in the live pool, or NOWHERE */
    uint16_t idle;
    uint16_t no_space;
    uint8_t state;
    uint8_t cause;
    uint8_t ending;
    bool linked;
    uint8_t n_outdated; /* starts in a row that were outdated; no row has it */
    uint8_t end_signal; /* of its last attempt: as in attempt_row */
    int16_t end_code;
};

enum live_phase { LIVE_STARTING, LIVE_RUNNING, LIVE_VERIFYING };
enum live_kill { KILL_NONE, KILL_WANTED, KILL_TERMINATED, KILL_KILLED };

/*
 * An attempt without a known end.
 *   STARTING --UP, probed alive--> RUNNING --exit 0--> VERIFYING --> gone
 *       +----------- ended otherwise ----------+--> gone
 * Ending it by force: NONE -> WANTED (no proof of life yet) -> TERMINATED -> KILLED, each step only
 * on ALIVE (S4).
 */
struct live {
    struct attempt_row row;
    uint32_t program;
    uint32_t task;
    uint32_t next_free;
    enum live_phase phase;
    enum live_kill kill;
    enum cause kill_cause; /* HANG or BAD_RESULT; NONE when a person ends the task */
    enum core_health health;
    bool progressed;
    bool excused;  /* its failure to launch spends no budget: a daemon died, an amendment took
                      effect, or its node is avoided from now on */
    bool overdue;  /* its section is up: the next ALIVE makes it a hang */
    bool answered; /* running when a pause for failures was lifted, to which its failure belongs */
    bool reopened; /* a second run of a check, and the grid went on meanwhile */
    bool holds_slot;     /* what row.placement names is counted as used */
    bool aside;          /* it is being verified and has given its slot back */
    int64_t mark_ms;     /* mono: the last sign of work */
    int64_t deadline_ms; /* mono: the section is up */
};

/* Limits as the plan gives them, and what this daemon measured of the stage's tasks. */
struct core_stage {
    char *name; /* or NULL */
    struct stage_set after;
    struct stage_set dependants; /* stages that name it in `after` */
    uint32_t order; /* place in the order of preference: deeper first, then as in the program */
    bool counted;
    bool sealed;
    bool held; /* waits for the apparatus checks: sealed, and after another */
    enum executor_kind executor;
    uint32_t threads;
    int64_t memory_bytes;
    int64_t gpu_thousandths;
    int64_t gpu_memory_bytes;
    uint32_t crashes;
    uint32_t attempts;
    int64_t deadline_ms[SECTION_NR];
    int64_t measured_ms[SECTION_NR]; /* the longest interval between two signs of work */
    uint32_t n_measured[SECTION_NR];
    uint32_t n_accepted; /* results of its tasks, ever */
};

/* Where tasks wait for different things, and none holds up those of another lane. */
enum lane { LANE_GPU, LANE_LOCAL, LANE_SLURM, LANE_NR }; /* GPU: of this machine */

/* A binary heap of task indices, the next one first (queue.c). */
struct ready_queue {
    uint32_t *tasks;
    uint32_t n;
    uint32_t cap;
};

struct core_program {
    uint32_t no;
    uint32_t n_cells;
    uint32_t n_stages;
    uint32_t n_grid; /* n_cells * n_stages: what is planned and counted */
    uint32_t n_apparatus;
    uint32_t n_tasks; /* n_grid + n_apparatus */
    uint32_t slots;
    uint32_t max_queued;
    int32_t priority;
    bool gpus_listed; /* those of gpu_words alone may be used */
    char **gpu_words;
    size_t n_gpu_words;
    char *gpu_model;                  /* or NULL: any */
    struct core_stage *stages;        /* n_stages, then one for every apparatus check */
    struct same_work *same;           /* other names of works (same_work.h); NULL: none */
    struct apparatus_slot *apparatus; /* apparatus.h */
    bool gate_open;                   /* every declared check is done: held stages may start */
    bool again_open;                  /* the grid has ended: second runs of checks may start */
    struct core_task *tasks;
    struct ready_queue ready[LANE_NR]; /* by where the task's stage runs */
    uint32_t n_ready;                  /* in all of them */
    struct program_row status;
    struct wall_time latest;            /* of its journal's rows */
    uint32_t n_by_state[TASK_STATE_NR]; /* of the grid */
    uint32_t n_counted;
    uint32_t n_counted_open;
    uint32_t n_unlinked; /* done, link not confirmed */
    uint32_t n_accepted; /* results of the grid, ever: what could be seen of it */
    uint32_t used_slots; /* of this machine */
    uint32_t used_threads;
    int64_t used_gpus;     /* thousandths */
    uint32_t n_queued;     /* attempts under Slurm, in its queue or running */
    uint64_t served;       /* number of the last start given to it */
    uint32_t stop_below;   /* tasks before this one are still to be ended; 0: none (slices.c) */
    uint32_t retry_from;   /* blocked tasks from there on are still to be tried again; or NOWHERE */
    char *slice_text;      /* why a person asked for either of the two; or NULL */
    uint32_t n_unlaunched; /* attempts in a row that were lost before they ran */
    int64_t starved_since[LANE_NR]; /* mono: the head of the lane has not fitted since; INT64_MIN:
                                       it has */
    bool verdict_asked;             /* ACT_VERDICT is out */
    bool verdict_failed;            /* and failed: not asked for again by itself */
    bool report_asked;
    bool damaged;  /* CORE_DAMAGED came */
    bool withheld; /* CORE_WITHHELD came */
};

struct timer {
    int64_t at_ms;
    uint32_t program; /* index into programs */
    uint32_t task;
};

struct core {
    struct core_config config;
    struct rng rng;
    struct core_program **programs; /* by number; NULL where there is none */
    uint32_t cap_programs;
    struct live *live;
    uint32_t n_live_cap;
    uint32_t free_live;
    uint32_t n_live;
    uint32_t n_aside; /* of them aside, at most as many as there are cores */
    struct timer *timers;
    uint32_t n_timers;
    uint32_t cap_timers;
    int64_t slice_due_ms; /* the next slices of slices.c; INT64_MAX: none */
    int64_t armed_ms;     /* the time of the last ACT_ARM; INT64_MAX: none */
    uint32_t used_slots;
    uint32_t used_threads;
    int64_t used_memory;
    bool full[EXECUTOR_NR]; /* it takes no more attempts for now */
    struct gpu_state *gpus;
    uint32_t n_gpus;
    uint32_t cap_gpus;
    bool gpus_known; /* CORE_GPUS came */
    uint64_t n_starts;
    bool begun; /* what is free is known (all programs are), and the daemon is not about to stop */
    /* during a step */
    struct core_out *out;
    int64_t now_ms; /* mono, never goes back */
    struct wall_time wall;
    struct state_row no_row; /* rows and acts of damaged programs end here */
    struct core_act no_act;
};

#endif
