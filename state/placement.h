/* Where an attempt runs and what it is given there. */
#ifndef STATE_PLACEMENT_H
#define STATE_PLACEMENT_H

#include <stdint.h>

#include "prereg/program/executor_kind.h"

#define PLACEMENT_GPUS_MAX            16
#define PLACEMENT_GPU_THOUSANDTHS_MAX 64000
#define PLACEMENT_GPUS_SIZE           (PLACEMENT_GPUS_MAX * 41) /* UUIDs, "GPU-" and 36 characters each */

/* Decided, and committed with ROW_ATTEMPT_STARTED, before the attempt starts. */
struct placement {
    enum executor_kind executor;
    uint32_t threads;               /* cores; 0: unknown, in rows of earlier versions */
    int64_t memory_bytes;           /* 0: no limit */
    int64_t gpu_thousandths;        /* whole GPUs, or a share of one; 0: none */
    int64_t gpu_memory_bytes;       /* of each GPU; 0: not declared */
    char gpus[PLACEMENT_GPUS_SIZE]; /* UUIDs, separated by commas; "" where another scheduler
                                       assigns them */
};

#endif
