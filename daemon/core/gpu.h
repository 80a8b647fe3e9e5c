/* The GPUs of this machine, as CORE_GPUS brings them to the core, which keeps them: plain data. */
#ifndef DAEMON_CORE_GPU_H
#define DAEMON_CORE_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/machine/gpu_list.h"

#define CORE_GPU_USER_SIZE 160

struct core_gpu {
    char uuid[GPU_UUID_SIZE];
    int64_t index;
    char model[GPU_MODEL_SIZE];
    int64_t memory_bytes; /* 0: unknown; then nothing that declares memory fits */
    int64_t others_bytes; /* of it, what processes that are not ours use; 0: none, or not known */
    char used_by[CORE_GPU_USER_SIZE]; /* a process that is not ours, for people: "pid 4711 (python)
                                         of user x"; "": none */
};

/* What the core keeps of one (gpus.c). */
struct gpu_state {
    struct core_gpu is;
    bool present; /* listed; else only held by attempts of an earlier time */
    int64_t used_thousandths;
    int64_t used_memory; /* as declared */
    uint32_t n_holders;
};

#endif
