/* How normal-normal Bayes factors (stat_ln_bf10) read: one alone, and under several priors. */
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

/* low < high, bounds of BF10 itself (1/3 and 3). NaN reads as undetermined. */
enum bayes_reading bayes_read(double ln_bf10, double low, double high);
/* The same reading, and a determined one, under every prior; n > 0. */
bool bayes_robust(const enum bayes_reading *readings, size_t n);
const char *bayes_reading_text(enum bayes_reading r); /* "for the null", ... */

#endif
