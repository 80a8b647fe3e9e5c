/* What a result may depend on besides the worker: the kernel and processor of this machine. */
#ifndef BASE_MACHINE_MACHINE_H
#define BASE_MACHINE_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* "Linux 6.1.0-18-amd64 x86_64", and the processor's name as the kernel has it; "" when it is
 * not known. */
void machine_kernel(char *out, size_t size);
void machine_cpu(char *out, size_t size);

/* All its memory, and what processes could have of it now without swapping; 0 when it is not
 * known. */
int64_t machine_memory_bytes(void);
int64_t machine_memory_free_bytes(void);

/* The kernels that a BLAS chose for this processor, out of what a worker says of it ("OpenBLAS
 * 0.3.21 ..., core Haswell"). The caller frees it; NULL when it does not say. */
char *machine_blas_core(const char *blas);

#endif
