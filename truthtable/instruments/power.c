/*
 * Sample size and detectable difference for two models on the same items, by Miller (2024), eq. 9.
 * Normal quantiles: items are many. A design out of range gives NaN in either direction.
 */
#include "truthtable/instruments/power.h"

#include <math.h>
#include <stdbool.h>

#include "truthtable/instruments/quantile.h"

/* The limits that the header states. */
static bool in_range(const struct power_design *d)
{
    return d->alpha > 0 && d->alpha < 1 && d->power > d->alpha / 2 && d->power < 1 &&
           d->omega2 >= 0 && isfinite(d->omega2) && d->var_a >= 0 && isfinite(d->var_a) &&
           d->var_b >= 0 && isfinite(d->var_b) && d->k_a >= 1 && d->k_b >= 1;
}

/* The variance of one item's difference between the models. */
static double item_variance(const struct power_design *d)
{
    return d->omega2 + d->var_a / d->k_a + d->var_b / d->k_b;
}

/* z(1 - alpha/2) + z(power). */
static double z_sum(const struct power_design *d)
{
    return -normal_quantile(d->alpha / 2) + normal_quantile(d->power);
}

/* Not rounded: the caller decides in which direction. */
double power_items(const struct power_design *d, double delta)
{
    if (!in_range(d) || !(delta > 0)) {
        return (double)NAN;
    }
    double z = z_sum(d) / delta;
    double n = z * z * item_variance(d);
    return isfinite(n) ? n : (double)NAN;
}

/* The same equation, solved for the difference. */
double power_difference(const struct power_design *d, double n)
{
    if (!in_range(d) || !(n > 0)) {
        return (double)NAN;
    }
    double delta = z_sum(d) * sqrt(item_variance(d) / n);
    return isfinite(delta) ? delta : (double)NAN;
}
