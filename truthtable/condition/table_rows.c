/*
 * Which row of the table each combination of levels has: a whole table has exactly one for each.
 * Combinations are numbered, so the map is one array; a limit keeps a stranger's plan from making
 * it large. Where a combination has no row or several, the first few are spelled out.
 */
#include "truthtable/condition/table_rows.h"

#include <stdlib.h>

#include "base/strbuf.h"
#include "base/text.h"
#include "base/xalloc.h"

/* One mapping: what it reads, what it counts, and where its texts live. */
struct mapping {
    const struct plan_program *program;
    struct table_rows *rows;
    struct arena *arena;
};

static size_t n_levels_of(const struct plan_program *p, size_t table_input)
{
    return p->inputs[p->table_inputs[table_input]].n_levels;
}

size_t table_combination_of(const struct plan_program *p, const size_t *levels)
{
    size_t index = 0;
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        index = index * n_levels_of(p, i) + levels[i];
    }
    return index;
}

/* "magnitude decisive, cleared 0", from its number. */
static const char *combination_text(const struct plan_program *p, size_t index, struct arena *arena)
{
    struct strbuf sb = STRBUF_INIT;
    size_t *levels = xcalloc(p->n_table_inputs + 1, sizeof(*levels));
    for (size_t i = p->n_table_inputs; i-- > 0;) {
        levels[i] = index % n_levels_of(p, i);
        index /= n_levels_of(p, i);
    }
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        const struct plan_input *in = &p->inputs[p->table_inputs[i]];
        strbuf_addf(&sb, "%s%s %s", i > 0 ? ", " : "", in->name, in->levels[levels[i]].name);
    }
    const char *text = arena_strdup(arena, sb.len > 0 ? sb.buf : "no inputs");
    free(levels);
    strbuf_release(&sb);
    return text;
}

/* Lists the first combinations without a row and counts the others. */
static void report_holes(const struct mapping *m, const size_t *row_of, struct diag *diag)
{
    const struct plan_program *p = m->program;
    struct table_rows *t = m->rows;
    for (uint64_t i = 0; i < t->n_combinations; i++) {
        if (row_of[i] != INDEX_NONE) {
            continue;
        }
        if (++t->n_holes <= TABLE_LISTED_MAX) {
            diag_add(diag, DIAG_ERROR, p->table_place.line, p->table_place.column,
                     "the table has no row for %s", combination_text(p, (size_t)i, m->arena));
        }
    }
    if (t->n_holes > TABLE_LISTED_MAX) {
        diag_add(diag, DIAG_ERROR, p->table_place.line, p->table_place.column,
                 "the table has %llu more %s", (unsigned long long)(t->n_holes - TABLE_LISTED_MAX),
                 text_plural((int64_t)(t->n_holes - TABLE_LISTED_MAX), "hole", "holes"));
    }
}

/* The row of every combination; clashes are reported on the way. */
static size_t *rows_by_combination(const struct mapping *m, struct diag *diag)
{
    const struct plan_program *p = m->program;
    struct table_rows *t = m->rows;
    size_t *row_of = xreallocarray(NULL, (size_t)t->n_combinations, sizeof(*row_of));
    for (uint64_t i = 0; i < t->n_combinations; i++) {
        row_of[i] = INDEX_NONE;
    }
    for (size_t k = 0; k < p->n_rows; k++) {
        size_t *slot = &row_of[table_combination_of(p, p->rows[k].levels)];
        if (*slot == INDEX_NONE) {
            *slot = k;
        } else if (++t->n_clashes <= TABLE_LISTED_MAX) {
            diag_add(diag, DIAG_ERROR, p->rows[k].place.line, p->rows[k].place.column,
                     "rows %zu and %zu are both for %s", *slot + 1, k + 1,
                     combination_text(p, table_combination_of(p, p->rows[k].levels), m->arena));
        }
    }
    return row_of;
}

size_t *table_rows_map(const struct plan_program *p, struct table_rows *out, struct arena *arena,
                       struct diag *diag)
{
    const struct mapping m = {.program = p, .rows = out, .arena = arena};
    *out = (struct table_rows){.n_combinations = 1};
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        out->n_combinations *= n_levels_of(p, i);
        if (out->n_combinations > TABLE_COMBINATIONS_MAX) {
            diag_add(diag, DIAG_ERROR, p->table_place.line, p->table_place.column,
                     "the table's inputs have more than %llu combinations of levels",
                     (unsigned long long)TABLE_COMBINATIONS_MAX);
            return NULL;
        }
    }
    size_t *row_of = rows_by_combination(&m, diag);
    report_holes(&m, row_of, diag);
    return row_of;
}

int table_is_total(const struct plan_program *p, struct err *err)
{
    struct table_rows rows;
    struct arena arena;
    struct diag diag;
    arena_init(&arena);
    diag_init(&diag, p->path);
    free(table_rows_map(p, &rows, &arena, &diag));
    const int rc = diag_result(&diag, err);
    diag_release(&diag);
    arena_release(&arena);
    return rc;
}
