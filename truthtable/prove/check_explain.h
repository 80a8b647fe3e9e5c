/*
 * The table, row by row, for people: what can reach each row. A witness's scores are recomputed
 * from the number of its trial; nothing of this is kept in a report.
 */
#ifndef TRUTHTABLE_PROVE_CHECK_EXPLAIN_H
#define TRUTHTABLE_PROVE_CHECK_EXPLAIN_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "truthtable/prove/check.h"

/* How many rows there are of each kind, and the first `per_kind` of each, in the table's order:
 *
 *   {"total","witnessed_alone","witnessed","impossible","not_shown","rows":[{"row","levels":[NAME],
 *    "outcome","reach","scores","fires_with":[ROW],"states","needs":[INPUT],"why"}]}
 *
 * levels: in the order of the table's inputs. scores: of the witness, means of the conditions.
 * fires_with: the other rows that the witness fires, the first of them. states: partial states in
 * which the row fires, null beyond 2^53. needs: inputs that, left open alone, leave the verdict
 * INDETERMINATE; null without a whole table. why: of an impossible row, the levels that contradict
 * each other. The caller deletes it. */
cJSON *check_explain(const struct check_report *r, size_t per_kind)
    __attribute__((returns_nonnull));

#endif
