/*
 * Preloaded into the daemon: it dies at the Nth call that makes something last (fsync, fdatasync,
 * rename, unlink), counted from the moment that the file $PREREG_CRASH appears, which holds N; and
 * whoever in it opens a result.json of a stage "score" waits as long as there is a file
 * $PREREG_HOLD.
 * Whatever the daemon starts is left alone: only the process that it was put into counts.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long n_calls;
static pid_t own;

__attribute__((constructor)) static void note_own(void)
{
    own = getpid();
    (void)unsetenv("LD_PRELOAD");
}

static void count(void)
{
    char text[16] = "";
    const char *path = getenv("PREREG_CRASH");
    int fd = path == NULL || getpid() != own ? -1 : openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    if (n > 0 && atomic_fetch_add(&n_calls, 1) + 1 == strtol(text, NULL, 10))
        (void)raise(SIGKILL);
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

int open(const char *path, int flags, ...)
{
    NEXT(open);
    mode_t mode = 0;

    if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
        va_list ap;
        va_start(ap, flags);
        mode = va_arg(ap, mode_t);
        va_end(ap);
    }
    hold(path);
    return next(path, flags, mode);
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
