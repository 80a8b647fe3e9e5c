/* Paths and copies for attempts that run on other machines; called by prepare.c, off the loop. */
#include "daemon/executor/shared_work.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/lock/object.h"

char *shared_work_path(const char *path)
{
    char *real = realpath(path, NULL);
    return real != NULL ? real : xstrdup(path);
}

char *shared_work_folder(const char *program_folder)
{
    char *cells = path_join(program_folder, LAYOUT_CELLS);
    char *real = realpath(cells, NULL);
    char *folder = real != NULL ? path_folder(real) : shared_work_path(program_folder);
    free(real);
    free(cells);
    return folder;
}

char *shared_work_owned(const char *program_folder)
{
    char target[PATH_MAX];
    char *cells = path_join(program_folder, LAYOUT_CELLS);
    const ssize_t n = readlink(cells, target, sizeof(target) - 1);
    target[n > 0 ? n : 0] = '\0';
    char *real = n > 0 ? realpath(cells, NULL) : NULL;
    char *folder = path_folder(real != NULL ? real : target);
    const bool owned = n > 0 &&
                       strcmp(path_name(real != NULL ? real : target), LAYOUT_CELLS) == 0 &&
                       strcmp(path_name(folder), path_name(program_folder)) == 0;
    free(real);
    free(cells);
    if (!owned) {
        free(folder);
        folder = NULL;
    }
    return folder;
}

/* An object's name is its digest. */
static int copy_object(const char *work, struct pin_cache *cache, char **path, struct err *err)
{
    struct digest want;
    struct digest found;
    struct err ignored;
    char *copy = object_path(work, path_name(*path));
    int rc = digest_from_hex(path_name(*path), &want, err);
    if (rc == 0 &&
        (pin_digest_own(cache, copy, &found, &ignored) != 0 || !digest_equal(&found, &want))) {
        rc = object_store(work, *path, &found, err);
        if (rc == 0 && !digest_equal(&found, &want)) {
            rc = err_set(err, ERR_LOCK, "%s is not what its name says", *path);
        }
    }
    if (rc == 0) {
        free(*path);
        *path = xstrdup(copy);
    }
    free(copy);
    return rc;
}

int shared_work_objects(const char *state, const char *work, struct pin_cache *cache, char **argv,
                        struct err *err)
{
    char *objects = path_join(state, LAYOUT_OBJECTS);
    const size_t n = strlen(objects);
    int rc = 0;
    for (size_t i = 0; rc == 0 && argv[i] != NULL; i++) {
        if (strncmp(argv[i], objects, n) == 0 && argv[i][n] == '/') {
            rc = copy_object(work, cache, &argv[i], err);
        }
    }
    free(objects);
    return rc == 0 ? 0 : err_wrap(err, "copy the worker to %s", work);
}
