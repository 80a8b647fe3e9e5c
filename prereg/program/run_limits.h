/*
 * The settings of [run] and [run.STAGE] that can end an attempt or give a task up: read from the
 * [run] table as the journal has it, so that the daemon and `verify` know under which limits a task
 * was lost. The other keys (slots, work, executor, GPUs, checkpoint, ...) end nothing by
 * themselves.
 */
#ifndef PREREG_PROGRAM_RUN_LIMITS_H
#define PREREG_PROGRAM_RUN_LIMITS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define RUN_CRASHES_DEFAULT  3
#define RUN_ATTEMPTS_DEFAULT 50
#define RUN_BUDGET_MAX       1000000

enum run_limit {
    RUN_MEMORY,   /* bytes; 0: no limit */
    RUN_TIME,     /* ms of an attempt under Slurm; 0: no limit of ours */
    RUN_CRASHES,  /* ends that give the task up */
    RUN_ATTEMPTS, /* likewise */
    RUN_SETUP,    /* deadlines of the sections, ms; 0: measured */
    RUN_STEP,
    RUN_CHECKPOINT,
    RUN_EVAL,
    RUN_LIMIT_NR
};

struct run_limits {
    int64_t of[RUN_LIMIT_NR];
};

/* Of the stage: its own keys win over those of the whole. run may have keys that no limit has; NULL
 * is an empty table. ERR_SYNTAX, ERR_RANGE: a limit that no grid.toml could have. */
int run_limits_read(const cJSON *run, const char *stage, struct run_limits *out,
                    struct err *err) MUST_CHECK;

/* Whether a is less than b. A deadline that is measured and one that is set cannot be compared:
 * each counts as less than the other. */
bool run_limit_is_narrower(enum run_limit limit, int64_t a, int64_t b);

#define RUN_LIMIT_TEXT_SIZE 64
/* "memory 1048576 bytes", "no limit of memory", "a measured deadline of step". */
void run_limit_text(enum run_limit limit, int64_t value, char out[RUN_LIMIT_TEXT_SIZE]);

#endif
