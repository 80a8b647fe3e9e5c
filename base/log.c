/*
 * One file, one write(2) a line, rotated once at a size limit. Before log_open() lines go to
 * stderr.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/xalloc.h"

#define LOG_BYTES_MAX ((long long)16 << 20)

static struct {
    int fd;
    enum log_level level;
    char *path; /* NULL: standard error */
    atomic_llong bytes;
    atomic_flag rotating;
} logger = {.fd = STDERR_FILENO, .level = LOG_INFO, .rotating = ATOMIC_FLAG_INIT};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

int log_open(const char *path, struct err *err)
{
    const char *wanted = getenv("PREREGD_LOG");
    for (size_t i = 0; wanted != NULL && i < sizeof(level_names) / sizeof(level_names[0]); i++) {
        if (strcmp(wanted, level_names[i]) == 0) {
            logger.level = (enum log_level)i;
        }
    }
    if (path == NULL) {
        return 0;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;
    if (fd < 0) {
        return err_set_errno(err, errno, "open log %s", path);
    }
    log_close();
    logger.fd = fd;
    logger.path = xstrdup(path);
    logger.bytes = fstat(fd, &st) == 0 ? (long long)st.st_size : 0;
    return 0;
}

/* The full log becomes PATH.1, in the place of an older one; the descriptor stays the same, as
 * other threads may be writing to it. */
static void rotate(void)
{
    char old[4096];
    if (atomic_flag_test_and_set(&logger.rotating)) {
        return;
    }
    int n = snprintf(old, sizeof(old), "%s.1", logger.path);
    int fd = -1;
    if (logger.bytes > LOG_BYTES_MAX && n > 0 && (size_t)n < sizeof(old) &&
        rename(logger.path, old) == 0) {
        fd = open(logger.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    logger.bytes = 0; /* where it cannot be, it is tried again after as much more */
    if (fd >= 0) {
        (void)dup3(fd, logger.fd, O_CLOEXEC);
        (void)close(fd);
    }
    atomic_flag_clear(&logger.rotating);
}

void log_close(void)
{
    if (logger.fd != STDERR_FILENO) {
        (void)close(logger.fd);
        logger.fd = STDERR_FILENO;
        free(logger.path);
        logger.path = NULL;
    }
}

void log_write(enum log_level level, const char *fmt, ...)
{
    if (level > logger.level) {
        return;
    }
    char line[1024];
    char when[WALL_TEXT_SIZE];
    clock_wall_text(clock_wall(), when);
    int n = snprintf(line, sizeof(line) - 1, "%s %-5s ", when, level_names[level]);
    size_t len = n > 0 ? (size_t)n : 0;
    va_list ap;
    va_start(ap, fmt);
    int m = vsnprintf(line + len, sizeof(line) - 1 - len, fmt, ap);
    va_end(ap);
    len = m < 0 ? len : len + (size_t)m;
    if (len > sizeof(line) - 2) {
        len = sizeof(line) - 2;
    }
    line[len] = '\0';
    text_make_line(
        line); /* a terminal may show it, and a stranger's text must not forge a line of ours */
    len = strlen(line);
    line[len] = '\n';
    /* One write, so that lines of two processes never mix; a log that cannot be written is not
     * worth dying for. */
    ssize_t put = write(logger.fd, line, len + 1);
    if (put > 0 && logger.path != NULL &&
        atomic_fetch_add(&logger.bytes, put) + put > LOG_BYTES_MAX) {
        rotate();
    }
}
