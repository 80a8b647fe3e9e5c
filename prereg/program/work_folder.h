/*
 * The folder of [run] work, before anything is put into it. A missing one is made when the program
 * is submitted, if the folder above it is there and may be written to; more is never made, since a
 * path that is wrong further up is a slip (a file system that is not mounted, a name mistyped).
 */
#ifndef PREREG_PROGRAM_WORK_FOLDER_H
#define PREREG_PROGRAM_WORK_FOLDER_H

#include "base/diag.h"
#include "prereg/program/program.h"

/* Adds at most one diagnostic of `level`, at the key's place. Nothing without [run] work. */
void work_folder_check(const struct plan_program *p, enum diag_level level, struct diag *diag);

#endif
