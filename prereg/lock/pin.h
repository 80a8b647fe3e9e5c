/*
 * Digests of pinned files and folders, remembered by what stat(2) says, so that a check at every
 * spawn costs a stat and not a read (re-checked when size, time or inode changed).
 *
 * A digest is remembered only when the file had been at rest for two seconds before it was read and
 * had the same stat after: a change within one tick of the clock cannot hide behind equal times.
 * For the state folder's own files a tenth of a second is rest enough where the file system counts
 * in parts of a second: it is a local one, so its clock is ours.
 *
 * Threads may use one cache at once; two that ask for the same path may both read it.
 */
#ifndef PREREG_LOCK_PIN_H
#define PREREG_LOCK_PIN_H

#include "base/err.h"
#include "base/files/digest.h"

struct pin_cache;

struct pin_cache *pin_cache_create(void) __attribute__((returns_nonnull));
void pin_cache_free(struct pin_cache *cache); /* NULL is fine */
/* Empties the cache, so that every file is read again when it is asked for next. */
void pin_cache_forget(struct pin_cache *cache);

/* digest_path() through the cache; cache may be NULL. */
int pin_digest(struct pin_cache *cache, const char *path, struct digest *out,
               struct err *err) MUST_CHECK;
/* The same for a file of the state folder. */
int pin_digest_own(struct pin_cache *cache, const char *path, struct digest *out,
                   struct err *err) MUST_CHECK;

#endif
