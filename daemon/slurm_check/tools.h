/*
 * Running one of Slurm's commands and waiting for it, with a watchdog. The clients block for some
 * seconds while the controller is down, and sbatch retries by itself for two minutes (rule 6).
 */
#ifndef DAEMON_SLURM_CHECK_TOOLS_H
#define DAEMON_SLURM_CHECK_TOOLS_H

#include <signal.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/machine/proc.h"

#define TOOLS_QUERY_MS  ((int64_t)30000)
#define TOOLS_SUBMIT_MS ((int64_t)130000)

struct tools {
    struct arena *arena;
    char *const *env;      /* slurm_command_environment() */
    const sigset_t *stops; /* held signals that end a wait; NULL: none does */
    const char *clusters;  /* or NULL */
};

/* ERR_NOT_FOUND, naming the package, unless all of Slurm's commands are there. */
int tools_find(struct err *err) MUST_CHECK;

/* 0 when it ran and ended, however it ended. `r` is to be released in any case. */
int tools_run(const struct tools *t, char *const *argv, int64_t timeout_ms, struct proc_result *r,
              struct err *err) MUST_CHECK;

/* The same; anything but exit 0 is ERR_OTHER with Slurm's reason. */
int tools_ask(const struct tools *t, char *const *argv, struct proc_result *r,
              struct err *err) MUST_CHECK;

/* A command of up to eight words, with --clusters behind the first where it is set. */
char *const *tools_words(const struct tools *t, const char *const words[8]);

#endif
