/*
 * The git commit of the folder that holds a program, and whether its tree was clean. A lock records
 * it for people; no decision depends on it.
 *
 * The repository may come from a stranger, so nothing that its own configuration names is executed:
 * no filters, no file-system monitor, no hooks, no submodules, no fetching of missing objects, no
 * system configuration, an environment of a few names. Nothing is written into it.
 */
#ifndef PREREG_LOCK_GIT_H
#define PREREG_LOCK_GIT_H

#include <cjson/cJSON.h>

#include "base/strbuf.h"

#define GIT_OWN_MAX 8

/* {"commit":HEX,"clean":bool}; null outside a repository, before the first commit, and when git is
 * not there or does not answer in time: the reason is then appended to `note`, a line. Clean: no
 * tracked file differs (its bytes as they are, unfiltered) and none is untracked that is not
 * ignored, but for the files in the folder that `own` names (ended by NULL; GIT_OWN_MAX at most):
 * what locking itself writes. The caller deletes it. */
cJSON *git_state(const char *folder, const char *const *own, struct strbuf *note)
    __attribute__((returns_nonnull));

#endif
