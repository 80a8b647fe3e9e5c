/*
 * Small wrappers that commands share. Diagnostics are printed here, because a command that only
 * needs the program has no place for them. A lock that does not fit its program is an error here;
 * `diff`, which shows the difference, reads the lock itself.
 */
#include "ctl/load.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/files/file.h"
#include "daemon/rpc/client.h"
#include "prereg/load/program_load.h"

int load_program(const char *path, struct plan_program **out, struct err *err)
{
    struct diag diag;
    diag_init(&diag, path);
    int rc = program_load(path, out, &diag, err);
    diag_print(&diag, stderr);
    diag_release(&diag);
    return rc;
}

/* A missing lock is an answer; an unreadable or a misfit one is an error. */
int load_lock(const struct plan_program *p, struct lock **out, struct err *err)
{
    *out = NULL;
    char *path = lock_path_of(p->path);
    int rc = lock_read(path, out, err);
    free(path);
    if (rc == ERR_NOT_FOUND) {
        err_clear(err);
        return 0;
    }
    if (rc != 0 || (rc = lock_verify(p, *out, LOCK_PLAN, NULL, NULL, err)) != 0) {
        lock_free(*out);
        *out = NULL;
    }
    return rc;
}

int load_state_folder(const char *named, char **out, struct err *err)
{
    if (named == NULL) {
        return rpc_state_folder(out, err);
    }
    *out = path_absolute(NULL, named);
    return 0;
}
