/*
 * One program that tabs watch: a fingerprint of every task as it was last rendered, and what
 * changed since. Kept while the daemon runs, so that a tab that was hidden comes back to it; while
 * no client watches, nothing is compared.
 */
#ifndef DAEMON_HTTP_TOPIC_H
#define DAEMON_HTTP_TOPIC_H

#include "daemon/http/ring.h"
#include "daemon/shell/shell.h"

struct topic {
    struct topic *next;
    uint32_t program;
    size_t n_watchers;
    struct ring ring;
    uint64_t *prints; /* of each task of the grid; NULL: never compared */
    uint64_t version; /* of the program, when compared last */
    struct shared_text *full;
    uint64_t full_no;
    bool gone;    /* the program is no longer served */
    bool damaged; /* because its rows do not fit, not because it was removed */
};

/* `no`: nothing before this message is known of it. */
struct topic *topic_create(const struct hosted *h, uint64_t no) __attribute__((returns_nonnull));
void topic_free(struct topic *t);

/* Compares, and pushes a message of what changed. *last_no: the numbering of all messages. */
void topic_refresh(struct topic *t, const struct shell *sh, uint64_t *last_no);
/* Returns a message with everything as it is now, borrowed, and its number; the last one where
 * nothing came after it. NULL: the program is no longer served. */
struct shared_text *topic_full(struct topic *t, const struct shell *sh, uint64_t *last_no,
                               uint64_t *no);

#endif
