/*
 * ACT_REMOVE: removes the cells of a program whose row says that they are given up. It may be
 * killed at any point: the row stays, so the next daemon goes on. With [run] work the link is the
 * last to go, because it says where the rest is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/executor/shared_work.h"
#include "daemon/shell/shell.h"

struct removal {
    struct job job;
    char *id;
    struct work_owner owner;
    char *cells; /* STATE/programs/ID/cells */
    bool did;    /* something was there */
    int rc;
    struct err err;
};

/* Behind a link only a folder of this program is removed: WORK/ID/cells. */
static int check_target(const struct removal *j, const char *real, struct err *err)
{
    char *folder = path_folder(real);
    const bool is_ours =
        strcmp(path_name(real), LAYOUT_CELLS) == 0 && strcmp(path_name(folder), j->id) == 0;
    free(folder);
    return is_ours ? 0
                   : err_set(err, ERR_REFUSED,
                             "%.150s is not the folder of this program: nothing "
                             "of it is removed",
                             real);
}

/* What jobs of a cluster needed beside them: scripts, and copies of the workers. */
static int remove_beside(const char *cells, struct err *err)
{
    static const char *const names[] = {LAYOUT_JOBS, LAYOUT_OBJECTS};
    char *folder = path_folder(cells);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(names); i++) {
        char *path = path_join(folder, names[i]);
        rc = dir_remove(path, err);
        free(path);
    }
    free(folder);
    return rc;
}

/* WORK/ID: stays where something else is in it. */
static void give_up(const char *folder, const struct work_owner *owner)
{
    work_owner_release(folder, owner);
    (void)rmdir(folder);
}

/* The daemon before this one was killed behind the cells, or a person has removed them. */
static void give_up_missing(const struct removal *j)
{
    char *program = path_folder(j->cells);
    char *owned = shared_work_owned(program);
    if (owned != NULL) {
        give_up(owned, &j->owner);
    }
    free(owned);
    free(program);
}

static int remove_linked(const struct removal *j, struct err *err)
{
    char *real = realpath(j->cells, NULL);
    if (real == NULL && errno != ENOENT) {
        return err_set_errno(err, errno, "%s", j->cells);
    }
    int rc = 0;
    if (real != NULL) {
        char *folder = path_folder(real);
        if ((rc = check_target(j, real, err)) == 0 &&
            (rc = work_owner_check(folder, &j->owner, false, err)) == 0 &&
            (rc = remove_beside(real, err)) == 0 && (rc = dir_remove(real, err)) == 0) {
            give_up(folder, &j->owner);
        }
        free(folder);
    } else {
        give_up_missing(j);
    }
    free(real);
    if (rc != 0) {
        return rc;
    }
    return unlink(j->cells) == 0 ? 0 : err_set_errno(err, errno, "%s", j->cells);
}

static void on_work(struct job *job)
{
    struct removal *j = (struct removal *)job;
    struct stat st;
    if (lstat(j->cells, &st) != 0) {
        j->rc = errno == ENOENT ? 0 : err_set_errno(&j->err, errno, "%s", j->cells);
        return;
    }
    j->did = true;
    if (S_ISLNK(st.st_mode)) {
        j->rc = remove_linked(j, &j->err);
        return;
    }
    j->rc = remove_beside(j->cells, &j->err);
    j->rc = j->rc == 0 ? dir_remove(j->cells, &j->err) : j->rc;
}

static void on_done(struct job *job)
{
    struct removal *j = (struct removal *)job;
    if (j->rc != 0) {
        log_error("%s: its cells are not removed (`preregctl remove` tries again): %s", j->id,
                  j->err.msg);
    } else if (j->did) {
        log_info("%s: its cells are removed", j->id);
    }
    free(j->id);
    free(j->cells);
    free(j);
}

void shell_remove_cells(struct shell *sh, uint32_t program)
{
    const struct hosted *h = shell_program(sh, program);
    struct removal *j = xcalloc(1, sizeof(*j));
    *j = (struct removal){.job = {.work = on_work, .done = on_done},
                          .id = xstrdup(h->id),
                          .owner = sh->owner,
                          .cells = path_join(h->folder, LAYOUT_CELLS)};
    job_start(&sh->loop, &j->job);
}
