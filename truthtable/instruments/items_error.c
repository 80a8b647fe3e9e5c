/*
 * Standard errors of a mean over items. Clustered errors sum the deviations of each cluster before
 * squaring, with the factor C / (C - 1): the sandwich estimator of an intercept alone. Quantiles
 * are Student's on n - 1 or C - 1 degrees. What is not determined has a reason and no number.
 */
#include "truthtable/instruments/items_error.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "truthtable/instruments/quantile.h"

/* Fills the mean; false, with a reason, when there is none. The second pass takes back what the
 * first one's rounding left. */
static bool find_mean(const double *diff, size_t n, struct item_error *out)
{
    *out = (struct item_error){.n = n, .why = "no items"};
    if (n == 0) {
        return false;
    }
    double mean = 0;
    for (size_t i = 0; i < n; i++) {
        mean += diff[i] / (double)n;
    }
    double rest = 0;
    for (size_t i = 0; i < n; i++) {
        rest += (diff[i] - mean) / (double)n;
    }
    out->why = isfinite(mean + rest) ? NULL : "an item's value is not a finite number";
    out->mean = out->why == NULL ? mean + rest : 0;
    return out->why == NULL;
}

/* The 95 % interval from a variance of the mean. */
static void set_interval(struct item_error *out, double variance, size_t df)
{
    double se = sqrt(variance);
    if (!isfinite(se)) {
        out->why = "the values are too large for their variance";
        return;
    }
    double half = student_quantile(0.975, df) * se;
    out->se = se;
    out->df = (double)df;
    out->t_low = out->mean - half;
    out->t_high = out->mean + half;
}

/* The textbook error of a mean; one item has none. */
void items_paired(const double *diff, size_t n, struct item_error *out)
{
    bool found = find_mean(diff, n, out);
    out->n_clusters = n;
    if (!found) {
        return;
    }
    if (n < 2) {
        out->why = "one item alone shows no error";
        return;
    }
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (diff[i] - out->mean) * (diff[i] - out->mean);
    }
    set_interval(out, sum / (double)(n - 1) / (double)n, n - 1);
}

/* The last slot of the sums collects items of an unknown cluster, which spoil the result. */
void items_clustered(const double *diff, const size_t *cluster, size_t n, size_t n_clusters,
                     struct item_error *out)
{
    if (!find_mean(diff, n, out)) {
        return;
    }
    double *sums = xcalloc(n_clusters + 1, sizeof(*sums));
    size_t *sizes = xcalloc(n_clusters + 1, sizeof(*sizes));
    for (size_t i = 0; i < n; i++) {
        size_t c = cluster[i] < n_clusters ? cluster[i] : n_clusters;
        sums[c] += diff[i] - out->mean;
        sizes[c]++;
    }
    double sum = 0;
    for (size_t c = 0; c < n_clusters; c++) {
        out->n_clusters += sizes[c] > 0;
        sum += sums[c] * sums[c];
    }
    double c = (double)out->n_clusters;
    if (sizes[n_clusters] > 0) {
        out->why = "an item belongs to no known cluster";
    } else if (out->n_clusters < 2) {
        out->why = "all items are in one cluster";
    } else {
        set_interval(out, c / (c - 1) * sum / (double)n / (double)n, out->n_clusters - 1);
    }
    free(sums);
    free(sizes);
}
