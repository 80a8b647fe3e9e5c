/*
 * Pure arithmetic on steps. Counts are exact where the contract is in tokens; ratios of parameters
 * go through doubles and are rounded down after a tolerance, so that a ratio printed with ten
 * digits gives back the steps it came from.
 *
 * The warm-up's first step has the rate 1 / warm, not 0; the last step of a falling schedule has
 * the floor itself.
 */
#include "worker/train/schedule.h"

#include <math.h>

#include "base/math/elementary.h"

/* Of a step: a ratio is a quotient written with some ten digits, 26.2402175563 for 4,999,610,368
 * tokens over 190,532,352 parameters, and means the whole steps it was computed from. */
#define STEP_TOLERANCE 1e-6

double horizon_tokens(const struct horizon *h, const struct model_config *cfg)
{
    switch (h->contract) {
    case CONTRACT_ACTIVE: return h->ratio * (double)model_config_active(cfg);
    case CONTRACT_TOTAL: return h->ratio * (double)model_config_total(cfg);
    case CONTRACT_FIXED:
    case CONTRACT_NR: break;
    }
    return (double)h->tokens;
}

int64_t horizon_steps(const struct horizon *h, const struct model_config *cfg, int64_t batch_tokens)
{
    if (h->contract == CONTRACT_FIXED)
        return h->tokens / batch_tokens;
    double steps = horizon_tokens(h, cfg) / (double)batch_tokens;
    /* A ratio may ask for more steps than an integer holds. */
    return (int64_t)fmin(floor(steps + STEP_TOLERANCE), 0x1p53);
}

int64_t horizon_fraction(int64_t steps, double fraction)
{
    return (int64_t)llround(fraction * (double)steps);
}

int64_t horizon_tail_begin(int64_t steps)
{
    int64_t begin = horizon_fraction(steps, 1.0 - HORIZON_TAIL);

    return begin < steps ? begin : steps - 1;
}

int64_t horizon_end(const struct horizon *h, int64_t steps)
{
    return h->stop > 0.0 && h->stop < 1.0 ? horizon_fraction(steps, h->stop) : steps;
}

/* 1 at t = 0, floor at t = 1 */
static double cosine(double floor_, double t)
{
    const double pi = 3.141592653589793238462643383280;

    return floor_ + (1.0 - floor_) * 0.5 * (1.0 + elementary_cos(pi * t));
}

double schedule_factor(const struct schedule *s, int64_t step, int64_t steps)
{
    int64_t warm = horizon_fraction(steps, s->warmup);
    int64_t last = steps - 1;

    if (step < warm)
        return (double)(step + 1) / (double)warm;
    if (s->kind == SCHEDULE_COSINE)
        return last > warm ? cosine(s->floor, (double)(step - warm) / (double)(last - warm)) : 1.0;
    if (s->kind == SCHEDULE_WSD) {
        int64_t falling = horizon_fraction(steps, s->decay);
        int64_t from = steps - falling;
        if (step >= from)
            return 1.0 - (1.0 - s->floor) * (double)(step - from + 1) / (double)falling;
    }
    return 1.0;
}

double schedule_anneal(double end, int64_t step, int64_t steps)
{
    if (steps > 1 && step == steps - 1)
        return end; /* to the bit */
    return steps > 1 ? 1.0 + (end - 1.0) * (double)step / (double)(steps - 1) : 1.0;
}
