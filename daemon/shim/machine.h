/* What a result may depend on besides the worker: the kernel and processor of this machine. */
#ifndef DAEMON_SHIM_MACHINE_H
#define DAEMON_SHIM_MACHINE_H

#include <stddef.h>

/* "Linux 6.1.0-18-amd64 x86_64", and the processor's name as the kernel has it; "" when it cannot
 * be told. */
void machine_kernel(char *out, size_t size);
void machine_cpu(char *out, size_t size);

#endif
