/*
 * Cells as a user writes them: the factors of "seed=1,wd=0" may be in any order. Names in files
 * that a program wrote (records, journals, receipts) must be exact; program_find_cell() finds
 * those.
 */
#ifndef PREREG_PROGRAM_CELL_NAME_H
#define PREREG_PROGRAM_CELL_NAME_H

#include <stdbool.h>

#include "prereg/program/program.h"

/* Whether every part of `parts` (between commas) is one of the name's, as often as it is in
 * `parts`. */
bool cell_name_has(const char *name, const char *parts);
/* Whether `written` is the name, its parts in any order. */
bool cell_name_is(const char *name, const char *written);

/* The cell of that exact name, else the only one whose name has the same parts; INDEX_NONE when
 * there is none, or more than one. */
size_t program_match_cell(const struct plan_program *p, const char *written);

#endif
