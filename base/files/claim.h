/*
 * A file that exactly one claimant makes, also where hosts share the folder: written under another
 * name, synced, and then given its own by link(2), which fails where the name exists. (O_EXCL and
 * locks are not safe on every network file system.)
 */
#ifndef BASE_FILES_CLAIM_H
#define BASE_FILES_CLAIM_H

#include <stddef.h>

#include "base/err.h"

/* Writes a new file of these bytes, closed and so sent to the server; it has no name's sync yet. */
int claim_write(const char *path, const void *data, size_t len, struct err *err) MUST_CHECK;

/* Makes `path` with these bytes, durably. ERR_EXISTS: it is there, made by another claimant. A
 * temporary file that claim_sweep() of another process removed meanwhile is written again. */
int claim_file(const char *path, const void *data, size_t len, struct err *err) MUST_CHECK;

/* A name for a temporary file in `folder`, ".<uuid>.tmp"; for free(). */
char *claim_temp(const char *folder) __attribute__((returns_nonnull));

/* Removes temporary files of claimants that were killed: those that are CLAIM_STALE_S older than a
 * file that is written now. Both times are the file system's own: no host's clock is used. Errors
 * are ignored. */
#define CLAIM_STALE_S 3600
void claim_sweep(const char *folder);

#endif
