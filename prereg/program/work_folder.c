/* Looks at the folder and at the one above it, and makes nothing. It is checked again, with who
 * owns what, when the daemon makes it (daemon/answers/answer_submit.c). */
#include "prereg/program/work_folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"

static int check_writable(const char *path, struct err *err)
{
    return access(path, W_OK | X_OK) == 0
               ? 0
               : err_set(err, ERR_REFUSED, "%s: you cannot write to this folder (%s)", path,
                         strerror(errno));
}

static int check_absent(const char *path, struct err *err)
{
    struct stat st;
    enum file_kind kind = FILE_ABSENT;
    if (lstat(path, &st) == 0) {
        return err_set(err, ERR_NOT_FOUND, "%s is a link to nothing: make the folder it names",
                       path);
    }
    char *above = path_folder(path);
    int rc = file_look(above, &kind, err);
    if (rc == 0 && kind != FILE_FOLDER) {
        rc = err_set(err, ERR_NOT_FOUND,
                     "%s: no such folder, and it is not made because %s is not a folder either: "
                     "make that one, or correct the path",
                     path, above);
    } else if (rc == 0) {
        rc = check_writable(above, err);
    }
    free(above);
    return rc;
}

static int check_folder(const char *path, struct err *err)
{
    enum file_kind kind = FILE_ABSENT;
    int rc = file_look(path, &kind, err);
    if (rc != 0) {
        return rc;
    }
    switch (kind) {
    case FILE_ABSENT: return check_absent(path, err);
    case FILE_REGULAR:
    case FILE_OTHER: return err_set(err, ERR_INVALID, "%s is not a folder", path);
    case FILE_FOLDER: break;
    }
    rc = check_writable(path, err);
    return rc != 0 ? rc : dir_check_keeps(path, err);
}

void work_folder_check(const struct plan_program *p, enum diag_level level, struct diag *diag)
{
    struct err err;
    if (p->run.work != NULL && check_folder(p->run.work, &err) != 0) {
        diag_add(diag, level, p->run.work_place.line, p->run.work_place.column, "run.work: %s",
                 err.msg);
    }
}
