/*
 * The environment that a stage runs in. A container's image is pinned by its digest,
 * {"image":HEX} (image.h); a venv or a conda prefix is pinned as a list.
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
#include "prereg/program/program.h"

/* Makes the list of the environment at `path`; the caller deletes it. The cache may be NULL.
 * ERR_NOT_FOUND: nothing is at `path`. ERR_LOCK: a file differs from its RECORD or is gone.
 * ERR_INVALID: it is not an environment, or not one that a list can cover. */
int environment_list(struct pin_cache *cache, const char *path, cJSON **out,
                     struct err *err) MUST_CHECK;

/* The bytes of what environment_list() reads there, about; 0 where it would fail. */
int64_t environment_bytes(const char *path);

/* ERR_LOCK names the first package of `now` that is not as in `locked`: "numpy 1.26.4 was locked,
 * 2.0.1 is installed". */
int environment_compare(const cJSON *locked, const cJSON *now, struct err *err) MUST_CHECK;

/* The list of what the stage's `environment` names, or its image. Errors as of environment_list().
 */
int environment_of_stage(struct pin_cache *cache, const struct plan_stage *s, cJSON **out,
                         struct err *err) MUST_CHECK;

/* Both: what the stage runs in against the locked list. */
int environment_verify(struct pin_cache *cache, const cJSON *locked, const struct plan_stage *s,
                       struct err *err) MUST_CHECK;

/* The digest of the image in a list, or NULL: the list is not of an image. */
const char *environment_image(const cJSON *list);

/* The digest of what a list pins: that of its image, else of the list as canonical JSON. */
void environment_digest(const cJSON *list, char hex[DIGEST_HEX_SIZE]);

#endif
