/*
 * Whether the daemon of a tenure is provably gone. Pure: the evidence is gathered by
 * daemon/tenure/.
 *
 * A heartbeat that moves proves life. One that does not move proves nothing by itself: a host may
 * be frozen or cut off and go on later. What proves the end is in enum tenure_proof.
 */
#ifndef STATE_TENURE_JUDGE_H
#define STATE_TENURE_JUDGE_H

#include "state/tenure/record.h"

enum tenure_proof {
    TENURE_NOT_PROVEN,
    TENURE_RELEASED,     /* it says itself that it stopped */
    TENURE_PROCESS_GONE, /* same host, same boot: no process has that number and start time */
    TENURE_REBOOTED,     /* same host, another boot, and the heartbeat does not move */
    TENURE_JOB_ENDED,    /* Slurm says so of that job, and the heartbeat does not move */
    TENURE_BY_PERSON,    /* `preregd serve --take-over`, and the heartbeat does not move */
};

enum tenure_job {
    TENURE_JOB_UNKNOWN, /* not asked, cannot ask, or what was answered is of another job */
    TENURE_JOB_LIVES,
    TENURE_JOB_IS_OVER,
};

struct tenure_evidence {
    bool process_alive; /* of the same host and boot, in our space of process numbers */
    int64_t watched_ms; /* how long the heartbeat was watched, by our clock */
    bool moved;         /* it moved meanwhile */
    enum tenure_job job;
    char job_state[64]; /* in Slurm's word; "" */
    bool person;        /* a person wants it */
};

#define TENURE_WATCH_MS (5 * TENURE_BEAT_MS) /* still for less proves nothing to anyone */

/* Whether the number of its process can be looked up here. */
bool tenure_sees_process(const struct tenure *holder, const struct tenure *own);
/* Whether watching the heartbeat can change the answer. */
bool tenure_needs_watch(const struct tenure *holder, const struct tenure *own);
/* The proof, or why there is none and what to do, in `why` (never empty then). */
enum tenure_proof tenure_judge(const struct tenure *holder, const struct tenure *own,
                               const struct tenure_evidence *e, struct err *why);
/* "its Slurm job has ended (CANCELLED)": for the journal. The caller frees it. */
char *tenure_proof_text(enum tenure_proof proof, const struct tenure_evidence *e)
    __attribute__((returns_nonnull));

#endif
