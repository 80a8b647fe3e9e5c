/*
 * The folder of an imported program: plan, lock, records, receipts and verdict, written whole or
 * not at all. It lacks what an executed program's folder has (journal, cells, attempts), and it
 * holds imported.json (prereg/lock/imported.h), which an executed program's folder never does.
 *
 *   FOLDER/{grid.toml,grid.toml.lock,records.json,imported.json}
 *   FOLDER/report/{verdict.json,provenance.json,receipts.json}    the report comes beside them
 */
#ifndef TRUTHTABLE_IMPORTED_FOLDER_H
#define TRUTHTABLE_IMPORTED_FOLDER_H

#include "prereg/lock/imported.h"
#include "truthtable/evaluate/verdict.h"
#include "truthtable/imported/import.h"

struct folder_spec {
    const char *folder;
    const char *program_path; /* grid.toml */
    const struct plan_program *program;
    const struct lock *lock;
    bool replace; /* of an earlier import */
};

/* ERR_REFUSED when the folder, or the one that holds grid.toml, is that of an executed program;
 * ERR_EXISTS when it holds anything besides an earlier import, or that without `replace`. */
int folder_check(const struct folder_spec *spec, struct err *err) MUST_CHECK;

/* Adds to the import's warnings what the lock's time says of the files, computes the verdict of its
 * records, and writes. */
int folder_write(const struct folder_spec *spec, struct import *im, struct table_verdict *out,
                 struct err *err) MUST_CHECK;

#endif
