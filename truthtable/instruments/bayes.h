/*
 * Normal-normal Bayes factors and how they read: an estimate d with standard error se, H0: no
 * effect, H1: an effect drawn from N(0, tau^2). In logarithms, so that no evidence is too strong to
 * be written down.
 */
#ifndef TRUTHTABLE_INSTRUMENTS_BAYES_H
#define TRUTHTABLE_INSTRUMENTS_BAYES_H

#include <stdbool.h>
#include <stddef.h>

enum bayes_reading {
    BAYES_UNDETERMINED,
    BAYES_FOR_NULL, /* BF10 < low */
    BAYES_NEITHER,
    BAYES_AGAINST_NULL, /* BF10 > high */
};

/* ln BF10; NaN unless d is finite and se and tau are positive and finite, and where the logarithm
 * itself is beyond double. */
double bayes_ln_bf10(double d, double se, double tau);
/* low < high, bounds of BF10 itself (1/3 and 3). NaN reads as undetermined. */
enum bayes_reading bayes_read(double ln_bf10, double low, double high);
/* The same reading, and a determined one, under every prior; n > 0. */
bool bayes_robust(const enum bayes_reading *readings, size_t n);
const char *bayes_reading_text(enum bayes_reading r); /* "for the null", ... */

#endif
