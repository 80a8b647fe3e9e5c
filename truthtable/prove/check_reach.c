/*
 * Which rows and outcomes can come about: witnesses first (check_search.c), then proofs for what
 * has none.
 *
 * Rows are not tried one by one. Inputs fall into groups that share no quantity (related_inputs.c);
 * within a group the combinations of levels are walked as a tree, input by input, and a branch is
 * closed as soon as its levels contradict each other. The contradiction is cut down to the levels
 * that it needs and kept: it closes every other branch that holds them. A branch that some witness
 * went through needs no proof, a branch without an open row is skipped.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "truthtable/prove/check_parts.h"
#include "truthtable/prove/impossible.h"

#define PROOFS_MAX    2000 /* attempts, of all groups */
#define CONFLICTS_MAX 256
#define GROUP_MAX     ((size_t)1 << 22) /* combinations of a group's levels */

struct proving {
    struct check_report *report;
    const struct rules *rules;
    size_t *inputs; /* of the group: positions in the table's inputs */
    size_t n_inputs;
    size_t n_combinations;
    uint32_t *open;      /* [combination + 1]: how many before it need a proof */
    uint32_t *witnessed; /* likewise, how many some witness had */
    size_t *levels;      /* [table input]: the branch */
    uint16_t *closed;    /* [combination]: 1 + the conflict that closes it; 0: none */
};

static size_t n_levels_of(const struct plan_program *p, size_t table_input)
{
    return p->inputs[p->table_inputs[table_input]].n_levels;
}

/* The number of a combination of the group's levels, with the group's first input most
 * significant. */
static size_t combination_of(const struct proving *g, const size_t *levels)
{
    const struct plan_program *p = g->report->program;
    size_t index = 0;
    for (size_t i = 0; i < g->n_inputs; i++) {
        index = index * n_levels_of(p, g->inputs[i]) + levels[g->inputs[i]];
    }
    return index;
}

/* The limits are on the whole program, not on a group. Once one is reached, the report says that
 * proofs ended early. */
static bool may_try(struct proving *g)
{
    struct check_report *r = g->report;
    r->proofs_ended =
        r->proofs_ended || r->n_proofs >= PROOFS_MAX || r->n_conflicts == CONFLICTS_MAX;
    return !r->proofs_ended;
}

/* One attempt; false at the limit, too. */
static bool try_proof(struct proving *g)
{
    if (!may_try(g)) {
        return false;
    }
    g->report->n_proofs++;
    return row_is_impossible(g->rules, g->levels);
}

/* A branch that was proved impossible, cut down level by level to what its proof needs. */
static size_t learn(struct proving *g)
{
    struct check_report *r = g->report;
    size_t n = r->program->n_table_inputs;
    size_t *kept = xcalloc(n, sizeof(*kept));
    memcpy(kept, g->levels, n * sizeof(*kept));
    for (size_t i = 0; i < g->n_inputs; i++) {
        size_t input = g->inputs[i];
        size_t level = g->levels[input];
        if (level == INDEX_NONE) {
            continue;
        }
        g->levels[input] = INDEX_NONE;
        /* The level is needed for the contradiction. */
        if (!try_proof(g)) {
            g->levels[input] = level;
        }
    }
    size_t *levels = arena_array(&r->arena, n, sizeof(*levels));
    memcpy(levels, g->levels, n * sizeof(*levels));
    memcpy(g->levels, kept, n * sizeof(*kept));
    free(kept);
    r->conflicts[r->n_conflicts] = (struct conflict){.levels = levels};
    return r->n_conflicts++;
}

/* A known conflict that the branch holds; INDEX_NONE: none. */
static size_t known_conflict(const struct proving *g)
{
    const struct check_report *r = g->report;
    for (size_t c = 0; c < r->n_conflicts; c++) {
        bool holds = true;
        for (size_t i = 0; i < r->program->n_table_inputs && holds; i++) {
            size_t level = r->conflicts[c].levels[i];
            holds = level == INDEX_NONE || level == g->levels[i];
        }
        if (holds) {
            return c;
        }
    }
    return INDEX_NONE;
}

/* The branch of the first `depth` inputs: combinations first..first + n. */
static void walk(struct proving *g, size_t depth, size_t first, size_t n)
{
    if (g->open[first + n] == g->open[first]) {
        return;
    }
    size_t conflict = known_conflict(g);
    bool witnessed = g->witnessed[first + n] > g->witnessed[first];
    /* A witnessed branch cannot be impossible, so it is not worth a proof. */
    if (conflict == INDEX_NONE && !witnessed && depth > 0 && try_proof(g)) {
        conflict = learn(g);
    }
    if (conflict != INDEX_NONE) {
        for (size_t k = first; k < first + n; k++) {
            g->closed[k] = (uint16_t)(conflict + 1);
        }
        return;
    }
    if (depth == g->n_inputs) {
        return;
    }
    size_t input = g->inputs[depth];
    size_t n_levels = n_levels_of(g->report->program, input);
    for (size_t l = 0; l < n_levels; l++) {
        g->levels[input] = l;
        /* Combinations of a branch are consecutive, because its inputs are the most significant. */
        walk(g, depth + 1, first + l * (n / n_levels), n / n_levels);
    }
    g->levels[input] = INDEX_NONE;
}

/* Single levels first: what one level rules out by itself is proved once, for the whole tree. */
static void try_single_levels(struct proving *g, const bool *const *seen)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        size_t input = g->inputs[i];
        for (size_t l = 0; l < n_levels_of(g->report->program, input); l++) {
            g->levels[input] = l;
            if (!seen[input][l] && try_proof(g)) {
                (void)learn(g);
            }
        }
        g->levels[input] = INDEX_NONE;
    }
}

/* Which combinations of the group's levels some row has: witnessed ones, and open ones that no
 * witnessed row shares. As sums from the first combination on. */
static void sum_rows(struct proving *g)
{
    const struct check_report *r = g->report;
    const struct plan_program *p = r->program;
    for (size_t k = 0; k < p->n_rows; k++) {
        size_t at = combination_of(g, p->rows[k].levels);
        bool witnessed = r->rows[k].reach == REACH_WITNESSED;
        g->witnessed[at + 1] |= witnessed ? 1 : 0;
        g->open[at + 1] |= witnessed ? 0 : 1;
    }
    for (size_t at = 0; at < g->n_combinations; at++) {
        g->open[at + 1] = g->open[at] + (g->witnessed[at + 1] != 0 ? 0 : g->open[at + 1]);
        g->witnessed[at + 1] += g->witnessed[at];
    }
}

/* A row is impossible as soon as the combination of one group is. */
static void close_rows(struct proving *g)
{
    struct check_report *r = g->report;
    const struct plan_program *p = r->program;
    for (size_t k = 0; k < p->n_rows; k++) {
        struct row_proof *row = &r->rows[k];
        uint16_t closed = g->closed[combination_of(g, p->rows[k].levels)];
        if (row->reach == REACH_NOT_SHOWN && closed != 0) {
            row->reach = REACH_IMPOSSIBLE;
            row->conflict = (size_t)closed - 1;
        }
    }
}

/* Groups with too many combinations are skipped and count as ended early. Prefix sums answer "does
 * this branch hold an open row" in constant time. */
static void prove_group(struct proving *g, const bool *const *seen)
{
    const struct plan_program *p = g->report->program;
    g->n_combinations = 1;
    for (size_t i = 0; i < g->n_inputs; i++) {
        g->n_combinations *= n_levels_of(p, g->inputs[i]);
        if (g->n_combinations > GROUP_MAX) {
            g->report->proofs_ended = true;
            return;
        }
    }
    g->open = xcalloc(g->n_combinations + 1, sizeof(*g->open));
    g->witnessed = xcalloc(g->n_combinations + 1, sizeof(*g->witnessed));
    g->closed = xcalloc(g->n_combinations, sizeof(*g->closed));
    sum_rows(g);
    if (g->open[g->n_combinations] > 0) {
        try_single_levels(g, seen);
        walk(g, 0, 0, g->n_combinations);
        close_rows(g);
    }
    free(g->open);
    free(g->witnessed);
    free(g->closed);
}

/* [table input][level]: some witness had it. */
static bool **levels_seen(const struct check_report *r)
{
    const struct plan_program *p = r->program;
    bool **seen = xcalloc(p->n_table_inputs, sizeof(*seen));
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        seen[i] = xcalloc(n_levels_of(p, i), sizeof(**seen));
        for (size_t k = 0; k < p->n_rows; k++) {
            seen[i][p->rows[k].levels[i]] |= r->rows[k].reach == REACH_WITNESSED;
        }
    }
    return seen;
}

/* Groups share no quantity, so a proof never needs levels of two groups. */
static void prove_rows(struct check_report *r, const struct rules *rules)
{
    const struct plan_program *p = r->program;
    size_t n = p->n_table_inputs;
    size_t *group = xcalloc(n, sizeof(*group));
    bool **seen = levels_seen(r);
    struct proving g = {.report = r, .rules = rules};
    g.inputs = xcalloc(n, sizeof(*g.inputs));
    g.levels = xcalloc(n, sizeof(*g.levels));
    size_t n_groups = related_groups(rules, group);
    for (size_t k = 0; k < n_groups; k++) {
        g.n_inputs = 0;
        for (size_t i = 0; i < n; i++) {
            g.levels[i] = INDEX_NONE;
            if (group[i] == k) {
                g.inputs[g.n_inputs++] = i;
            }
        }
        prove_group(&g, (const bool *const *)seen);
    }
    for (size_t i = 0; i < n; i++) {
        free(seen[i]);
    }
    free(seen);
    free(g.inputs);
    free(g.levels);
    free(group);
}

/* An outcome is impossible when all its rows are, or it has none. */
static void judge_outcomes(struct check_report *r, struct diag *diag)
{
    const struct plan_program *p = r->program;
    bool *has_row = xcalloc(p->n_outcomes, sizeof(*has_row));
    bool *may = xcalloc(p->n_outcomes, sizeof(*may));
    for (size_t k = 0; k < p->n_rows; k++) {
        has_row[p->rows[k].outcome] = true;
        may[p->rows[k].outcome] |= r->rows[k].reach != REACH_IMPOSSIBLE;
    }
    for (size_t o = 0; o < p->n_outcomes; o++) {
        if (may[o]) {
            continue;
        }
        r->outcomes[o].reach = REACH_IMPOSSIBLE;
        diag_add(diag, DIAG_ERROR, p->outcomes[o].place.line, p->outcomes[o].place.column,
                 has_row[o]
                     ? "outcome %s is impossible: no complete set of records fires a row of it"
                     : "outcome %s is impossible: it has no row",
                 p->outcomes[o].name);
    }
    free(has_row);
    free(may);
}

/* Lists the first rows and counts the others. */
static void note_impossible_rows(const struct check_report *r, struct diag *diag)
{
    const struct plan_program *p = r->program;
    size_t n = 0;
    for (size_t k = 0; k < p->n_rows; k++) {
        if (r->rows[k].reach == REACH_IMPOSSIBLE && n++ < CHECK_LISTED_MAX) {
            diag_add(diag, DIAG_NOTE, p->rows[k].place.line, p->rows[k].place.column,
                     "row %zu is impossible: no complete set of records fires it", k + 1);
        }
    }
    if (n > CHECK_LISTED_MAX) {
        diag_add(diag, DIAG_NOTE, p->table_place.line, p->table_place.column,
                 "%zu more %s impossible", n - CHECK_LISTED_MAX,
                 text_plural((int64_t)(n - CHECK_LISTED_MAX), "row is", "rows are"));
    }
}

/* Allowed, but seldom meant: outcomes that no witness binds. */
static void warn_of_outcomes(const struct check_report *r, struct diag *diag)
{
    const struct plan_program *p = r->program;
    for (size_t o = 0; o < p->n_outcomes; o++) {
        const struct outcome_proof *proof = &r->outcomes[o];
        if (proof->reach != REACH_IMPOSSIBLE && !proof->binds) {
            diag_add(diag, DIAG_WARNING, p->outcomes[o].place.line, p->outcomes[o].place.column,
                     proof->reach == REACH_WITNESSED
                         ? "outcome %s: no scores were found that bind it; its rows fired only "
                           "beside those of others"
                         : "outcome %s: no scores were found that fire a row of it",
                     p->outcomes[o].name);
        }
    }
}

/* Inputs that some witness left without any true level. */
static void note_uncovered_inputs(const struct check_report *r, struct diag *diag)
{
    const struct plan_program *p = r->program;
    for (size_t i = 0; i < p->n_inputs; i++) {
        if (r->uncovered[i] != NULL) {
            diag_add(diag, DIAG_NOTE, p->inputs[i].place.line, p->inputs[i].place.column,
                     "input %s: none of its levels holds under some scores, and then all stay "
                     "possible (%.300s)",
                     p->inputs[i].name, r->uncovered[i]);
        }
    }
}

/* The search is cheap and settles most rows; proofs run only for the others. */
void check_reach(struct check_report *r, const struct rules *rules, struct diag *diag)
{
    const struct plan_program *p = r->program;
    r->rows = arena_array(&r->arena, p->n_rows, sizeof(*r->rows));
    r->outcomes = arena_array(&r->arena, p->n_outcomes, sizeof(*r->outcomes));
    r->uncovered = arena_array(&r->arena, p->n_inputs, sizeof(*r->uncovered));
    r->conflicts = arena_array(&r->arena, CONFLICTS_MAX, sizeof(*r->conflicts));
    for (size_t k = 0; k < p->n_rows; k++) {
        r->rows[k].conflict = INDEX_NONE;
    }
    search_run(r, rules);
    prove_rows(r, rules);
    judge_outcomes(r, diag);
    warn_of_outcomes(r, diag);
    note_impossible_rows(r, diag);
    note_uncovered_inputs(r, diag);
}
