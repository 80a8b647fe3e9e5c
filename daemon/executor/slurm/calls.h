/*
 * How often the controller is asked: a token bucket for all calls (rule 10), and a round that slows
 * down with the number of jobs (rule 13).
 */
#ifndef DAEMON_EXECUTOR_SLURM_CALLS_H
#define DAEMON_EXECUTOR_SLURM_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALLS_SLOWEST_AT 10000 /* jobs */

struct calls {
    uint32_t a_minute;
    int64_t bucket; /* in 60,000ths of a call; at most half of a minute's */
    int64_t at_ms;  /* when it was filled */
};

void calls_init(struct calls *c, uint32_t a_minute, int64_t now_ms); /* a_minute >= 2 */
bool calls_take(struct calls *c, int64_t now_ms);                    /* one call; false: not yet */
int64_t calls_next_ms(const struct calls *c);                        /* when one can be taken */

/* Between two questions, from round_ms with few jobs to max_ms with CALLS_SLOWEST_AT and more. */
int64_t calls_round_ms(int64_t round_ms, int64_t max_ms, size_t n_jobs);

#endif
