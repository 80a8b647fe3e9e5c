/*
 * What the items of one group gave under one metric, in their order, and the numbers that
 * lm-evaluation-harness makes of them: means and perplexities with their standard errors, and the
 * pooling of groups by size.
 */
#ifndef WORKER_EVAL_SCORE_MARKS_H
#define WORKER_EVAL_SCORE_MARKS_H

#include <stdbool.h>
#include <stddef.h>

struct marks {
    double *x; /* 0 or 1, or a log-likelihood */
    double *w; /* words or bytes of a text; 1 elsewhere */
    size_t n;
    size_t cap;
};

/* A zeroed one is empty. */
void marks_release(struct marks *m);
void marks_add(struct marks *m, double x, double w);

double marks_mean(const struct marks *m); /* NaN when empty */
/* sqrt(sum (x - mean)^2 / (n - 1)) / sqrt(n); NaN under two items. */
double marks_mean_se(const struct marks *m);
double marks_perplexity(const struct marks *m);          /* exp(-mean x) */
double marks_weighted_perplexity(const struct marks *m); /* exp(-sum x / sum w) */
double marks_bits(const struct marks *m);                /* -(sum x / sum w) / ln 2 */

/* A metric over some items. */
struct metric_score {
    size_t n;
    double value; /* NaN: none, as with n == 0 */
    double se;    /* NaN: not known */
};

/* Several groups as one: the mean by size, and sqrt(sum (n_i - 1) n_i se_i^2 / (N - G) / N). Empty
 * groups are left out; a group of one item, which has no spread, adds nothing to the sum (the
 * harness gives up there). One group: itself. */
struct metric_score marks_pool(const struct metric_score *groups, size_t n_groups);

#endif
