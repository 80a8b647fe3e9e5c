/*
 * Pearson's chi-square of the cells' accuracies around their common mean. Cells may have different
 * numbers of items; the mean weighs by items. Only the tails are computed here; what counts as
 * tight or loose is decided by the instrument.
 */
#include "truthtable/instruments/dispersion.h"

#include <math.h>

#include "truthtable/instruments/gamma.h"

/* Why the statistic is not defined for these scores; NULL if it is. */
static const char *why_not(const double *score, const double *items, size_t n_cells)
{
    if (n_cells < 2) {
        return "fewer than two cells have a score";
    }
    for (size_t i = 0; i < n_cells; i++) {
        if (!(score[i] >= 0 && score[i] <= 1)) {
            return "a score lies outside 0..1";
        }
        if (!(items[i] > 0) || !isfinite(items[i])) {
            return "a score's number of items is not known";
        }
    }
    return NULL;
}

/* One pass for the mean, one for the weighted squares about it. */
void dispersion_of(const double *score, const double *items, size_t n_cells, struct dispersion *out)
{
    *out = (struct dispersion){.why = why_not(score, items, n_cells)};
    if (out->why != NULL) {
        return;
    }
    double right = 0;
    double asked = 0;
    for (size_t i = 0; i < n_cells; i++) {
        right += score[i] * items[i];
        asked += items[i];
    }
    out->mean = right / asked;
    if (!(out->mean > 0 && out->mean < 1)) {
        out->why = "all scores are 0 or all are 1: the sampling variance is none";
        return;
    }
    double sum = 0;
    for (size_t i = 0; i < n_cells; i++) {
        sum += items[i] * (score[i] - out->mean) * (score[i] - out->mean);
    }
    out->chi2 = sum / (out->mean * (1 - out->mean));
    out->df = (double)(n_cells - 1);
    struct gamma_tails t = chi_square_tails(out->chi2, out->df);
    out->p_lower = t.p;
    out->p_upper = t.q;
}
