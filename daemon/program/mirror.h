/* What the store has of a program, loaded into memory. */
#ifndef DAEMON_PROGRAM_MIRROR_H
#define DAEMON_PROGRAM_MIRROR_H

#include "daemon/core/core.h"
#include "daemon/program/hosted.h"
#include "state/store/store.h"

struct live_list {
    struct core_live *items; /* attempts not ended */
    size_t n;
    size_t cap;
    struct core_end *ends; /* how the last attempts of blocked tasks ended */
    size_t n_ends;
    size_t cap_ends;
};

/* Fills the mirror of h from the store, and `live`. h->bundle is there. */
int mirror_load(struct store *store, struct hosted *h, const struct store_program *row,
                struct live_list *live, struct err *err) MUST_CHECK;

#endif
