/*
 * The section "Curves": what workers reported while they ran, drawn by stage and quantity, losses
 * first. Thin lines are cells, strong ones the mean of a condition over the steps that all its
 * replicates have, smoothed. A loss gets a second figure of its late half, where conditions
 * actually differ. Curves inform and gate nothing.
 */
#include <math.h>
#include <string.h>

#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

#define FIGURES_PER_STAGE ((size_t)6)
#define NAMES_MAX         ((size_t)64)
#define SMOOTH_SHARE      ((size_t)25)  /* one in so many of the points */
#define THIN_MAX          ((size_t)400) /* more cells than this: only means are drawn */
#define LATE_POINTS_MIN   ((size_t)20)  /* fewer points need no second look */

/* Names of the curves of one stage; losses first, then by name. */
struct curve_names {
    const char *names[NAMES_MAX];
    size_t n;
};

/* Quantities with "loss" in their name. */
static bool is_loss(const char *name)
{
    return strstr(name, "loss") != NULL;
}

/* Losses first, then alphabetically. */
static int by_interest(const void *left, const void *right)
{
    const char *a = *(const char *const *)left;
    const char *b = *(const char *const *)right;
    if (is_loss(a) != is_loss(b)) {
        return is_loss(a) ? -1 : 1;
    }
    return strcmp(a, b);
}

/* The names of a stage's curves, each once. */
static struct curve_names stage_names(const struct report_model *m, size_t stage)
{
    struct curve_names names = {.n = 0};
    for (size_t i = 0; i < m->curves.n; i++) {
        const struct curve *c = &m->curves.curves[i];
        bool known = c->stage != stage;
        for (size_t k = 0; !known && k < names.n; k++) {
            known = strcmp(names.names[k], c->name) == 0;
        }
        if (!known && names.n < NAMES_MAX) {
            names.names[names.n++] = c->name;
        }
    }
    qsort(names.names, names.n, sizeof(names.names[0]), by_interest);
    return names;
}

/* The curves of one quantity in one stage. */
struct curve_family {
    const struct curve **members;
    size_t n;
};

/* The curves of one quantity, in the order of the tasks. */
static struct curve_family family_of(struct arena *a, const struct report_model *m, size_t stage,
                                     const char *name)
{
    struct curve_family f = {.members = arena_array(a, m->curves.n + 1, sizeof(*f.members))};
    for (size_t i = 0; i < m->curves.n; i++) {
        const struct curve *c = &m->curves.curves[i];
        if (c->stage == stage && strcmp(c->name, name) == 0) {
            f.members[f.n++] = c;
        }
    }
    return f;
}

/* The value exactly at step x, or NAN. *from only moves forward, so a pass over all steps is
 * linear. */
static double value_at(const struct curve *c, double x, size_t *from)
{
    while (*from < c->n && c->xs[*from] < x) {
        (*from)++;
    }
    return *from < c->n && c->xs[*from] <= x ? c->ys[*from] : (double)NAN;
}

/* A running mean over SMOOTH_SHARE of the points, narrower at the ends: noise from step to step
 * hides what separates the conditions. */
static void smooth(struct arena *a, struct plot_curve *c)
{
    size_t half = c->n / (2 * SMOOTH_SHARE);
    double *out = arena_array(a, c->n + 1, sizeof(*out));
    for (size_t i = 0; i < c->n; i++) {
        size_t reach = half < i ? half : i;
        /* The window stays symmetric, so ends are not pulled to one side. */
        reach = reach < c->n - 1 - i ? reach : c->n - 1 - i;
        double sum = 0;
        for (size_t k = i - reach; k <= i + reach; k++) {
            sum += c->ys[k];
        }
        out[i] = sum / (double)(2 * reach + 1);
    }
    c->ys = out;
}

/* The mean of a condition's members at the steps that all of them have. */
static struct plot_curve mean_of(struct arena *a, const struct curve *const *members, size_t n)
{
    const struct curve *first = members[0];
    double *xs = arena_array(a, first->n + 1, sizeof(*xs));
    double *ys = arena_array(a, first->n + 1, sizeof(*ys));
    size_t *from = arena_array(a, n, sizeof(*from));
    struct plot_curve mean = {.strong = true, .xs = xs, .ys = ys};
    for (size_t i = 0; i < first->n; i++) {
        double sum = 0;
        for (size_t k = 0; k < n; k++) {
            sum += value_at(members[k], first->xs[i], &from[k]);
        }
        /* A step that one member lacks is left out of the mean. */
        if (isfinite(sum)) {
            xs[mean.n] = first->xs[i];
            ys[mean.n++] = sum / (double)n;
        }
    }
    smooth(a, &mean);
    return mean;
}

/* The curves of one condition's cells. */
static size_t members_of(const struct report_model *m, const struct curve_family *f,
                         size_t condition, const struct curve **out)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (m->program->cells[f->members[i]->cell].condition == condition) {
            out[n++] = f->members[i];
        }
    }
    return n;
}

/* Thin lines first, then the means. With very many cells only means are drawn. */
static size_t curves_of(struct arena *a, const struct report_model *m, const struct curve_family *f,
                        struct plot_curve *out)
{
    const struct plan_program *p = m->program;
    const struct curve **members = arena_array(a, f->n + 1, sizeof(*members));
    size_t n = 0;
    for (size_t i = 0; i < f->n && f->n <= THIN_MAX; i++) {
        const struct curve *c = f->members[i];
        out[n++] = (struct plot_curve){.series = p->cells[c->cell].condition,
                                       .xs = c->xs,
                                       .ys = c->ys,
                                       .n = c->n,
                                       .tooltip = p->cells[c->cell].name};
    }
    for (size_t k = 0; k < p->n_conditions; k++) {
        size_t n_members = members_of(m, f, k, members);
        if (n_members > 0) {
            out[n] = mean_of(a, members, n_members);
            out[n].series = k;
            out[n++].tooltip = arena_printf(a, "%s, mean of %zu", p->conditions[k].name, n_members);
        }
    }
    return n;
}

/* The figure in words, for those who do not see it. */
static const char *family_summary(struct arena *a, const struct report_model *m,
                                  const struct curve_family *f)
{
    double low = (double)INFINITY;
    double high = -(double)INFINITY;
    for (size_t i = 0; i < f->n; i++) {
        double last = f->members[i]->ys[f->members[i]->n - 1];
        low = fmin(low, last);
        high = fmax(high, last);
    }
    size_t missing = m->program->n_cells - f->n;
    const char *gap = missing == 0 ? ""
                                   : arena_printf(a, " %s left no such curve.",
                                                  fmt_plural(a, (int64_t)missing, "cell", "cells"));
    return arena_printf(a, "%s; the last points lie between %s and %s.%s",
                        fmt_plural(a, (int64_t)f->n, "curve", "curves"), fmt_short(a, low, 4),
                        fmt_short(a, high, 4), gap);
}

/* Leaves out the first half of the steps: a curve falls so far there that the rest looks flat. */
static void keep_late(struct plot_curve *curves, size_t n)
{
    double last = 0;
    for (size_t i = 0; i < n; i++) {
        last = curves[i].n > 0 ? fmax(last, curves[i].xs[curves[i].n - 1]) : last;
    }
    for (size_t i = 0; i < n; i++) {
        while (curves[i].n > 0 && curves[i].xs[0] < last / 2) {
            curves[i].xs++;
            curves[i].ys++;
            curves[i].n--;
        }
    }
}

/* What the lines are. */
static const char *caption_of(struct arena *a, const struct report_model *m,
                              const struct curve_family *f, const char *title)
{
    const char *crowd = m->program->n_conditions > PLOT_LEGEND_MAX
                            ? " Too many conditions for a legend: point at a line for its name."
                            : "";
    return arena_printf(a,
                        "%s. %s the mean of a condition at the steps that all its replicates have, "
                        "as a running mean over 1/%zu of the points.%s",
                        title, f->n <= THIN_MAX ? "Thin: one cell each; thick:" : "Only",
                        SMOOTH_SHARE, crowd);
}

/* One figure: all steps, or the late half. */
static void draw(struct doc *d, const struct report_model *m, const struct curve_family *f,
                 bool late)
{
    const struct plan_program *p = m->program;
    struct arena *a = &d->arena;
    const char *name = f->members[0]->name;
    const char *stage = p->stages[f->members[0]->stage].name;
    const char **names = arena_array(a, p->n_conditions, sizeof(*names));
    for (size_t i = 0; i < p->n_conditions; i++) {
        names[i] = p->conditions[i].name;
    }
    const char *title = arena_printf(a, "%s during %s", name, stage);
    const char *caption =
        late ? arena_printf(a, "The same in the second half of the steps, on its own scale: %s.",
                            title)
             : caption_of(a, m, f, title);
    struct plot_curve *curves = arena_array(a, f->n + p->n_conditions, sizeof(*curves));
    struct plot_lines plot = {
        .head = {.title = late ? arena_printf(a, "%s, second half", title) : title,
                 .desc = late ? "The figure before this one says where the curves end."
                              : family_summary(a, m, f),
                 .x_title = "step",
                 .y_title = name},
        .curves = curves,
        .n_curves = curves_of(a, m, f, curves),
        .names = names,
        .n_names = p->n_conditions};
    if (late) {
        keep_late(curves, plot.n_curves);
    }
    const char *id = arena_printf(a, "curve-%s-%s%s", stage, name, late ? "-late" : "");
    plot_lines(doc_figure(d, id, caption, &plot.head), &plot);
}

/* Short curves need no second figure. */
static void add_figure(struct doc *d, const struct report_model *m, size_t stage, const char *name)
{
    struct curve_family f = family_of(&d->arena, m, stage, name);
    draw(d, m, &f, false);
    if (is_loss(name) && f.members[0]->n >= LATE_POINTS_MIN) {
        draw(d, m, &f, true);
    }
}

/* Losses, or the first quantity if there are none; the rest is named. */
static void add_stage(struct doc *d, const struct report_model *m, size_t stage)
{
    struct curve_names names = stage_names(m, stage);
    size_t drawn = 0;
    for (size_t i = 0; i < names.n && drawn < FIGURES_PER_STAGE; i++) {
        /* Every stage gets at least one figure. */
        if (is_loss(names.names[i]) || drawn == 0) {
            add_figure(d, m, stage, names.names[i]);
            drawn++;
        }
    }
    if (names.n > drawn) {
        const char **rest = arena_array(&d->arena, names.n, sizeof(*rest));
        size_t n = 0;
        for (size_t i = drawn; i < names.n; i++) {
            rest[n++] = names.names[i];
        }
        doc_paragraph(d, "Also recorded during %s, not drawn: %s.", m->program->stages[stage].name,
                      words_join(&d->arena, rest, n, " and "));
    }
}

/* Stages in the order of the program. */
void section_curves(struct doc *d, const struct report_model *m)
{
    doc_section(d, "curves", "Curves");
    if (m->curves.n == 0) {
        doc_paragraph(d, "No attempt left a curve.");
        return;
    }
    doc_paragraph(
        d, "What the workers reported while they ran. Curves inform; nothing here gates anything.");
    for (size_t s = 0; s < m->program->n_stages; s++) {
        add_stage(d, m, s);
    }
}
