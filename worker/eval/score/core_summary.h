/*
 * The metrics of tasks of style dclm, from what their groups' items gave.
 *
 * Of one task: "acc" and "centered"; with categories also "acc:<category>". Of a suite: the same of
 * every member that is there, "acc:<member>" and "centered:<member>", and two means of the centred
 * ones: "core" over all of DCLM's 22, which has no value when one is missing, and "core_partial"
 * over those that are there.
 */
#ifndef WORKER_EVAL_SCORE_CORE_SUMMARY_H
#define WORKER_EVAL_SCORE_CORE_SUMMARY_H

#include "worker/eval/score/summary.h"

/* Why a mean has no value. */
#define CORE_WHY_ABSENT "members_absent"
#define CORE_WHY_EMPTY  "member_without_items"

/* Puts the entries. The set is of tasks of style dclm only. */
void core_summary_finish(struct summary *s, enum baseline_version baselines);

/* Appends the names of the suite's members that have no items in the set, ", " between them;
 * returns how many are there. */
size_t core_summary_absent(const struct task_spec *suite, const struct item_set *set,
                           struct strbuf *absent);

#endif
