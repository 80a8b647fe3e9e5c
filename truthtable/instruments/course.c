/*
 * Slope and crossing of a gap over the marks of a run. Between two marks the mean gap is linear and
 * its variance quadratic in the place, so that the ends of a crossing's interval are roots of one
 * quadratic for each piece: nothing is searched, and equal gaps give equal bytes.
 */
#include "truthtable/instruments/course.h"

#include <assert.h>
#include <math.h>

#include "base/xalloc.h"
#include "truthtable/condition/stats.h"

#define LEVEL    0.975
#define ROUNDING 1e-12 /* as of contrasts (evaluate/contrast.c) */

/* The least squares slope of one replicate's gaps. */
static double slope_of(const struct course *c, size_t replicate)
{
    const double *gaps = &c->gaps[replicate * c->n_marks];
    double at_mean = stat_mean(c->at, c->n_marks);
    double gap_mean = stat_mean(gaps, c->n_marks);
    double products = 0;
    double squares = 0;
    for (size_t k = 0; k < c->n_marks; k++) {
        products += (c->at[k] - at_mean) * (gaps[k] - gap_mean);
        squares += (c->at[k] - at_mean) * (c->at[k] - at_mean);
    }
    return products / squares;
}

struct course_slope course_slope(const struct course *c)
{
    assert(c->n_marks >= 2 && c->n >= 1);
    double *slopes = xcalloc(c->n, sizeof(*slopes));
    double low = (double)INFINITY;
    double high = -(double)INFINITY;
    for (size_t r = 0; r < c->n; r++) {
        slopes[r] = slope_of(c, r);
        low = fmin(low, slopes[r]);
        high = fmax(high, slopes[r]);
    }
    struct course_slope out = {stat_mean(slopes, c->n), (double)NAN, (double)NAN, (double)NAN};
    /* Slopes that agree to rounding are not evidence that the next one would agree, too. */
    if (c->n >= 2 && (high - low) * (c->at[c->n_marks - 1] - c->at[0]) > ROUNDING * c->scale) {
        double half = 0;
        out.se = stat_sd(slopes, c->n) / sqrt((double)c->n);
        half = stat_t_quantile(LEVEL, (unsigned)(c->n - 1)) * out.se;
        out.low = out.slope - half;
        out.high = out.slope + half;
    }
    free(slopes);
    return out;
}

/* ---- the crossing ---- */

static double mean_at(const struct course *c, size_t mark)
{
    double sum = 0;
    for (size_t r = 0; r < c->n; r++) {
        sum += c->gaps[r * c->n_marks + mark];
    }
    return sum / (double)c->n;
}

/* The covariance of the mean gaps at two marks, over replicates. */
static double covariance(const struct course *c, size_t j, size_t k)
{
    double mj = mean_at(c, j);
    double mk = mean_at(c, k);
    double sum = 0;
    for (size_t r = 0; r < c->n; r++) {
        sum += (c->gaps[r * c->n_marks + j] - mj) * (c->gaps[r * c->n_marks + k] - mk);
    }
    return sum / (double)(c->n - 1) / (double)c->n;
}

/* q(w) = mean(w)^2 - t^2 var(w) = a w^2 + b w + c on the piece from mark k to the next, w in [0,
 * 1]: at most 0 where the interval of the gap holds 0. */
struct quadratic {
    double a, b, c;
};

static struct quadratic piece(const struct course *c, size_t k, double t)
{
    double m = mean_at(c, k);
    double d = mean_at(c, k + 1) - m;
    double own = covariance(c, k, k);
    double both = covariance(c, k, k + 1);
    double next = covariance(c, k + 1, k + 1);
    return (struct quadratic){d * d - t * t * (own - 2 * both + next),
                              2 * m * d - t * t * 2 * (both - own), m * m - t * t * own};
}

/* The real roots in ascending order; how many. Citardauq's form for the small one. */
static size_t roots_of(const struct quadratic *q, double roots[2])
{
    if (q->a == 0) {
        roots[0] = -q->c / q->b;
        return q->b == 0 ? 0 : 1;
    }
    double under = q->b * q->b - 4 * q->a * q->c;
    if (!(under >= 0)) {
        return 0;
    }
    double far = -(q->b + (q->b < 0 ? -sqrt(under) : sqrt(under))) / 2;
    double x = far / q->a;
    double y = far == 0 ? x : q->c / far;
    roots[0] = fmin(x, y);
    roots[1] = fmax(x, y);
    return 2;
}

static double value_at(const struct quadratic *q, double w)
{
    return (q->a * w + q->b) * w + q->c;
}

static double place_in(const struct course *c, size_t k, double w)
{
    return c->at[k] + w * (c->at[k + 1] - c->at[k]);
}

/* From w on piece k backwards: the first place where the interval no longer holds 0. */
static double end_before(const struct course *c, size_t k, double w, double t)
{
    for (;; k--, w = 1) {
        struct quadratic q = piece(c, k, t);
        double roots[2];
        /* A root at the mark itself may round to outside of both pieces. */
        if (value_at(&q, w) > 0) {
            return place_in(c, k, w);
        }
        for (size_t i = roots_of(&q, roots); i > 0; i--) {
            if (roots[i - 1] >= 0 && roots[i - 1] <= w) {
                return place_in(c, k, roots[i - 1]);
            }
        }
        if (k == 0) {
            return (double)NAN;
        }
    }
}

/* The same forwards. */
static double end_after(const struct course *c, size_t k, double w, double t)
{
    for (; k + 1 < c->n_marks; k++, w = 0) {
        struct quadratic q = piece(c, k, t);
        double roots[2];
        if (value_at(&q, w) > 0) {
            return place_in(c, k, w);
        }
        size_t n = roots_of(&q, roots);
        for (size_t i = 0; i < n; i++) {
            if (roots[i] >= w && roots[i] <= 1) {
                return place_in(c, k, roots[i]);
            }
        }
    }
    return (double)NAN;
}

/* A gap of exactly 0 has no sign: the sign changes at the first such mark, if it does. */
struct course_crossing course_crossing(const struct course *c)
{
    assert(c->n_marks >= 2 && c->n >= 1);
    struct course_crossing out = {0, (double)NAN, false, (double)NAN, (double)NAN};
    double last = mean_at(c, 0);
    size_t last_mark = 0; /* the last with a sign */
    size_t k = 0;
    double w = 0;
    for (size_t mark = 1; mark < c->n_marks; mark++) {
        double m = mean_at(c, mark);
        if (m == 0) {
            continue;
        }
        if (last * m < 0) {
            double next = mean_at(c, last_mark + 1); /* of the other sign, or 0 */
            out.n++;
            k = last_mark;
            w = last / (last - next);
        }
        last = m;
        last_mark = mark;
    }
    if (out.n != 1) {
        return out;
    }
    out.at = place_in(c, k, w);
    double v = c->n < 2 ? 0
                        : (1 - w) * (1 - w) * covariance(c, k, k) +
                              2 * w * (1 - w) * covariance(c, k, k + 1) +
                              w * w * covariance(c, k + 1, k + 1);
    out.has_interval = v > ROUNDING * c->scale * (ROUNDING * c->scale);
    if (out.has_interval) {
        double t = stat_t_quantile(LEVEL, (unsigned)(c->n - 1));
        out.low = end_before(c, k, w, t);
        out.high = end_after(c, k, w, t);
    }
    return out;
}
