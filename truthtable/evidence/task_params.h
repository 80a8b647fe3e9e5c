/*
 * The resolved parameters of a cell's tasks: what a plan asks of its workers. Cells with equal
 * parameters are the same computation, whatever their names. Pure; nothing is kept.
 */
#ifndef TRUTHTABLE_EVIDENCE_TASK_PARAMS_H
#define TRUTHTABLE_EVIDENCE_TASK_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/files/digest.h"
#include "prereg/program/program.h"
#include "prereg/program/stage_set.h"

/* Whether a stage's parameters name the factor anywhere, a level's own under `when` included. */
bool asked_mentions(const struct plan_stage *s, const char *factor);
/* Whether they do in every cell: a parameter that no level replaces names it. */
bool asked_always(const struct plan_stage *s, const char *factor);

/* The digest of these stages' parameters in a cell. */
struct digest asked_digest(const struct plan_program *p, const struct stage_set *stages,
                           size_t cell);

/* For each stage, the set of itself and all stages before it. The caller frees it. */
struct stage_set *asked_before(const struct plan_program *p);

/* Finds the stages that can distinguish replicates. False when there is nothing to compare: every
 * cell uses every replicate factor, or no stage of the program uses one at all, and such a plan is
 * refused or not executed. */
bool asked_telling(const struct plan_program *p, const struct stage_set *stages,
                   struct stage_set *telling);
/* For each cell, the first cell of its condition with the same parameters in these stages. NULL
 * when all replicates differ. `telling` is asked_telling()'s. */
size_t *asked_twins(const struct plan_program *p, const struct stage_set *telling,
                    struct arena *arena);

#endif
