/*
 * A heat map of loads around an even share: panels of rows one above the other, columns to the
 * right. A load is drawn as one of a few classes, darker the farther it is from even on either
 * side, so that a legend can say all of them; neighbours of one class are one block.
 */
#include <math.h>

#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/document/plot_axis.h"
#include "truthtable/report/document/svg.h"

#define LEFT         78.0
#define RIGHT        12.0
#define PANEL_HEIGHT 96.0 /* about, of a panel */
#define ROW_MIN      3.0
#define ROW_MAX      14.0
#define PANEL_GAP    8.0
#define LEGEND_TOP   6.0
#define LEGEND_LINE  18.0
#define SWATCH       12.0
#define BOTTOM       40.0
#define TICKS        ((size_t)8)

/* Loads below `below` that no class before it took. */
static const struct heat_class {
    double below;
    const char *cls;
    const char *meaning;
} CLASSES[] = {
    {0.01, "heat h0", "dead, under 1 %"},  {0.5, "heat h1", "under 50 %"},
    {0.8, "heat h2", "to 80 %"},           {1.25, "heat h3", "even"},
    {1.5, "heat h4", "to 150 %"},          {2.0, "heat h5", "to 200 %"},
    {(double)INFINITY, "heat h6", "more"},
};

/* The class of a load; ARRAY_LEN(CLASSES) where there is none. */
static size_t class_of(double load)
{
    size_t i = 0;
    while (i < ARRAY_LEN(CLASSES) && !(load < CLASSES[i].below)) {
        i++;
    }
    return i;
}

static double row_height(const struct plot_panel *panel)
{
    const double h = PANEL_HEIGHT / (double)(panel->n_rows > 0 ? panel->n_rows : 1);
    return fmin(fmax(h, ROW_MIN), ROW_MAX);
}

/* Where a column begins. */
static double column_at(const struct plot_heat *plot, size_t column)
{
    return LEFT + (PLOT_WIDTH - LEFT - RIGHT) * (double)column / (double)plot->n_columns;
}

/* Blocks of one class from left to right. */
static void draw_row(struct svg *svg, const struct plot_heat *plot, const double *loads, double top,
                     double height)
{
    size_t begin = 0;
    for (size_t i = 1; i <= plot->n_columns; i++) {
        const size_t cls = class_of(loads[begin]);
        if (i < plot->n_columns && class_of(loads[i]) == cls) {
            continue;
        }
        if (cls < ARRAY_LEN(CLASSES)) {
            const double x = column_at(plot, begin);
            svg_rect(svg, CLASSES[cls].cls, (struct svg_point){x, top},
                     (struct svg_point){column_at(plot, i) - x, height});
        }
        begin = i;
    }
}

static double draw_legend(struct svg *svg)
{
    double x = LEFT;
    for (size_t i = 0; i < ARRAY_LEN(CLASSES); i++) {
        svg_rect(svg, CLASSES[i].cls, (struct svg_point){x, LEGEND_TOP},
                 (struct svg_point){SWATCH, SWATCH});
        svg_text(svg, "legend", SVG_START, (struct svg_point){x + SWATCH + 5, LEGEND_TOP + 10},
                 CLASSES[i].meaning);
        x += SWATCH + 15 + axis_text_width(CLASSES[i].meaning);
    }
    return LEGEND_TOP + LEGEND_LINE + 6;
}

/* Some columns with their place, the first and the last among them. */
static void draw_ticks(struct svg *svg, struct arena *a, const struct plot_heat *plot, double base)
{
    const size_t n = plot->n_columns < TICKS ? plot->n_columns : TICKS;
    for (size_t k = 0; k < n; k++) {
        const size_t i = n == 1 ? 0 : k * (plot->n_columns - 1) / (n - 1);
        const double x = (column_at(plot, i) + column_at(plot, i + 1)) / 2;
        svg_line(svg, "axis", (struct svg_point){x, base}, (struct svg_point){x, base + 4});
        svg_text(svg, "tick", SVG_MIDDLE, (struct svg_point){x, base + 16},
                 fmt_short(a, plot->xs[i], 6));
    }
    svg_text(svg, "axis-title", SVG_MIDDLE,
             (struct svg_point){(LEFT + PLOT_WIDTH - RIGHT) / 2, base + 33}, plot->head.x_title);
}

/* Of all panels and the gaps between them. */
static double panels_height(const struct plot_heat *plot)
{
    double height = 0;
    for (size_t i = 0; i < plot->n_panels; i++) {
        height += row_height(&plot->panels[i]) * (double)plot->panels[i].n_rows + PANEL_GAP;
    }
    return height;
}

void plot_heat(struct strbuf *out, const struct plot_heat *plot)
{
    const struct plot_head *h = &plot->head;
    const double top = LEGEND_TOP + LEGEND_LINE + 6;
    const double base = top + panels_height(plot);
    struct arena arena;
    struct svg svg;
    arena_init(&arena);
    svg_open(&svg, out,
             &(struct svg_head){.id = h->id,
                                .title = h->title,
                                .desc = h->desc,
                                .width = PLOT_WIDTH,
                                .height = base + BOTTOM});
    double y = draw_legend(&svg);
    for (size_t i = 0; i < plot->n_panels && plot->n_columns > 0; i++) {
        const struct plot_panel *panel = &plot->panels[i];
        const double height = row_height(panel);
        svg_group_open(&svg, "panel", panel->label);
        svg_text(&svg, "tick", SVG_END,
                 (struct svg_point){LEFT - 7, y + height * (double)panel->n_rows / 2 + 4},
                 panel->label);
        for (size_t r = 0; r < panel->n_rows; r++, y += height) {
            draw_row(&svg, plot, panel->loads + r * plot->n_columns, y, height);
        }
        svg_group_close(&svg);
        y += PANEL_GAP;
    }
    if (plot->n_columns > 0) {
        draw_ticks(&svg, &arena, plot, base);
    }
    svg_close(&svg);
    arena_release(&arena);
}
