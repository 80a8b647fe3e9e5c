/*
 * The command lines of Slurm's clients and the environment that they get. Every option is on the
 * command line, and variables that would change a client's behaviour are removed (rule 3). Lists
 * end with NULL, are of the caller's arena, and hold absolute values only.
 */
#ifndef DAEMON_EXECUTOR_SLURM_COMMAND_H
#define DAEMON_EXECUTOR_SLURM_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* What the jobs of one stage ask for: a shape of the book's (event.h). NULL and 0: not asked. */
struct slurm_request {
    const char *partition;
    const char *account;
    const char *qos;
    const char *clusters;
    const char *const
        *options; /* [run.slurm] options, as prereg/load/load_slurm.c lets them pass */
    size_t n_options;
    uint32_t threads; /* at least 1 */
    int64_t memory_bytes;
    uint32_t gpus;   /* whole ones: a share takes one */
    int64_t time_ms; /* rounded up to a minute (rule 23) */
    bool login;      /* the script's lines of setup want the environment of a login */
    int64_t warn_ms; /* USR2 to the shim so long before the limit (rule 21); 0: none */
};

struct slurm_submission {
    const char *name;    /* the batch's */
    const char *array;   /* "0-5,7"; or NULL: a single job */
    const char *exclude; /* "n1,n2"; or NULL */
    const char *script;  /* path; NULL: from stdin */
    const char *folder;  /* where the script runs: one that nodes see */
};

char *const *slurm_command_submit(struct arena *a, const struct slurm_request *r,
                                  const struct slurm_submission *s);
/* The same with --test-only (rule 23); `s` needs script and folder. */
char *const *slurm_command_test(struct arena *a, const struct slurm_request *r,
                                const struct slurm_submission *s);
/* names: comma list, or NULL for everything of `user` (rule 13). */
char *const *slurm_command_queue(struct arena *a, const char *clusters, const char *user,
                                 const char *names);
/* since: "YYYY-MM-DDTHH:MM:SS" in local time (rule 16). */
char *const *slurm_command_accounting(struct arena *a, const char *clusters, const char *names,
                                      const char *since);
/* ids: blank-separated. soft: SIGTERM to the shim alone. */
char *const *slurm_command_cancel(struct arena *a, const char *clusters, const char *name,
                                  const char *ids, bool soft);
char *const *slurm_command_config(struct arena *a, const char *clusters); /* scontrol show config */

/* The part of `environ` that the clients get: not SBATCH_*, SLURM_*, SQUEUE_*, SACCT_*, SCANCEL_*,
 * SCONTROL_*, SALLOC_*, SRUN_*; but SLURM_CONF, SLURM_CONF_SERVER and SLURM_JWT. With
 * SLURM_TIME_FORMAT=%s and LC_ALL=C. */
char *const *slurm_command_environment(struct arena *a, char *const *environment);

#endif
