/*
 * The machine's clock against a program's journal. The order of the journal is its own and needs no
 * clock, and its times never go back; but a reader of them must know that the clock did. A note
 * stays: times that were written cannot be corrected later.
 */
#ifndef DAEMON_PROGRAM_CLOCKS_H
#define DAEMON_PROGRAM_CLOCKS_H

#include "daemon/program/hosted.h"

/* When a program is loaded: against its last row. */
int clocks_at_start(struct store *store, struct hosted *h, struct err *err) MUST_CHECK;
/* A row of it is committed. */
void clocks_at_row(struct hosted *h, const struct state_row *row);

#endif
