/* `preregd submit`: hands a program to the daemon of this state folder, starting one when none
 * answers, and follows it to the verdict with `wait`. Asks before the first run of a command that
 * is not known here (prereg/lock/trust.h). */
#ifndef DAEMON_SUBMIT_H
#define DAEMON_SUBMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct submit_options {
    const char *path;
    bool wait;
    bool json;
    bool adopt_work; /* --adopt-work: take the cells in [run] work from a state that is gone */
    bool run; /* --run: do not ask before the program's own commands run for the first time */
    bool no_slurm_check;
    int64_t slurm_wait_ms; /* of the probe job, in the queue */
};

/* *code: the exit code of what was found (0, or the verdict's with `wait`). */
int submit_run(const struct submit_options *o, enum exit_code *code, struct err *err) MUST_CHECK;

#endif
