/*
 * Whether every level has a use. A level of a factor has one when some cell with it is compared
 * (an arm of a contrast), or read by a condition: a level's mean, a ratio, a fact over all cells. A
 * level of an input has one when some records make it possible.
 */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/check_parts.h"

struct use {
    const struct rules *rules;
    bool *cells; /* [cell]: some figure reads it */
};

static void use_cells_at(struct use *u, size_t factor, size_t level)
{
    const struct program *p = u->rules->program;
    for (size_t c = 0; c < p->n_cells; c++) {
        u->cells[c] = u->cells[c] || factor == INDEX_NONE || p->cells[c].levels[factor] == level;
    }
}

static void use_condition(struct use *u, const struct cond *c)
{
    if (c->kind == COND_FACT) {
        use_cells_at(u, INDEX_NONE, 0);
    } else if (c->kind == COND_MEASURE) {
        use_cells_at(u, c->factor, c->level_a);
    } else if (c->kind == COND_RATIO) {
        use_cells_at(u, c->factor, c->level_a);
        use_cells_at(u, c->factor, c->level_b);
    }
    for (size_t i = 0; i < c->n_kids; i++) {
        use_condition(u, c->kids[i]);
    }
}

static bool is_within(const struct contrast *k, const struct cell *cell)
{
    size_t level = cell->levels[k->factor];
    bool within = level == k->level_a || level == k->level_b;
    for (size_t i = 0; i < k->n_where; i++) {
        within = within && cell->levels[k->where[i].factor] == k->where[i].level;
    }
    return within;
}

static void use_contrasts(struct use *u)
{
    const struct program *p = u->rules->program;
    for (size_t k = 0; k < p->n_contrasts; k++) {
        for (size_t c = 0; c < p->n_cells && !p->contrasts[k].is_difference; c++) {
            u->cells[c] = u->cells[c] || is_within(&p->contrasts[k], &p->cells[c]);
        }
    }
}

static void warn_factor_level(const struct program *p, size_t factor, size_t level, size_t n_cells,
                              struct diag *diag)
{
    const struct factor *f = &p->factors[factor];
    diag_add(diag, DIAG_WARNING, f->place.line, f->place.column,
             "level \"%s\" of %s has no use: no contrast and no condition reads its %zu cells",
             f->levels[level].text, f->name, n_cells);
}

static void check_factor_levels(const struct use *u, struct diag *diag)
{
    const struct program *p = u->rules->program;
    for (size_t f = 0; f < p->n_factors; f++) {
        size_t n_levels = p->factors[f].n_levels;
        size_t *n_cells = xcalloc(n_levels, sizeof(*n_cells));
        size_t *n_used = xcalloc(n_levels, sizeof(*n_used));
        for (size_t c = 0; c < p->n_cells; c++) {
            n_cells[p->cells[c].levels[f]]++;
            n_used[p->cells[c].levels[f]] += u->cells[c] ? 1 : 0;
        }
        for (size_t l = 0; l < n_levels; l++) {
            if (n_used[l] == 0) {
                warn_factor_level(p, f, l, n_cells[l], diag);
            }
        }
        free(n_cells);
        free(n_used);
    }
}

static void check_input_levels(const struct check_report *r, struct diag *diag)
{
    const struct program *p = r->program;
    for (size_t c = 0; c < r->n_conflicts; c++) {
        size_t n = 0;
        size_t input = INDEX_NONE;
        for (size_t i = 0; i < p->n_table_inputs; i++) {
            bool part = r->conflicts[c].levels[i] != INDEX_NONE;
            input = part ? i : input;
            n += part ? 1 : 0;
        }
        if (n == 1) {
            const struct input *in = &p->inputs[p->table_inputs[input]];
            const struct input_level *l = &in->levels[r->conflicts[c].levels[input]];
            diag_add(diag, DIAG_WARNING, l->condition.place.line, l->condition.place.column,
                     "level \"%s\" of input %s has no use: no complete set of records makes it "
                     "possible",
                     l->name, in->name);
        }
    }
}

void check_use(const struct check_report *r, const struct rules *rules, struct diag *diag)
{
    const struct program *p = r->program;
    struct use u = {.rules = rules, .cells = xcalloc(p->n_cells, sizeof(*u.cells))};
    use_contrasts(&u);
    for (size_t i = 0; i < p->n_inputs; i++) {
        for (size_t l = 0; l < p->inputs[i].n_levels; l++) {
            use_condition(&u, rules->inputs[i][l]);
        }
    }
    for (size_t v = 0; v < p->n_validity; v++) {
        use_condition(&u, rules->validity[v]);
    }
    check_factor_levels(&u, diag);
    check_input_levels(r, diag);
    free(u.cells);
}
