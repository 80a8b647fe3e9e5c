/*
 * The sources of prereg-gpus. Each appends the GPUs that it knows to *out and explains in *notes, a
 * line each, what it could not learn. A source that this machine does not have appends nothing and
 * says nothing. `root` is "", or a folder in place of / (for tests).
 */
#ifndef DAEMON_GPUS_GPUS_H
#define DAEMON_GPUS_GPUS_H

#include <stdbool.h>

#include "base/machine/gpu_list.h"

/* The GPUs that NVML lists; a GPU in MIG mode is replaced by its parts. False when there is no
 * library, or it does not work: nvidia_proc_list() may know more then. */
bool nvml_list(struct gpu_list *out, struct strbuf *notes);
/* The same from /proc/driver/nvidia: without memory, ECC and processes. */
void nvidia_proc_list(const char *root, struct gpu_list *out, struct strbuf *notes);
/* AMD GPUs, from /sys/class/kfd. */
void amd_list(const char *root, struct gpu_list *out, struct strbuf *notes);
/* The simulated GPUs of a file. */
int pretend_list(const char *path, struct gpu_list *out, struct err *err) MUST_CHECK;

/* Completes what is not known of a process from /proc: name, user, and the marks of an attempt. A
 * process that is not there keeps what it has. */
void gpu_process_fill(struct gpu_process *p);

#endif
