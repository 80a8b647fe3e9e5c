/*
 * Who vouches for a program: the signatures of its lock and amendments, each checked against the
 * key that it names, and whether a time stamp is beside the lock. Whose key that is, and which
 * authority to believe, no report can know: `preregctl verify` asks its user.
 */
#ifndef TRUTHTABLE_REPORT_REPORT_TRUST_H
#define TRUTHTABLE_REPORT_REPORT_TRUST_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "prereg/lock/lock.h"

enum signature_state {
    SIGNATURE_NONE,
    SIGNATURE_HOLDS, /* over these bytes, by the key it names */
    SIGNATURE_FAILS,
    SIGNATURE_UNCHECKED, /* ssh-keygen is missing here, or failed */
};

struct signature_seen {
    enum signature_state state;
    const char *fingerprint; /* NULL: not signed */
    const char *why;         /* fails, unchecked */
};

struct report_trust {
    struct signature_seen lock;
    struct signature_seen *amendments; /* in order */
    size_t n_amendments;
    bool stamp_request; /* beside the lock here, or beside the same bytes where it was submitted */
    bool stamp_response;
};

/* Texts live in the arena. */
void report_trust_read(struct report_trust *t, const char *folder, const struct lock *lock,
                       const cJSON *amendments, struct arena *a);

#endif
