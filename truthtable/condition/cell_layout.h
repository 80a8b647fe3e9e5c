/*
 * Layout: which cells belong together. The cells of each condition, and for every contrast its
 * settings with the pairs of cells in them. Computed once from a program; constant; lives in the
 * caller's arena.
 *
 * A setting is a condition of arm a; the r-th cell of its replicates pairs with the cell that
 * differs from it in the contrast's factor alone. The settings of a difference are those of its two
 * contrasts, matched by their free factors.
 */
#ifndef TRUTHTABLE_CONDITION_CELL_LAYOUT_H
#define TRUTHTABLE_CONDITION_CELL_LAYOUT_H

#include <stddef.h>

#include "base/arena.h"
#include "base/diag.h"
#include "prereg/program/program.h"

struct contrast_layout {
    size_t n_settings;
    const size_t *conditions; /* of arm a, one per setting; NULL for a difference */
    size_t shift;             /* cell of arm b = cell of arm a + shift, modulo SIZE_MAX + 1 */
    const char **names;       /* of the settings: "lr=0.002"; "all" when nothing is free */
};

struct layout {
    size_t n_replicates; /* cells of a condition */
    const size_t *cells; /* n_conditions * n_replicates, in the program's order */
    struct contrast_layout *contrasts;
};

/* A difference of contrasts whose settings do not match becomes an error in diag. */
void layout_init(struct layout *l, const struct plan_program *p, struct arena *arena,
                 struct diag *diag);

size_t layout_cell(const struct layout *l, size_t condition, size_t replicate);
/* The two cells of a pair, for a contrast that is not a difference. */
size_t layout_pair_a(const struct layout *l, size_t contrast, size_t setting, size_t replicate);
size_t layout_pair_b(const struct layout *l, size_t contrast, size_t setting, size_t replicate);

#endif
