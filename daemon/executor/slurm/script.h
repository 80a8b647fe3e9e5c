/*
 * The job script: finds the attempt's folder, runs the lines of [run.slurm] setup and becomes the
 * shim, so that signals reach the shim and not a shell (rule 4). What the lines print is in
 * SLURM_SCRIPT_LOG of the folder.
 */
#ifndef DAEMON_EXECUTOR_SLURM_SCRIPT_H
#define DAEMON_EXECUTOR_SLURM_SCRIPT_H

#include <stddef.h>

#include "base/strbuf.h"

#define SLURM_SCRIPT_LOG       "slurm.log"
#define SLURM_SCRIPT_NO_FOLDER 113 /* exit: the list has no line for the index */
#define SLURM_SCRIPT_NO_SETUP  114 /* exit: a line of setup failed */
#define SLURM_SCRIPT_SETUP_LINE                                                                    \
    "preregd: line " /* how the log's last line then begins; its number from 1 follows */

struct slurm_script {
    const char *shim;         /* absolute path, on the nodes */
    const char *folder;       /* of a single job's attempt; or NULL */
    const char *list;         /* of an array: path of its list, line i + 1 is index i; or NULL */
    const char *const *setup; /* lines */
    size_t n_setup;
};

/* Appends the script's text. Needs folder or list. Paths may hold anything but line ends. */
void slurm_script_write(struct strbuf *out, const struct slurm_script *s);

#endif
