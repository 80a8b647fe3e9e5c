#include <math.h>
#include <string.h>

#include "truthtable/report/fmt.h"
#include "truthtable/report/plot.h"
#include "truthtable/report/sections.h"
#include "truthtable/report/verdict_words.h"
#include "truthtable/stats.h"

#define MEASURES_PER_TABLE ((size_t)5)
#define MARKS_MAX          ((size_t)4000) /* a figure with more would be a blot, and megabytes */
#define CLEARS             "\xe2\x9c\x93"
#define FAILS              "\xe2\x9c\x97"

struct reading_of { /* one measure in one cell, as the verdict has it */
    double score;
    double n;
    double se;
    double z;
    const cJSON *gate; /* NULL: the measure has no floor */
    bool is_known;     /* whether `cleared` below says anything */
    bool cleared;
    const char *why;
};

/* The record's own standard error, else the binomial one of a proportion. */
static double error_of(const struct report_model *m, const struct measure *measure, size_t cell,
                       const struct reading_of *r)
{
    double se = report_metric_se(m, cell, measure->stage, measure->metric);
    bool is_share = measure->has_floor || measure->has_chance;
    if (!isfinite(se) && is_share && r->n > 0 && r->score >= 0 && r->score <= 1) {
        se = sqrt(r->score * (1 - r->score) / r->n);
    }
    return se;
}

static struct reading_of read_measure(const struct report_model *m, size_t index, size_t cell)
{
    const struct measure *measure = &m->program->measures[index];
    const cJSON *gate = report_gate(m, index, cell);
    const cJSON *cleared = member(gate, "cleared");
    struct reading_of r = {.gate = gate,
                           .score = member_number(gate, "score"),
                           .n = member_number(gate, "n"),
                           .z = member_number(gate, "z"),
                           .is_known = cJSON_IsBool(cleared),
                           .cleared = cJSON_IsTrue(cleared),
                           .why = member_text(gate, "why")};
    if (gate == NULL) {
        r.score = report_metric(m, cell, measure->stage, measure->metric);
    }
    if (!isfinite(r.n) && measure->has_items) {
        r.n = (double)measure->items;
    }
    r.se = error_of(m, measure, cell, &r);
    return r;
}

struct tally {
    size_t cleared;
    size_t failed;
    size_t unknown;
    size_t known_scores;
    double best; /* by the measure's own direction */
    size_t best_cell;
    double nearest; /* the margin closest to the floor from below, or the smallest above */
};

static struct tally tally_measure(const struct report_model *m, size_t index)
{
    const struct measure *measure = &m->program->measures[index];
    struct tally t = {.best = (double)NAN, .best_cell = INDEX_NONE, .nearest = (double)NAN};
    for (size_t c = 0; c < m->program->n_cells; c++) {
        struct reading_of r = read_measure(m, index, c);
        t.cleared += r.is_known && r.cleared ? 1 : 0;
        t.failed += r.is_known && !r.cleared ? 1 : 0;
        t.unknown += !r.is_known ? 1 : 0;
        if (!isfinite(r.score)) {
            continue;
        }
        t.known_scores++;
        bool better = measure->lower_better ? r.score < t.best : r.score > t.best;
        if (!isfinite(t.best) || better) {
            t.best = r.score;
            t.best_cell = c;
        }
        if (isfinite(r.z) && (!isfinite(t.nearest) || fabs(r.z) < fabs(t.nearest))) {
            t.nearest = r.z;
        }
    }
    return t;
}

static const char *score_text(struct arena *a, const struct measure *measure, double v)
{
    return measure->has_floor || measure->has_chance ? fmt_fixed(a, v, 4) : fmt_short(a, v, 5);
}

static const char *floor_text(struct arena *a, const struct measure *measure)
{
    if (!measure->has_floor) {
        return "none";
    }
    double sigma =
        measure->has_chance && measure->has_items
            ? stat_floor_above_chance(measure->floor, measure->chance, (double)measure->items)
            : (double)NAN;
    if (!isfinite(sigma)) {
        return measure->floor_text;
    }
    return arena_printf(a, "%s (chance %s\xcf\x83)", measure->floor_text, fmt_signed(a, sigma, 2));
}

static const char *clearing_text(struct arena *a, const struct measure *measure,
                                 const struct tally *t)
{
    if (!measure->has_floor) {
        return FMT_NONE;
    }
    const char *text =
        arena_printf(a, "%zu of %zu", t->cleared, t->cleared + t->failed + t->unknown);
    return t->unknown == 0 ? text : arena_printf(a, "%s, %zu open", text, t->unknown);
}

static void add_summary(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        {"Measure", ALIGN_TEXT},     {"Metric", ALIGN_TEXT},
        {"Items", ALIGN_NUMBER},     {"Chance", ALIGN_NUMBER},
        {"Floor", ALIGN_NUMBER},     {"Cells at or over the floor", ALIGN_NUMBER},
        {"Best cell", ALIGN_NUMBER}, {"Margin nearest the floor", ALIGN_NUMBER},
        {"Counted", ALIGN_TEXT}};
    const struct program *p = m->program;
    struct arena *a = &d->arena;
    struct doc_table *t =
        doc_table(d,
                  "The measures, their floors as locked before any score existed, and how the "
                  "cells stand to them. In brackets: "
                  "how far the floor lies above chance in binomial standard errors.",
                  columns, 9);
    for (size_t i = 0; i < p->n_measures; i++) {
        const struct measure *measure = &p->measures[i];
        struct tally tally = tally_measure(m, i);
        struct doc_row *row = doc_row(d, t);
        row->cells[0].text = measure->name;
        row->cells[1].text = arena_printf(a, "%s%s", measure->metric_text,
                                          measure->lower_better ? " (lower is better)" : "");
        row->cells[2].text = measure->has_items ? fmt_count(a, measure->items) : FMT_NONE;
        row->cells[3].text = measure->has_chance ? fmt_short(a, measure->chance, 4) : FMT_NONE;
        row->cells[4].text = floor_text(a, measure);
        row->cells[5].text = clearing_text(a, measure, &tally);
        row->cells[6].text = score_text(a, measure, tally.best);
        row->cells[7].text = isfinite(tally.nearest)
                                 ? arena_printf(a, "%s\xcf\x83", fmt_signed(a, tally.nearest, 1))
                                 : FMT_NONE;
        row->cells[8].text = measure->counted ? "yes" : "no";
    }
}

static struct plot_mark mark_of(struct arena *a, const struct report_model *m, size_t index,
                                size_t cell)
{
    const struct measure *measure = &m->program->measures[index];
    struct reading_of r = read_measure(m, index, cell);
    struct plot_mark mark = {.value = r.score, .low = r.score - r.se, .high = r.score + r.se};
    mark.tooltip = arena_printf(a, "%s: %s%s%s", m->program->cells[cell].name,
                                score_text(a, measure, r.score), isfinite(r.se) ? " \xc2\xb1 " : "",
                                isfinite(r.se) ? fmt_short(a, r.se, 2) : "");
    return mark;
}

/* Conditions as rows, their replicates as marks. */
static struct plot_row *rows_of(struct arena *a, const struct report_model *m, size_t index)
{
    const struct program *p = m->program;
    struct plot_row *rows = arena_array(a, p->n_conditions, sizeof(*rows));
    for (size_t k = 0; k < p->n_conditions; k++) {
        struct plot_mark *marks = arena_array(a, p->n_cells / p->n_conditions, sizeof(*marks));
        rows[k] = (struct plot_row){.label = p->conditions[k].name, .series = k, .marks = marks};
        for (size_t c = 0; c < p->n_cells; c++) {
            if (p->cells[c].condition == k) {
                marks[rows[k].n_marks++] = mark_of(a, m, index, c);
            }
        }
    }
    return rows;
}

static size_t rules_of(struct arena *a, const struct measure *measure, struct plot_rule rules[3])
{
    size_t n = 0;
    if (measure->has_chance) {
        rules[n++] = (struct plot_rule){
            measure->chance, arena_printf(a, "chance %s", fmt_short(a, measure->chance, 4)),
            "chance"};
    }
    if (measure->has_floor) {
        rules[n++] = (struct plot_rule){measure->floor,
                                        arena_printf(a, "floor %s", measure->floor_text), "floor"};
    }
    if (measure->has_best_arm) {
        rules[n++] = (struct plot_rule){
            measure->best_arm, arena_printf(a, "best arm %s", measure->best_arm_text), "best"};
    }
    return n;
}

static const char *measure_summary(struct arena *a, const struct report_model *m, size_t index)
{
    const struct measure *measure = &m->program->measures[index];
    struct tally t = tally_measure(m, index);
    if (t.known_scores == 0) {
        return "No cell has a readable score.";
    }
    const char *best =
        arena_printf(a, "The best cell, %s, reads %s.", m->program->cells[t.best_cell].name,
                     score_text(a, measure, t.best));
    if (!measure->has_floor) {
        return best;
    }
    return arena_printf(a, "%s %s cells stand at or over the floor.", best,
                        clearing_text(a, measure, &t));
}

static void add_figure(struct doc *d, const struct report_model *m, size_t index)
{
    const struct program *p = m->program;
    const struct measure *measure = &p->measures[index];
    struct arena *a = &d->arena;
    struct plot_rule rules[3];
    const char *id = NULL;
    const char *summary = measure_summary(a, m, index);
    const char *caption =
        arena_printf(a, "%s (%s). One mark a cell, with one standard error%s.", measure->name,
                     measure->metric_text,
                     measure->has_floor ? "; the tinted part lies at or over the floor" : "");
    struct doc_figure *f = doc_figure(d, caption, summary, &id);
    struct plot_dots plot = {
        .head = {.id = id,
                 .title = arena_printf(a, "%s by condition", measure->name),
                 .desc = summary,
                 .x_title = measure->metric_text},
        .rows = rows_of(a, m, index),
        .n_rows = p->n_conditions,
        .rules = rules,
        .n_rules = rules_of(a, measure, rules),
        .band_from = measure->has_floor && !measure->lower_better ? measure->floor : (double)NAN,
    };
    plot_dots(&f->svg, &plot);
}

static struct doc_cell gate_cell(struct arena *a, const struct measure *measure,
                                 const struct reading_of *r)
{
    if (!isfinite(r->score)) {
        return (struct doc_cell){r->why != NULL ? arena_printf(a, "undetermined: %s", r->why)
                                                : "undetermined",
                                 TONE_WARN};
    }
    const char *score = score_text(a, measure, r->score);
    if (r->gate == NULL) {
        const char *se =
            isfinite(r->se) ? arena_printf(a, " \xc2\xb1 %s", fmt_short(a, r->se, 2)) : "";
        return (struct doc_cell){arena_printf(a, "%s%s", score, se), TONE_PLAIN};
    }
    const char *z = isfinite(r->z) ? arena_printf(a, " (%s\xcf\x83)", fmt_signed(a, r->z, 1)) : "";
    const char *sign = !r->is_known ? "?" : r->cleared ? CLEARS : FAILS;
    return (struct doc_cell){arena_printf(a, "%s%s %s", score, z, sign), !r->is_known ? TONE_WARN
                                                                         : r->cleared ? TONE_GOOD
                                                                                      : TONE_PLAIN};
}

static void add_gates(struct doc *d, const struct report_model *m, size_t from, size_t to)
{
    const struct program *p = m->program;
    struct arena *a = &d->arena;
    struct doc_column columns[MEASURES_PER_TABLE + 1] = {{"Cell", ALIGN_TEXT}};
    for (size_t i = from; i < to; i++) {
        columns[i - from + 1] = (struct doc_column){p->measures[i].name, ALIGN_NUMBER};
    }
    struct doc_table *t =
        doc_table(d,
                  "Every cell: score, margin to the floor in standard errors of the score, and "
                  "whether it stands at or over the "
                  "floor (" CLEARS " yes, " FAILS
                  " no, ? open). Measures without a floor: score and standard error.",
                  columns, to - from + 1);
    for (size_t c = 0; c < p->n_cells; c++) {
        struct doc_row *row = doc_row(d, t);
        row->cells[0].text = p->cells[c].name;
        for (size_t i = from; i < to; i++) {
            struct reading_of r = read_measure(m, i, c);
            row->cells[i - from + 1] = gate_cell(a, &p->measures[i], &r);
        }
    }
}

void section_measures(struct doc *d, const struct report_model *m)
{
    const struct program *p = m->program;
    doc_section(d, "Measures and gates");
    add_summary(d, m);
    if (p->n_cells <= MARKS_MAX) {
        for (size_t i = 0; i < p->n_measures; i++) {
            add_figure(d, m, i);
        }
    } else {
        doc_paragraph(
            d,
            "Not drawn: %zu cells are more than a figure can show. The table below has them all.",
            p->n_cells);
    }
    for (size_t i = 0; i < p->n_measures; i += MEASURES_PER_TABLE) {
        size_t to = i + MEASURES_PER_TABLE;
        add_gates(d, m, i, to < p->n_measures ? to : p->n_measures);
    }
}
