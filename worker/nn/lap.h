/*
 * Where the time of a step goes: a clock that is read between the parts of a pass.
 *
 * A measuring caller owns a struct lap and passes it down; other callers pass NULL, and a mark then
 * costs one branch. lap_mark() books the time since the mark before it, so the parts add up to the
 * whole.
 */
#ifndef WORKER_NN_LAP_H
#define WORKER_NN_LAP_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum lap_part {
    LAP_BODY,      /* matrix products of the blocks */
    LAP_HEAD,      /* matrix products of the output head */
    LAP_ATTENTION, /* scores, softmax and weighting, products included */
    LAP_ELEMENTS,  /* norms, rotation, SwiGLU, sums, embedding */
    LAP_LOSS,      /* softmax and cross-entropy */
    LAP_ROUTING,   /* softmax and choice of experts, gathering and scattering of rows */
    LAP_OPTIMISER, /* gradient norm and update */
    LAP_REST,      /* drawing sequences, clearing gradients */
    LAP_NR
};

struct lap {
    clockid_t clock;
    int64_t last_ns;
    int64_t ns[LAP_NR];
};

static inline int64_t lap_now_ns(clockid_t clock)
{
    struct timespec t = {0};

    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Starts a stretch: the time since the last mark is booked to no part. */
static inline void lap_start(struct lap *lap)
{
    if (lap != NULL)
        lap->last_ns = lap_now_ns(lap->clock);
}

static inline void lap_mark(struct lap *lap, enum lap_part part)
{
    if (lap == NULL)
        return;
    int64_t now = lap_now_ns(lap->clock);
    lap->ns[part] += now - lap->last_ns;
    lap->last_ns = now;
}

#endif
