/*
 * The error of a mean over items: paired differences of two models on the same items, or plain
 * scores. Items drawn alone, or in clusters (a subject, a passage) whose items err together.
 * What is not determined has its reason in `why` and is never 0.
 */
#ifndef TRUTHTABLE_INSTRUMENTS_ITEMS_ERROR_H
#define TRUTHTABLE_INSTRUMENTS_ITEMS_ERROR_H

#include <stddef.h>

struct item_error {
    const char *why; /* NULL: se, df and the interval are determined */
    double mean;     /* determined when n > 0 and every difference is finite */
    double se;
    double t_low, t_high; /* 95 % of Student's t on df degrees */
    double df;            /* n - 1, or clusters - 1 */
    size_t n;
    size_t n_clusters; /* with an item; n when items stand alone */
};

/* se = sqrt(sum (d - mean)^2 / (n - 1) / n). */
void items_paired(const double *diff, size_t n, struct item_error *out);
/* se = sqrt(C / (C - 1) * sum over clusters of (sum of d - mean)^2) / n; cluster[i] < n_clusters.
 */
void items_clustered(const double *diff, const size_t *cluster, size_t n, size_t n_clusters,
                     struct item_error *out);

#endif
