/* The GPUs that one attempt is given: held against [pin] gpu before it starts, told to its worker
 * by the environment, and written down in start.json. */
#ifndef DAEMON_PROGRAM_GPU_GRANT_H
#define DAEMON_PROGRAM_GPU_GRANT_H

#include "base/machine/gpu_list.h"
#include "prereg/task/task.h"
#include "state/placement.h"

struct gpu_grant { /* all zero: another scheduler gives them, or the machine has none */
    struct gpu_list given;
    bool hides[GPU_VENDOR_NR]; /* the machine has GPUs of the vendor: those not given are hidden */
    char missing[GPU_UUID_SIZE]; /* one that was assigned, and is not there any more; "" */
};

/* Fills *out for an attempt on this machine; list: its GPUs as last seen, NULL: not known yet. */
void gpu_grant_fill(struct gpu_grant *out, const struct placement *at, const struct gpu_list *list);
void gpu_grant_release(struct gpu_grant *g);

/* ERR_LOCK when a GPU is not of the model that the program pins, ERR_BUSY when one is gone. */
int gpu_grant_check(const struct gpu_grant *g, const char *pin_gpu, struct err *err) MUST_CHECK;

/* Calls fn for each variable that the worker gets besides those of task_environment(). A stage's
 * own value of one is left alone: it asks for no GPUs then. */
void gpu_grant_environment(const struct gpu_grant *g, const struct plan_stage *s,
                           task_variable_fn *fn, void *ctx);

#endif
