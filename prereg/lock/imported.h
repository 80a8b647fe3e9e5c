/*
 * Imported programs: a locked plan whose records come from files made elsewhere. Nothing of such a
 * folder was executed, and nothing is: `imported.json` in it says so, to submit, rebuild and
 * report alike.
 *
 * A lock made for an import, when the records were already there, pins neither data nor workers and
 * says so under its root ("imported": true): its root is never that of a lock one can run.
 */
#ifndef PREREG_LOCK_IMPORTED_H
#define PREREG_LOCK_IMPORTED_H

#include <stdbool.h>

#include "prereg/lock/lock.h"

#define IMPORTED_SCHEMA 1

/* Whether the folder is that of an imported program. */
bool imported_is_folder(const char *folder);

/* The lock of a plan alone. `proof` may be NULL. */
int imported_lock_build(const struct plan_program *p, const cJSON *proof, struct lock **out,
                        struct err *err) MUST_CHECK;
/* Whether the lock was made for an import. */
bool imported_lock(const struct lock *lock);

#endif
