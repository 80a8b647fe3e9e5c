/*
 * The probe: a job of seconds with the options of a stage's jobs, that writes and reads through the
 * work folder. It proves that a node sees the folder and runs this version of prereg-shim, and
 * measures how far its clock is off and after how long its files are seen here.
 */
#ifndef DAEMON_SLURM_CHECK_PROBE_H
#define DAEMON_SLURM_CHECK_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/executor/slurm/command.h"
#include "daemon/slurm_check/tools.h"

enum probe_state {
    PROBE_ANSWERED, /* the node's part is filled */
    PROBE_WAITED,   /* it had not begun when the time was up, was refused for now, or was ended
                       before it had an answer; .why has Slurm's reason */
    PROBE_FAILED,   /* .why */
};

/* What was at fault, as far as it is a key of grid.toml. */
enum probe_fault { PROBE_FAULT_OTHER, PROBE_FAULT_WORK, PROBE_FAULT_SHIM, PROBE_FAULT_SETUP };

enum probe_flock { PROBE_FLOCK_UNKNOWN, PROBE_FLOCK_SEEN, PROBE_FLOCK_UNSEEN };

struct probe_spec {
    const struct tools *tools;
    const struct slurm_request *request;
    const char *shim; /* its path on the nodes */
    const char *const *setup;
    size_t n_setup;
    const char *work; /* a folder of this machine, without links */
    int64_t wait_ms;  /* in the queue */
};

struct probe_result {
    enum probe_state state;
    enum probe_fault fault;
    size_t setup_line; /* PROBE_FAULT_SETUP: from 1; 0: not known */
    char host[128];    /* "" as long as it is not known */
    char version[96];
    enum probe_flock flock;
    int64_t waited_ms;     /* until it began */
    int64_t seen_ms;       /* the quickest way there and back of a file */
    int64_t skew_ms;       /* the node's clock minus ours, in the middle of what is possible */
    int64_t skew_bound_ms; /* and how far it may be from there; -1: not measured */
    char why[400];
};

/* Submits, waits, cancels and cleans up; cancels also when a signal waits (ERR_REFUSED). Fails
 * where this machine does; what is wrong with the cluster is PROBE_FAILED. */
int probe_run(const struct probe_spec *spec, struct probe_result *out, struct err *err) MUST_CHECK;

#endif
