#include <math.h>
#include <stdint.h>

#include "truthtable/report/fmt.h"
#include "truthtable/report/plot.h"
#include "truthtable/report/plot_axis.h"

#define LABEL_CHARS ((size_t)34)
#define TOP         34.0 /* room for the rules' labels, in two lines */
#define BOTTOM      38.0
#define MARK_STEP   9.0
#define ROW_PAD     9.0
#define ROW_MAX     72.0
#define DOT_RADIUS  3.4
#define CAP         2.6

struct drawing {
    struct svg svg;
    struct arena arena;
    struct axis x;
    double left;
    double height;
};

static double row_height(const struct plot_row *row)
{
    return fmin(ROW_MAX, MARK_STEP * (double)(row->n_marks == 0 ? 1 : row->n_marks) + ROW_PAD);
}

static void fit(struct drawing *d, const struct plot_dots *plot)
{
    double widest = 40;
    d->x = axis_empty();
    d->height = TOP + BOTTOM;
    for (size_t i = 0; i < plot->n_rows; i++) {
        const struct plot_row *row = &plot->rows[i];
        widest = fmax(widest, axis_text_width(fmt_cut(&d->arena, row->label, LABEL_CHARS)));
        d->height += row_height(row);
        for (size_t k = 0; k < row->n_marks; k++) {
            axis_see(&d->x, row->marks[k].value);
            axis_see(&d->x, row->marks[k].low);
            axis_see(&d->x, row->marks[k].high);
        }
    }
    for (size_t i = 0; i < plot->n_rules; i++) {
        axis_see(&d->x, plot->rules[i].at);
    }
    d->left = widest + 14;
    axis_fit(&d->x, 0.05, d->left, PLOT_WIDTH - 12, 7);
}

static void draw_axis(struct drawing *d, const struct plot_dots *plot)
{
    double base = d->height - BOTTOM;
    for (size_t i = 0; !isnan(axis_tick(&d->x, i)); i++) {
        double tick = axis_tick(&d->x, i);
        double at = axis_place(&d->x, tick);
        svg_line(&d->svg, "grid", (struct svg_point){at, TOP}, (struct svg_point){at, base});
        svg_text(&d->svg, "tick", SVG_MIDDLE, (struct svg_point){at, base + 14},
                 axis_tick_text(&d->x, &d->arena, tick));
    }
    svg_line(&d->svg, "axis", (struct svg_point){d->left, base},
             (struct svg_point){PLOT_WIDTH - 12, base});
    svg_text(&d->svg, "axis-title", SVG_MIDDLE,
             (struct svg_point){(d->left + PLOT_WIDTH - 12) / 2, base + 31}, plot->head.x_title);
}

static void draw_band(struct drawing *d, double from)
{
    if (!isfinite(from) || from > d->x.high) {
        return;
    }
    double at = axis_place(&d->x, fmax(from, d->x.low));
    svg_rect(&d->svg, "band", (struct svg_point){at, TOP},
             (struct svg_point){d->x.at_high - at, d->height - TOP - BOTTOM});
}

/* Labels alternate between two lines and stay inside the drawing. */
static void draw_rules(struct drawing *d, const struct plot_dots *plot)
{
    double free_from[2] = {0, 0};
    for (size_t i = 0; i < plot->n_rules; i++) {
        const struct plot_rule *rule = &plot->rules[i];
        double at = axis_place(&d->x, rule->at);
        double half = axis_text_width(rule->label) / 2;
        double centre = fmax(fmin(at, PLOT_WIDTH - half - 2), half + 2);
        size_t line = centre - half < free_from[0] ? 1 : 0;
        free_from[line] = centre + half + 6;
        double y = line == 0 ? TOP - 6 : TOP - 20;
        svg_group_open(&d->svg, rule->cls, NULL);
        svg_line(&d->svg, "rule", (struct svg_point){at, line == 0 ? TOP - 3 : TOP - 17},
                 (struct svg_point){at, d->height - BOTTOM});
        svg_text(&d->svg, "rule-label", SVG_MIDDLE, (struct svg_point){centre, y}, rule->label);
        svg_group_close(&d->svg);
    }
}

static void draw_mark(struct drawing *d, const struct plot_mark *mark, double y)
{
    if (!isfinite(mark->value)) {
        return;
    }
    svg_group_open(&d->svg, "mark", mark->tooltip);
    if (isfinite(mark->low) && isfinite(mark->high)) {
        double a = axis_place(&d->x, mark->low);
        double b = axis_place(&d->x, mark->high);
        svg_line(&d->svg, "bar", (struct svg_point){a, y}, (struct svg_point){b, y});
        svg_line(&d->svg, "bar", (struct svg_point){a, y - CAP}, (struct svg_point){a, y + CAP});
        svg_line(&d->svg, "bar", (struct svg_point){b, y - CAP}, (struct svg_point){b, y + CAP});
    }
    svg_circle(&d->svg, "dot", (struct svg_point){axis_place(&d->x, mark->value), y}, DOT_RADIUS);
    svg_group_close(&d->svg);
}

static void draw_row(struct drawing *d, const struct plot_row *row, double top)
{
    double height = row_height(row);
    double step = row->n_marks == 0 ? 0 : (height - ROW_PAD) / (double)row->n_marks;
    char cls[48];
    (void)snprintf(cls, sizeof(cls), "s%zu", row->series % 8);
    svg_text(&d->svg, "row-label", SVG_END, (struct svg_point){d->left - 8, top + height / 2 + 3.8},
             fmt_cut(&d->arena, row->label, LABEL_CHARS));
    svg_line(&d->svg, "lane", (struct svg_point){d->left, top + height},
             (struct svg_point){PLOT_WIDTH - 12, top + height});
    svg_group_open(&d->svg, cls, NULL);
    bool any = false;
    for (size_t i = 0; i < row->n_marks; i++) {
        any = any || isfinite(row->marks[i].value);
        draw_mark(d, &row->marks[i], top + ROW_PAD / 2 + step * ((double)i + 0.5));
    }
    svg_group_close(&d->svg);
    if (!any) {
        svg_text(&d->svg, "tick", SVG_START,
                 (struct svg_point){d->left + 8, top + height / 2 + 3.8}, "undetermined");
    }
}

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
    draw_rules(&d, plot);
    double top = TOP;
    for (size_t i = 0; i < plot->n_rows; i++) {
        draw_row(&d, &plot->rows[i], top);
        top += row_height(&plot->rows[i]);
    }
    svg_close(&d.svg);
    arena_release(&d.arena);
}
