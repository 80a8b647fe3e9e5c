/*
 * Compares what the lines of a samples file add up to with the results file: counts per filter, the
 * hash over all hashes, then each metric's value and standard error, by the aggregation that the
 * task's config names. A metric with an unknown aggregation is not compared. The first difference
 * is an error that names both figures.
 */
#include <math.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/math/elementary.h"
#include "base/strbuf.h"
#include "truthtable/imported/samples.h"

/* In the order of the lines, as upstream sums. */
static double mean_of(const double *xs, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += xs[i];
    }
    return sum / (double)n;
}

/* With n - 1, as upstream's mean_stderr: the sample standard deviation over the square root of
 * n. */
static double standard_error(const double *xs, size_t n)
{
    const double mean = mean_of(xs, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (xs[i] - mean) * (xs[i] - mean);
    }
    return sqrt(sum / (double)(n - 1)) / sqrt((double)n);
}

/* The aggregated value, by kind. */
static double value_of(const struct samples_metric *m)
{
    const double mean = mean_of(m->xs, m->n);
    const double rate = mean * (double)m->n / m->weights;
    switch (m->sum) {
    case SUM_MEAN: return mean;
    case SUM_PERPLEXITY: return elementary_exp(-mean);
    case SUM_WEIGHTED: return elementary_exp(-rate);
    case SUM_BITS: return -rate / ELEMENTARY_LN_2;
    case SUM_UNKNOWN: break;
    }
    return (double)NAN;
}

/* found: {in the results file, from the samples}. */
static int differs(const struct samples *s, const struct results_metric *m, const double found[2],
                   const char *what, struct err *err)
{
    return err_set(err, ERR_CORRUPT, "%s of %.60s \"%s\" is %.17g in %.60s; its samples give %.17g",
                   what, s->task->task, m->key, found[0], path_name(s->results->path), found[1]);
}

/* The same number, infinity, or nothing (NaN is none in a results file). */
static bool same(const struct results_metric *m, double value)
{
    if (!m->has_value) {
        return !isfinite(value);
    }
    return results_agree(m->value, value);
}

/* Standard errors are only compared for means; upstream bootstraps others. */
static int compare_metric(const struct samples *s, const struct samples_metric *m, struct err *err)
{
    const struct results_metric *of = m->of;
    if (m->sum == SUM_UNKNOWN || m->n == 0) {
        return 0;
    }
    if (!same(of, value_of(m))) {
        const double found[2] = {of->has_value ? of->value : (double)NAN, value_of(m)};
        return differs(s, of, found, "the score", err);
    }
    if (m->sum != SUM_MEAN || m->n < 2 || !of->has_se) {
        return 0;
    }
    const double found[2] = {of->se, standard_error(m->xs, m->n)};
    return results_agree(found[0], found[1]) ? 0 : differs(s, of, found, "the standard error", err);
}

/* Every filter must cover the same documents, as many as the results file says. */
static int compare_counts(const struct samples *s, struct err *err)
{
    for (size_t i = 0; i < s->n_filters; i++) {
        if (s->task->has_n && s->n_docs[i] != (size_t)s->task->n) {
            return err_set(err, ERR_CORRUPT,
                           "%zu samples of %.60s under filter \"%.40s\", the results file has %lld "
                           "items",
                           s->n_docs[i], s->task->task, s->filters[i], (long long)s->task->n);
        }
        if (s->n_docs[i] != s->n_docs[0]) {
            return err_set(err, ERR_CORRUPT,
                           "%zu samples of %.60s under \"%.40s\", %zu under %.40s", s->n_docs[i],
                           s->task->task, s->filters[i], s->n_docs[0], s->filters[0]);
        }
    }
    return 0;
}

/* Only if every line had its three hashes. */
static int compare_hashes(const struct samples *s, struct err *err)
{
    const cJSON *stored = json_member(json_member(s->results->json, "task_hashes"), s->task->task);
    if (!cJSON_IsString(stored) || !s->all_hashes) {
        return 0;
    }
    struct digest_stream copy = s->hashes;
    struct digest d = digest_finish(&copy);
    char hex[DIGEST_HEX_SIZE];
    digest_hex(&d, hex);
    return strcmp(hex, stored->valuestring) == 0
               ? 0
               : err_set(err, ERR_CORRUPT,
                         "task_hashes of %.60s is %.12s… in the results file, its samples give "
                         "%.12s…",
                         s->task->task, stored->valuestring, hex);
}

/* An empty file is refused: it confirms nothing. */
int samples_compare(const struct samples *s, struct err *err)
{
    if (s->n_lines == 0) {
        return err_set(err, ERR_REFUSED, "no sample in it");
    }
    int rc = compare_counts(s, err);
    if (rc != 0 || (rc = compare_hashes(s, err)) != 0) {
        return rc;
    }
    for (size_t i = 0; rc == 0 && i < s->task->n_metrics; i++) {
        rc = compare_metric(s, &s->metrics[i], err);
    }
    return rc;
}

/* How each metric was confirmed, for the receipt. */
void samples_describe(const struct samples *s, struct strbuf *out)
{
    for (size_t i = 0; i < s->task->n_metrics; i++) {
        const struct samples_metric *m = &s->metrics[i];
        const char *how = m->n_there == 0                 ? "not in the samples"
                          : m->sum == SUM_UNKNOWN         ? "not recomputed"
                          : m->n_recomputed == m->n_there ? "from the answers"
                          : m->n_recomputed > 0           ? "in part from the answers"
                                                          : "summed, not judged again";
        strbuf_addf(out, "%s%s %s", i == 0 ? "" : ", ", m->of->key, how);
    }
}
