/*
 * How well stated probabilities did. Bits are -log2 of the probability given to what happened; a
 * Brier score is a sum of squares, 0 the best. NaN for a number that is not a probability.
 */
#ifndef TRUTHTABLE_EVALUATE_SCORING_H
#define TRUTHTABLE_EVALUATE_SCORING_H

#include <stdbool.h>
#include <stddef.h>

/* -log2 p; NaN unless 0 < p <= 1. */
double scoring_bits(double p);

/* A forecast that a condition holds, with that confidence: what was given to what happened. */
double scoring_forecast_bits(double confidence, bool held);
double scoring_forecast_brier(double confidence, bool held); /* (confidence - held)^2 */

/* Over outcomes that exclude one another, the unassigned remainder 1 - sum as one more; `hit` is
 * the outcome that occurred, n for one that was not stated. NaN unless every prior is in [0, 1] and
 * their sum is no more than 1 (to PRIORS_SUM_SLACK, as of a program). */
double scoring_prior_brier(const double *priors, size_t n, size_t hit);

#endif
