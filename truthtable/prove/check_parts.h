/* The parts of check_run; private to the proofs. Each fills its share of the report and adds to
 * diag. */
#ifndef TRUTHTABLE_PROVE_CHECK_PARTS_H
#define TRUTHTABLE_PROVE_CHECK_PARTS_H

#include <stddef.h>

#include "truthtable/condition/decision_rules.h"
#include "truthtable/prove/check.h"

void check_table(struct check_report *r, struct diag *diag);
/* Witnesses, then proofs of impossibility for what has none. */
void check_reach(struct check_report *r, const struct rules *rules, struct diag *diag);
/* Warns of levels of factors and inputs that nothing needs, and notes such stages and [data]; after
 * check_reach(). */
void check_use(const struct check_report *r, const struct rules *rules, struct diag *diag);
void check_measures(struct check_report *r, const struct rules *rules);
void check_fixed(struct check_report *r, const struct rules *rules, const cJSON *describe);
/* Holds the confounds of [scope] against what differs; after check_fixed(). Adds an error for an
 * unknown column, a warning for what differs undeclared, a note for what is declared and does not
 * differ. Nothing without [scope]. */
void check_scope(struct check_report *r, struct diag *diag);
/* Warns of sources that a stage passes over too often, and of arms that repeat their data
 * unequally; after check_fixed(). */
void check_budget(const struct check_report *r, const cJSON *describe, struct diag *diag);
cJSON *check_fixed_object(const struct check_report *r);

/* The complete, synthetic records of the seeded search: trial t of a program is always the
 * same. */
struct table_reading;
void search_make(struct table_reading *out, const struct rules *rules, uint64_t trial,
                 struct arena *arena);
/* The means of its conditions, in words: "mmlu: 0.31 0.26; ...". */
const char *search_scores(const struct table_reading *reading, const struct rules *rules,
                          struct arena *arena);
/* The search: marks rows and outcomes as witnessed. */
void search_run(struct check_report *r, const struct rules *rules);

/*
 * Which inputs of the table say something about the same quantities. Inputs of different groups
 * share no quantity, and no relation that always holds links theirs: a contradiction between the
 * conditions of some inputs is one within a group. (Were a link missed, a proof might not be
 * found; none would be wrong.)
 */

/* Fills group[table input] with 0..n-1 in order of first appearance and returns n. */
size_t related_groups(const struct rules *rules, size_t *group);

#endif
