/* What [run.STAGE] and [pin] ask of GPUs, held against those of a machine: what can never be
 * granted there is found before anything waits for it. */
#ifndef PREREG_PROGRAM_GPU_NEEDS_H
#define PREREG_PROGRAM_GPU_NEEDS_H

#include "base/machine/gpu_list.h"
#include "prereg/program/program.h"

/* Of one attempt on one machine. */
#define GPU_NEEDS_MAX 16

/* Whether a stage that runs on the daemon's machine asks for GPUs. */
bool gpu_needs_any(const struct plan_program *p);

/* Adds a diagnostic of `level`, with figures, for each stage whose attempts could never start on a
 * machine with these GPUs, even if all of them were free. */
void gpu_needs_check(const struct plan_program *p, const struct gpu_list *list,
                     enum diag_level level, struct diag *diag);

#endif
