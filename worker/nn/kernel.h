/*
 * One body, three instruction sets: an elementwise kernel is written once as `name_body` (NN_BODY,
 * and so is whatever it calls), and NN_KERNEL() turns it into the function `name`, which runs the
 * body as compiled for nn_cpu().
 *
 * Contraction is off (-ffp-contract=off): a product and a sum have one rounding where the body says
 * NN_FMA() and two elsewhere. Sums go through lanes in a fixed order (worker/nn/vec.h), and no body
 * calls libm for more than a square root. So all three give the same bits.
 */
#ifndef WORKER_NN_KERNEL_H
#define WORKER_NN_KERNEL_H

#include "worker/nn/cpu.h"

#define NN_BODY static inline __attribute__((always_inline))

#ifdef __x86_64__

#define NN_AVX2 __attribute__((target("avx2,fma")))
#ifdef __clang__
#define NN_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma")))
#else
#define NN_AVX512                                                                                  \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma,prefer-vector-width=512")))
#endif

/* type: of the result. give: `return`, or nothing for void. A function that only its own file uses
 * is declared static before. */
#define NN_KERNEL_OF(type, give, name, params, args)                                               \
    NN_AVX512 static type name##_avx512 params                                                     \
    {                                                                                              \
        give name##_body args;                                                                     \
    }                                                                                              \
    NN_AVX2 static type name##_avx2 params                                                         \
    {                                                                                              \
        give name##_body args;                                                                     \
    }                                                                                              \
    static type name##_baseline params                                                             \
    {                                                                                              \
        give name##_body args;                                                                     \
    }                                                                                              \
    type name params                                                                               \
    {                                                                                              \
        enum nn_cpu cpu = nn_cpu();                                                                \
        if (cpu == NN_CPU_AVX512)                                                                  \
            give name##_avx512 args;                                                               \
        else if (cpu == NN_CPU_AVX2)                                                               \
            give name##_avx2 args;                                                                 \
        else                                                                                       \
            give name##_baseline args;                                                             \
    }

#else

#define NN_KERNEL_OF(type, give, name, params, args)                                               \
    type name params                                                                               \
    {                                                                                              \
        give name##_body args;                                                                     \
    }

#endif

#define NN_KERNEL(name, params, args)              NN_KERNEL_OF(void, , name, params, args)
#define NN_KERNEL_RETURN(type, name, params, args) NN_KERNEL_OF(type, return, name, params, args)

#endif
