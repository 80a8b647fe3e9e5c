/*
 * Puts a result on the disk before the journal row that depends on it (invariant 1): result.json,
 * its artifacts, exit.json, and the folders that name them, up to the program's own.
 *
 * Workers need not sync anything. Blocking; runs off the loop. On ext4, with the journal on the
 * same file system, the bytes are written out and the sync of the journal's own line commits them
 * with it. Elsewhere each file and folder is synced; results that are accepted at the same time, or
 * that have many artifacts, share one syncfs(2).
 */
#ifndef DAEMON_PROGRAM_DURABLE_H
#define DAEMON_PROGRAM_DURABLE_H

#include <cjson/cJSON.h>

#include "base/err.h"

struct sync_group; /* of one file system */

/* One for each program: its accepted results share their syncs. */
struct sync_group *sync_group_new(void) __attribute__((returns_nonnull));
void sync_group_free(struct sync_group *g); /* NULL is fine */

/* result.json and exit.json in `folder`, what the result states as artifacts and items, and every
 * folder from there up to `top`, which is one of its parents. ERR_NO_SPACE, or ERR_IO: a loss of
 * power may lose any of it. */
int durable_result(struct sync_group *g, const char *folder, const char *top, const cJSON *result,
                   struct err *err) MUST_CHECK;

/* For tests: how often a whole file system was synced; and never to rely on the journal's sync. */
unsigned sync_group_rounds(struct sync_group *g);
void sync_group_stand_alone(struct sync_group *g);

#endif
