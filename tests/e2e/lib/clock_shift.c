/*
 * Preloaded into preregd: the wall clock is off by as many seconds as the file $CLOCK_SHIFT_FILE
 * says, at each look anew. Monotonic clocks are left alone. Never sanitized.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *ts);

static long shift(void)
{
    char text[32] = "";
    const char *path = getenv("CLOCK_SHIFT_FILE");
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t n = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    return n > 0 ? strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, id, ts);
    if (rc == 0 && id == CLOCK_REALTIME) {
        ts->tv_sec += shift();
    }
    return rc;
}
