/*
 * flock(2) on a file of its own: the lock ends with the last descriptor, whatever ends the
 * process.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/files/file.h"

int lock_try(const char *path, bool inherit, int *fd, struct err *err)
{
    *fd = -1;
    int f = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | (inherit ? 0 : O_CLOEXEC), 0600);
    if (f < 0) {
        return err_set_errno(err, errno, "open lock %s", path);
    }
    if (flock(f, LOCK_EX | LOCK_NB) == 0) {
        *fd = f;
        return 0;
    }
    int why = errno;
    (void)close(f);
    return why == EWOULDBLOCK ? 0 : err_set_errno(err, why, "lock %s", path);
}

int lock_is_held(const char *path, bool *held, struct err *err)
{
    *held = false;
    int f = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (f < 0) {
        return errno == ENOENT ? 0 : err_set_errno(err, errno, "open lock %s", path);
    }
    int rc = 0;
    /* A shared lock is granted to any number of askers: two probes never take each other for an
     * owner. */
    if (flock(f, LOCK_SH | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) {
            *held = true;
        } else {
            rc = err_set_errno(err, errno, "lock %s", path);
        }
    }
    (void)close(f);
    return rc;
}
