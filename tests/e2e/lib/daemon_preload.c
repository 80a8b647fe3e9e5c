/*
 * Preloaded into the daemon, a shim or a command: the Nth call that makes something last (fsync,
 * fdatasync, rename, unlink) goes wrong, counted from the moment that the file $PREREG_CRASH
 * appears, which holds N; with PREREG_CRASH_AT=writes the Nth call that changes a file or folder
 * in any way (also write, pwrite, truncate, mkdir, rmdir, link, symlink, an open that creates),
 * preregd.log left out. What goes wrong is PREREG_FAULT:
 *   none         the process is killed there
 *   fail, quota  the call fails for want of space on the disk, or in the user's quota
 *   eio          it fails with an error of the disk
 *   short        the Nth call that writes data writes half of them
 *   readonly     every call fails with EROFS, from the Nth on, while $PREREG_CRASH is there
 * With PREREG_FIRED the first fault leaves that file, which says where it was, and none follows in
 * any process. With PREREG_CALLS every call that counts adds a line to that file: pid, "data" if it
 * can be short or "call", its name and its file. Whoever opens a result.json of a stage "score"
 * waits while there is a file $PREREG_HOLD. Only the process that it was put into counts, and what
 * that starts is left alone; with PREREG_CRASH_IN only the processes of that name count, whoever
 * starts them.
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
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long n_calls;
static pid_t own;      /* 0: this process does not count */
static const char *in; /* $PREREG_CRASH_IN, where this process may be of that name; or NULL */
static bool all_writes;
static enum { FAULT_KILL, FAULT_FAIL, FAULT_QUOTA, FAULT_EIO, FAULT_SHORT, FAULT_READONLY } fault;

__attribute__((constructor)) static void note_own(void)
{
    static const char *const hows[] = {"kill", "fail", "quota", "eio", "short", "readonly"};
    const char *at = getenv("PREREG_CRASH_AT");
    const char *how = getenv("PREREG_FAULT");
    const char *name = getenv("PREREG_CRASH_IN");

    for (size_t i = 0; how != NULL && i < sizeof(hows) / sizeof(hows[0]); i++) {
        if (strcmp(how, hows[i]) == 0)
            fault = (__typeof__(fault))i;
    }
    all_writes = at != NULL && strcmp(at, "writes") == 0;
    if (name != NULL && strcmp(name, program_invocation_short_name) != 0)
        return;
    if (name == NULL)
        own = getpid();
    in = name;
    (void)unsetenv("LD_PRELOAD");
}

/* The spawner of shims is of another name, as its shims were: each counts from when it has its own.
 */
static bool counts(void)
{
    char name[16] = "";

    if (own == 0 && in != NULL && prctl(PR_GET_NAME, name) == 0 && strncmp(name, in, 15) == 0)
        own = getpid();
    return own != 0 && own == getpid();
}

/* The C library's own, under the name `next`. */
#define NEXT(name)                                                                                 \
    __typeof__(name) *next;                                                                        \
    void *symbol = dlsym(RTLD_NEXT, #name);                                                        \
    if (symbol == NULL)                                                                            \
        abort();                                                                                   \
    memcpy(&next, &symbol, sizeof(next))

/* N, or 0 while no fault is asked for. Past the wrappers: this is no call of the process. */
static long wanted(void)
{
    char text[16] = "";
    const char *path = getenv("PREREG_CRASH");
    int fd = path == NULL || !counts()
                 ? -1
                 : (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    return n > 0 ? strtol(text, NULL, 10) : 0;
}

/* Leaves $PREREG_FIRED, if no other fault has; `what` is the call, `where` its file. */
static bool leave_mark(const char *what, const char *where)
{
    char text[1024];
    const char *path = getenv("PREREG_FIRED");

    if (path == NULL)
        return true;
    int fd =
        (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return fault == FAULT_READONLY;
    int len = snprintf(text, sizeof(text), "%s %s %s", program_invocation_short_name, what, where);
    (void)syscall(SYS_write, fd, text, len < (int)sizeof(text) ? len : (int)sizeof(text) - 1);
    (void)close(fd);
    return true;
}

static void note_call(const char *kind, const char *what, const char *where)
{
    char text[1024];
    const char *path = getenv("PREREG_CALLS");
    int fd = path == NULL ? -1
                          : (int)syscall(SYS_openat, AT_FDCWD, path,
                                         O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (fd < 0)
        return;
    int len = snprintf(text, sizeof(text), "%ld %s %s %.900s\n", (long)getpid(), kind, what, where);
    (void)syscall(SYS_write, fd, text, len < (int)sizeof(text) ? len : (int)sizeof(text) - 1);
    (void)close(fd);
}

/* Whether the call goes wrong; "data" is the kind that can be short. The process does not come back
 * from the one where it is to die. */
static bool is_due(const char *kind, const char *what, const char *where)
{
    const long n = wanted();

    if (n <= 0)
        return false;
    note_call(kind, what, where);
    const long at = atomic_fetch_add(&n_calls, 1) + 1;
    if (at < n || (at > n && fault != FAULT_READONLY) || !leave_mark(what, where))
        return false;
    if (fault == FAULT_KILL)
        (void)raise(SIGKILL);
    errno = fault == FAULT_READONLY ? EROFS
            : fault == FAULT_EIO    ? EIO
            : fault == FAULT_QUOTA  ? EDQUOT
                                    : ENOSPC;
    return true;
}

/* Of a call without data: it cannot be short. */
static bool fails(const char *what, const char *where)
{
    return fault != FAULT_SHORT && is_due("call", what, where);
}

static bool write_fails(const char *what, const char *where)
{
    return all_writes && fails(what, where);
}

static const char *path_of(int fd, char target[512])
{
    char link[32];

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, target, 511);
    target[n > 0 ? n : 0] = '\0';
    return target;
}

static bool fd_fails(const char *what, int fd)
{
    char target[512];

    return fails(what, path_of(fd, target));
}

/* How many of `len` bytes the call writes, or -1. Regular files of a disk only, and not the log:
 * what is written to a socket changes no state. */
static ssize_t writable(const char *what, int fd, size_t len)
{
    char target[512];
    struct stat st;

    if (!all_writes || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return (ssize_t)len;
    (void)path_of(fd, target);
    if (strncmp(target, "/memfd:", 7) == 0 || strstr(target, "/preregd.log") != NULL ||
        !is_due("data", what, target))
        return (ssize_t)len;
    return fault == FAULT_SHORT && len > 1 ? (ssize_t)(len / 2) : -1;
}

static void hold(const char *path)
{
    const char *until = getenv("PREREG_HOLD");
    const char *name = strrchr(path, '/');

    if (until == NULL || name == NULL || strcmp(name, "/result.json") != 0)
        return;
    while (strstr(path, "/score/") != NULL && access(until, F_OK) == 0)
        (void)usleep(5000);
}

static bool open_fails(const char *path, int flags)
{
    hold(path);
    if (fault == FAULT_READONLY && (flags & O_ACCMODE) != O_RDONLY &&
        strncmp(path, "/dev/", 5) != 0 && strncmp(path, "/proc/", 6) != 0 &&
        strstr(path, "/preregd.log") == NULL)
        return write_fails("open", path);
    return (flags & O_CREAT) != 0 && access(path, F_OK) != 0 && write_fails("open", path);
}

#define MODE_OF(flags)                                                                             \
    mode_t mode = 0;                                                                               \
    if (((flags) & (O_CREAT | O_TMPFILE)) != 0) {                                                  \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        mode = va_arg(ap, mode_t);                                                                 \
        va_end(ap);                                                                                \
    }

#define WRAP_OPEN(name)                                                                            \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        NEXT(name);                                                                                \
        MODE_OF(flags)                                                                             \
        return open_fails(path, flags) ? -1 : next(path, flags, mode);                             \
    }

WRAP_OPEN(open)
WRAP_OPEN(open64)

/* Fortified builds call these where no mode is given. */
#define WRAP_OPEN_2(name)                                                                          \
    int name(const char *path, int flags);                                                         \
    int name(const char *path, int flags)                                                          \
    {                                                                                              \
        NEXT(name);                                                                                \
        return open_fails(path, flags) ? -1 : next(path, flags);                                   \
    }

WRAP_OPEN_2(__open_2)
WRAP_OPEN_2(__open64_2)

int fsync(int fd)
{
    NEXT(fsync);
    return fd_fails("fsync", fd) ? -1 : next(fd);
}

int fdatasync(int fd)
{
    NEXT(fdatasync);
    return fd_fails("fdatasync", fd) ? -1 : next(fd);
}

int rename(const char *from, const char *to)
{
    NEXT(rename);
    return fails("rename", to) ? -1 : next(from, to);
}

int unlink(const char *path)
{
    NEXT(unlink);
    return fails("unlink", path) ? -1 : next(path);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    NEXT(renameat);
    return fails("renameat", to) ? -1 : next(from_dir, from, to_dir, to);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    NEXT(renameat2);
    return fails("renameat2", to) ? -1 : next(from_dir, from, to_dir, to, flags);
}

int unlinkat(int dir, const char *path, int flags)
{
    NEXT(unlinkat);
    return fails("unlinkat", path) ? -1 : next(dir, path, flags);
}

ssize_t write(int fd, const void *data, size_t len)
{
    NEXT(write);
    const ssize_t n = writable("write", fd, len);
    return n < 0 ? -1 : next(fd, data, (size_t)n);
}

ssize_t writev(int fd, const struct iovec *parts, int n)
{
    NEXT(writev);
    const ssize_t left = writable("writev", fd, (size_t)n);
    return left < 0 ? -1 : next(fd, parts, (int)left);
}

#define WRAP_PWRITE(name, offset)                                                                  \
    ssize_t name(int fd, const void *data, size_t len, offset at)                                  \
    {                                                                                              \
        NEXT(name);                                                                                \
        const ssize_t n = writable(#name, fd, len);                                                \
        return n < 0 ? -1 : next(fd, data, (size_t)n, at);                                         \
    }

WRAP_PWRITE(pwrite, off_t)
WRAP_PWRITE(pwrite64, off64_t)

#define WRAP_FTRUNCATE(name, offset)                                                               \
    int name(int fd, offset len)                                                                   \
    {                                                                                              \
        NEXT(name);                                                                                \
        return writable(#name, fd, 0) < 0 ? -1 : next(fd, len);                                    \
    }

WRAP_FTRUNCATE(ftruncate, off_t)
WRAP_FTRUNCATE(ftruncate64, off64_t)

#define WRAP_FALLOCATE(name, offset)                                                               \
    int name(int fd, int mode, offset at, offset len)                                              \
    {                                                                                              \
        NEXT(name);                                                                                \
        return writable(#name, fd, 0) < 0 ? -1 : next(fd, mode, at, len);                          \
    }

WRAP_FALLOCATE(fallocate, off_t)
WRAP_FALLOCATE(fallocate64, off64_t)

/* Returns what went wrong instead of setting errno. */
int posix_fallocate(int fd, off_t at, off_t len)
{
    NEXT(posix_fallocate);
    return writable("posix_fallocate", fd, 0) < 0 ? errno : next(fd, at, len);
}

int mkdir(const char *path, mode_t mode)
{
    NEXT(mkdir);
    return access(path, F_OK) != 0 && write_fails("mkdir", path) ? -1 : next(path, mode);
}

int rmdir(const char *path)
{
    NEXT(rmdir);
    return write_fails("rmdir", path) ? -1 : next(path);
}

int symlink(const char *target, const char *path)
{
    NEXT(symlink);
    return write_fails("symlink", path) ? -1 : next(target, path);
}

int link(const char *from, const char *to)
{
    NEXT(link);
    return write_fails("link", to) ? -1 : next(from, to);
}
