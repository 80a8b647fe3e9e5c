/*
 * Where the time of a step goes: a clock that is read between the parts of a pass.
 *
 * A measuring caller owns a struct pass_clock and passes it down; other callers pass NULL, and a
 * mark then costs one branch. pass_clock_mark() books the time since the mark before it, so the
 * parts add up to the whole.
 */
#ifndef WORKER_NN_PASS_CLOCK_H
#define WORKER_NN_PASS_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum pass_part {
    PASS_BODY,      /* matrix products of the blocks */
    PASS_HEAD,      /* matrix products of the output head */
    PASS_ATTENTION, /* scores, softmax and weighting, products included */
    PASS_ELEMENTS,  /* norms, rotation, SwiGLU, sums, embedding */
    PASS_LOSS,      /* softmax and cross-entropy */
    PASS_ROUTING,   /* softmax and choice of experts, gathering and scattering of rows */
    PASS_OPTIMISER, /* gradient norm and update */
    PASS_REST,      /* drawing sequences */
    PASS_NR
};

struct pass_clock {
    clockid_t clock;
    int64_t last_ns;
    int64_t ns[PASS_NR];
};

static inline int64_t pass_clock_now_ns(clockid_t clock)
{
    struct timespec t = {0};

    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Starts a stretch: the time since the last mark is booked to no part. */
static inline void pass_clock_start(struct pass_clock *clock)
{
    if (clock != NULL)
        clock->last_ns = pass_clock_now_ns(clock->clock);
}

static inline void pass_clock_mark(struct pass_clock *clock, enum pass_part part)
{
    if (clock == NULL)
        return;
    int64_t now = pass_clock_now_ns(clock->clock);
    clock->ns[part] += now - clock->last_ns;
    clock->last_ns = now;
}

#endif
