/*
 * Preloaded into the daemon: it dies at the Nth call that makes something last (fsync, fdatasync,
 * rename, unlink), counted from the moment that the file $PREREG_CRASH appears, which holds N; with
 * PREREG_CRASH_AT=writes at the Nth call that changes a file or folder in any way (also write,
 * pwrite, truncate, mkdir, rmdir, link, symlink, an open that creates), its own log left out; and
 * whoever in it opens a result.json of a stage "score" waits as long as there is a file
 * $PREREG_HOLD. With PREREG_FAULT=fail the Nth call that writes data fails (no space on the disk)
 * instead, with PREREG_FAULT=short it writes half of them.
 * Whatever the daemon starts is left alone: only the process that it was put into counts.
 */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long n_calls;
static pid_t own;
static bool all_writes;
static enum { FAULT_KILL, FAULT_FAIL, FAULT_SHORT } fault;

__attribute__((constructor)) static void note_own(void)
{
    const char *at = getenv("PREREG_CRASH_AT");

    const char *how = getenv("PREREG_FAULT");

    fault = how == NULL ? FAULT_KILL : strcmp(how, "fail") == 0 ? FAULT_FAIL : FAULT_SHORT;
    own = getpid();
    all_writes = at != NULL && strcmp(at, "writes") == 0;
    (void)unsetenv("LD_PRELOAD");
}

/* Whether this is the Nth. */
static bool is_due(void)
{
    char text[16] = "";
    const char *path = getenv("PREREG_CRASH");
    int fd = path == NULL || getpid() != own ? -1 : openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    return n > 0 && atomic_fetch_add(&n_calls, 1) + 1 == strtol(text, NULL, 10);
}

static void count(void)
{
    if (fault == FAULT_KILL && is_due())
        (void)raise(SIGKILL);
}

static void count_write(void)
{
    if (all_writes)
        count();
}

/* Of regular files only, and not of the log: what is written to a socket changes no state. */
static bool count_write_to(int fd)
{
    char link[32];
    char target[512];
    struct stat st;

    if (!all_writes || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, target, sizeof(target) - 1);
    if (n > 0)
        target[n] = '\0';
    if (n <= 0 || strstr(target, "/preregd.log") != NULL || !is_due())
        return false;
    if (fault == FAULT_KILL)
        (void)raise(SIGKILL);
    return true;
}

/* What the call that is due does to the data: -1, or how many bytes of them it writes. */
static ssize_t faulty(size_t len)
{
    errno = ENOSPC;
    return fault == FAULT_FAIL || len < 2 ? -1 : (ssize_t)(len / 2);
}

/* The C library's own, under the name `next`. */
#define NEXT(name)                                                                                 \
    __typeof__(name) *next;                                                                        \
    void *symbol = dlsym(RTLD_NEXT, #name);                                                        \
    if (symbol == NULL)                                                                            \
        abort();                                                                                   \
    memcpy(&next, &symbol, sizeof(next))

static void hold(const char *path)
{
    const char *until = getenv("PREREG_HOLD");
    const char *name = strrchr(path, '/');

    if (until == NULL || name == NULL || strcmp(name, "/result.json") != 0)
        return;
    while (strstr(path, "/score/") != NULL && access(until, F_OK) == 0)
        (void)usleep(5000);
}

static void before_open(const char *path, int flags)
{
    hold(path);
    if ((flags & O_CREAT) != 0 && access(path, F_OK) != 0)
        count_write();
}

#define MODE_OF(flags)                                                                             \
    mode_t mode = 0;                                                                               \
    if (((flags) & (O_CREAT | O_TMPFILE)) != 0) {                                                  \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        mode = va_arg(ap, mode_t);                                                                 \
        va_end(ap);                                                                                \
    }

int open(const char *path, int flags, ...)
{
    NEXT(open);
    MODE_OF(flags)
    before_open(path, flags);
    return next(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    NEXT(open64);
    MODE_OF(flags)
    before_open(path, flags);
    return next(path, flags, mode);
}

/* Fortified builds call these where no mode is given. */
int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
    NEXT(__open_2);
    before_open(path, flags);
    return next(path, flags);
}

int __open64_2(const char *path, int flags);
int __open64_2(const char *path, int flags)
{
    NEXT(__open64_2);
    before_open(path, flags);
    return next(path, flags);
}

int fsync(int fd)
{
    NEXT(fsync);
    count();
    return next(fd);
}

int fdatasync(int fd)
{
    NEXT(fdatasync);
    count();
    return next(fd);
}

int rename(const char *from, const char *to)
{
    NEXT(rename);
    count();
    return next(from, to);
}

int unlink(const char *path)
{
    NEXT(unlink);
    count();
    return next(path);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    NEXT(renameat);
    count();
    return next(from_dir, from, to_dir, to);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    NEXT(renameat2);
    count();
    return next(from_dir, from, to_dir, to, flags);
}

int unlinkat(int dir, const char *path, int flags)
{
    NEXT(unlinkat);
    count();
    return next(dir, path, flags);
}

ssize_t write(int fd, const void *data, size_t len)
{
    NEXT(write);
    if (count_write_to(fd)) {
        const ssize_t n = faulty(len);
        if (n < 0)
            return -1;
        len = (size_t)n;
    }
    return next(fd, data, len);
}

ssize_t writev(int fd, const struct iovec *parts, int n)
{
    NEXT(writev);
    if (count_write_to(fd)) {
        if (fault == FAULT_FAIL || n < 2)
            return faulty(0);
        n /= 2;
    }
    return next(fd, parts, n);
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
    NEXT(pwrite);
    if (count_write_to(fd)) {
        const ssize_t n = faulty(len);
        if (n < 0)
            return -1;
        len = (size_t)n;
    }
    return next(fd, data, len, at);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
    NEXT(pwrite64);
    if (count_write_to(fd)) {
        const ssize_t n = faulty(len);
        if (n < 0)
            return -1;
        len = (size_t)n;
    }
    return next(fd, data, len, at);
}

int ftruncate(int fd, off_t len)
{
    NEXT(ftruncate);
    if (count_write_to(fd))
        return (int)faulty(0);
    return next(fd, len);
}

int ftruncate64(int fd, off64_t len)
{
    NEXT(ftruncate64);
    if (count_write_to(fd))
        return (int)faulty(0);
    return next(fd, len);
}

int mkdir(const char *path, mode_t mode)
{
    NEXT(mkdir);
    count_write();
    return next(path, mode);
}

int rmdir(const char *path)
{
    NEXT(rmdir);
    count_write();
    return next(path);
}

int symlink(const char *target, const char *path)
{
    NEXT(symlink);
    count_write();
    return next(target, path);
}

int link(const char *from, const char *to)
{
    NEXT(link);
    count_write();
    return next(from, to);
}
