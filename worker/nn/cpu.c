/*
 * The processor is asked once (CPUID, through the compiler's builtins); PREREG_CPU can only lower
 * the answer. AVX-512 counts when the foundation, DQ, BW and VL extensions and FMA are all there,
 * which is what the kernels are compiled for. A wish for more than the machine has is ignored here,
 * so that one environment serves all machines; nn_cpu_check() reports a wish that is not a name.
 *
 * Some hypervisors leave AVX512_BF16 out of CPUID although the instruction executes. So with
 * PREREG_BFLOAT16=yes it is executed once, and SIGILL is the answer that it does not.
 */
#include "worker/nn/cpu.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
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
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("fma"))
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

static sigjmp_buf before;

static void on_sigill(int number)
{
    (void)number;
    siglongjmp(before, 1);
}

bool nn_cpu_executes(void (*instructions)(void))
{
    struct sigaction ours = {.sa_handler = on_sigill}, theirs;
    sigset_t sigill, mask;
    volatile bool done = false;

    if (sigaction(SIGILL, &ours, &theirs) != 0)
        return false;
    /* In a thread that blocks it, it would end the process. */
    (void)sigemptyset(&sigill);
    (void)sigaddset(&sigill, SIGILL);
    (void)pthread_sigmask(SIG_UNBLOCK, &sigill, &mask);
    if (sigsetjmp(before, 1) == 0) {
        instructions();
        done = true;
    }
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return sigaction(SIGILL, &theirs, NULL) == 0 && done;
}

#ifdef __x86_64__

static void multiply_pairs(void)
{
    __asm__ volatile("vdpbf16ps %%zmm0, %%zmm0, %%zmm0" : : : "xmm0");
}

static bool has_seen;

static void see(void)
{
    has_seen = nn_cpu() == NN_CPU_AVX512 && nn_cpu_executes(multiply_pairs);
}

bool nn_cpu_has_bfloat16(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (nn_cpu_bfloat16_wish() == NN_WISH_YES)
        return pthread_once(&once, see) == 0 && has_seen;
    __builtin_cpu_init();
    return nn_cpu() == NN_CPU_AVX512 && __builtin_cpu_supports("avx512bf16") &&
           nn_cpu_bfloat16_wish() != NN_WISH_NO;
}

#else

bool nn_cpu_has_bfloat16(void)
{
    return false;
}

#endif

enum nn_wish nn_cpu_bfloat16_wish(void)
{
    const char *wish = getenv("PREREG_BFLOAT16");

    if (wish == NULL || wish[0] == '\0')
        return NN_WISH_NONE;
    return strcmp(wish, "yes") == 0  ? NN_WISH_YES
           : strcmp(wish, "no") == 0 ? NN_WISH_NO
                                     : NN_WISH_UNKNOWN;
}

static int check_bfloat16(struct err *err)
{
    enum nn_wish wish = nn_cpu_bfloat16_wish();

    if (wish == NN_WISH_UNKNOWN)
        return err_set(err, ERR_USAGE, "PREREG_BFLOAT16=%.40s: expected yes or no",
                       getenv("PREREG_BFLOAT16"));
    if (wish != NN_WISH_YES || nn_cpu_has_bfloat16())
        return 0;
    if (nn_cpu() != NN_CPU_AVX512)
        return err_set(err, ERR_USAGE,
                       "PREREG_BFLOAT16=yes: needs avx512, and the kernels are %s%s; unset it",
                       nn_cpu_text(nn_cpu()),
                       machine() == NN_CPU_AVX512 ? " by PREREG_CPU" : " on this processor");
    return err_set(err, ERR_USAGE,
                   "PREREG_BFLOAT16=yes: this processor does not execute vdpbf16ps; unset it");
}

int nn_cpu_check(struct err *err)
{
    const char *wish = getenv("PREREG_CPU");

    for (int i = NN_CPU_BASELINE; i <= NN_CPU_NEON; i++)
        if (wish == NULL || wish[0] == '\0' || strcmp(wish, NAMES[i]) == 0)
            return check_bfloat16(err);
    return err_set(err, ERR_USAGE, "PREREG_CPU=%.40s: expected baseline, avx2, avx512 or neon",
                   wish);
}

const char *nn_cpu_text(enum nn_cpu cpu)
{
    return NAMES[cpu];
}
