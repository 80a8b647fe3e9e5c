/* The log of a process: one line an event, wall time, level, text. To a file (appended), to stderr,
 * or both. Never holds a score while scores are sealed (invariant 8): callers pass names and
 * states, not values. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/err.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* path NULL: stderr only. Level from $PREREGD_LOG (error warn info debug), default info. */
int log_open(const char *path, struct err *err) MUST_CHECK;
void log_close(void);
void log_write(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)

#endif
