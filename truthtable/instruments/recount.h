/*
 * Counts the scores of a result again from its items (docs/receipts.md, "With the items").
 *
 * A metric `M` is the mean of the member "M" over the items that have a value for it; `M:GROUP` the
 * same over the items whose "group" is GROUP. A perplexity follows from the members "ll", "words"
 * and "bytes". Of any other metric the items alone do not say how it was made of them: its name is
 * listed, and it is not compared. A stated n must be the number of values, and a stated value
 * theirs, apart from the order of summation.
 */
#ifndef TRUTHTABLE_INSTRUMENTS_RECOUNT_H
#define TRUTHTABLE_INSTRUMENTS_RECOUNT_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/err.h"
#include "base/files/digest.h"
#include "base/strbuf.h"

/* How far a stated value may be from the counted one, in parts of the greater of it and 1. */
#define RECOUNT_NEAR 1e-9

/* What was counted; to be released. Adds up over calls. */
struct recount {
    size_t n_scores;     /* counted again, and the same */
    size_t n_others;     /* with a value that the items do not determine */
    struct strbuf other; /* the name of the first of those */
};

void recount_init(struct recount *r);
void recount_release(struct recount *r);

/* Reads the items at `path`, whose bytes must have the digest `said`, and compares them with the
 * result's "metrics". Adds to *r. ERR_LOCK with both figures where a score is not that of the
 * items; ERR_CORRUPT where the bytes are others. Messages name no folder. */
int recount_items(const char *path, const struct digest *said, const cJSON *metrics,
                  struct recount *r, struct err *err) MUST_CHECK;

#endif
