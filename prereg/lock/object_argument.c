/* Which file an argument of a stage's command names: in the stage's environment, beside the
 * program, beside this executable, or in PATH. */
#include "prereg/lock/object.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/machine/proc.h"
#include "base/xalloc.h"
#include "prereg/lock/pinned_files.h"

/* The program `name` in the folder of this executable; NULL when there is none. */
static char *beside_self(const char *name)
{
    struct strbuf self = STRBUF_INIT;
    struct err err;
    char *path = path_of_self(&self, &err) == 0 ? path_join(self.buf, name) : NULL;
    strbuf_release(&self);
    if (path != NULL && !is_program(path)) {
        free(path);
        path = NULL;
    }
    return path;
}

bool object_is_of_image(const struct plan_stage *s)
{
    if (s->image == NULL || strchr(s->command[0], '/') != NULL) {
        return false;
    }
    char *ours = beside_self(s->command[0]);
    free(ours);
    return ours == NULL;
}

int object_resolve_argument(const struct plan_program *p, size_t stage, size_t i, char **path,
                            struct err *err)
{
    const struct plan_stage *s = &p->stages[stage];
    *path = NULL;
    if (i == 0 && object_is_of_image(s)) {
        return 0;
    }
    if (i == 0 && s->environment_path != NULL && strchr(s->command[0], '/') == NULL) {
        *path = xasprintf("%s/bin/%s", s->environment_path, s->command[0]);
        if (is_program(*path)) {
            return 0;
        }
        free(*path);
        *path = NULL;
    }
    if (i == 0) {
        return object_resolve_worker(p, s->command[0], path, err);
    }
    if (s->command[i][0] == '\0') {
        return 0;
    }
    char *found = path_absolute(p->folder, s->command[i]);
    if (file_kind_at(found) == FILE_REGULAR) {
        *path = found;
    } else {
        free(found);
    }
    return 0;
}

int object_resolve_worker(const struct plan_program *p, const char *name, char **path,
                          struct err *err)
{
    *path = NULL;
    if (strchr(name, '/') != NULL) {
        char *found = path_absolute(p->folder, name);
        if (!is_program(found)) {
            int rc = err_set(err, ERR_NOT_FOUND, "%s %s", found,
                             file_kind_at(found) == FILE_ABSENT ? "does not exist"
                                                                : "is not an executable file");
            free(found);
            return rc;
        }
        *path = found;
        return 0;
    }
    *path = beside_self(name);
    if (*path == NULL) {
        *path = find_program(name);
    }
    return *path != NULL
               ? 0
               : err_set(err, ERR_NOT_FOUND, "no program \"%s\" beside this one or in $PATH", name);
}
