/* Axes of the figures: a range that grows with the values it sees, round ticks, and the way from a
 * value to a place. */
#ifndef TRUTHTABLE_REPORT_DOCUMENT_PLOT_AXIS_H
#define TRUTHTABLE_REPORT_DOCUMENT_PLOT_AXIS_H

#include "base/arena.h"
#include "truthtable/report/document/svg.h"

struct axis {
    double low; /* values; low > high: nothing seen yet */
    double high;
    double at_low; /* places */
    double at_high;
    double step; /* between ticks, in values: 1, 2 or 5 times a power of ten */
    int decimals;
};

struct axis axis_empty(void);
void axis_see(struct axis *x, double v); /* values that are not finite are passed over */
/* Widens by `margin` of the range on both sides (a range of nothing becomes one around its value),
 * sets where it is drawn, and chooses about n_ticks ticks. */
void axis_fit(struct axis *x, double margin, double at_low, double at_high, int n_ticks);
double axis_place(const struct axis *x, double v);
/* Tick i, from 0, or NAN beyond the last. */
double axis_tick(const struct axis *x, size_t i);
const char *axis_tick_text(const struct axis *x, struct arena *a, double tick);
/* About how wide a text is drawn at the figures' label size. */
double axis_text_width(const char *text);

#endif
