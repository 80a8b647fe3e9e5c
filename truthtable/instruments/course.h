/*
 * The course of a gap over the marks of a run (docs/statistics.md): its slope, and where it changes
 * sign. A gap is known at each mark for each replicate, and is taken as straight between marks.
 * Replicates are the unit: they differ at one mark as they do at the next, so intervals rest on the
 * whole courses of replicates, never on the marks as if those were independent.
 *
 * Invariants: marks ascend strictly; at least two marks; every gap is finite.
 */
#ifndef TRUTHTABLE_INSTRUMENTS_COURSE_H
#define TRUTHTABLE_INSTRUMENTS_COURSE_H

#include <stdbool.h>
#include <stddef.h>

struct course {
    const double *at; /* [mark] */
    size_t n_marks;
    const double *gaps; /* [replicate * n_marks + mark] */
    size_t n;           /* replicates */
    double scale;       /* the largest |score| behind the gaps: differences below its rounding are
                           not a spread */
};

struct course_slope {
    double slope; /* mean of the replicates' least squares slopes: gap per unit of `at` */
    double se;    /* NaN with one replicate, and where the slopes are equal to rounding */
    double low;   /* t interval, 95 %; NaN as se */
    double high;
};

struct course_crossing {
    size_t n;          /* how often the mean gap changes sign between the first mark and the last */
    double at;         /* the place; NaN unless n is 1 */
    bool has_interval; /* there is a place, and the replicates differ there */
    double low;        /* going back from the place: where the 95 % t interval of the gap ceases to
                          hold 0; NaN where it holds 0 up to the first mark */
    double high;       /* likewise going on, up to the last mark */
};

/* Fits a line to each replicate's gaps. */
struct course_slope course_slope(const struct course *c);
/* Inverts the t interval of the gap at every place: Fieller's method along each straight piece. */
struct course_crossing course_crossing(const struct course *c);

#endif
