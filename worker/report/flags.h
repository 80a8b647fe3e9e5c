/* Options of a command line: `--name value` and `--name` alone, anywhere among the operands. */
#ifndef WORKER_REPORT_FLAGS_H
#define WORKER_REPORT_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct flag {
    const char *name;
    bool alone;        /* takes no value; `value` is then its name when it is given */
    const char *value; /* NULL while not given */
};

/* Fills the flags and moves the operands to the front of args, ended by NULL. ERR_USAGE names a
 * flag that is unknown, given twice, or lacks its value. */
int flags_take(char **args, struct flag *flags, size_t n_flags, struct err *err) MUST_CHECK;
/* Leaves *out alone when the flag is not given. */
int flag_int(const struct flag *flag, int64_t min, int64_t max, int64_t *out,
             struct err *err) MUST_CHECK;

#endif
