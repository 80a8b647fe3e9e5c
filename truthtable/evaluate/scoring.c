/*
 * Scores of stated probabilities against what happened: surprisal in bits and the Brier score. A
 * probability outside 0..1, or priors that sum to more than 1, give NaN instead of a number that
 * would look like a score. The formulas are in docs/statistics.md.
 */
#include "truthtable/evaluate/scoring.h"

#include <assert.h>
#include <math.h>

#include "base/math/elementary.h"
#include "prereg/program/analysis.h"

double scoring_bits(double p)
{
    /* 0 - x rather than -x, so that p = 1 gives 0 and not -0. */
    return p > 0 && p <= 1 ? 0 - elementary_log2(p) : (double)NAN;
}

double scoring_forecast_bits(double confidence, bool held)
{
    return scoring_bits(held ? confidence : 1 - confidence);
}

/* The squared distance of the confidence from 0 or 1. */
double scoring_forecast_brier(double confidence, bool held)
{
    if (!(confidence >= 0 && confidence <= 1)) {
        return (double)NAN;
    }
    double off = confidence - (held ? 1 : 0);
    return off * off;
}

/* The unassigned remainder counts as one more outcome; it is the one that happened if `hit` is
 * n. */
double scoring_prior_brier(const double *priors, size_t n, size_t hit)
{
    assert(priors != NULL || n == 0);
    double sum = 0;
    double rest = 1;
    for (size_t i = 0; i < n; i++) {
        if (!(priors[i] >= 0 && priors[i] <= 1)) {
            return (double)NAN;
        }
        double off = priors[i] - (i == hit ? 1 : 0);
        sum += off * off;
        rest -= priors[i];
    }
    if (rest < -PRIORS_SUM_SLACK) {
        return (double)NAN;
    }
    double off = (rest < 0 ? 0 : rest) - (hit >= n ? 1 : 0);
    return sum + off * off;
}
