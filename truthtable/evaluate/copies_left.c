/*
 * A figure that leaves out a cell does not lose its copies: the first of them that is left counts
 * in its place. `stands` says for each cell that was dropped which cell represents it, itself while
 * none does; INDEX_NONE: it was not dropped.
 */
#include "truthtable/evaluate/copies_left.h"

#include <stdlib.h>

#include "base/xalloc.h"

void copies_left_init(struct copies_left *c, const struct table_evaluation *ev, size_t measure)
{
    const size_t n = ev->rules->program->n_cells;
    *c = (struct copies_left){.scores = evaluation_scores(ev, measure)};
    if (ev->reading->n_copies == 0) {
        return;
    }
    c->stands = xcalloc(n, sizeof(*c->stands));
    for (size_t i = 0; i < n; i++) {
        c->stands[i] = INDEX_NONE;
    }
}

void copies_left_release(struct copies_left *c)
{
    free(c->stands);
    c->stands = NULL;
}

void copies_left_drop(struct copies_left *c, size_t cell)
{
    if (c->stands != NULL) {
        c->stands[cell] = cell;
    }
}

const char *copies_left_why(struct copies_left *c, size_t cell)
{
    size_t first = cell;
    if (c->stands == NULL) {
        return NULL;
    }
    while (c->scores[first].copy != NULL) {
        first = c->scores[first].copied;
    }
    /* The original was dropped and nothing represents it yet: this copy does. */
    if (first != cell && c->stands[first] == first) {
        c->stands[first] = cell;
    }
    return first == cell || c->stands[first] == cell ? NULL : c->scores[cell].copy;
}
