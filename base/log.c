#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

static struct {
    int fd;
    enum log_level level;
} logger = {.fd = STDERR_FILENO, .level = LOG_INFO};

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
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) {
        return err_set_errno(err, errno, "open log %s", path);
    }
    log_close();
    logger.fd = fd;
    return 0;
}

void log_close(void)
{
    if (logger.fd != STDERR_FILENO) {
        (void)close(logger.fd);
        logger.fd = STDERR_FILENO;
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
        line); /* a terminal may show it, and a line of a stranger's is no line of ours */
    len = strlen(line);
    line[len] = '\n';
    /* One write, so that lines of two processes never mix; a log that cannot be written is not
     * worth dying for. */
    ssize_t put = write(logger.fd, line, len + 1);
    (void)put;
}
