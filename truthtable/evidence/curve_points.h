/* The points of one curve, as a task's attempts reported them (curve_events.h). */
#ifndef TRUTHTABLE_EVIDENCE_CURVE_POINTS_H
#define TRUTHTABLE_EVIDENCE_CURVE_POINTS_H

#include <stddef.h>

struct curve_points { /* {0} is empty */
    double *xs;       /* rising */
    double *ys;
    size_t n;
    size_t cap;
};

/* Appends a point; points at or after x, which a resumed attempt repeats, are dropped first. */
void curve_points_add(struct curve_points *c, double x, double y);
/* Keeps the least and the greatest of each of n/4 equal stretches of x, at most n/2 + 2 points. */
void curve_points_thin(struct curve_points *c);
void curve_points_release(struct curve_points *c);

#endif
