/*
 * From a grid.toml to a program: the only way to make one. A program with errors is not made;
 * program_load_sound() is for `check`, which reports what it can of the rest.
 */
#ifndef PREREG_LOAD_PROGRAM_LOAD_H
#define PREREG_LOAD_PROGRAM_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "base/err.h"
#include "prereg/program/program.h"

/* Reads, validates and expands. All diagnostics go to `diag` (errors, warnings); on any error
 * returns ERR_INVALID (ERR_NOT_FOUND, ERR_IO when the file cannot be read) and *out is NULL. */
int program_load(const char *path, struct plan_program **out, struct diag *diag,
                 struct err *err) MUST_CHECK;
/* The same from the text of a file: `path` is used for messages and relative paths only. */
int program_parse(const char *text, size_t len, const char *path, struct plan_program **out,
                  struct diag *diag, struct err *err) MUST_CHECK;
/* program_load() with relative paths taken from `folder` (NULL: the file's own): for a copy of a
 * grid.toml that has moved, as under STATE/programs. */
int program_load_from(const char *path, const char *folder, struct plan_program **out,
                      struct diag *diag, struct err *err) MUST_CHECK;

/* Which parts of a file are without errors, each with all that it builds on: what may be checked of
 * it although other parts are wrong, so that a user sees all faults at once. */
struct program_sound {
    bool files;      /* [data], stages, [pin], apparatus: what program_check_files() reads */
    bool tasks;      /* factors, stages, their parameters: the cells are expanded */
    bool run;        /* [run] */
    bool measures;   /* and what they are metrics of */
    bool conditions; /* all that conditions name */
    bool forecasts;  /* and what those of forecasts name */
    bool table;      /* inputs, outcomes, rows */
    bool apparatus;
    bool decision; /* all that a verdict rests on */
};

/* program_load(), but *out is there although there are errors: as far as it was read, only for what
 * is sound. NULL when the file cannot be read or is not TOML. Warnings and errors are the same. */
int program_load_sound(const char *path, struct plan_program **out, struct program_sound *sound,
                       struct diag *diag, struct err *err) MUST_CHECK;

#endif
