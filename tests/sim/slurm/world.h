/*
 * A world for the book of the Slurm executor to live in: a controller that loses jobs and answers,
 * nodes that die while their processes go on, a shared file system that shows files late, a daemon
 * that dies at every boundary. Virtual time; everything follows from the seed.
 *
 * Kept apart: what really happens (jobs and their shims), what the controller knows and shows, what
 * the files show, and what is committed of each attempt.
 */
#ifndef TESTS_SIM_SLURM_WORLD_H
#define TESTS_SIM_SLURM_WORLD_H

#include "base/rng.h"
#include "daemon/core/core.h"
#include "daemon/executor/slurm/book.h"
#include "tests/sim/slurm/faults.h"
#include "tests/sim/slurm/items.h"

#define NONE UINT32_MAX

struct farm_job {
    uint32_t attempt; /* NONE: another's */
    uint32_t batch;
    uint32_t base; /* id */
    uint32_t index;
    enum slurm_state state;
    enum slurm_state before; /* what a lagging answer shows */
    int64_t changed_ms;
    int64_t accepted_ms;
    uint32_t node; /* NONE: never had one */
    enum farm_fate fate;
    bool present;   /* in the controller */
    uint32_t place; /* in `queue` */
    bool late;      /* accepted when the book may have given it up */
    bool alive;     /* its shim runs the worker */
    bool orphan;
    uint32_t restarts;
    int64_t began_ms;
    uint64_t excluded;    /* as in farm_plan */
    int64_t node_died_ms; /* under it; 0: not */
};

enum farm_want { ASK_NOTHING, ASK_TERM, ASK_KILL };

struct farm_attempt {
    uint32_t task;
    uint32_t no;
    char id[UUID_TEXT_SIZE];
    bool live; /* committed and not ended */
    bool fenced;
    bool submitted; /* `job` is written */
    bool in_flight; /* an sbatch of it may be accepted yet */
    bool late;      /* or was, after that */
    enum farm_want want;
    uint32_t batch;
    uint32_t index;
    uint32_t last_job;
    uint32_t claim; /* job whose shim made start.json */
    uint32_t n_live_jobs;
    bool adopted;
    bool began; /* some job of it had a node */
    bool refused;
    int64_t unfit_seen_ms; /* its node did not begin it; INT64_MAX: no such file */
    int64_t start_seen_ms;
    int64_t exit_seen_ms; /* INT64_MAX: no exit.json */
    int64_t beat_lag_ms;
    struct attempt_end end;
};

struct farm_task {
    uint32_t current;
    uint32_t n_attempts;
    bool done;
};

struct farm_batch {
    char name[UUID_TEXT_SIZE];
    bool array;
    uint32_t *attempts;
    uint32_t n;
};

struct farm_node {
    bool down;
    uint32_t used;
    int64_t cut_off_ms; /* since; INT64_MAX: not */
    int64_t back_ms;    /* the latest end of a cut */
};

struct farm_config {
    uint64_t seed;
    uint32_t n_tasks;
    uint32_t n_nodes;
    uint32_t cpus;
    uint32_t max_queued;
    uint32_t max_array;
    int64_t min_job_age_ms;
    int64_t work_ms; /* about */
    bool array;
    bool accounting;
    bool faults;
    bool core;         /* the real one; else every task is started until it has a result */
    int64_t stop_ms;   /* after so long; 0: at the end */
    bool unfit;        /* node 0 does not have what the program pins */
    int64_t cancel_ms; /* a person cancels the whole program then; 0: never. With `core` */
    int64_t break_ms;  /* between two nodes that die; 0: none does */
};

struct farm {
    struct farm_config config;
    struct rng rng;
    int64_t now_ms;
    struct slurm_book *book;
    struct farm_core *core; /* or NULL */
    struct slurm_out out;
    unsigned generation;
    bool quiet;
    bool full; /* reported by the book */
    bool dead; /* the daemon, until it starts again */
    struct farm_task *tasks;
    uint32_t *todo; /* tasks, a stack */
    uint32_t n_todo;
    uint32_t n_done;
    uint32_t n_live;
    uint32_t n_live_at_rise;
    struct farm_attempt *attempts;
    uint32_t n_attempts;
    uint32_t cap_attempts;
    struct farm_batch *batches;
    uint32_t n_batches;
    uint32_t cap_batches;
    struct farm_job *jobs;
    uint32_t n_jobs;
    uint32_t cap_jobs;
    uint32_t *queue; /* jobs that the controller knows */
    uint32_t n_queue;
    uint32_t cap_queue;
    uint32_t *pending; /* in order; others among them are skipped */
    uint32_t n_pending;
    uint32_t first_pending;
    uint32_t cap_pending;
    struct farm_node *nodes;
    uint32_t n_held; /* jobs that are not over */
    uint32_t next_id;
    int64_t down_until_ms;
    bool pass_armed;
    int64_t armed_ms;
    int64_t core_armed_ms;
    struct farm_item *items;
    size_t n_items;
    size_t cap_items;
    uint64_t n_seq;
    /* invariants and figures */
    bool under_way[SLURM_ACT_NR];
    int64_t calls_ms[256]; /* the latest, a ring */
    uint64_t n_calls;
    uint64_t n_calls_of[SLURM_ACT_NR];
    uint64_t n_steps;
    uint64_t n_core_steps;
    uint64_t n_ends[END_REASON_NR];
    uint64_t n_fates[FATE_NR];
    uint64_t n_faults[FAULT_NR];
    uint32_t most_held;
    int64_t *spans; /* node's death to the attempt's end */
    size_t n_spans;
    size_t cap_spans;
};

#endif
