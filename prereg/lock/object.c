/*
 * Finds the files of commands and keeps copies of them under their digests. A copy is verified
 * before each spawn, through the cache of stats that pin.c keeps. A damaged or missing copy is
 * repaired from its source as long as the source is still what was locked; nothing else is ever run
 * in its place, except under [pin] workers = "record", where a missing copy is replaced by the
 * present file.
 */
#include "prereg/lock/object.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/lock/pinned_files.h"

char *object_path(const char *state, const char *hex)
{
    return xasprintf("%s/" LAYOUT_OBJECTS "/%s", state, hex);
}

/* What the path itself is: an object must be a regular file, because what a link points to may
 * change between a check and the spawn. */
static enum file_kind own_kind(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0) {
        return FILE_ABSENT;
    }
    return S_ISREG(st.st_mode) ? FILE_REGULAR : FILE_OTHER;
}

static bool is_intact(const char *path, const struct digest *want)
{
    struct digest found;
    struct err err;
    return own_kind(path) == FILE_REGULAR && digest_file(path, &found, NULL, &err) == 0 &&
           digest_equal(&found, want);
}

/* The digest of an object through the cache; ERR_LOCK when it is not a regular file. */
static int object_digest(const struct object_home *home, const char *object, struct digest *out,
                         struct err *err)
{
    if (own_kind(object) == FILE_OTHER) {
        return err_set(err, ERR_LOCK, "%s is not a regular file", object);
    }
    return pin_digest_own(home->cache, object, out, err);
}

int object_store(const char *state, const char *path, struct digest *out, struct err *err)
{
    char hex[DIGEST_HEX_SIZE];
    int rc = digest_file(path, out, NULL, err);
    if (rc != 0) {
        return rc;
    }
    digest_hex(out, hex);
    char *folder = path_join(state, LAYOUT_OBJECTS);
    char *object = object_path(state, hex);
    rc = dir_make_below(state, folder, true, err);
    if (rc == 0 && !is_intact(object, out)) {
        rc = file_copy(path, object, 0755, err);
        if (rc == 0 && !is_intact(object, out)) {
            (void)unlink(object);
            rc = err_set(err, ERR_LOCK, "%s changed while it was copied", path);
        }
    }
    free(object);
    free(folder);
    return rc;
}

/* Copies one file of a command and compares its digest with the locked one. */
static int store_one(const struct plan_program *p, const struct lock *lock,
                     const struct pinned *file, const char *state, struct strbuf *notes,
                     struct err *err)
{
    const char *locked = lock_file_digest(lock, file->name);
    struct digest found;
    char hex[DIGEST_HEX_SIZE];
    int rc = object_store(state, file->path, &found, err);
    if (rc != 0 || locked == NULL) {
        return rc; /* not in the lock: it was not a file then, and stays a plain argument */
    }
    digest_hex(&found, hex);
    if (strcmp(hex, locked) == 0) {
        return 0;
    }
    if (!p->pin_workers_record) {
        return err_set(err, ERR_LOCK, "files.%s: locked %.16s, now %.16s (%s)", file->name, locked,
                       hex, file->path);
    }
    if (notes != NULL) {
        strbuf_addf(notes, "files.%s: locked %.16s, now %.16s\n", file->name, locked, hex);
    }
    return 0;
}

int object_store_all(const struct plan_program *p, const struct lock *lock, const char *state,
                     struct strbuf *notes, struct err *err)
{
    struct pinned_list files;
    int rc = pinned_collect(p, &files, NULL, err);
    for (size_t i = 0; rc == 0 && i < files.n; i++) {
        if (files.items[i].command) {
            rc = store_one(p, lock, &files.items[i], state, notes, err);
        }
    }
    pinned_release(&files);
    return rc;
}

/* The object to run under [pin] workers = "record" when the locked copy was never made: the file
 * as it is now. */
static int current_object(const struct object_home *home, size_t stage, size_t i, char **path,
                          struct err *err)
{
    char *now = NULL;
    struct digest found;
    char hex[DIGEST_HEX_SIZE];
    int rc = object_resolve_argument(home->program, stage, i, &now, err);
    if (rc == 0 && now == NULL) {
        rc = err_set(err, ERR_NOT_FOUND, "\"%s\" is gone", home->program->stages[stage].command[i]);
    }
    if (rc == 0) {
        rc = object_store(home->state, now, &found, err);
    }
    if (rc == 0) {
        digest_hex(&found, hex);
        *path = object_path(home->state, hex);
    }
    free(now);
    return rc;
}

/* Copies a damaged or missing object again from its source, when that is still what was locked.
 * ERR_LOCK explains what is wrong with the copy otherwise. */
static int repair(const struct object_home *home, size_t stage, size_t i, const struct digest *want,
                  struct err *err)
{
    char *source = NULL;
    struct digest found;
    struct err why;
    const char *arg = home->program->stages[stage].command[i];
    int rc = object_resolve_argument(home->program, stage, i, &source, &why);
    bool intact = rc == 0 && source != NULL && digest_file(source, &found, NULL, &why) == 0 &&
                  digest_equal(&found, want);
    if (intact) {
        rc = object_store(home->state, source, &found, err);
        intact = rc == 0 && digest_equal(&found, want);
    }
    if (!intact && rc != ERR_NO_SPACE && rc != ERR_IO) {
        char hex[DIGEST_HEX_SIZE];
        digest_hex(want, hex);
        rc = err_set(
            err, ERR_LOCK,
            "the copy of \"%.60s\" in objects/%.8s... is not what was locked, and %.100s is no "
            "longer either: put one of them back",
            arg, hex, source == NULL ? "its source" : source);
    }
    free(source);
    return rc;
}

/* The object of a pinned argument; *path is set on success alone. */
static int object_of(const struct object_home *home, size_t stage, size_t i, char **path,
                     struct err *err)
{
    const char *arg = home->program->stages[stage].command[i];
    const char *locked = lock_file_digest(home->lock, arg);
    struct digest want;
    struct digest found;
    int rc = digest_from_hex(locked, &want, err);
    if (rc != 0) {
        return rc;
    }
    char *object = object_path(home->state, locked);
    rc = object_digest(home, object, &found, err);
    if (rc == 0 && digest_equal(&found, &want)) {
        *path = object;
        return 0;
    }
    if (rc == ERR_IO) {
        free(object); /* unreadable says nothing of what it holds */
        return rc;
    }
    /* A damaged copy (or a link) was in use until now, so it must not be replaced by another worker
     * unseen. A copy that is missing under "record" was never made, because the worker changed
     * before submit. */
    if (home->program->pin_workers_record && own_kind(object) == FILE_ABSENT) {
        rc = current_object(home, stage, i, path, err);
    } else {
        rc = repair(home, stage, i, &want, err);
        if (rc == 0) {
            *path = object;
            return 0;
        }
    }
    free(object);
    return rc;
}

int object_argv(const struct object_home *home, size_t stage, char ***argv, struct err *err)
{
    const struct plan_stage *s = &home->program->stages[stage];
    char **out = xcalloc(s->n_command + 1, sizeof(*out));
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n_command; i++) {
        if (i == 0 && object_is_of_image(s)) {
            out[i] = xstrdup(s->command[i]);
        } else if (lock_file_digest(home->lock, s->command[i]) != NULL) {
            rc = object_of(home, stage, i, &out[i], err);
        } else if (i == 0) {
            rc = err_set(err, ERR_LOCK, "files.%s: not in the lock", s->command[0]);
        } else {
            out[i] = xstrdup(s->command[i]);
        }
    }
    if (rc != 0) {
        xfree_list(out);
        out = NULL;
    }
    *argv = out;
    return rc;
}

/* Whether this argument is pinned and is the first of its name among all commands. */
static bool is_next(const struct object_home *home, size_t stage, size_t i)
{
    const struct plan_stage *stages = home->program->stages;
    const char *arg = stages[stage].command[i];
    for (size_t s = 0; s <= stage; s++) {
        const size_t end = s == stage ? i : stages[s].n_command;
        for (size_t k = 0; k < end; k++) {
            if (strcmp(stages[s].command[k], arg) == 0) {
                return false;
            }
        }
    }
    return lock_file_digest(home->lock, arg) != NULL;
}

char **object_paths(const struct object_home *home)
{
    const struct plan_program *p = home->program;
    char **out = xcalloc(1, sizeof(*out));
    size_t n = 0;
    for (size_t s = 0; s < p->n_stages; s++) {
        for (size_t i = 0; i < p->stages[s].n_command; i++) {
            if (is_next(home, s, i)) {
                out = xreallocarray(out, n + 2, sizeof(*out));
                out[n++] =
                    object_path(home->state, lock_file_digest(home->lock, p->stages[s].command[i]));
                out[n] = NULL;
            }
        }
    }
    return out;
}

/* Notes a repair: the object was wrong before object_of() and is used now. */
static int check_object(const struct object_home *home, size_t stage, size_t i,
                        struct strbuf *notes, struct err *err)
{
    const char *arg = home->program->stages[stage].command[i];
    const char *locked = lock_file_digest(home->lock, arg);
    char hex[DIGEST_HEX_SIZE] = "";
    struct digest found;
    char *used = NULL;
    char *object = object_path(home->state, locked);
    if (object_digest(home, object, &found, err) == 0) {
        digest_hex(&found, hex);
    }
    int rc = object_of(home, stage, i, &used, err);
    if (rc == 0 && strcmp(hex, locked) != 0 && strcmp(used, object) == 0) {
        strbuf_addf(notes,
                    "the copy of \"%s\" in objects/%.8s... was not what was locked: copied again "
                    "from its source\n",
                    arg, locked);
    }
    free(used);
    free(object);
    return rc;
}

int object_check_all(const struct object_home *home, struct strbuf *notes, struct err *err)
{
    const struct plan_program *p = home->program;
    int rc = 0;
    for (size_t s = 0; rc == 0 && s < p->n_stages; s++) {
        for (size_t i = 0; rc == 0 && i < p->stages[s].n_command; i++) {
            if (is_next(home, s, i)) {
                rc = check_object(home, s, i, notes, err);
            }
        }
    }
    return rc;
}
