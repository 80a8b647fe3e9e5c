/*
 * Line plots: thin lines for cells and strong ones for means over them, with a legend if it is
 * short enough. Curves are reduced to about as many points as the drawing has pixels. Strong lines
 * are drawn last.
 */
#include <assert.h>
#include <math.h>

#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/document/plot_axis.h"

#define RIGHT        12.0
#define BOTTOM       40.0
#define AREA_HEIGHT  250.0
#define LEGEND_CHARS ((size_t)36)
#define LEGEND_LINE  16.0
#define SWATCH       22.0
#define COLORS       ((size_t)8) /* classes s0..s7 and d0..d3 of the style sheet */
#define DASHES       ((size_t)4)
#define DOT_RADIUS   3.2
#define POINTS_MAX   ((size_t)300) /* of a line: more would be finer than a pixel */

struct line_drawing {
    struct svg svg;
    struct arena arena;
    struct axis x;
    struct axis y;
    double left;
    double top;
    double base;
};

/* One series needs no legend, and too many would fill the figure. */
static bool has_legend(const struct plot_lines *plot)
{
    return plot->n_names > 1 && plot->n_names <= PLOT_LEGEND_MAX;
}

/* The color class and the dash class of a series. The dashes move on by one with every round of
 * colors, so that the first COLORS * DASHES series are distinct: more than a legend may name. */
static void series_class(char *cls, size_t size, size_t series)
{
    static_assert(PLOT_LEGEND_MAX <= COLORS * DASHES, "every series of a legend looks different");
    (void)snprintf(cls, size, "s%zu d%zu", series % COLORS, (series + series / COLORS) % DASHES);
}

/* Lays the legend out, drawing it when asked; returns its height. */
static double legend(struct line_drawing *d, const struct plot_lines *plot, bool draw)
{
    if (!has_legend(plot)) {
        return 0;
    }
    double x = d->left;
    double y = 12;
    for (size_t i = 0; i < plot->n_names; i++) {
        const char *name = fmt_cut(&d->arena, plot->names[i], LEGEND_CHARS);
        double width = SWATCH + 6 + axis_text_width(name) + 16;
        if (x > d->left && x + width > PLOT_WIDTH - RIGHT) {
            x = d->left;
            y += LEGEND_LINE;
        }
        if (draw) {
            char cls[32];
            series_class(cls, sizeof(cls), i);
            svg_group_open(&d->svg, cls, NULL);
            svg_line(&d->svg, "curve strong", (struct svg_point){x, y - 4},
                     (struct svg_point){x + SWATCH, y - 4});
            svg_group_close(&d->svg);
            svg_text(&d->svg, "legend", SVG_START, (struct svg_point){x + SWATCH + 6, y}, name);
        }
        x += width;
    }
    return y + 6;
}

/* Whether the band has both ends at a point. */
static bool has_band(const struct plot_curve *c, size_t k)
{
    return c->lows != NULL && isfinite(c->xs[k]) && isfinite(c->lows[k]) && isfinite(c->highs[k]);
}

/* Both axes over all points; the legend's height shifts the drawing down. */
static void fit(struct line_drawing *d, const struct plot_lines *plot)
{
    d->x = axis_empty();
    d->y = axis_empty();
    for (size_t i = 0; i < plot->n_curves; i++) {
        const struct plot_curve *c = &plot->curves[i];
        for (size_t k = 0; k < c->n; k++) {
            if (isfinite(c->xs[k]) && isfinite(c->ys[k])) {
                axis_see(&d->x, c->xs[k]);
                axis_see(&d->y, c->ys[k]);
            }
            if (has_band(c, k)) {
                axis_see(&d->y, c->lows[k]);
                axis_see(&d->y, c->highs[k]);
            }
        }
    }
    if (plot->zero) {
        axis_see(&d->y, 0);
    }
    d->left = 62;
    d->top = legend(d, plot, false) + 8;
    d->base = d->top + AREA_HEIGHT;
    axis_fit(&d->x, 0.01, d->left, PLOT_WIDTH - RIGHT, 8);
    axis_fit(&d->y, 0.04, d->base, d->top, 6);
}

/* Horizontal grid lines, ticks below, and both titles. */
static void draw_axes(struct line_drawing *d, const struct plot_lines *plot)
{
    for (size_t i = 0; !isnan(axis_tick(&d->y, i)); i++) {
        double tick = axis_tick(&d->y, i);
        double at = axis_place(&d->y, tick);
        svg_line(&d->svg, "grid", (struct svg_point){d->left, at},
                 (struct svg_point){PLOT_WIDTH - RIGHT, at});
        svg_text(&d->svg, "tick", SVG_END, (struct svg_point){d->left - 7, at + 3.8},
                 axis_tick_text(&d->y, &d->arena, tick));
    }
    for (size_t i = 0; !isnan(axis_tick(&d->x, i)); i++) {
        double tick = axis_tick(&d->x, i);
        double at = axis_place(&d->x, tick);
        svg_line(&d->svg, "axis", (struct svg_point){at, d->base},
                 (struct svg_point){at, d->base + 4});
        svg_text(&d->svg, "tick", SVG_MIDDLE, (struct svg_point){at, d->base + 16},
                 axis_tick_text(&d->x, &d->arena, tick));
    }
    if (plot->zero) {
        svg_line(&d->svg, "rule", (struct svg_point){d->left, axis_place(&d->y, 0)},
                 (struct svg_point){PLOT_WIDTH - RIGHT, axis_place(&d->y, 0)});
    }
    svg_line(&d->svg, "axis", (struct svg_point){d->left, d->base},
             (struct svg_point){PLOT_WIDTH - RIGHT, d->base});
    svg_text(&d->svg, "axis-title", SVG_MIDDLE,
             (struct svg_point){(d->left + PLOT_WIDTH - RIGHT) / 2, d->base + 33},
             plot->head.x_title);
    svg_text(&d->svg, "axis-title y-title", SVG_MIDDLE,
             (struct svg_point){-(d->top + d->base) / 2, 14}, plot->head.y_title);
}

/* The band between each two neighboring points that have one. */
static void draw_band(struct line_drawing *d, const struct plot_curve *c)
{
    char cls[32];
    series_class(cls, sizeof(cls), c->series);
    svg_group_open(&d->svg, cls, NULL);
    for (size_t k = 0; k + 1 < c->n; k++) {
        if (has_band(c, k) && has_band(c, k + 1)) {
            double from = axis_place(&d->x, c->xs[k]);
            double to = axis_place(&d->x, c->xs[k + 1]);
            const struct svg_point corners[] = {{from, axis_place(&d->y, c->lows[k])},
                                                {to, axis_place(&d->y, c->lows[k + 1])},
                                                {to, axis_place(&d->y, c->highs[k + 1])},
                                                {from, axis_place(&d->y, c->highs[k])}};
            svg_polygon(&d->svg, "spread", corners, ARRAY_LEN(corners));
        }
    }
    svg_group_close(&d->svg);
}

/* A dot for each point, and its bar: a point without neighbors has neither line nor band. */
static void draw_dots(struct line_drawing *d, const struct plot_curve *c)
{
    char cls[32];
    series_class(cls, sizeof(cls), c->series);
    svg_group_open(&d->svg, cls, c->tooltip);
    for (size_t k = 0; k < c->n; k++) {
        double x = axis_place(&d->x, c->xs[k]);
        if (has_band(c, k)) {
            svg_line(&d->svg, "bar", (struct svg_point){x, axis_place(&d->y, c->lows[k])},
                     (struct svg_point){x, axis_place(&d->y, c->highs[k])});
        }
        if (isfinite(c->xs[k]) && isfinite(c->ys[k])) {
            svg_circle(&d->svg, "dot", (struct svg_point){x, axis_place(&d->y, c->ys[k])},
                       DOT_RADIUS);
        }
    }
    svg_group_close(&d->svg);
}

/* Every k-th point and the last; a value that is not finite breaks the line. */
static void draw_curve(struct line_drawing *d, const struct plot_curve *c)
{
    struct svg_point *points = xcalloc(POINTS_MAX + 2, sizeof(*points));
    size_t stride = c->n / POINTS_MAX + 1;
    size_t n = 0;
    char cls[32];
    series_class(cls, sizeof(cls), c->series);
    svg_group_open(&d->svg, cls, c->tooltip);
    const char *line = c->strong ? "curve strong" : "curve thin";
    for (size_t i = 0; i < c->n; i++) {
        if (!isfinite(c->xs[i]) || !isfinite(c->ys[i])) {
            svg_polyline(&d->svg, line, points, n);
            n = 0;
        } else if (i % stride == 0 || i + 1 == c->n) {
            points[n++] =
                (struct svg_point){axis_place(&d->x, c->xs[i]), axis_place(&d->y, c->ys[i])};
        }
    }
    svg_polyline(&d->svg, line, points, n);
    svg_group_close(&d->svg);
    free(points);
}

/* Axes, legend, bands, thin lines, strong lines, dots. */
void plot_lines(struct strbuf *out, const struct plot_lines *plot)
{
    struct line_drawing d;
    arena_init(&d.arena);
    fit(&d, plot);
    const struct plot_head *h = &plot->head;
    svg_open(&d.svg, out,
             &(struct svg_head){.id = h->id,
                                .title = h->title,
                                .desc = h->desc,
                                .width = PLOT_WIDTH,
                                .height = d.base + BOTTOM});
    draw_axes(&d, plot);
    (void)legend(&d, plot, true);
    for (size_t i = 0; i < plot->n_curves; i++) {
        if (plot->curves[i].lows != NULL) {
            draw_band(&d, &plot->curves[i]);
        }
    }
    for (int strong = 0; strong <= 1; strong++) {
        for (size_t i = 0; i < plot->n_curves; i++) {
            if (plot->curves[i].strong == (strong == 1)) {
                draw_curve(&d, &plot->curves[i]);
            }
        }
    }
    for (size_t i = 0; i < plot->n_curves; i++) {
        if (plot->curves[i].dots) {
            draw_dots(&d, &plot->curves[i]);
        }
    }
    svg_close(&d.svg);
    arena_release(&d.arena);
}
