/*
 * Preloaded into a worker: its checkpoint thread's calls to the disk are counted, and the process
 * dies at one of them, or one fails. PREREG_FAULT is "kill:N", or "ERRNO:N" with a number (the Nth
 * call), or "ERRNO:N+" (it and all after it). What the main thread calls is left alone, but for
 * "ERRNO:N*": from the Nth call on there is no room, whoever asks for it; what is there can be
 * removed, and the events, which are open, still take a line.
 */
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
#include <unistd.h>

static atomic_long n_calls;

enum call { CALL_NEW_ENTRY, CALL_DATA, CALL_REMOVAL };

/* Whether a call by the main thread, or by the writer's, is one that the plan is about. */
static bool is_meant(bool full, enum call call)
{
    if (gettid() == getpid())
        return full && call == CALL_NEW_ENTRY;
    return !full || call != CALL_REMOVAL;
}

/* Whether this call is to fail; dies when it is the one to die at. */
static bool fails(enum call call)
{
    const char *plan = getenv("PREREG_FAULT");
    const char *colon = plan == NULL ? NULL : strchr(plan, ':');
    char *more = NULL;

    if (plan == NULL)
        return false;
    if (colon == NULL)
        abort();
    long at = strtol(colon + 1, &more, 10);
    if (!is_meant(*more == '*', call))
        return false;
    long n = atomic_fetch_add(&n_calls, 1) + 1;
    if (n != at && (n < at || *more == '\0'))
        return false;
    if (strncmp(plan, "kill:", sizeof("kill:") - 1) == 0)
        (void)raise(SIGKILL);
    errno = (int)strtol(plan, NULL, 10);
    return true;
}

static void *next_symbol(const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);

    if (symbol == NULL)
        abort();
    return symbol;
}

/* The C library's own, under the name `next`. */
#define NEXT(name)                                                                                 \
    __typeof__(name) *next;                                                                        \
    void *symbol = next_symbol(#name);                                                             \
    memcpy(&next, &symbol, sizeof(next))

int open(const char *path, int flags, ...)
{
    NEXT(open);
    mode_t mode = 0;

    if ((flags & O_CREAT) != 0) {
        va_list ap;
        va_start(ap, flags);
        mode = va_arg(ap, mode_t);
        va_end(ap);
        if (fails(CALL_NEW_ENTRY))
            return -1;
    }
    return next(path, flags, mode);
}

ssize_t write(int fd, const void *data, size_t n)
{
    NEXT(write);
    return fails(CALL_DATA) ? -1 : next(fd, data, n);
}

int fsync(int fd)
{
    NEXT(fsync);
    return fails(CALL_DATA) ? -1 : next(fd);
}

int rename(const char *from, const char *to)
{
    NEXT(rename);
    return fails(CALL_NEW_ENTRY) ? -1 : next(from, to);
}

int mkdir(const char *path, mode_t mode)
{
    NEXT(mkdir);
    return fails(CALL_NEW_ENTRY) ? -1 : next(path, mode);
}

int unlinkat(int folder, const char *path, int flags)
{
    NEXT(unlinkat);
    return fails(CALL_REMOVAL) ? -1 : next(folder, path, flags);
}
