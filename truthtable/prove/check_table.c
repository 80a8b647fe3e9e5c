/*
 * Proves that every combination of levels has exactly one row (condition/table_rows.h), and counts
 * the partial states that lead to no single outcome. A partial state is a non-empty set of levels
 * for each input. Their outcomes are computed by dynamic programming over one input after another:
 * the outcome of a set is that of its lowest level joined with that of the rest, so no state is
 * expanded row by row. Both counts have limits, because a stranger's plan may have any number of
 * inputs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/condition/table_rows.h"
#include "truthtable/prove/check_parts.h"

#define STATES_MAX ((uint64_t)1 << 26)
#define LEVELS_MAX 16 /* of an input, for partial states */

#define OUTCOME_NONE  UINT16_MAX       /* no row */
#define OUTCOME_MIXED (UINT16_MAX - 1) /* rows that disagree */

static size_t n_levels_of(const struct plan_program *p, size_t table_input)
{
    return p->inputs[p->table_inputs[table_input]].n_levels;
}

/* The outcome of a union of states: equal outcomes stay, different ones become OUTCOME_MIXED, and
 * no row adds nothing. */
static uint16_t join(uint16_t a, uint16_t b)
{
    if (a == OUTCOME_NONE || a == b) {
        return b;
    }
    return b == OUTCOME_NONE ? a : OUTCOME_MIXED;
}

/* The number of non-empty sets of an input's levels. */
static size_t n_sets_of(const struct plan_program *p, size_t table_input)
{
    return ((size_t)1 << n_levels_of(p, table_input)) - 1;
}

/* widen() for two levels, the most common case in large tables. */
static void widen_pairs(uint16_t *to, const uint16_t *from, size_t n_outer, size_t n_inner)
{
    for (size_t o = 0; o < n_outer; o++) {
        const uint16_t *first = &from[o * 2 * n_inner];
        const uint16_t *second = &first[n_inner];
        uint16_t *sets = &to[o * 3 * n_inner];
        for (size_t i = 0; i < n_inner; i++) {
            sets[i] = first[i];
            sets[n_inner + i] = second[i];
            sets[2 * n_inner + i] = join(first[i], second[i]);
        }
    }
}

/* Replaces one axis of levels by one of their non-empty sets (mask - 1): a set is its lowest level
 * and the rest. */
static void widen(uint16_t *to, const uint16_t *from, size_t n_outer, size_t n_levels,
                  size_t n_inner)
{
    size_t n_sets = ((size_t)1 << n_levels) - 1;
    if (n_levels == 2) {
        widen_pairs(to, from, n_outer, n_inner);
        return;
    }
    for (size_t o = 0; o < n_outer; o++) {
        const uint16_t *levels = &from[o * n_levels * n_inner];
        uint16_t *sets = &to[o * n_sets * n_inner];
        for (size_t mask = 1; mask <= n_sets; mask++) {
            size_t rest = mask & (mask - 1);
            const uint16_t *lowest = &levels[(size_t)__builtin_ctzl(mask) * n_inner];
            uint16_t *out = &sets[(mask - 1) * n_inner];
            for (size_t i = 0; i < n_inner; i++) {
                out[i] = rest == 0 ? lowest[i] : join(lowest[i], sets[(rest - 1) * n_inner + i]);
            }
        }
    }
}

/* "magnitude decisive|small, cleared 1", from its number. */
static const char *state_text(const struct plan_program *p, uint64_t index, struct arena *arena)
{
    struct strbuf sb = STRBUF_INIT;
    size_t *masks = xcalloc(p->n_table_inputs, sizeof(*masks));
    for (size_t i = p->n_table_inputs; i-- > 0;) {
        uint64_t n_sets = ((uint64_t)1 << n_levels_of(p, i)) - 1;
        masks[i] = (size_t)(index % n_sets) + 1;
        index /= n_sets;
    }
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        const struct plan_input *in = &p->inputs[p->table_inputs[i]];
        const char *between = "";
        strbuf_addf(&sb, "%s%s ", i > 0 ? ", " : "", in->name);
        for (size_t l = 0; l < in->n_levels; l++) {
            if ((masks[i] >> l & 1U) != 0) {
                strbuf_addf(&sb, "%s%s", between, in->levels[l].name);
                between = "|";
            }
        }
    }
    const char *text = arena_strdup(arena, sb.buf);
    free(masks);
    strbuf_release(&sb);
    return text;
}

/* Number of states, or 0 when there are too many. */
static uint64_t count_states(const struct plan_program *p)
{
    uint64_t n = 1;
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        size_t n_levels = n_levels_of(p, i);
        if (n_levels > LEVELS_MAX || n > STATES_MAX) {
            return 0;
        }
        n *= ((uint64_t)1 << n_levels) - 1;
    }
    return n > STATES_MAX || p->n_outcomes >= OUTCOME_MIXED ? 0 : n;
}

/* Outcomes by the sets of all inputs but the last, and by the levels of that; the caller frees it.
 */
static uint16_t *widen_all_but_last(const struct check_report *r, const size_t *row_of)
{
    const struct plan_program *p = r->program;
    size_t n_inner = (size_t)r->table.n_combinations;
    size_t n_outer = 1;
    uint16_t *outcomes = xreallocarray(NULL, n_inner, sizeof(*outcomes));
    for (size_t i = 0; i < n_inner; i++) {
        outcomes[i] = row_of[i] == INDEX_NONE ? OUTCOME_NONE : (uint16_t)p->rows[row_of[i]].outcome;
    }
    for (size_t i = 0; i + 1 < p->n_table_inputs; i++) {
        n_inner /= n_levels_of(p, i);
        uint16_t *wider = xreallocarray(NULL, n_outer * n_sets_of(p, i) * n_inner, sizeof(*wider));
        widen(wider, outcomes, n_outer, n_levels_of(p, i), n_inner);
        free(outcomes);
        outcomes = wider;
        n_outer *= n_sets_of(p, i);
    }
    return outcomes;
}

/* How many of the sets of pairs of levels have no outcome of their own. */
static uint64_t count_mixed_pairs(const uint16_t *pairs, uint64_t n)
{
    uint64_t mixed = 0;
    for (uint64_t o = 0; o < n; o++) {
        uint16_t a = pairs[2 * o];
        uint16_t b = pairs[2 * o + 1];
        mixed += (a == OUTCOME_MIXED ? 1U : 0U) + (b == OUTCOME_MIXED ? 1U : 0U) +
                 (join(a, b) == OUTCOME_MIXED ? 1U : 0U);
    }
    return mixed;
}

/* The last input's sets, which are most of the states, are never all in memory. */
static void walk_states(struct check_report *r, const size_t *row_of)
{
    const struct plan_program *p = r->program;
    struct table_proof *t = &r->table;
    uint64_t n_states = count_states(p);
    if (n_states == 0) {
        return;
    }
    uint16_t *outcomes = widen_all_but_last(r, row_of);
    uint16_t sets[((size_t)1 << LEVELS_MAX) - 1];
    size_t last = p->n_table_inputs - 1;
    size_t n_levels = n_levels_of(p, last);
    size_t n_sets = n_sets_of(p, last);
    t->states_counted = true;
    t->n_partial = n_states - t->n_combinations;
    for (uint64_t o = 0; o < n_states / n_sets; o++) {
        if (n_levels == 2 && t->n_listed == CHECK_LISTED_MAX) { /* none is listed any more */
            t->n_indeterminate += count_mixed_pairs(&outcomes[o * 2], n_states / n_sets - o);
            break;
        }
        widen(sets, &outcomes[o * n_levels], 1, n_levels, 1);
        for (size_t s = 0; s < n_sets; s++) {
            if (sets[s] == OUTCOME_MIXED && t->n_indeterminate++ < CHECK_LISTED_MAX) {
                t->indeterminate[t->n_listed++] = state_text(p, o * n_sets + s, &r->arena);
            }
        }
    }
    free(outcomes);
}

/* Totality first; partial states need the row of each combination. */
void check_table(struct check_report *r, struct diag *diag)
{
    struct table_rows rows;
    size_t *row_of = table_rows_map(r->program, &rows, &r->arena, diag);
    r->table.n_combinations = rows.n_combinations;
    r->table.n_holes = rows.n_holes;
    r->table.n_clashes = rows.n_clashes;
    if (row_of != NULL) {
        walk_states(r, row_of);
    }
    free(row_of);
}

void check_release(struct check_report *r)
{
    arena_release(&r->arena);
    *r = (struct check_report){0};
}
