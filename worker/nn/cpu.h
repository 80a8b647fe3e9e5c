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
/* What PREREG_BFLOAT16 says: nothing, "no", "yes", or a word that nn_cpu_check() reports. */
enum nn_wish { NN_WISH_NONE, NN_WISH_NO, NN_WISH_YES, NN_WISH_UNKNOWN };
enum nn_wish nn_cpu_bfloat16_wish(void);
/* Whether vdpbf16ps may be used: AVX-512 is the choice, and CPUID names AVX512_BF16 and the wish is
 * not "no", or the wish is "yes" and the instruction was seen to execute. */
bool nn_cpu_has_bfloat16(void);
/* Whether they end without SIGILL. Not for several threads at a time. */
bool nn_cpu_executes(void (*instructions)(void));
/* ERR_USAGE when PREREG_CPU or PREREG_BFLOAT16 is not one of their names, or when PREREG_BFLOAT16
 * is "yes" and the instruction cannot be used. */
int nn_cpu_check(struct err *err) MUST_CHECK;
/* "baseline", "avx2", "avx512", "neon" */
const char *nn_cpu_text(enum nn_cpu cpu);

#endif
