/* The grid of a program: its factors expanded to cells and conditions, once it is loaded. */
#ifndef PREREG_PROGRAM_GRID_H
#define PREREG_PROGRAM_GRID_H

#include <cjson/cJSON.h>

#include "prereg/program/program.h"

/* Fills cells, conditions and cells_by_name. Their number is within PROGRAM_CELLS_MAX. */
void grid_expand(struct plan_program *p);
/* Sets every member of `over` in params, replacing those of its name. */
void grid_merge(cJSON *params, const cJSON *over);

#endif
