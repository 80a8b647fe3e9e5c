/*
 * The files of amendments after a crash (docs/amendments.md): what was written and never took
 * effect is put aside, what took effect and was not put in place is. Whoever knows the journal says
 * which head holds; the files alone cannot.
 */
#ifndef PREREG_AMEND_HEAL_H
#define PREREG_AMEND_HEAL_H

#include <stddef.h>

#include "base/err.h"

/* `folder` holds grid.toml, its lock and amendments/; `head` is what took effect last. Doing it
 * twice changes nothing. ERR_LOCK, and no file was touched: amendments that took effect are missing
 * or do not follow, or grid.toml is the program of none of the two last heads. */
int amendments_heal(const char *folder, const char *head, struct err *err) MUST_CHECK;

/* grid.toml becomes the text of that amendment. */
int amendments_put_in_place(const char *folder, size_t number, struct err *err) MUST_CHECK;

#endif
