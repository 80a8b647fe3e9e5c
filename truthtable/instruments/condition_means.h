/*
 * Two tables over all conditions, for instruments.json: the mean of every measure in every
 * condition with its spread over replicates, and how the levels of a factor rank by each measure at
 * each setting of the others. Both are of the verdict's own evaluation. Private to
 * truthtable/instruments; the lists are empty, never NULL.
 */
#ifndef TRUTHTABLE_INSTRUMENTS_CONDITION_MEANS_H
#define TRUTHTABLE_INSTRUMENTS_CONDITION_MEANS_H

#include "truthtable/instruments/instrument_work.h"

/* [{"measure","condition","mean","se","ci_low","ci_high","n","why"}], measures first. */
cJSON *condition_means(const struct work *w);
/* [{"measure","factor","setting","order":[{"level","rank","mean"}],"why"}] of every factor that a
 * contrast compares, the best level first; of measures without a value nowhere. */
cJSON *condition_ranks(const struct work *w);

#endif
