/* A map from attempts to what a room keeps of them: open addressing, so that finding one among 10^5
 * takes a step or two. Values are not owned. */
#ifndef DAEMON_EXECUTOR_KEY_MAP_H
#define DAEMON_EXECUTOR_KEY_MAP_H

#include <stddef.h>

#include "daemon/executor/executor.h"

struct key_slot {
    struct attempt_key key;
    void *value; /* NULL: the slot is free */
};

struct key_map { /* all zero: empty */
    struct key_slot *slots;
    size_t n;
    size_t cap; /* a power of two, or 0 */
};

void key_map_release(struct key_map *m);
/* NULL when there is none. */
void *key_map_get(const struct key_map *m, const struct attempt_key *key);
/* The key must not be there; value is not NULL. */
void key_map_put(struct key_map *m, const struct attempt_key *key, void *value);
/* No-op when it is not there. */
void key_map_remove(struct key_map *m, const struct attempt_key *key);

#endif
