/*
 * What a plan asks of its workers: the resolved parameters of the tasks of a cell. Cells that are
 * asked the same are the same computation, whatever they are called. Pure; nothing is kept.
 */
#ifndef TRUTHTABLE_ASKED_H
#define TRUTHTABLE_ASKED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/digest.h"
#include "prereg/program.h"
#include "prereg/stage_set.h"

/* Whether a stage's parameters name the factor anywhere, a level's own under `when` included. */
bool asked_mentions(const struct stage *s, const char *factor);
/* Whether they do in every cell: a parameter that no level replaces names it. */
bool asked_always(const struct stage *s, const char *factor);

/* Of the parameters of these stages in a cell. */
struct digest asked_digest(const struct program *p, const struct stage_set *stages, size_t cell);

/* For each stage itself and all that come before it; for free(). */
struct stage_set *asked_before(const struct program *p);

/* Which of these stages may tell replicates apart. False when there is nothing to compare: every
 * cell uses every replicate factor, or no stage of the program uses one at all, and such a plan is
 * refused or not executed. */
bool asked_telling(const struct program *p, const struct stage_set *stages,
                   struct stage_set *telling);
/* For each cell the first one of its condition that these stages are asked the same in, itself for
 * one that has no other. NULL when all replicates differ. `telling` is asked_telling()'s. */
size_t *asked_twins(const struct program *p, const struct stage_set *telling, struct arena *arena);

#endif
