/*
 * check --slurm: asks the controller about every stage that runs under Slurm, and a node through a
 * probe job. What does not fit is an error in `diag` at its place in grid.toml; the questions go
 * from the cheap to the dear, and the next is asked only where the one before it had no error.
 */
#ifndef DAEMON_SLURM_CHECK_CHECK_H
#define DAEMON_SLURM_CHECK_CHECK_H

#include <cjson/cJSON.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/err.h"
#include "prereg/program/program.h"

struct slurm_check {
    const struct plan_program *program;
    const char *state; /* the state folder: where work is without [run] work */
    int64_t wait_ms;   /* the probe may wait so long in the queue */
};

/* How many stages of the program run under Slurm. */
size_t slurm_check_stages(const struct plan_program *p);

/* *answer, which the caller deletes, is NULL on an error and otherwise:
 *   {"cluster","version","max_array","max_jobs","accounting","max_submit",
 *    "partition","nodes","cores","memory_bytes","gpus","time_ms",
 *    "stages":[{"stage","asks","starts_in_ms","node"}],
 *    "probes":[{"stage","state","host","version","waited_ms","seen_ms","skew_ms","skew_bound_ms",
 *               "flock","work","why"}]}
 * null where a figure is not known. ERR_INVALID: errors in diag; ERR_USAGE: no stage runs under
 * Slurm; others: no Slurm here, its controller does not answer, or this machine failed. */
int slurm_check(const struct slurm_check *check, struct diag *diag, cJSON **answer,
                struct err *err) MUST_CHECK;

#endif
