/*
 * What an amendment may change, and when: the table of docs/amendments.md. Pure.
 *
 * Every member of `locked` belongs to one section. Factors, measures but for their metric,
 * counters, contrasts, inputs, table, outcomes and the budget are sealed for good at every level;
 * so is what determines what is run (name, stages but for their params, workers, contents of data,
 * [pin], [lock]). What the table does not name is refused: nothing is open because it was
 * forgotten.
 *
 * Two sections are judged by what conditions read as well: the priors of a bayes instrument are
 * sealed like the table where a condition of it (or of a validity) reads the bf10 that follows from
 * them, and a forecast of visible results is post hoc whatever else is sealed. So is a change of an
 * apparatus check whose result is known (amend_known.h).
 */
#ifndef PREREG_AMEND_AMEND_RULES_H
#define PREREG_AMEND_AMEND_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "prereg/amend/access_level.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"
#include "prereg/program/stage_set.h"

#define AMEND_SUPERSEDE "open a new program (supersedes)"

struct amend_state {
    const struct plan_program *now;  /* as amended so far */
    const struct plan_program *then; /* as it is to be */
    enum access_level level;
    struct stage_set started; /* some task of the stage has had an attempt */
    const cJSON *known;       /* results of apparatus checks; or NULL */
};

/* Puts "section" and "post_hoc" into every change (amendment_changes()), and for each that is not
 * allowed {"path":TEXT,"section":TEXT,"why":TEXT} into `refused`. */
void amend_classify(const struct amend_state *state, cJSON *changes, cJSON *refused);

struct amend_file {
    const cJSON *changes;
    enum access_level level;
    const cJSON *known;  /* of the amendment; or NULL */
    const cJSON *locked; /* plans: as locked, before it and after it */
    const cJSON *before;
    const cJSON *after;
};

/* Checks what an amendment's file alone can prove, whichever program wrote it: no path is sealed
 * at that level, and every "post_hoc" is what the level demands. ERR_LOCK names the first
 * violation. */
int amend_check_file(const struct amend_file *f, struct err *err) MUST_CHECK;

/* Builds `locked` of the amended program: its plan, the locked digests, and new digests only of
 * data whose path changed and of models of [apparatus] that are new. `solved` may be NULL: the
 * present one is kept. The caller deletes *out. */
int amend_build_locked(const struct lock *lock, const struct amend_state *state,
                       const cJSON *solved, cJSON **out, struct err *err) MUST_CHECK;

#endif
