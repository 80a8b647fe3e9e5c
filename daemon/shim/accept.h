/*
 * A task that is another name of a work ([[same_work]]): instead of a worker it runs
 * `prereg-shim --accept`, in its attempt's folder, which takes the accepted result of the task that
 * did the work. task.json says which: "accepts", with that attempt's folder and the digest of its
 * result.json.
 *
 * The result is the same but for "attempt", and has "same_work" with the attempt that did the work
 * and the digest of its result.json. Artifacts and items are hard links, or copies where the file
 * system refuses links. Blocking.
 */
#ifndef DAEMON_SHIM_ACCEPT_H
#define DAEMON_SHIM_ACCEPT_H

#include "base/err.h"

#define ACCEPT_VERB "--accept"

/* In the working directory. ERR_CORRUPT: what is to be accepted is not what the journal accepted.
 */
int accept_run(struct err *err) MUST_CHECK;

#endif
