/* The shape of a program as the core knows it: cells, stages, limits and apparatus checks, without
 * its science. Plain data; what a plan points to needs to live during core_step only. */
#ifndef DAEMON_CORE_PLAN_H
#define DAEMON_CORE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prereg/program/executor_kind.h"
#include "state/rows.h"

struct core_plan_stage {
    const char *name;      /* for people; or NULL */
    const uint32_t *after; /* stage indices, all smaller than this stage's own */
    size_t n_after;
    bool counted; /* program_stage_is_counted */
    bool sealed;  /* program_stage_is_sealed */
    enum executor_kind executor;
    uint32_t threads;         /* cores that an attempt is given */
    int64_t memory_bytes;     /* 0: unset */
    int64_t gpu_thousandths;  /* whole GPUs, or a share of one; 0: none */
    int64_t gpu_memory_bytes; /* of each; 0: not declared */
    uint32_t crashes;
    uint32_t attempts;
    int64_t deadline_ms[SECTION_NR]; /* 0: measured */
};

struct core_apparatus { /* a check outside the grid: check i is task n_cells * n_stages + i */
    const char *name;
    uint32_t stage; /* whose work it does; n_stages or more: no longer in the program */
    bool again;     /* a second run, after the grid has ended */
    uint32_t first; /* of a second run: the place of the first one in the list */
    bool declared;  /* false: an amendment removed it, nothing waits for it */
    bool changed;   /* apparatus_amend(): it checks something else now, so an old result does
                          not answer it */
};

struct core_plan { /* tasks are cell * n_stages + stage; dependencies stay within a cell, but for
                      the worker of a task */
    uint32_t n_cells;
    uint32_t n_stages;       /* 1..STAGES_MAX */
    uint32_t slots;          /* [run] slots of this program; 0: no limit of its own */
    uint32_t max_queued;     /* its attempts under Slurm at once; 0: no limit */
    int32_t priority;        /* of the program: more is earlier */
    bool gpus_listed;        /* only these GPUs of this machine may be used; else all */
    const char *const *gpus; /* UUIDs or indices, as gpu_is_named() reads them */
    size_t n_gpus;
    const char *gpu_model; /* the model that [pin] gpu demands; NULL: any */
    const struct core_plan_stage *stages;
    const uint32_t *workers; /* per task of the grid, the one of the same stage that does its work,
                                itself or an earlier one that is its own; NULL: each its own */
    const bool *reused; /* per task of the grid: it accepts a result from an earlier receipt and
                           runs no worker; NULL: none does */
    const struct core_apparatus *apparatus;
    uint32_t n_apparatus;
};

#endif
