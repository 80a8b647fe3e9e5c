/*
 * Axes: a range over the values seen, round ticks, and the map from values to coordinates. Values
 * may be any finite doubles, so ranges are clamped before anything is subtracted, and a range of
 * nothing is widened around its value.
 */
#include "truthtable/report/document/plot_axis.h"

#include <math.h>

#include "base/math/elementary.h"
#include "base/text.h"
#include "truthtable/report/document/fmt.h"

#define LABEL_EM 6.4 /* mean advance of a character of the 11 px label face */

/* low > high marks an axis that has seen nothing. */
struct axis axis_empty(void)
{
    return (struct axis){.low = (double)INFINITY, .high = -(double)INFINITY, .step = 1};
}

/* Ranges of values beyond +-VALUE_MAX and below RANGE_MIN would not be numbers. */
#define VALUE_MAX 1e300
#define RANGE_MIN 1e-300

/* Clamps a value so that differences stay finite. */
static double within_reach(double v)
{
    return fmax(fmin(v, VALUE_MAX), -VALUE_MAX);
}

/* Widens the range; values that are not finite are ignored. */
void axis_see(struct axis *x, double v)
{
    if (isfinite(v)) {
        v = within_reach(v);
        x->low = fmin(x->low, v);
        x->high = fmax(x->high, v);
    }
}

/* 1, 2 or 5 times a power of ten, near `raw`: Heckbert's nice numbers (Graphics Gems I, 1990), with
 * limits that lean towards fewer ticks. */
static double nice_step(double raw)
{
    double power = elementary_pow(10, floor(elementary_log10(raw)));
    double lead = raw / power;
    /* Thresholds below the geometric means favor fewer ticks. */
    double nice = lead < 1.1 ? 1 : lead < 2.3 ? 2 : lead < 6 ? 5 : 10;
    return nice * power;
}

/* Decimals follow from the step, so that neighboring ticks print differently. */
void axis_fit(struct axis *x, double margin, double at_low, double at_high, int n_ticks)
{
    if (x->low > x->high) {
        x->low = 0;
        x->high = 1;
    }
    double range = x->high - x->low;
    if (!(range > fmax(1e-9 * fmax(fabs(x->low), fabs(x->high)), RANGE_MIN))) {
        range = fmax(fabs(x->low) * 0.1, 1e-6);
        x->low -= range / 2;
        x->high += range / 2;
    }
    x->low -= range * margin;
    x->high += range * margin;
    x->at_low = at_low;
    x->at_high = at_high;
    x->step = nice_step((x->high - x->low) / n_ticks);
    int decimals = -(int)floor(elementary_log10(x->step) + 1e-9);
    x->decimals = decimals > 0 ? decimals : 0;
}

/* Linear; at_low may be greater than at_high, as on a vertical axis. */
double axis_place(const struct axis *x, double v)
{
    double t = (within_reach(v) - x->low) / (x->high - x->low);
    return x->at_low + t * (x->at_high - x->at_low);
}

/* Multiples of the step, computed and not accumulated. */
double axis_tick(const struct axis *x, size_t i)
{
    double tick = (ceil(x->low / x->step) + (double)i) * x->step;
    return tick <= x->high + 1e-9 * x->step ? tick : (double)NAN;
}

/* Large values are whole and grouped; very small steps use significant digits. */
const char *axis_tick_text(const struct axis *x, struct arena *a, double tick)
{
    if (x->step >= 1 && (x->step >= 1000 || fmax(fabs(x->low), fabs(x->high)) >= 1000)) {
        return fmt_whole(a, round(tick));
    }
    return x->decimals > 6 ? fmt_short(a, tick, 3) : fmt_fixed(a, tick, x->decimals);
}

/* An estimate: nothing measures fonts here. */
double axis_text_width(const char *text)
{
    return LABEL_EM * (double)text_columns(text);
}
