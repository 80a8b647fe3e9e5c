/* Loads at the start what the store holds: every program with its bundle, its rows, and the
 * attempts without a recorded end. */
#ifndef DAEMON_SHELL_LOAD_H
#define DAEMON_SHELL_LOAD_H

#include "daemon/shell/shell.h"

/* All programs. One whose folder cannot be read is logged and left out: it stays as it is in the
 * store, and is loaded when it is submitted again or the daemon starts the next time. */
int load_all(struct shell *sh, struct err *err) MUST_CHECK;
/* One entry for each id: the latest reason. */
void load_note_unloaded(struct shell *sh, const char *id, const char *name, const struct err *why);
/* Removes its entry, since it was loaded after all; no-op without one. */
void load_forget_unloaded(struct shell *sh, const char *id);

/* Reads origin.json: where a program was submitted from. The caller frees it. */
int load_origin(const char *folder, char **origin, struct err *err) MUST_CHECK;
int load_save_origin(const char *folder, const char *origin, struct err *err) MUST_CHECK;

#endif
