/*
 * Which attempts without an end belong to a pause for failures that was lifted while they were at
 * work: what the core knows of them while a daemon lives (daemon/core/failures.c), read from the
 * journal when the next one starts. ctl/receipt/history.c holds receipts to the same rule.
 */
#ifndef STATE_STORE_ANSWERED_H
#define STATE_STORE_ANSWERED_H

#include "state/store/store.h"

struct store_answer {
    uint32_t task;
    uint32_t attempt_no;
    bool begun;    /* used while reading */
    bool answered; /* it began before such a pause was lifted, and no task of its stage was done by
                      then */
};

/* Sets `answered` of n attempts of the grid (tasks cell * n_stages + stage). Walks the whole
 * journal, unless n is 0. */
int store_answered(struct store *store, uint32_t program, uint32_t n_stages,
                   struct store_answer *answers, size_t n, struct err *err) MUST_CHECK;

#endif
