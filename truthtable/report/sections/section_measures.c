/*
 * The section "Measures and gates": a summary by measure, a dot plot for each with its floor and
 * chance, the gate of every cell, and the reasons for what is open. Readings come from
 * measure_values.h, the same for table and figure. Large programs get several tables and figures,
 * and beyond MARKS_MAX cells none are drawn.
 */
#include <math.h>

#include "base/xalloc.h"
#include "truthtable/condition/stats.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/measure_values.h"
#include "truthtable/report/sections/row_columns.h"
#include "truthtable/report/sections/sections.h"

#define MEASURES_PER_TABLE    ((size_t)4)
#define CONDITIONS_PER_FIGURE ((size_t)40)
#define MARKS_MAX             ((size_t)4000) /* a figure with more would be a blot, and megabytes */
#define CLEARS                "\xe2\x9c\x93"
#define FAILS                 "\xe2\x9c\x97"
#define SIGMA                 "\xcf\x83"

/* The floor's height above chance, in binomial standard errors. */
static double height_of(const struct plan_measure *m)
{
    return m->has_floor && m->has_chance && m->has_items
               ? stat_floor_above_chance(m->floor, m->chance, (double)m->items)
               : (double)NAN;
}

/* A measure over all cells. */
struct measure_row {
    const char *name;
    struct row_cell counted;
    double items; /* NAN: it has none, as all that follow */
    double chance;
    struct row_cell floor;
    struct row_cell height; /* of the floor, in standard errors at chance */
    const char *clearing;   /* in words and as three numbers */
    struct measure_tally tally;
    struct row_cell best;
    struct row_cell nearest;
};

static void clearing_cell(const struct doc_slot *s)
{
    const struct measure_row *row = s->row;
    row_cell_text(s);
    doc_datum(s, "cleared", (double)row->tally.n_cleared);
    doc_datum(s, "not_cleared", (double)row->tally.n_failed);
    doc_datum(s, "open", (double)row->tally.n_open);
}

/* A measure's row of the table. */
static struct measure_row measure_row(struct arena *a, const struct report_model *m, size_t index)
{
    const struct plan_measure *measure = &m->program->measures[index];
    const struct measure_tally tally = measure_count(a, m, index);
    const double floor = measure->has_floor ? measure->floor : (double)NAN;
    const double height = height_of(measure);
    return (struct measure_row){
        .name = measure->name,
        .counted = {.text = measure->counted ? "yes" : "no", .flag = measure->counted},
        .items = measure->has_items ? (double)measure->items : (double)NAN,
        .chance = measure->has_chance ? measure->chance : (double)NAN,
        .floor = {.text = measure->has_floor ? measure->floor_text : FMT_NONE, .value = floor},
        .height = {.text = fmt_sigma(a, height, 2), .value = height},
        .clearing = measure_clearing_text(a, measure, &tally),
        .tally = tally,
        .best = {.text = measure_score_text(a, measure, tally.best), .value = tally.best},
        .nearest = {.text = fmt_sigma(a, tally.nearest, 1), .value = tally.nearest},
    };
}

/* The table over all measures. */
static void add_summary(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        ROW_TEXT("Measure", struct measure_row, name),
        ROW_FLAG("Counted", "value", struct measure_row, counted),
        ROW_FIGURE("Items", row_cell_count, struct measure_row, items),
        ROW_FIGURE("Chance", row_cell_number, struct measure_row, chance),
        ROW_VALUE("Floor", struct measure_row, floor),
        ROW_VALUE("Floor over chance", struct measure_row, height),
        ROW_FIGURE("Cells clearing", clearing_cell, struct measure_row, clearing),
        ROW_VALUE("Best cell", struct measure_row, best),
        ROW_VALUE("Nearest margin", struct measure_row, nearest),
    };
    struct doc_table *t = doc_table(
        d, "measures",
        "The measures, their floors as locked, and how the cells stand to them. " SIGMA
        ": binomial standard errors, at chance for the floor, at the score for the margin nearest "
        "to the floor.",
        columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < m->program->n_measures; i++) {
        const struct measure_row row = measure_row(&d->arena, m, i);
        (void)doc_row(d, t, &row);
    }
}

/* A cell's mark: a bound as an arrow, a score with its standard error. */
static struct plot_mark mark_of(struct arena *a, const struct report_model *m, size_t index,
                                size_t cell)
{
    const struct plan_measure *measure = &m->program->measures[index];
    struct measure_reading r = measure_read(a, m, index, cell);
    const char *cell_name = m->program->cells[cell].name;
    /* A censored value is drawn at its bound, with an arrow beyond it. */
    if (r.bound != NULL) {
        return (struct plot_mark){.value = r.bound_at,
                                  .low = (double)NAN,
                                  .high = (double)NAN,
                                  .beyond = r.bound_above ? 1 : -1,
                                  .tooltip = arena_printf(a, "%s: %s", cell_name, r.bound)};
    }
    /* Without an error the ends are NAN and no bar is drawn. */
    struct plot_mark mark = {.value = r.score, .low = r.score - r.se, .high = r.score + r.se};
    mark.tooltip = arena_printf(a, "%s: %s", cell_name,
                                r.se > 0 ? fmt_with_error(a, r.score, r.se)
                                         : measure_score_text(a, measure, r.score));
    return mark;
}

/* Conditions as rows, their replicates as marks. */
static struct plot_row *rows_of(struct arena *a, const struct report_model *m, size_t index)
{
    const struct plan_program *p = m->program;
    struct plot_row *rows = arena_array(a, p->n_conditions, sizeof(*rows));
    struct plot_mark *marks = arena_array(a, p->n_cells, sizeof(*marks));
    for (size_t k = 0; k < p->n_conditions; k++) {
        rows[k] = (struct plot_row){.label = p->conditions[k].name, .series = k, .marks = marks};
        for (size_t c = 0; c < p->n_cells; c++) {
            if (p->cells[c].condition == k) {
                marks[rows[k].n_marks++] = mark_of(a, m, index, c);
            }
        }
        /* One array of marks serves all rows, condition after condition. */
        marks += rows[k].n_marks;
    }
    return rows;
}

/* The vertical lines of a figure: chance, floor, best arm. */
static size_t rules_of(struct arena *a, const struct plan_measure *m, struct plot_rule rules[3])
{
    size_t n = 0;
    if (m->has_chance) {
        const char *label = arena_printf(a, "chance %s", fmt_short(a, m->chance, 4));
        rules[n++] = (struct plot_rule){m->chance, label, "chance"};
    }
    if (m->has_floor) {
        const char *label = arena_printf(a, "floor %s", m->floor_text);
        rules[n++] = (struct plot_rule){m->floor, label, "floor"};
    }
    /* The threshold for the larger arm mean, if the plan has one. */
    if (m->has_best_arm) {
        const char *label = arena_printf(a, "best arm %s", m->best_arm_text);
        rules[n++] = (struct plot_rule){m->best_arm, label, "best"};
    }
    return n;
}

/* The figure in words. */
static const char *summary_of(struct arena *a, const struct report_model *m, size_t index)
{
    const struct plan_measure *measure = &m->program->measures[index];
    struct measure_tally t = measure_count(a, m, index);
    const char *best =
        arena_printf(a, "The best cell, %s, reads %s.", m->program->cells[t.best_cell].name,
                     measure_score_text(a, measure, t.best));
    if (!measure->has_floor) {
        return best;
    }
    return arena_printf(a, "%s Cells that clear: %s.", best, measure_clearing_text(a, measure, &t));
}

/* Whether the caption must explain arrows. */
static bool any_bound(struct arena *a, const struct report_model *m, size_t index)
{
    for (size_t c = 0; c < m->program->n_cells; c++) {
        if (measure_read(a, m, index, c).bound != NULL) {
            return true;
        }
    }
    return false;
}

/* Whether the caption must explain error bars. */
static bool any_error(struct arena *a, const struct report_model *m, size_t index)
{
    for (size_t c = 0; c < m->program->n_cells; c++) {
        if (measure_read(a, m, index, c).se > 0) {
            return true;
        }
    }
    return false;
}

/* Cells of the conditions span[0]..span[1]-1 that have no mark. */
static size_t n_without(struct arena *a, const struct report_model *m, size_t index,
                        const size_t span[2])
{
    size_t n = 0;
    for (size_t c = 0; c < m->program->n_cells; c++) {
        const size_t condition = m->program->cells[c].condition;
        struct measure_reading r = measure_read(a, m, index, c);
        const bool inside = condition >= span[0] && condition < span[1];
        n += inside && r.bound == NULL && !isfinite(r.score) ? 1 : 0;
    }
    return n;
}

/* A figure of the conditions span[0]..span[1]-1, as many as fit on a printed page. */
static void add_figure(struct doc *d, const struct report_model *m, size_t index,
                       const size_t span[2])
{
    const struct plan_program *p = m->program;
    const struct plan_measure *measure = &p->measures[index];
    struct arena *a = &d->arena;
    struct plot_rule rules[3];
    /* For a loss the good side is the left one, and nothing is tinted. */
    const bool tinted = measure->has_floor && !measure->lower_better;
    const char *part = span[1] - span[0] == p->n_conditions
                           ? ""
                           : arena_printf(a, " Conditions %zu to %zu.", span[0] + 1, span[1]);
    const char *caption = arena_printf(
        a, "%s.%s One mark a cell%s%s%s.", measure->name, part,
        any_error(a, m, index) ? ", with one standard error" : "",
        tinted ? "; the tinted part is at or over the floor" : "",
        any_bound(a, m, index) ? "; a hollow arrow is a bound that the value lies beyond" : "");
    /* What is not drawn must be counted in words. */
    const size_t n_lost = n_without(a, m, index, span);
    if (n_lost > 0) {
        caption = arena_printf(a, "%s %s no value and no mark.", caption,
                               fmt_plural(a, (int64_t)n_lost, "cell has", "cells have"));
    }
    struct plot_dots plot = {
        .head = {.title = arena_printf(a, "%s by condition", measure->name),
                 .desc = summary_of(a, m, index),
                 .x_title = measure->metric_text},
        .rows = rows_of(a, m, index) + span[0],
        .n_rows = span[1] - span[0],
        .rules = rules,
        .n_rules = rules_of(a, measure, rules),
        .band_from = tinted ? measure->floor : (double)NAN,
    };
    const char *id = arena_printf(a, "measure-%s", measure->name);
    plot_dots(doc_figure(d, id, caption, &plot.head), &plot);
}

/* A row is a cell of the grid. */
struct grid_row {
    const struct report_model *model;
    const char *name;
    size_t cell;
};

/* Score, margin and whether it clears, in the order of precedence: excluded, bound, open, score. */
static const char *gate_words(struct arena *a, const struct plan_measure *measure,
                              const struct measure_reading *r)
{
    if (r->excluded || r->bound != NULL || !isfinite(r->score)) {
        return r->excluded ? "excluded" : r->bound != NULL ? r->bound : "open ?";
    }
    const char *score = measure_score_text(a, measure, r->score);
    if (!r->has_gate) {
        return r->se > 0 ? fmt_with_error(a, r->score, r->se) : score;
    }
    const char *z = isfinite(r->z) ? arena_printf(a, " (%s)", fmt_sigma(a, r->z, 1)) : "";
    return arena_printf(a, "%s%s %s", score, z, !r->is_known ? "?" : r->cleared ? CLEARS : FAILS);
}

/* The sign is for everyone, a tone for those who see colors. */
static enum doc_tone gate_tone(const struct measure_reading *r)
{
    if (r->excluded || r->bound != NULL || !isfinite(r->score) || (r->has_gate && !r->is_known)) {
        return TONE_WARN;
    }
    return r->has_gate && r->cleared ? TONE_GOOD : TONE_PLAIN;
}

/* The gate of measure `n`, with its values as data. */
static void gate_cell(const struct doc_slot *s)
{
    const struct grid_row *row = s->row;
    const size_t index = (size_t)s->column->n;
    const struct measure_reading r = measure_read(s->arena, row->model, index, row->cell);
    doc_number(s, gate_words(s->arena, &row->model->program->measures[index], &r), r.score);
    s->cell->tone = gate_tone(&r);
    doc_datum(s, "se", r.se);
    if (r.has_gate) {
        doc_datum(s, "margin", r.z);
        doc_flag(s, "clears", r.is_known ? (r.cleared ? 1 : 0) : -1);
    }
}

/* Every cell on the measures from..to-1. */
static void add_gates(struct doc *d, const struct report_model *m, size_t from, size_t to)
{
    static const struct doc_column name = ROW_TEXT("Cell", struct grid_row, name);
    const struct plan_program *p = m->program;
    struct doc_columns columns = doc_columns(d, &name, 1);
    for (size_t i = from; i < to; i++) {
        doc_column_add(d, &columns, p->measures[i].name, gate_cell)->n = (int)i;
    }
    struct doc_table *t = doc_table(
        d, "gates",
        "Every cell: score, margin to the floor in standard errors of the score, and whether it "
        "clears (" CLEARS " yes, " FAILS
        " no, ? open). Measures without a floor: score and standard error.",
        columns.items, columns.n);
    for (size_t c = 0; c < p->n_cells; c++) {
        doc_row(d, t, &(struct grid_row){m, p->cells[c].name, c});
    }
}

/* Reasons, grouped by measure. */
static void add_open(struct doc *d, const struct report_model *m)
{
    struct doc_list *list = NULL;
    for (size_t i = 0; i < m->program->n_measures; i++) {
        const char *reasons = measure_open_reasons(&d->arena, m, i);
        if (reasons[0] == '\0') {
            continue;
        }
        if (list == NULL) {
            doc_paragraph(d, "Open or without a value, and why:");
            list = doc_list(d);
        }
        const char *text =
            arena_printf(&d->arena, "%s: %s.", m->program->measures[i].name, reasons);
        doc_point(d, list, "%s", text);
    }
}

/* A measure without any score is not drawn. */
static void add_figures(struct doc *d, const struct report_model *m)
{
    const struct plan_program *p = m->program;
    /* The tables below have every cell. */
    if (p->n_cells > MARKS_MAX) {
        doc_paragraph(d, "Not drawn: %zu cells are more than a figure can show.", p->n_cells);
        return;
    }
    for (size_t i = 0; i < p->n_measures; i++) {
        bool any = measure_count(&d->arena, m, i).n_scores > 0;
        for (size_t from = 0; any && from < p->n_conditions; from += CONDITIONS_PER_FIGURE) {
            size_t to = from + CONDITIONS_PER_FIGURE;
            add_figure(d, m, i, (size_t[2]){from, to < p->n_conditions ? to : p->n_conditions});
        }
    }
}

/* Measures are spread evenly over as many tables as are needed. */
void section_measures(struct doc *d, const struct report_model *m)
{
    const size_t n = m->program->n_measures;
    const size_t n_tables = (n + MEASURES_PER_TABLE - 1) / MEASURES_PER_TABLE;
    doc_section(d, "measures", "Measures and gates");
    add_summary(d, m);
    tables_means(d, m);
    add_figures(d, m);
    for (size_t i = 0; i < n_tables; i++) { /* of nearly equal width */
        add_gates(d, m, n * i / n_tables, n * (i + 1) / n_tables);
    }
    add_open(d, m);
}
