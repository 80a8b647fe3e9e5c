/*
 * Means and their standard errors over items that passed or failed, as lm-evaluation-harness
 * computes them; several groups (MMLU's subjects) are pooled by size.
 */
#ifndef WORKER_EVAL_TALLY_H
#define WORKER_EVAL_TALLY_H

#include <stdint.h>

struct tally {
    int64_t n;
    int64_t passed;
};

double tally_mean(const struct tally *t); /* NaN when empty */
/* sqrt(sum (x - mean)^2 / (n - 1)) / sqrt(n); NaN under two items. */
double tally_se(const struct tally *t);
/* Over groups: sqrt( sum (n_i - 1) n_i se_i^2 / (N - G) / N ). Empty groups are left out; a group
 * of one item, which has no spread, adds nothing to the sum (the harness gives up there). One
 * group: its own. */
double tally_pooled_se(const struct tally *groups, int64_t n_groups);

#endif
