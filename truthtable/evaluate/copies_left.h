/*
 * Which of the cells that a figure is over are replicates of their own. Cells that the figure
 * leaves out are dropped first; then each cell that is left is asked for, in order, once. The
 * scores are borrowed.
 */
#ifndef TRUTHTABLE_EVALUATE_COPIES_LEFT_H
#define TRUTHTABLE_EVALUATE_COPIES_LEFT_H

#include "truthtable/evaluate/evaluation.h"

struct copies_left {
    const struct score *scores; /* of the measure, [cell] */
    size_t *stands;             /* [cell]: see the source; NULL: no score is a copy */
};

void copies_left_init(struct copies_left *c, const struct table_evaluation *ev, size_t measure);
void copies_left_release(struct copies_left *c);
void copies_left_drop(struct copies_left *c, size_t cell);
/* Why a cell is not a replicate of its own; NULL: it is one. A copy of a cell that was dropped
 * counts as one, unless another copy of the same represents it already. */
const char *copies_left_why(struct copies_left *c, size_t cell);

#endif
