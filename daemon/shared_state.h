/*
 * A state folder that several hosts see: the database is in a folder of this host, and this daemon
 * takes the folder's tenure over before it opens anything (docs/shared-folders.md).
 */
#ifndef DAEMON_SHARED_STATE_H
#define DAEMON_SHARED_STATE_H

#include "daemon/serve.h"
#include "daemon/tenure/take.h"
#include "state/store/store.h"

struct shared_state {
    bool is_shared; /* false: an ordinary one, nothing else holds */
    char *local;    /* where database, socket and logs are: the state folder unless it is shared */
    struct tenure_taken taken;
};

/* Returns the folder of database, socket and logs, made and checked. The caller frees *out. */
int shared_state_local(const struct serve_options *o, char **out, struct err *err) MUST_CHECK;
/* Takes the tenure, and rebuilds the database where it is absent or not of the daemon before.
 * Blocking. On error nothing is held. */
int shared_state_open(const struct serve_options *o, struct shared_state *out,
                      struct err *err) MUST_CHECK;
/* Once the store is open: journals the takeover in every program that has not ended. */
int shared_state_journal(const struct shared_state *s, struct store *store,
                         struct err *err) MUST_CHECK;
void shared_state_release(struct shared_state *s);

#endif
