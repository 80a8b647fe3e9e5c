/* The background check of a journal that is too long for the store to check at once. */
#ifndef DAEMON_SHELL_HISTORY_CHECK_H
#define DAEMON_SHELL_HISTORY_CHECK_H

#include "daemon/shell/shell.h"

/* Starts the job when the journal is that long. Verdict and report wait for it, also while the
 * journal cannot be read. Call it before the program is added, which may ask for either. */
int history_check_start(struct shell *sh, struct hosted *h, struct err *err) MUST_CHECK;
/* Ends the waits for journals that could not be read, some of which are minutes long. */
void history_check_close(struct shell *sh);

#endif
