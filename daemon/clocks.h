/*
 * The machine's clock against a program's journal. The order of the journal is its own and needs no
 * clock, and its times never go back; but whoever reads them must know that the clock did. What was
 * found stays: times that are written down do not mend.
 */
#ifndef DAEMON_CLOCKS_H
#define DAEMON_CLOCKS_H

#include "daemon/hosted.h"

/* When a program is taken up: against its last row. */
int clocks_at_start(struct store *store, struct hosted *h, struct err *err) MUST_CHECK;
/* A row of it is committed. */
void clocks_at_row(struct hosted *h, const struct state_row *row);

#endif
