/*
 * The normal distribution and its quantiles, and Student's t beyond the degrees that finite sums
 * are for. Relative errors below 1e-13.
 */
#ifndef TRUTHTABLE_INSTRUMENTS_QUANTILE_H
#define TRUTHTABLE_INSTRUMENTS_QUANTILE_H

#include <stddef.h>

double normal_cdf(double z);
double normal_quantile(double p); /* NaN unless 0 < p < 1 */
/* t with P(T <= t) = p on df >= 1 whole degrees; 0.5 < p < 1, else NaN. */
double student_quantile(double p, size_t df);

#endif
