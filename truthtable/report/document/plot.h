/*
 * The report's figures, drawn with svg.h: dot plots with error bars, curves, heat maps of loads,
 * and a bar of shares. Each fits its axes to the finite values it is given, and draws nothing for
 * the others; colours are the style sheet's classes s0..s7 (with dash patterns d0..d3 in line
 * plots), so no figure relies on colour alone. Up to 32 series of a line plot differ in color or
 * dashes, twice as many as have a legend; beyond that only the tooltips tell them apart. All
 * pointers are borrowed.
 */
#ifndef TRUTHTABLE_REPORT_DOCUMENT_PLOT_H
#define TRUTHTABLE_REPORT_DOCUMENT_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

#define PLOT_WIDTH      720.0
#define PLOT_LEGEND_MAX ((size_t)16) /* more series than this: no legend, tooltips only */

struct plot_head {
    const char *id;
    const char *title;
    const char *desc;
    const char *x_title;
    const char *y_title; /* curves only */
};

struct plot_mark {
    double value;
    double low; /* ends of the error bar; not finite: none */
    double high;
    int beyond; /* 0: a value; 1, -1: a bound that the value is above, below */
    const char *tooltip;
};

struct plot_row { /* one line of a dot plot: a condition, its replicates as marks */
    const char *label;
    size_t series;
    const struct plot_mark *marks;
    size_t n_marks;
};

struct plot_rule { /* a vertical line: chance, floor, zero */
    double at;
    const char *label;
    const char *cls;
};

struct plot_dots {
    struct plot_head head;
    const struct plot_row *rows;
    size_t n_rows;
    const struct plot_rule *rules;
    size_t n_rules;
    double band_from; /* the part from here to the right is tinted; not finite: none */
};

struct plot_curve {
    size_t series;
    bool strong; /* the mean of a series, over its thin members */
    const double *xs;
    const double *ys;
    size_t n;
    const char *tooltip;
    const double *lows; /* of a band about the line, as `highs`; NULL: none; not finite: a gap */
    const double *highs;
    bool dots; /* a dot at each point, with a bar over its band */
};

struct plot_lines {
    struct plot_head head;
    const struct plot_curve *curves;
    size_t n_curves;
    const char *const *names; /* of the series, for the legend */
    size_t n_names;
    bool zero; /* a line at 0, which the axis then includes */
};

struct plot_share {
    const char *label;
    double share; /* of 1 */
    bool lit;
    bool rest; /* the share that no outcome was assigned */
};

struct plot_shares {
    struct plot_head head;
    const struct plot_share *shares;
    size_t n_shares;
};

struct plot_panel { /* one block of rows of a heat map: the experts of a layer */
    const char *label;
    const double *loads; /* [row][column], 1: even; not finite: blank */
    size_t n_rows;
};

struct plot_heat {
    struct plot_head head;
    const double *xs; /* [column], increasing */
    size_t n_columns;
    const struct plot_panel *panels;
    size_t n_panels;
};

void plot_heat(struct strbuf *out, const struct plot_heat *plot);
void plot_dots(struct strbuf *out, const struct plot_dots *plot);
void plot_lines(struct strbuf *out, const struct plot_lines *plot);
void plot_shares(struct strbuf *out, const struct plot_shares *plot);

#endif
