/* Claims a shared state folder for this daemon. Blocking: up to TENURE_WATCH_MS, and as long as
 * Slurm's clients take. */
#ifndef DAEMON_TENURE_TAKE_H
#define DAEMON_TENURE_TAKE_H

#include "state/tenure/judge.h"

struct take_request {
    const char *state;
    const char *database; /* absolute, a folder of this host that exists */
    const char *database_id;
    bool has_database; /* there is one in that folder */
    bool person;       /* --take-over */
    /* Asks the person at the terminal; false: no. */
    bool (*confirm)(const char *question);
};

struct tenure_taken {
    struct tenure own;
    bool had_holder;         /* false: the first daemon of the folder */
    struct tenure holder;    /* the last one before */
    enum tenure_proof proof; /* that it is gone */
    char story[900];         /* for the journal: both sides, and the proof */
};

/* Claims the next number. out->own.database_id is that of the request if the database is the one
 * that the holder had; else "", and the caller sets it once the database is rebuilt: one that is
 * left half-way is never trusted. ERR_BUSY: the holder is not provably gone, or another
 * successor was faster. */
int tenure_take(const struct take_request *q, struct tenure_taken *out, struct err *err) MUST_CHECK;

#endif
