/*
 * The local executor: one prereg-shim per attempt, spawned in its own session and watched through a
 * pidfd, whether this daemon started it or found it (docs/scheduler.md, Who is alive).
 *
 *   start ──spawned──► watched ──pidfd readable──► examining ──exit.json──► ended
 *   probe ──unknown attempt──► examining ──lock held──► watched
 *                                        ──neither──► fenced, tree cleared ──► ended (lost)
 *
 * Where hosts share the state folder (local_share), an attempt may run on another one. It is
 * examined every few seconds, and its heartbeat compared by our clock: once that has not moved for
 * LOCAL_ELSEWHERE_MS, the attempt is fenced off and lost with its host.
 *
 * A shim of ours that has taken no lock LOCAL_YOUNG_MS after it was spawned is stuck: it is killed,
 * and its attempt ends as one that never launched.
 */
#ifndef DAEMON_EXECUTOR_LOCAL_H
#define DAEMON_EXECUTOR_LOCAL_H

#include <uv.h>

#include "daemon/executor/executor.h"

#define LOCAL_YOUNG_MS     (60 * 1000)
#define LOCAL_ELSEWHERE_MS (180 * 1000)

/* shim_path: prereg-shim's absolute path. words_path: the file that shims have as standard error;
 * emptied. young_ms: LOCAL_YOUNG_MS; a test does not wait so long. */
struct executor *local_create(uv_loop_t *loop, const char *shim_path, const char *words_path,
                              int64_t young_ms, const struct executor_listener *listener);
/* For a state folder that hosts share; before the first call. moved: a daemon of another host
 * served before, so attempts of which nothing is seen may be there. */
void local_share(struct executor *x, bool moved, int64_t elsewhere_ms);

#endif
