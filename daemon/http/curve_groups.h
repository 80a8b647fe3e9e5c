/* Groups the points of cells for drawing. Pure but for memory. */
#ifndef DAEMON_HTTP_CURVE_GROUPS_H
#define DAEMON_HTTP_CURVE_GROUPS_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "truthtable/evidence/curve_points.h"

struct curve_cell {
    size_t arm;
    struct curve_points points;
};

/* {"n_cells","points":[[step,mean,low,high,n]...]} of the cells of an arm, at most n_points (> 0)
 * of them; NULL: none has a point. */
cJSON *curve_arm_json(const struct curve_cell *cells, size_t n_cells, size_t arm, size_t n_points);
/* [[step,value]...] of one curve: all, or of each of n_points/2 stretches the least and the
 * greatest. */
cJSON *curve_points_json(const struct curve_points *c, size_t n_points);

#endif
