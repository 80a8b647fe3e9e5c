/* The GPUs of a simulated machine. */
#ifndef TESTS_SIM_GPUS_H
#define TESTS_SIM_GPUS_H

#include "base/rng.h"
#include "daemon/core/gpu.h"

#define SIM_GPUS_MAX 4

struct sim_gpus {
    struct rng rng; /* of its own: worlds without GPUs stay the same */
    uint32_t n;     /* 0: this world has none */
    struct core_gpu are[SIM_GPUS_MAX];
    struct core_gpu told[SIM_GPUS_MAX]; /* the last list that the core got */
    size_t n_told;
    int64_t used[SIM_GPUS_MAX]; /* by attempts that really live; thousandths */
    int64_t memory[SIM_GPUS_MAX];
    uint64_t n_starts; /* with GPUs */
    uint64_t n_shared; /* of them beside another on the same GPU */
};

#endif
