#include "truthtable/check.h"

#include <math.h>

#include "base/xalloc.h"
#include "truthtable/check_parts.h"
#include "truthtable/impossible.h"

#define ROWS_PROVED_MAX 4096 /* rows without a witness that are tried for impossibility */

/* Levels of single inputs that no records reach, so that rows with them need no proof of their own.
 */
static bool **impossible_levels(const struct rules *rules)
{
    const struct program *p = rules->program;
    bool **out = xcalloc(p->n_table_inputs + 1, sizeof(*out));
    size_t *levels = xcalloc(p->n_table_inputs + 1, sizeof(*levels));
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        levels[i] = INDEX_NONE;
    }
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        size_t n_levels = p->inputs[p->table_inputs[i]].n_levels;
        out[i] = xcalloc(n_levels, sizeof(**out));
        for (size_t l = 0; l < n_levels; l++) {
            levels[i] = l;
            out[i][l] = row_is_impossible(rules, levels);
        }
        levels[i] = INDEX_NONE;
    }
    free(levels);
    return out;
}

static bool has_impossible_level(const struct program *p, bool **impossible, const size_t *levels)
{
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        if (impossible[i][levels[i]]) {
            return true;
        }
    }
    return false;
}

static void prove_rows(struct check_report *r, const struct rules *rules)
{
    const struct program *p = r->program;
    bool **impossible = impossible_levels(rules);
    size_t n_tried = 0;
    for (size_t k = 0; k < p->n_rows; k++) {
        if (r->rows[k].reach == REACH_WITNESSED) {
            continue;
        }
        if (has_impossible_level(p, impossible, p->rows[k].levels) ||
            (n_tried++ < ROWS_PROVED_MAX && row_is_impossible(rules, p->rows[k].levels))) {
            r->rows[k].reach = REACH_IMPOSSIBLE;
        }
    }
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        free(impossible[i]);
    }
    free(impossible);
}

/* An outcome is impossible when all its rows are, or it has none. */
static void judge_outcomes(struct check_report *r, struct diag *diag)
{
    const struct program *p = r->program;
    for (size_t o = 0; o < p->n_outcomes; o++) {
        bool impossible = true;
        bool has_row = false;
        for (size_t k = 0; k < p->n_rows; k++) {
            if (p->rows[k].outcome == o) {
                has_row = true;
                impossible = impossible && r->rows[k].reach == REACH_IMPOSSIBLE;
            }
        }
        if (r->outcomes[o].reach == REACH_WITNESSED || !impossible) {
            continue;
        }
        r->outcomes[o].reach = REACH_IMPOSSIBLE;
        diag_add(diag, DIAG_ERROR, p->outcomes[o].place.line, p->outcomes[o].place.column,
                 has_row ? "outcome %s is impossible: no complete set of records fires a row of it"
                         : "outcome %s is impossible: it has no row",
                 p->outcomes[o].name);
    }
}

static void note_impossible_rows(const struct check_report *r, struct diag *diag)
{
    const struct program *p = r->program;
    size_t n = 0;
    for (size_t k = 0; k < p->n_rows; k++) {
        if (r->rows[k].reach == REACH_IMPOSSIBLE && n++ < CHECK_LISTED_MAX) {
            diag_add(diag, DIAG_NOTE, p->rows[k].place.line, p->rows[k].place.column,
                     "row %zu is impossible: no complete set of records fires it", k + 1);
        }
    }
}

void check_reach(struct check_report *r, const struct rules *rules, struct diag *diag)
{
    const struct program *p = r->program;
    r->rows = arena_array(&r->arena, p->n_rows, sizeof(*r->rows));
    r->outcomes = arena_array(&r->arena, p->n_outcomes, sizeof(*r->outcomes));
    search_run(r, rules);
    prove_rows(r, rules);
    judge_outcomes(r, diag);
    note_impossible_rows(r, diag);
}

int check_run(const struct program *p, const cJSON *describe, struct check_report *out,
              struct diag *diag, struct err *err)
{
    struct rules rules;
    *out = (struct check_report){.program = p};
    arena_init(&out->arena);
    int rc = rules_compile(p, &rules, diag, err);
    if (rc == 0) {
        check_table(out, diag);
        check_reach(out, &rules, diag);
        check_measures(out, &rules);
        check_fixed(out, &rules, describe);
        check_plan(out, describe);
    }
    rules_release(&rules);
    return rc;
}

void check_release(struct check_report *r)
{
    arena_release(&r->arena);
    *r = (struct check_report){0};
}
