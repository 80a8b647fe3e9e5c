/*
 * Repairs the files of amendments after a crash (docs/amendments.md): an amendment that was written
 * but never took effect is renamed out of the way; one that took effect gets its text installed as
 * grid.toml. The caller reads from the journal which head holds; the files alone cannot tell.
 */
#ifndef PREREG_AMEND_AMEND_HEAL_H
#define PREREG_AMEND_AMEND_HEAL_H

#include <stddef.h>

#include "base/err.h"

/* Brings the files in `folder` (grid.toml, its lock and amendments/) in line with `head`, the head
 * of the last amendment that took effect. Idempotent. ERR_LOCK, and no file was changed: amendments
 * that took effect are missing or do not follow, or grid.toml is the program of no head so far. */
int amendments_heal(const char *folder, const char *head, struct err *err) MUST_CHECK;

/* Replaces grid.toml by the program text of amendment `number`. */
int amendments_put_in_place(const char *folder, size_t number, struct err *err) MUST_CHECK;

#endif
