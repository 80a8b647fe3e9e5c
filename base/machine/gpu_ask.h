/* Asks this machine for its GPUs, through a helper process: a driver may hang, or crash what loads
 * its library. */
#ifndef BASE_MACHINE_GPU_ASK_H
#define BASE_MACHINE_GPU_ASK_H

#include "base/machine/gpu_list.h"

#define GPU_ASK_MS 10000 /* longer than a driver takes that wakes eight GPUs */

/* Runs prereg-gpus, which is beside the executable of this process, for at most `limit_ms`, and
 * fills *out; its environment is that of this process. A machine without GPUs has an empty list.
 * *notes gets what the helper remarks, a line each; NULL is fine. ERR_TIMEOUT when a driver does
 * not answer. Blocking: off a loop's thread. */
int gpu_ask(int64_t limit_ms, struct gpu_list *out, struct strbuf *notes,
            struct err *err) MUST_CHECK;

#endif
