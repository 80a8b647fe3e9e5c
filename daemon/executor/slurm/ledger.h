/*
 * Finds, adds and removes the records of the book. An attempt is found by its key, a batch by its
 * name, both by hashing. Private to the pure part of this room.
 */
#ifndef DAEMON_EXECUTOR_SLURM_LEDGER_H
#define DAEMON_EXECUTOR_SLURM_LEDGER_H

#include "daemon/executor/slurm/records.h"

void ledger_init(struct slurm_book *b);
void ledger_release(struct slurm_book *b);

/* ---- attempts ---- */

uint32_t ledger_find(const struct slurm_book *b, const struct attempt_key *key); /* or NOWHERE */
uint32_t ledger_add(struct slurm_book *b, const struct attempt_key *key, const char *id);
/* Takes it out of its batch: `entry` remains there. */
void ledger_remove(struct slurm_book *b, uint32_t slot, uint32_t entry);
void ledger_id(const struct attempt_record *a, char text[UUID_TEXT_SIZE]);

/* ---- waiting lists ---- */

struct shape_record *ledger_shape(struct slurm_book *b, uint32_t shape);
void ledger_wait(struct slurm_book *b, uint32_t slot, bool first);
void ledger_unwait(struct slurm_book *b, uint32_t slot);

/* ---- batches ---- */

uint32_t ledger_find_batch(const struct slurm_book *b, const char *name); /* or NOWHERE */
uint32_t ledger_add_batch(struct slurm_book *b, const char *name, bool array);
/* Returns the entry that a row of an answer is about and its batch; NULL: none of ours (rule 2). */
uint32_t *ledger_entry(struct slurm_book *b, const struct slurm_row *row, uint32_t *batch);
/* The batch is asked about by name, soon. */
void ledger_ask_soon(struct slurm_book *b, uint32_t batch);
/* The attempt becomes entry `index`, which must be free. */
void ledger_enter(struct slurm_book *b, uint32_t batch, uint32_t index, uint32_t slot);
/* Takes an attempt out of its batch, and leaves `entry`. */
void ledger_leave(struct slurm_book *b, uint32_t slot, uint32_t entry);
void ledger_remove_batch(struct slurm_book *b, uint32_t batch);
void ledger_draw_name(struct slurm_book *b, char name[UUID_TEXT_SIZE]);

void list_add(struct list *l, uint32_t value);

static inline struct attempt_record *ledger_at(struct slurm_book *b, uint32_t slot)
{
    return &b->attempts[slot];
}

#endif
