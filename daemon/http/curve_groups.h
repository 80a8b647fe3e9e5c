/* Groups the points of cells for drawing. Pure but for memory. */
#ifndef DAEMON_HTTP_CURVE_GROUPS_H
#define DAEMON_HTTP_CURVE_GROUPS_H

#include <cjson/cJSON.h>
#include <stddef.h>

struct curve_cell { /* {0} is empty; xs rises */
    size_t arm;
    double *xs;
    double *ys;
    size_t n;
    size_t cap;
};

/* Appends; points at or after x, which a resumed attempt repeats, are dropped first. */
void curve_cell_add(struct curve_cell *c, double x, double y);
void curve_cell_release(struct curve_cell *c);

/* {"n_cells","points":[[step,mean,low,high,n]...]} of the cells of an arm, at most n_points (> 0)
 * of them; NULL: none has a point. */
cJSON *curve_arm_json(const struct curve_cell *cells, size_t n_cells, size_t arm, size_t n_points);
/* [[step,value]...] of one cell: all, or of each of n_points/2 stretches the least and the
 * greatest. */
cJSON *curve_cell_json(const struct curve_cell *c, size_t n_points);

#endif
