/*
 * The rows of one transaction, as the pump commits them, and the search for the program whose rows
 * the store rejects. No state of its own; the rows and acts are the caller's.
 */
#ifndef DAEMON_SHELL_BATCH_H
#define DAEMON_SHELL_BATCH_H

#include "daemon/shell/pump.h"

/* Commits all rows of `out` and what the listener adds to them, or nothing. */
int batch_commit(struct store *store, const struct pump_listener *listener,
                 const struct core_out *out, struct err *err) MUST_CHECK;

/* True for a failure that the rows have no part in: a full or failing disk, a folder that is not
 * there, a database that another process holds. The same rows may be committed later. */
bool batch_may_wait(int code);

/* The programs that `out` has rows of, each once; the caller frees them. */
uint32_t *batch_programs(const struct core_out *out, size_t *n) __attribute__((returns_nonnull));

/* Applies the rows of one program alone, checks that its journal would accept them, and rolls back.
 */
int batch_try(struct store *store, const struct pump_listener *listener, const struct core_out *out,
              uint32_t program, struct err *err) MUST_CHECK;

/* Removes all rows and acts of one program; the order of the others stays. */
void batch_drop(struct core_out *out, uint32_t program);

/* Moves the rows and acts of one program to the end of `to`, whose arena gets their texts. A PROBE
 * stays, because it needs no row; a TERMINATE or KILL that `to` has already is dropped, and a
 * PROGRESS row takes the place of an older one of its attempt, so that `to` grows with the attempts
 * alive, not with time. */
void batch_move(struct core_out *out, uint32_t program, struct core_out *to);

#endif
