/*
 * The text of a successor: an earlier grid.toml with another name and `supersedes`, and without
 * what its author must state again because the results of the first program may be known.
 *
 * Left out are the priors of the outcomes, the confidence of every forecast, and the levels of
 * replicate factors: the same seeds would give the scores that were seen. Everything else, comments
 * too, stays as it is written. The result is not a whole program: `check` names what is missing.
 */
#ifndef CTL_SUCCESSOR_H
#define CTL_SUCCESSOR_H

#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"

struct successor {
    const char *name; /* of the new program */
    const char *root; /* of the old one, 64 hex digits */
};

/* Appends the new text. ERR_INVALID, with the place, when the old one is not TOML or has no
 * [program] name. `path` is for messages. */
int successor_write(const char *path, const struct strbuf *old, const struct successor *to,
                    struct strbuf *out, struct err *err) MUST_CHECK;

#endif
