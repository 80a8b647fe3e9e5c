/*
 * Counts the scores of a result again from its items (docs/receipts.md, "With the items").
 *
 * A metric `M` is the mean of the member "M" over the items that have a value for it; `M:GROUP` the
 * same over the items whose "group" is GROUP. A perplexity follows from the members "ll", "words"
 * and "bytes". Of any other metric the items alone do not say how it was made of them: its name is
 * listed, and it is not compared. A stated n must be the number of values, and a stated value
 * theirs, apart from the order of summation; a metric on which the verdict rests must state an n.
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

/* A result whose scores are counted. All borrowed. */
struct recount_result {
    const struct digest *said;  /* of its items' bytes */
    const cJSON *metrics;       /* its member of that name */
    const char *const *binding; /* metrics on which the verdict rests */
    size_t n_binding;
};

/* What was counted; to be released. Adds up over calls. */
struct recount {
    size_t n_scores;      /* counted again, and the same */
    size_t n_others;      /* with a value that the items do not determine */
    struct strbuf other;  /* the name of the first of those */
    size_t n_missed;      /* those of them that bind */
    struct strbuf missed; /* likewise */
    size_t n_items;       /* lines that are items, once for each result */
    size_t n_faulty;      /* of those at fault, which count for no score */
    size_t n_empty; /* not at fault, and without a value of a score that binds; once for each */
    struct strbuf empty; /* the name of the first such score */
};

void recount_init(struct recount *r);
void recount_release(struct recount *r);

/* Reads the items at `path` and compares them with the metrics of `of`. Adds to *r. ERR_LOCK with
 * both figures where a score or its n is not that of the items, or a metric that binds states no n;
 * ERR_CORRUPT where the bytes are others. Messages name no folder. */
int recount_items(const char *path, const struct recount_result *of, struct recount *r,
                  struct err *err) MUST_CHECK;

#endif
