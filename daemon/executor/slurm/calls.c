/* Arithmetic in whole numbers: a call costs 60,000 units, and a millisecond brings as many units as
 * there are calls a minute. */
#include "daemon/executor/slurm/calls.h"

#include <assert.h>

#define CALL_UNITS INT64_C(60000)

static int64_t capacity(const struct calls *c)
{
    return c->a_minute / 2 * CALL_UNITS;
}

void calls_init(struct calls *c, uint32_t a_minute, int64_t now_ms)
{
    assert(a_minute >= 2);
    *c = (struct calls){.a_minute = a_minute, .at_ms = now_ms};
    c->bucket = capacity(c);
}

bool calls_take(struct calls *c, int64_t now_ms)
{
    int64_t gone = now_ms - c->at_ms;
    if (gone > 0) {
        int64_t most = (capacity(c) - c->bucket) / c->a_minute + 1;
        c->bucket += (gone < most ? gone : most) * c->a_minute;
        c->bucket = c->bucket < capacity(c) ? c->bucket : capacity(c);
        c->at_ms = now_ms;
    }
    if (c->bucket < CALL_UNITS) {
        return false;
    }
    c->bucket -= CALL_UNITS;
    return true;
}

int64_t calls_next_ms(const struct calls *c)
{
    if (c->bucket >= CALL_UNITS) {
        return c->at_ms;
    }
    return c->at_ms + (CALL_UNITS - c->bucket - 1) / c->a_minute + 1;
}

int64_t calls_round_ms(int64_t round_ms, int64_t max_ms, size_t n_jobs)
{
    assert(round_ms > 0 && max_ms >= round_ms);
    int64_t n = n_jobs < CALLS_SLOWEST_AT ? (int64_t)n_jobs : CALLS_SLOWEST_AT;
    return round_ms + (max_ms - round_ms) * n / CALLS_SLOWEST_AT;
}
