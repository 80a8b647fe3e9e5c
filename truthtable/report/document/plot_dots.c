/*
 * Dot plots: a row for each condition, a mark for each replicate, error bars, and vertical rules.
 * Heights follow from the numbers of marks; if a figure would not fit a printed page, all rows are
 * squeezed by one factor. Layout is computed first (fit) and drawn second, and the rules are laid
 * out by the same function in both passes.
 */
#include <math.h>
#include <stdint.h>

#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/document/plot_axis.h"

#define LABEL_CHARS     ((size_t)34)
#define LABEL_LINE      14.0 /* of the rules' labels, above the rows: none, one or two */
#define BOTTOM          38.0
#define MARK_STEP       9.0
#define ROW_PAD         9.0
#define ROW_MAX         72.0
#define ROWS_HEIGHT_MAX 800.0
#define DOT_RADIUS      3.4
#define CAP             0.75 /* half the height of a bar's end, in dot radii */

struct drawing {
    struct svg svg;
    struct arena arena;
    struct axis x;
    double left;
    double top; /* of the rows */
    double height;
    double squeeze; /* of the rows, so that the figure fits a printed page */
};

/* A row's height before squeezing: one step per mark, within limits. */
static double natural_height(const struct plot_row *row)
{
    return fmin(ROW_MAX, MARK_STEP * (double)(row->n_marks == 0 ? 1 : row->n_marks) + ROW_PAD);
}

/* A row's height as drawn. */
static double row_height(const struct drawing *d, const struct plot_row *row)
{
    return natural_height(row) * d->squeeze;
}

/* Labels of rules are on one line, or on two where they would touch, and stay inside the drawing.
 * Returns how many lines they need; draws them when asked. */
static size_t rules(struct drawing *d, const struct plot_dots *plot, bool draw)
{
    double free_from[2] = {0, 0};
    size_t n_lines = 0;
    for (size_t i = 0; i < plot->n_rules; i++) {
        const struct plot_rule *rule = &plot->rules[i];
        double at = axis_place(&d->x, rule->at);
        double half = axis_text_width(rule->label) / 2;
        double centre = fmax(fmin(at, PLOT_WIDTH - half - 2), half + 2);
        /* The second line is used only where the first has no room. */
        size_t line = centre - half < free_from[0] ? 1 : 0;
        free_from[line] = centre + half + 6;
        n_lines = line + 1 > n_lines ? line + 1 : n_lines;
        if (draw) {
            double y = d->top - 3 - LABEL_LINE * (double)line;
            svg_group_open(&d->svg, rule->cls, NULL);
            svg_line(&d->svg, "rule", (struct svg_point){at, y},
                     (struct svg_point){at, d->height - BOTTOM});
            svg_text(&d->svg, "rule-label", SVG_MIDDLE, (struct svg_point){centre, y - 3},
                     rule->label);
            svg_group_close(&d->svg);
        }
    }
    return n_lines;
}

/* The range covers values, error bars and rules; the left margin fits the widest label. */
static void fit(struct drawing *d, const struct plot_dots *plot)
{
    double widest = 40;
    double rows = 0;
    d->x = axis_empty();
    for (size_t i = 0; i < plot->n_rows; i++) {
        const struct plot_row *row = &plot->rows[i];
        widest = fmax(widest, axis_text_width(fmt_cut(&d->arena, row->label, LABEL_CHARS)));
        rows += natural_height(row);
        for (size_t k = 0; k < row->n_marks; k++) {
            axis_see(&d->x, row->marks[k].value);
            axis_see(&d->x, row->marks[k].low);
            axis_see(&d->x, row->marks[k].high);
        }
    }
    for (size_t i = 0; i < plot->n_rules; i++) {
        axis_see(&d->x, plot->rules[i].at);
    }
    d->left = widest + 16;
    axis_fit(&d->x, 0.05, d->left, PLOT_WIDTH - 12, 7);
    d->top = 6 + LABEL_LINE * (double)rules(d, plot, false);
    d->squeeze = fmin(1, ROWS_HEIGHT_MAX / rows);
    d->height = d->top + rows * d->squeeze + BOTTOM;
}

/* Grid lines behind the marks, and the title below. */
static void draw_axis(struct drawing *d, const struct plot_dots *plot)
{
    double base = d->height - BOTTOM;
    for (size_t i = 0; !isnan(axis_tick(&d->x, i)); i++) {
        double tick = axis_tick(&d->x, i);
        double at = axis_place(&d->x, tick);
        svg_line(&d->svg, "grid", (struct svg_point){at, d->top}, (struct svg_point){at, base});
        svg_text(&d->svg, "tick", SVG_MIDDLE, (struct svg_point){at, base + 14},
                 axis_tick_text(&d->x, &d->arena, tick));
    }
    svg_line(&d->svg, "axis", (struct svg_point){d->left, base},
             (struct svg_point){PLOT_WIDTH - 12, base});
    svg_text(&d->svg, "axis-title", SVG_MIDDLE,
             (struct svg_point){(d->left + PLOT_WIDTH - 12) / 2, base + 31}, plot->head.x_title);
}

/* Tints the part from the floor to the right. */
static void draw_band(struct drawing *d, double from)
{
    if (!isfinite(from) || from > d->x.high) {
        return;
    }
    double at = axis_place(&d->x, fmax(from, d->x.low));
    svg_rect(&d->svg, "band", (struct svg_point){at, d->top},
             (struct svg_point){d->x.at_high - at, d->height - d->top - BOTTOM});
}

/* A dot with its bar, or an arrow for a bound. A mark without a value is not drawn. */
static void draw_mark(struct drawing *d, const struct plot_mark *mark, double radius, double y)
{
    if (!isfinite(mark->value)) {
        return;
    }
    svg_group_open(&d->svg, "mark", mark->tooltip);
    double cap = radius * CAP;
    if (isfinite(mark->low) && isfinite(mark->high)) {
        double a = axis_place(&d->x, mark->low);
        double b = axis_place(&d->x, mark->high);
        svg_line(&d->svg, "bar", (struct svg_point){a, y}, (struct svg_point){b, y});
        svg_line(&d->svg, "bar", (struct svg_point){a, y - cap}, (struct svg_point){a, y + cap});
        svg_line(&d->svg, "bar", (struct svg_point){b, y - cap}, (struct svg_point){b, y + cap});
    }
    struct svg_point at = {axis_place(&d->x, mark->value), y};
    if (mark->beyond == 0) {
        svg_circle(&d->svg, "dot", at, radius);
    } else { /* points to where the value lies */
        double tip = at.x + (mark->beyond > 0 ? 2 : -2) * radius;
        const struct svg_point arrow[] = {
            {at.x, y - radius}, {tip, y}, {at.x, y + radius}, {at.x, y - radius}};
        svg_polyline(&d->svg, "beyond", arrow, 4);
    }
    svg_group_close(&d->svg);
}

/* A row without any value says "undetermined". */
static void draw_row(struct drawing *d, const struct plot_row *row, double top)
{
    double height = row_height(d, row);
    double pad = ROW_PAD * d->squeeze;
    double step = row->n_marks == 0 ? 0 : (height - pad) / (double)row->n_marks;
    /* Dots shrink with their step, but stay visible. */
    double radius = fmax(fmin(DOT_RADIUS, step * 0.45), 1.6);
    char cls[48];
    (void)snprintf(cls, sizeof(cls), "s%zu", row->series % 8);
    svg_text(&d->svg, "row-label", SVG_END, (struct svg_point){d->left - 8, top + height / 2 + 3.8},
             fmt_cut(&d->arena, row->label, LABEL_CHARS));
    svg_group_open(&d->svg, cls, NULL);
    bool any = false;
    for (size_t i = 0; i < row->n_marks; i++) {
        any = any || isfinite(row->marks[i].value);
        draw_mark(d, &row->marks[i], radius, top + pad / 2 + step * ((double)i + 0.5));
    }
    svg_group_close(&d->svg);
    if (!any) {
        svg_text(&d->svg, "tick", SVG_START,
                 (struct svg_point){d->left + 8, top + height / 2 + 3.8}, "undetermined");
    }
}

/* Band, grid and rules first, so that marks are on top. */
void plot_dots(struct strbuf *out, const struct plot_dots *plot)
{
    struct drawing d;
    arena_init(&d.arena);
    fit(&d, plot);
    const struct plot_head *h = &plot->head;
    svg_open(&d.svg, out,
             &(struct svg_head){.id = h->id,
                                .title = h->title,
                                .desc = h->desc,
                                .width = PLOT_WIDTH,
                                .height = d.height});
    draw_band(&d, plot->band_from);
    draw_axis(&d, plot);
    (void)rules(&d, plot, true);
    double top = d.top;
    for (size_t i = 0; i < plot->n_rows; i++) {
        if (i > 0) {
            svg_line(&d.svg, "lane", (struct svg_point){d.left, top},
                     (struct svg_point){PLOT_WIDTH - 12, top});
        }
        draw_row(&d, &plot->rows[i], top);
        top += row_height(&d, &plot->rows[i]);
    }
    svg_close(&d.svg);
    arena_release(&d.arena);
}
