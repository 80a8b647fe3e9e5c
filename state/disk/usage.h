/*
 * How much of a disk a program takes, by what its files are for. Sizes are those of the blocks on
 * the disk, as du counts them: logs have holes. A file that goes away while it is counted is not
 * counted; a folder that cannot be read is counted as far as it can be. Blocking.
 */
#ifndef STATE_DISK_USAGE_H
#define STATE_DISK_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum usage_kind {
    USAGE_CHECKPOINTS_RUNNING, /* of attempts without an end */
    USAGE_CHECKPOINTS_OPEN, /* of ended attempts at tasks that are not done: the next one resumes */
    USAGE_CHECKPOINTS_DONE, /* of tasks that are done, and not artifacts */
    USAGE_ARTIFACTS,        /* what accepted results name, and other files of their attempts */
    USAGE_DEAD,             /* other files of attempts that were not accepted */
    USAGE_ITEMS,
    USAGE_LOGS,
    USAGE_EVENTS,
    USAGE_RECORDS, /* task.json, start.json, exit.json, result.json, and folders */
    USAGE_JOURNAL,
    USAGE_PLAN,
    USAGE_REPORT,
    USAGE_RERUNS,
    USAGE_KIND_NR
};

const char *usage_kind_name(enum usage_kind k); /* "checkpoints_running", ... */

struct usage {
    int64_t bytes[USAGE_KIND_NR];
    int64_t n_files;
    int64_t superseded_last; /* of CHECKPOINTS_DONE: what [run] keep = "last" would free */
    int64_t superseded_none; /* and keep = "none" */
    bool partial;            /* a folder could not be read */
    bool cells_missing;      /* cells/ is not there: its disk is missing, or it was removed */
};

/* Of STATE/programs/ID. With `whole` false, cells/ is only summed up (as RECORDS): no result is
 * read. */
void usage_of_program(const char *folder, bool whole, struct usage *out);

/* The kinds that are in cells/ and apparatus/, in sum. */
int64_t usage_cells(const struct usage *u);

/* All files below `path` (or of it), without following links; 0 where there is nothing. */
int64_t usage_of_path(const char *path);

#endif
