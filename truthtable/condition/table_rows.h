/*
 * The table as a map: the row of each combination of levels. A program whose table is not total
 * (every combination has exactly one row) gets no verdict. Pure.
 */
#ifndef TRUTHTABLE_CONDITION_TABLE_ROWS_H
#define TRUTHTABLE_CONDITION_TABLE_ROWS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/err.h"
#include "prereg/program/program.h"

#define TABLE_COMBINATIONS_MAX ((uint64_t)1 << 22)
#define TABLE_LISTED_MAX       20 /* holes and clashes that are spelled out */

struct table_rows {
    uint64_t n_combinations; /* of levels */
    uint64_t n_holes;        /* without a row */
    uint64_t n_clashes;      /* rows whose combination had one */
};

/* The number of a combination of levels ([table input]), in mixed radix with the first input most
 * significant. */
size_t table_combination_of(const struct plan_program *p, const size_t *levels);

/* Returns the row of every combination, INDEX_NONE for a hole, and adds holes and clashes to diag
 * as errors. NULL, and an error, where there are more than TABLE_COMBINATIONS_MAX. The caller frees
 * it; texts live in `arena`. */
size_t *table_rows_map(const struct plan_program *p, struct table_rows *out, struct arena *arena,
                       struct diag *diag);

/* 0 when every combination of input levels has exactly one row; else ERR_INVALID and the first that
 * does not. Checked wherever a verdict is computed, for not every plan has been through check. */
int table_is_total(const struct plan_program *p, struct err *err) MUST_CHECK;

#endif
