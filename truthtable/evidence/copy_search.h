/*
 * Of cells that arrive one by one, in groups of equal scores: which kept cell is the first whose
 * score a cell's is a copy of. That is one of its group that was asked something else, unless a
 * stage between gave the two different results; a result without a print differs from none.
 *
 * Cells are looked up by what the stages between gave, so that a cell costs as many steps as there
 * are different sets of stages that have a print, not as there are kept cells.
 */
#ifndef TRUTHTABLE_EVIDENCE_COPY_SEARCH_H
#define TRUTHTABLE_EVIDENCE_COPY_SEARCH_H

#include "base/files/digest.h"
#include "prereg/program/stage_set.h"
#include "truthtable/evidence/evidence.h"

struct copy_search;

struct copy_results {                  /* borrowed */
    const struct evidence_task *tasks; /* [cell * n_stages + stage] */
    size_t n_stages;
    size_t n_cells;
    struct stage_set between;
    const struct digest *asked; /* [cell] */
};

/* For the n cells that can arrive; copy_search_free() frees it. */
struct copy_search *copy_search_create(const struct copy_results *results, const size_t *cells,
                                       size_t n);
void copy_search_free(struct copy_search *cs);

/* Begins another group: no cell is kept. */
void copy_search_next_group(struct copy_search *cs);
/* INDEX_NONE: the cell is not a copy. */
size_t copy_search_find(struct copy_search *cs, size_t cell);
/* Cells of a group are kept in ascending order. */
void copy_search_keep(struct copy_search *cs, size_t cell);
/* How many pairs of cells have been compared. */
size_t copy_search_n_compared(const struct copy_search *cs);

#endif
