/*
 * A Python environment that a stage runs in: a venv or a conda prefix, pinned as a list.
 *
 *   {"python":{"version":TEXT,"sha256":HEX},"packages":{NAME:{"version":TEXT,"record":HEX}},
 *    "loose":{PATH:HEX},"conda":{FILE:HEX}}
 *
 * `record` is the digest of a package's RECORD, which holds those of its files: a list is made only
 * of an environment whose files are what their RECORDs say. `loose` are files of site-packages in
 * no RECORD. Compiled bytecode (__pycache__) and the interpreter's standard library are not in it.
 * What a list could not cover is refused: packages from elsewhere (system site-packages, editable
 * installs, .pth files that name folders).
 */
#ifndef PREREG_LOCK_ENVIRONMENT_H
#define PREREG_LOCK_ENVIRONMENT_H

#include <cjson/cJSON.h>

#include "base/err.h"
#include "prereg/lock/pin.h"

/* Makes the list of the environment at `path`; the caller deletes it. The cache may be NULL.
 * ERR_NOT_FOUND: nothing is at `path`. ERR_LOCK: a file differs from its RECORD or is gone.
 * ERR_INVALID: it is not an environment, or not one that a list can cover. */
int environment_list(struct pin_cache *cache, const char *path, cJSON **out,
                     struct err *err) MUST_CHECK;

/* ERR_LOCK names the first package of `now` that is not as in `locked`: "numpy 1.26.4 was locked,
 * 2.0.1 is installed". */
int environment_compare(const cJSON *locked, const cJSON *now, struct err *err) MUST_CHECK;

/* Both: what is at `path` against the locked list. */
int environment_verify(struct pin_cache *cache, const cJSON *locked, const char *path,
                       struct err *err) MUST_CHECK;

#endif
