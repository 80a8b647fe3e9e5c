/*
 * Workers and the files of their commands: where they are found, and the copies they are run from.
 *
 * STATE/objects/<sha256> is a copy of a file as it was locked, mode 0755, never changed once there.
 * What runs is always the copy, so that a new build of a worker cannot slip into a locked program.
 */
#ifndef PREREG_LOCK_OBJECT_H
#define PREREG_LOCK_OBJECT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/files/digest.h"
#include "prereg/lock/lock.h"
#include "prereg/lock/pin.h"
#include "prereg/program/program.h"

/* Finds argv[0]: a name with a slash is relative to the program's folder; a bare one is searched
 * in the folder of this executable, then in $PATH. ERR_NOT_FOUND names the places. */
int object_resolve_worker(const struct plan_program *p, const char *name, char **path,
                          struct err *err) MUST_CHECK;

/* The absolute path of command[i] of a stage when it is a file that the lock pins: always for
 * i == 0 (a bare name is searched in the stage's environment first), but for object_is_of_image();
 * for others when it names a regular file relative to the program's folder. *path is NULL when it
 * is a plain argument. */
int object_resolve_argument(const struct plan_program *p, size_t stage, size_t i, char **path,
                            struct err *err) MUST_CHECK;

/* Whether command[0] of the stage is a program of its image, which the lock pins as a whole. */
bool object_is_of_image(const struct plan_stage *s);

/* STATE/objects/<hex>. The caller frees it. */
char *object_path(const char *state, const char *hex) __attribute__((returns_nonnull));

/* Copies the file at `path` into STATE/objects and gives its digest. An object that is there
 * already is read again, and replaced when its bytes are not those of its name. */
int object_store(const char *state, const char *path, struct digest *out,
                 struct err *err) MUST_CHECK;

/* Copies every file of every command into STATE/objects, ERR_LOCK when one is not what was locked
 * (under [pin] workers = "record" the changed one is stored instead, with a line in `notes`). */
int object_store_all(const struct plan_program *p, const struct lock *lock, const char *state,
                     struct strbuf *notes, struct err *err) MUST_CHECK;

/* Where objects are kept, and what says which they must be. All borrowed. */
struct object_home {
    const char *state;
    const struct plan_program *program;
    const struct lock *lock;
    struct pin_cache *cache; /* or NULL: every object is read again each time */
};

/* The argv to spawn for a stage: pinned files replaced by their objects, each verified against its
 * digest; the rest as written. NULL-terminated, one allocation each; free with xfree_list().
 * A copy that is damaged, a link or gone is rebuilt from its source when that is what was
 * locked; ERR_LOCK otherwise. */
int object_argv(const struct object_home *home, size_t stage, char ***argv,
                struct err *err) MUST_CHECK;

/* The paths of the objects of all commands, each once. NULL-terminated; free with xfree_list(). */
char **object_paths(const struct object_home *home) __attribute__((returns_nonnull));

/* Checks every object of every command against its digest, as object_argv() does before a spawn,
 * and repairs it in the same way; `notes` gets a line for each that was not what was locked. */
int object_check_all(const struct object_home *home, struct strbuf *notes,
                     struct err *err) MUST_CHECK;

#endif
