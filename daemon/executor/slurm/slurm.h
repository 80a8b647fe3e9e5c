/*
 * The executor that runs attempts as jobs of a Slurm cluster: the book (book.h) decides, this
 * room's client runs the commands, and folder.h reads and writes the files.
 *
 *   start, probe, terminate, kill ──► event ──► book ──► acts ──► command or file job
 *                                       ▲                              │
 *                                       └───────── its answer ─────────┘
 *
 * One command of each kind is under way at most, as the book has it; file jobs are many. After
 * close() answers are dropped: jobs go on in the cluster, and the next daemon finds them by their
 * files and names.
 */
#ifndef DAEMON_EXECUTOR_SLURM_SLURM_H
#define DAEMON_EXECUTOR_SLURM_SLURM_H

#include <uv.h>

#include "daemon/executor/executor.h"

/* shim_path: prereg-shim's absolute path, as the nodes see it, too. seed: of the names of arrays.
 */
struct executor *slurm_create(uv_loop_t *loop, const char *shim_path, uint64_t seed,
                              const struct executor_listener *listener);

#endif
