/*
 * A small part of a program before it is locked: every stage of a few cells, a few steps and items
 * of each, in a scratch folder that is removed. Scores are discarded unread; what is kept is time,
 * memory, disk and what failed.
 *
 * The worker gets its task as in a run, with one more member, "try" (docs/worker-protocol.md). A
 * worker that supports it reports in its result how much of the whole it did; any other runs whole.
 */
#ifndef CTL_TRIAL_H
#define CTL_TRIAL_H

#include <cjson/cJSON.h>

#include "base/err.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"

#define TRY_SECONDS_MAX (10 * 365.25 * 86400) /* longer is not known */

/* Which cells to try, and how much of each. */
struct try_spec {
    const size_t *cells;
    size_t n_cells;
    int64_t steps;                                       /* at most, of each training */
    int64_t items;                                       /* at most, of each evaluation */
    void (*begins)(const char *cell, const char *stage); /* or NULL */
};

/* As few cells as hold every level of every factor but replicates: one per arm. *n of them; the
 * caller frees it. */
size_t *try_choose_cells(const struct plan_program *p, size_t *n) __attribute__((returns_nonnull));

/* One object for each stage of each cell, in this order:
 *   {"cell","stage","state":"done"|"cannot_be_measured"|"failed"|"left_out","why":TEXT|null,
 *    "seconds","whole_seconds","peak_bytes","whole_peak_bytes","disk_bytes","whole_disk_bytes",
 *    "ran_whole":BOOL}
 * numbers null where nothing is known. Memory and disk of the whole are what the worker reports
 * (--describe), or what was measured where that is more. `lock` is of the program as it is now, and
 * was written nowhere. ERR_REFUSED: stopped by a signal. The caller deletes *rows; nothing is left
 * on disk. */
int try_run(const struct plan_program *p, const struct lock *lock, const struct try_spec *spec,
            cJSON **rows, struct err *err) MUST_CHECK;

#endif
