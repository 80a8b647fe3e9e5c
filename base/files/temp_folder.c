/* Makes a folder, then locks it. A sweep that comes between the two may lock and remove it first:
 * then another is made. */
#include "base/files/temp_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"

#define RANDOM_PART ".XXXXXX"
#define TRIES_MAX   100

/* 0, or why the open folder is not this process's at `path`: EPERM for another user's,
 * EWOULDBLOCK while it is held, ENOENT when it is gone. */
static int why_not_ours(int fd, const char *path)
{
    struct stat held;
    struct stat there;
    if (fstat(fd, &held) != 0) {
        return errno;
    }
    if (held.st_uid != geteuid()) {
        return EPERM;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || lstat(path, &there) != 0) {
        return errno;
    }
    return there.st_ino == held.st_ino && there.st_dev == held.st_dev ? 0 : ENOENT;
}

/* Returns the descriptor of the folder at `path`, locked, or -1 with errno as above. */
static int lock_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    const int why = why_not_ours(fd, path);
    if (why == 0) {
        return fd;
    }
    (void)close(fd);
    errno = why;
    return -1;
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

/* Makes and locks one folder. Without an error out->fd may still be -1: a sweep came first. */
static int try_make(const char *base, const char *kind, struct temp_folder *out, struct err *err)
{
    int rc = 0;
    out->path = xasprintf("%s/prereg-%s" RANDOM_PART, base, kind);
    if (mkdtemp(out->path) == NULL) {
        rc = err_set_errno(err, errno, "make a folder %s", out->path);
    } else if ((out->fd = lock_folder(out->path)) < 0) {
        const int why = errno;
        (void)rmdir(out->path);
        if (why != EWOULDBLOCK && why != ENOENT) {
            rc = err_set_errno(err, why, "lock the folder %s", out->path);
        }
    }
    if (out->fd < 0) {
        free(out->path);
        out->path = NULL;
    }
    return rc;
}

int temp_folder_make(const char *kind, struct temp_folder *out, struct err *err)
{
    const char *temp = getenv("TMPDIR");
    char *base = path_absolute(NULL, temp == NULL || temp[0] == '\0' ? "/tmp" : temp);
    int rc = 0;
    *out = (struct temp_folder){.fd = -1};
    sweep(base, kind);
    for (int i = 0; rc == 0 && out->fd < 0 && i < TRIES_MAX; i++) {
        rc = try_make(base, kind, out, err);
    }
    if (rc == 0 && out->fd < 0) {
        rc = err_set(err, ERR_IO,
                     "make a folder in %s: each of %d was locked or removed by another process",
                     base, TRIES_MAX);
    }
    free(base);
    return rc;
}

int temp_folder_remove(struct temp_folder *t, struct err *err)
{
    int rc = dir_remove(t->path, err);
    if (rc != 0) {
        rc = err_wrap(err, "%s is left behind", t->path);
    }
    (void)close(t->fd);
    free(t->path);
    *t = (struct temp_folder){.fd = -1};
    return rc;
}
