/*
 * Every word that Slurm has for the state of a job, and what it means to us: a closed table (rule
 * 18). A word that is not in it is STATE_UNKNOWN and is shown as it is. The state explains, it does
 * not decide: truth is in the attempt's files (rule 12).
 */
#ifndef DAEMON_EXECUTOR_SLURM_STATES_H
#define DAEMON_EXECUTOR_SLURM_STATES_H

#include <stdbool.h>
#include <stddef.h>

/* Base states and the flags that squeue prints in their place. */
enum slurm_state {
    SLURM_UNKNOWN, /* no answer has named it yet, or its word is not in the table */
    SLURM_PENDING,
    SLURM_RUNNING,
    SLURM_SUSPENDED,
    SLURM_COMPLETED,
    SLURM_CANCELLED,
    SLURM_FAILED,
    SLURM_TIMEOUT,
    SLURM_NODE_FAIL,
    SLURM_PREEMPTED,
    SLURM_BOOT_FAIL,
    SLURM_DEADLINE,
    SLURM_OUT_OF_MEMORY,
    SLURM_COMPLETING, /* flags from here */
    SLURM_CONFIGURING,
    SLURM_EXPEDITING,
    SLURM_LAUNCH_FAILED,
    SLURM_POWER_UP_NODE,
    SLURM_RECONFIG_FAIL,
    SLURM_REQUEUED,
    SLURM_REQUEUE_FED,
    SLURM_REQUEUE_HOLD,
    SLURM_RESIZING,
    SLURM_RESV_DEL_HOLD,
    SLURM_REVOKED,
    SLURM_SIGNALING,
    SLURM_SPECIAL_EXIT,
    SLURM_STAGE_OUT,
    SLURM_STOPPED,
    SLURM_UPDATE_DB,
    SLURM_STATE_NR
};

/* What a state says of the job's processes. */
enum slurm_phase {
    SLURM_PHASE_UNCLEAR, /* proves nothing */
    SLURM_PHASE_WAITING, /* has not begun, or waits to begin again */
    SLURM_PHASE_ACTIVE,  /* has a node; its processes may run */
    SLURM_PHASE_OVER,    /* Slurm is done with it */
};

/* Returns the state that `word` (len bytes) names, up to its end, a blank, '+' or ',': sacct writes
 * "CANCELLED by 1000" and "CANCELLED+". */
enum slurm_state slurm_state_from_word(const char *word, size_t len);
const char *slurm_state_word(enum slurm_state s); /* "PENDING", ...; "UNKNOWN" */
enum slurm_phase slurm_state_phase(enum slurm_state s);
/* Whether it says that the site or a person has put the job back into the queue (rule 7). */
bool slurm_state_is_requeue(enum slurm_state s);

/* Returns what a pending reason of Slurm means in words, or NULL for one that has none here: it is
 * shown as it is. */
const char *slurm_reason_in_words(const char *reason);
/* Whether a job that waits for `reason` never begins unless the user or the operator acts. */
bool slurm_reason_is_final(const char *reason);

#endif
