/*
 * The instruction set that the elementwise kernels use, chosen once at the first question: the
 * machine's best, or less where the environment's PREREG_CPU names a lower one. It never shows in a
 * result (docs/arithmetic.md).
 */
#ifndef WORKER_NN_CPU_H
#define WORKER_NN_CPU_H

#include <stdbool.h>

#include "base/err.h"

enum nn_cpu { NN_CPU_BASELINE, NN_CPU_AVX2, NN_CPU_AVX512, NN_CPU_NEON };

/* The choice; the same for the life of the process. */
enum nn_cpu nn_cpu(void);
/* Whether vdpbf16ps may be used: AVX-512 is the choice, and the processor has AVX512_BF16.
 * PREREG_CPU=avx512 with PREREG_BFLOAT16=no does without. */
bool nn_cpu_has_bfloat16(void);
/* ERR_USAGE when PREREG_CPU is not one of their names. */
int nn_cpu_check(struct err *err) MUST_CHECK;
/* "baseline", "avx2", "avx512", "neon" */
const char *nn_cpu_text(enum nn_cpu cpu);

#endif
