/*
 * Reads Bayes factors against the bounds of the plan. Comparison is in logarithms, so that a factor
 * beyond double still reads as what it is. "Robust" means the same determined reading under every
 * prior: an undetermined one is never robust.
 */
#include "truthtable/instruments/bayes.h"

#include <math.h>

#include "base/math/elementary.h"

/* A factor exactly on a bound is "neither". */
enum bayes_reading bayes_read(double ln_bf10, double low, double high)
{
    if (isnan(ln_bf10)) {
        return BAYES_UNDETERMINED;
    }
    if (ln_bf10 < elementary_log(low)) {
        return BAYES_FOR_NULL;
    }
    return ln_bf10 > elementary_log(high) ? BAYES_AGAINST_NULL : BAYES_NEITHER;
}

/* Compares all readings with the first. */
bool bayes_robust(const enum bayes_reading *readings, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (readings[i] != readings[0]) {
            return false;
        }
    }
    return n > 0 && readings[0] != BAYES_UNDETERMINED;
}

const char *bayes_reading_text(enum bayes_reading r)
{
    switch (r) {
    case BAYES_FOR_NULL: return "for the null";
    case BAYES_NEITHER: return "neither";
    case BAYES_AGAINST_NULL: return "against the null";
    case BAYES_UNDETERMINED: break;
    }
    return "undetermined";
}
