/* Makes a folder, then locks it. A sweep that comes between the two may lock and remove it first:
 * then another is made. */
#include "base/temp_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/xalloc.h"

#define RANDOM_PART ".XXXXXX"
#define TRIES_MAX   100

/* The descriptor of the folder at `path`, locked, or -1: it is held, another user's, or gone. */
static int lock_folder(const char *path)
{
    struct stat held;
    struct stat there;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &held) != 0 || held.st_uid != geteuid() || flock(fd, LOCK_EX | LOCK_NB) != 0 ||
        lstat(path, &there) != 0 || there.st_ino != held.st_ino || there.st_dev != held.st_dev) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Removes folders of that kind whose process is gone; what cannot be removed stays. */
static void sweep(const char *base, const char *kind)
{
    struct name_list names;
    struct err ignored;
    char *start = xasprintf("prereg-%s.", kind);
    const size_t len = strlen(start) + strlen(RANDOM_PART) - 1;
    if (dir_list(base, &names, &ignored) == 0) {
        for (size_t i = 0; i < names.n; i++) {
            if (strncmp(names.names[i], start, strlen(start)) == 0 &&
                strlen(names.names[i]) == len) {
                char *path = path_join(base, names.names[i]);
                int fd = lock_folder(path);
                if (fd >= 0) {
                    (void)!dir_remove(path, &ignored);
                    (void)close(fd);
                }
                free(path);
            }
        }
    }
    name_list_release(&names);
    free(start);
}

int temp_folder_make(const char *kind, struct temp_folder *out, struct err *err)
{
    const char *temp = getenv("TMPDIR");
    char *base = path_absolute(NULL, temp == NULL || temp[0] == '\0' ? "/tmp" : temp);
    int rc = 0;
    *out = (struct temp_folder){.fd = -1};
    sweep(base, kind);
    for (int i = 0; rc == 0 && out->fd < 0 && i < TRIES_MAX; i++) {
        free(out->path);
        out->path = xasprintf("%s/prereg-%s" RANDOM_PART, base, kind);
        if (mkdtemp(out->path) == NULL) {
            rc = err_set_errno(err, errno, "make a folder %s", out->path);
        } else {
            out->fd = lock_folder(out->path);
        }
    }
    if (rc == 0 && out->fd < 0) {
        struct err ignored;
        (void)!dir_remove(out->path, &ignored);
        rc = err_set(err, ERR_IO, "%s cannot be locked: does its file system take locks?",
                     out->path);
    }
    if (rc != 0) {
        free(out->path);
        out->path = NULL;
    }
    free(base);
    return rc;
}

int temp_folder_remove(struct temp_folder *t, struct err *err)
{
    int rc = dir_remove(t->path, err);
    rc = rc == 0 ? 0 : err_wrap(err, "%s is left behind", t->path);
    (void)close(t->fd);
    free(t->path);
    *t = (struct temp_folder){.fd = -1};
    return rc;
}
