/*
 * Apparatus checks in the store: tasks beyond the grid, at the indices from n_cells * n_stages on,
 * in the order in which they were first declared. An index belongs to one name for good; a check
 * that an amendment took away keeps its rows and is no longer declared.
 *
 * Such a task moves as any other, with one move more (ROW_APPARATUS_AGAIN): when an amendment
 * changes what it checks, a result that held does not answer it any more. Its result is never a
 * record.
 */
#ifndef STATE_STORE_APPARATUS_H
#define STATE_STORE_APPARATUS_H

#include "state/store/store.h"

#define STORE_APPARATUS_MAX 1024u /* of a program, taken-away ones included */

/* Within a transaction: what p declares has a task, what it does not declare any more is marked so.
 */
int store_apparatus_sync(struct store *store, uint32_t program, const struct plan_program *p,
                         struct err *err) MUST_CHECK;

struct store_apparatus {
    uint32_t task;
    const char *name;
    const char *stage;
    bool declared;
};

/* By task. */
typedef int store_apparatus_fn(void *ctx, const struct store_apparatus *a, struct err *err);
int store_apparatus(struct store *store, uint32_t program, store_apparatus_fn *fn, void *ctx,
                    struct err *err) MUST_CHECK;

/* The digest of the result that held; *found is false when there is none. */
int store_result_digest(struct store *store, uint32_t program, uint32_t task, struct digest *out,
                        bool *found, struct err *err) MUST_CHECK;

/* For apply.c. Replaying: the line's task has this name and stage, whatever was known of it. */
int apparatus_take_line(struct store *store, const struct state_row *row,
                        struct err *err) MUST_CHECK;
/* ROW_APPARATUS_AGAIN: the result that held is forgotten; the journal keeps it. */
int apparatus_forget_result(struct store *store, const struct state_row *row,
                            struct err *err) MUST_CHECK;

#endif
