/*
 * Pictures of routers. A heat map shows one cell of each condition, because experts of different
 * runs have nothing in common but their number; its rows are a layer's experts, the most used ones
 * on top. Entropy, effective number and dead experts are means over a cell's layers, and their
 * thick lines means over the cells of a condition, at the steps that all of them have.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/sections/figures_router.h"

#define PANELS_MAX  ((size_t)6)  /* layers of a heat map */
#define ROWS_MAX    ((size_t)32) /* experts of a layer, or groups of them */
#define COLUMNS_MAX ((size_t)60)
#define THIN_MAX    ((size_t)64) /* more cells than this: means alone */

/* An expert and its share over all steps. */
struct ranked {
    size_t expert;
    double sum;
};

/* The most used first; equal ones in their order. */
static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;
    if (x->sum > y->sum || x->sum < y->sum) {
        return x->sum > y->sum ? -1 : 1;
    }
    return x->expert < y->expert ? -1 : 1;
}

/* A layer's experts by use. */
static struct ranked *rank_experts(struct arena *a, const struct router_course *c, size_t layer)
{
    struct ranked *r = arena_array(a, c->n_experts, sizeof(*r));
    for (size_t e = 0; e < c->n_experts; e++) {
        r[e] = (struct ranked){.expert = e};
        for (size_t s = 0; s < c->n_samples; s++) {
            r[e].sum += router_share(c, s, layer, e);
        }
    }
    qsort(r, c->n_experts, sizeof(*r), compare_ranked);
    return r;
}

/* Of n things, the first of the i-th of `parts` groups. */
static size_t group_begin(size_t n, size_t parts, size_t i)
{
    return n * i / parts;
}

/* The panel of one layer: rows are experts by use, or neighbours among them taken together. */
static struct plot_panel panel_of(struct arena *a, const struct router_course *c, size_t layer,
                                  size_t n_columns)
{
    const struct ranked *r = rank_experts(a, c, layer);
    const size_t n_rows = c->n_experts < ROWS_MAX ? c->n_experts : ROWS_MAX;
    double *loads = arena_array(a, n_rows * n_columns, sizeof(*loads));
    for (size_t row = 0; row < n_rows; row++) {
        const size_t from = group_begin(c->n_experts, n_rows, row);
        const size_t to = group_begin(c->n_experts, n_rows, row + 1);
        for (size_t column = 0; column < n_columns; column++) {
            const size_t sample = group_begin(c->n_samples, n_columns, column);
            double sum = 0;
            for (size_t e = from; e < to; e++) {
                sum += router_share(c, sample, layer, r[e].expert);
            }
            loads[row * n_columns + column] = sum * (double)c->n_experts / (double)(to - from);
        }
    }
    return (struct plot_panel){
        .label = arena_printf(a, "layer %d", c->layers[layer]), .loads = loads, .n_rows = n_rows};
}

/* What a heat map leaves out, if anything. */
static const char *left_out(struct arena *a, const struct router_course *c)
{
    const char *text = "";
    if (c->n_experts > ROWS_MAX) {
        text = arena_printf(a, " Neighbours among the %zu experts share %zu rows.", c->n_experts,
                            ROWS_MAX);
    }
    if (c->n_layers > PANELS_MAX) {
        text = arena_printf(a, "%s Of %zu layers %zu are shown.", text, c->n_layers, PANELS_MAX);
    }
    return text;
}

/* Loads of one cell's experts over its steps. */
static void draw_heat(struct doc *d, const struct report_model *m, const struct router_course *c)
{
    struct arena *a = &d->arena;
    const char *cell = m->program->cells[c->cell].name;
    const size_t n_panels = c->n_layers < PANELS_MAX ? c->n_layers : PANELS_MAX;
    const size_t n_columns = c->n_samples < COLUMNS_MAX ? c->n_samples : COLUMNS_MAX;
    struct plot_panel *panels = arena_array(a, n_panels, sizeof(*panels));
    double *xs = arena_array(a, n_columns, sizeof(*xs));
    for (size_t i = 0; i < n_panels; i++) {
        panels[i] = panel_of(a, c, group_begin(c->n_layers, n_panels, i), n_columns);
    }
    for (size_t i = 0; i < n_columns; i++) {
        xs[i] = c->steps[group_begin(c->n_samples, n_columns, i)];
    }
    struct plot_heat plot = {
        .head = {.title = arena_printf(a, "Load of the experts of %s", cell),
                 .desc = arena_printf(a,
                                      "%zu experts in %zu layers at %zu steps; the table of "
                                      "router health has the figures of the last tenth.",
                                      c->n_experts, c->n_layers, c->n_samples),
                 .x_title = "step"},
        .xs = xs,
        .n_columns = n_columns,
        .panels = panels,
        .n_panels = n_panels};
    const char *id = arena_printf(a, "router-load-%s-%zu", m->program->stages[c->stage].name,
                                  m->program->cells[c->cell].condition);
    plot_heat(doc_figure(d, id,
                         arena_printf(a,
                                      "Load of the experts of %s, relative to an even share. A row "
                                      "is an expert, the most used of each layer on top.%s",
                                      cell, left_out(a, c)),
                         &plot.head),
              &plot);
}

/* One heat map for each condition, of its first cell that has a course. */
static void add_heat_maps(struct doc *d, const struct report_model *m, size_t stage)
{
    size_t drawn = 0;
    size_t missing = 0;
    for (size_t k = 0; k < m->program->n_conditions; k++) {
        const struct router_course *first = NULL;
        for (size_t i = 0; first == NULL && i < m->routers.n; i++) {
            const struct router_course *c = &m->routers.items[i];
            bool fits = c->stage == stage && m->program->cells[c->cell].condition == k;
            first = fits ? c : NULL;
        }
        if (first == NULL) {
            continue;
        }
        if (drawn < ROUTER_MAPS_MAX && first->shares != NULL) {
            draw_heat(d, m, first);
            drawn++;
        } else {
            missing++;
        }
    }
    if (missing > 0) {
        doc_paragraph(d, "The loads of %s more are in their router.csv.",
                      fmt_plural(&d->arena, (int64_t)missing, "condition", "conditions"));
    }
}

/* The courses of one stage. */
struct courses {
    const struct router_course **items;
    size_t n;
};

static struct courses courses_of(struct arena *a, const struct report_model *m, size_t stage)
{
    struct courses all = {.items = arena_array(a, m->routers.n + 1, sizeof(*all.items))};
    for (size_t i = 0; i < m->routers.n; i++) {
        if (m->routers.items[i].stage == stage) {
            all.items[all.n++] = &m->routers.items[i];
        }
    }
    return all;
}

/* Whether two courses have the same steps. */
static bool same_steps(const struct router_course *a, const struct router_course *b)
{
    bool same = a->n_samples == b->n_samples;
    for (size_t s = 0; s < a->n_samples && same; s++) {
        same = a->steps[s] >= b->steps[s] && a->steps[s] <= b->steps[s];
    }
    return same;
}

/* The mean of one quantity over the cells of a condition; n is 0 where there are none. Their steps
 * are those of the first: replicates share a schedule, and a cell that does not is left out. */
static struct plot_curve mean_of(struct arena *a, const struct report_model *m,
                                 const struct courses *all, size_t condition,
                                 enum router_value value)
{
    struct plot_curve mean = {.series = condition, .strong = true};
    const struct router_course *first = NULL;
    double *ys = NULL;
    size_t n_cells = 0;
    size_t n_others = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct router_course *c = all->items[i];
        if (m->program->cells[c->cell].condition != condition) {
            continue;
        }
        if (first == NULL) {
            first = c;
            ys = arena_array(a, c->n_samples, sizeof(*ys));
        }
        if (!same_steps(c, first)) {
            n_others++;
            continue;
        }
        n_cells++;
        for (size_t s = 0; s < c->n_samples; s++) {
            ys[s] += (c->values[value][s] - ys[s]) / (double)n_cells;
        }
    }
    if (first != NULL) {
        mean.xs = first->steps;
        mean.ys = ys;
        mean.n = first->n_samples;
        mean.tooltip =
            arena_printf(a, "%s, mean of %zu", m->program->conditions[condition].name, n_cells);
        if (n_others > 0) {
            mean.tooltip = arena_printf(a, "%s (%s other steps)", mean.tooltip,
                                        fmt_plural(a, (int64_t)n_others, "cell has", "cells have"));
        }
    }
    return mean;
}

/* What even routing would give: the number of experts, no dead one, an entropy of 1. */
static double even_value(const struct router_course *c, enum router_value value)
{
    switch (value) {
    case ROUTER_EFFECTIVE: return (double)c->n_experts;
    case ROUTER_DEAD: return 0;
    case ROUTER_ENTROPY: break;
    }
    return 1;
}

/* A level line for each number of experts that the even value depends on. */
static size_t add_even(struct arena *a, const struct courses *all, enum router_value value,
                       size_t series, struct plot_curve *out)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct router_course *c = all->items[i];
        const double even = even_value(c, value);
        bool known = false;
        for (size_t k = 0; k < n; k++) {
            known = known || (out[k].ys[0] >= even && out[k].ys[0] <= even);
        }
        if (!known && n < PLOT_LEGEND_MAX) {
            double *ys = arena_array(a, 2, sizeof(*ys));
            double *xs = arena_array(a, 2, sizeof(*xs));
            ys[0] = ys[1] = even;
            xs[0] = c->steps[0];
            xs[1] = c->steps[c->n_samples - 1];
            out[n++] = (struct plot_curve){.series = series,
                                           .strong = true,
                                           .xs = xs,
                                           .ys = ys,
                                           .n = 2,
                                           .tooltip = "an even share for all"};
        }
    }
    return n;
}

/* Conditions that have a course, renumbered for the legend. */
static size_t series_of(const struct report_model *m, const struct courses *all, size_t *series,
                        const char **names)
{
    size_t n = 0;
    for (size_t k = 0; k < m->program->n_conditions; k++) {
        series[k] = SIZE_MAX;
        for (size_t i = 0; series[k] == SIZE_MAX && i < all->n; i++) {
            if (m->program->cells[all->items[i]->cell].condition == k) {
                names[n] = m->program->conditions[k].name;
                series[k] = n++;
            }
        }
    }
    names[n] = "even share";
    return n;
}

static void draw_value(struct doc *d, const struct report_model *m, const struct courses *all,
                       enum router_value value)
{
    static const struct {
        const char *title;
        const char *y_title;
        const char *id;
    } words[] = {
        [ROUTER_ENTROPY] = {"Entropy of the mean routing", "entropy, share of ln E", "entropy"},
        [ROUTER_EFFECTIVE] = {"Effective number of experts", "experts in use", "effective"},
        [ROUTER_DEAD] = {"Dead experts, under 1 % of an even share", "dead experts", "dead"},
    };
    struct arena *a = &d->arena;
    const struct plan_program *p = m->program;
    size_t *series = arena_array(a, p->n_conditions, sizeof(*series));
    const char **names = arena_array(a, p->n_conditions + 1, sizeof(*names));
    const size_t n_series = series_of(m, all, series, names);
    struct plot_curve *curves =
        arena_array(a, all->n + p->n_conditions + PLOT_LEGEND_MAX, sizeof(*curves));
    size_t n = add_even(a, all, value, n_series, curves);
    for (size_t i = 0; i < all->n && all->n <= THIN_MAX; i++) {
        const struct router_course *c = all->items[i];
        curves[n++] = (struct plot_curve){.series = series[p->cells[c->cell].condition],
                                          .xs = c->steps,
                                          .ys = c->values[value],
                                          .n = c->n_samples,
                                          .tooltip = p->cells[c->cell].name};
    }
    for (size_t k = 0; k < p->n_conditions; k++) {
        struct plot_curve mean = mean_of(a, m, all, k, value);
        if (mean.n > 0) {
            mean.series = series[k];
            curves[n++] = mean;
        }
    }
    const char *stage = p->stages[all->items[0]->stage].name;
    struct plot_lines plot = {
        .head = {.title = arena_printf(a, "%s during %s", words[value].title, stage),
                 .desc = "Means over the layers of a cell; the table of router health has the "
                         "figures of the last tenth of the steps.",
                 .x_title = "step",
                 .y_title = words[value].y_title},
        .curves = curves,
        .n_curves = n,
        .names = names,
        .n_names = n_series + 1};
    plot_lines(doc_figure(d, arena_printf(a, "router-%s-%s", words[value].id, stage),
                          arena_printf(a,
                                       "%s during %s, the mean over the layers. Thick: the mean of "
                                       "a condition; level: even routing.",
                                       words[value].title, stage),
                          &plot.head),
               &plot);
}

void figures_router(struct doc *d, const struct report_model *m, size_t stage)
{
    const struct courses all = courses_of(&d->arena, m, stage);
    if (all.n == 0) {
        return;
    }
    add_heat_maps(d, m, stage);
    draw_value(d, m, &all, ROUTER_ENTROPY);
    draw_value(d, m, &all, ROUTER_EFFECTIVE);
    draw_value(d, m, &all, ROUTER_DEAD);
    if (m->routers.n_unread > 0) {
        doc_paragraph(d, "%s not what the results say, and left out.",
                      fmt_plural(&d->arena, (int64_t)m->routers.n_unread, "router.csv is",
                                 "files router.csv are"));
    }
}
