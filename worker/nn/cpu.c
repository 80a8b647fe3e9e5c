/*
 * The processor is asked once (CPUID, through the compiler's builtins); PREREG_CPU can only lower
 * the answer. AVX-512 counts when the foundation, DQ, BW and VL extensions are all there, which is
 * what the kernels are compiled for. A wish for more than the machine has is ignored here, so that
 * one environment serves all machines; nn_cpu_check() reports a wish that is not a name.
 */
#include "worker/nn/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char *const NAMES[] = {
    [NN_CPU_BASELINE] = "baseline",
    [NN_CPU_NEON] = "neon",
    [NN_CPU_AVX2] = "avx2",
    [NN_CPU_AVX512] = "avx512",
};

static enum nn_cpu machine(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return NN_CPU_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return NN_CPU_AVX2;
#endif
#ifdef __aarch64__
    return NN_CPU_NEON;
#endif
    return NN_CPU_BASELINE;
}

static enum nn_cpu choose(void)
{
    enum nn_cpu best = machine();
    const char *wish = getenv("PREREG_CPU");

    /* Between the baseline and NEON there are only other machines' sets. */
    for (int i = 0; wish != NULL && i < (int)best; i++)
        if (strcmp(wish, NAMES[i]) == 0 && (i == NN_CPU_BASELINE || best != NN_CPU_NEON))
            return (enum nn_cpu)i;
    return best;
}

int nn_cpu_check(struct err *err)
{
    const char *wish = getenv("PREREG_CPU");

    for (int i = NN_CPU_BASELINE; i <= NN_CPU_NEON; i++)
        if (wish == NULL || wish[0] == '\0' || strcmp(wish, NAMES[i]) == 0)
            return 0;
    return err_set(err, ERR_USAGE, "PREREG_CPU=%.40s: expected baseline, avx2, avx512 or neon",
                   wish);
}

/* Threads that ask at the same time compute the same answer, so no lock is needed. */
enum nn_cpu nn_cpu(void)
{
    static _Atomic int known; /* one more than the choice; 0: not made yet */
    int level = atomic_load_explicit(&known, memory_order_relaxed);

    if (level == 0) {
        level = (int)choose() + 1;
        atomic_store_explicit(&known, level, memory_order_relaxed);
    }
    return (enum nn_cpu)(level - 1);
}

bool nn_cpu_has_bfloat16(void)
{
#ifdef __x86_64__
    const char *wish = getenv("PREREG_BFLOAT16");

    __builtin_cpu_init();
    return nn_cpu() == NN_CPU_AVX512 && __builtin_cpu_supports("avx512bf16") &&
           (wish == NULL || strcmp(wish, "no") != 0);
#else
    return false;
#endif
}

const char *nn_cpu_text(enum nn_cpu cpu)
{
    return NAMES[cpu];
}
