/* `preregd submit`: hands a program to the daemon of this state folder, starting one when none
 * answers, and follows it to the verdict when told to. */
#ifndef DAEMON_SUBMIT_H
#define DAEMON_SUBMIT_H

#include <stdbool.h>

#include "base/err.h"

struct submit_options {
    const char *path;
    bool wait;
    bool json;
};

/* *code: the exit code of what was found (0, or the verdict's with `wait`). */
int submit_run(const struct submit_options *o, enum exit_code *code, struct err *err) MUST_CHECK;

#endif
