/*
 * An import: the files that a map names, read, recomputed as far as they can be, and turned into
 * records of replay's schema, a receipt for every file, and warnings. Decides nothing and writes
 * nothing.
 *
 * Owns what it hands out. What disagrees with itself is refused (ERR_CORRUPT with file, line and
 * key); what is only unlike (settings that differ between cells, a limited run) is a warning, and
 * is in the report.
 */
#ifndef TRUTHTABLE_IMPORTED_IMPORT_H
#define TRUTHTABLE_IMPORTED_IMPORT_H

#include "truthtable/imported/map.h"
#include "truthtable/imported/results.h"

struct import {
    const struct plan_program *program;
    struct map *map;
    cJSON *records;      /* {"schema","program","label","records"}: evidence_read_records() */
    cJSON *list;         /* its list */
    cJSON *receipts;     /* array: a file each, with its SHA-256 and what was checked */
    cJSON *warnings;     /* array of sentences */
    cJSON *settings;     /* stage -> setting -> value -> cells; private (settings.c) */
    cJSON *models;       /* model -> cell; private */
    const char **owners; /* [task]: the file that speaks of it, or NULL */
};

/* Reads everything that the map names. On an error the import is incomplete, but can be
 * released. */
int import_run(struct import *im, const struct plan_program *p, struct map *map,
               struct err *err) MUST_CHECK;
void import_release(struct import *im);

/* Paths below the program's folder are shown relative to it, because a report that is passed on
 * should not name a home folder. JSON holds UTF-8, file names hold any bytes. */
void import_put_path(const struct import *im, cJSON *to, const char *key, const char *path);
/* Adds a sentence to the warnings, once. */
void import_warn(struct import *im, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* settings.c: what a file says of how it was made, for one task; and, at the end, what differs
 * between the cells of a stage. */
struct import_task {
    size_t cell;
    size_t stage;
    struct imported_results *results;
    const struct results_entry *entry;
    const struct results_entry **leaves;
    size_t n_leaves;
};
void settings_note(struct import *im, const struct import_task *t);
void settings_compare(struct import *im);

/* metrics.c: the record of one task. */
int metrics_put(const struct import *im, const struct import_task *t, cJSON *record,
                struct err *err) MUST_CHECK;

/* sampled.c: the task's samples among the files of its source, read and compared; receipts are
 * added. */
int sampled_check(struct import *im, const struct import_task *t, const struct map_source *source,
                  struct err *err) MUST_CHECK;

/* One file's receipt: {"kind","path","sha256","bytes","cell","stage"…}; the caller adds to it. */
cJSON *import_receipt(struct import *im, const char *kind, const char *path,
                      const struct digest *digest, int64_t n_bytes);

#endif
