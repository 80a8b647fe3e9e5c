/*
 * The local executor: one prereg-shim per attempt, spawned in its own session and watched through a
 * pidfd, whether this daemon started it or found it (docs/scheduler.md, Who is alive).
 *
 *   start ──spawned──► watched ──pidfd readable──► examining ──exit.json──► ended
 *   probe ──unknown attempt──► examining ──lock held──► watched
 *                                        ──neither──► fenced, tree cleared ──► ended (lost)
 *
 * A shim of ours that has taken no lock LOCAL_YOUNG_MS after it was spawned is stuck: it is killed,
 * and its attempt ends as one that never launched.
 */
#ifndef DAEMON_EXECUTOR_LOCAL_H
#define DAEMON_EXECUTOR_LOCAL_H

#include <uv.h>

#include "daemon/executor/executor.h"

#define LOCAL_YOUNG_MS (60 * 1000)

/* shim_path: prereg-shim's absolute path. words_path: the file that shims have as standard error;
 * emptied. young_ms: LOCAL_YOUNG_MS; a test does not wait so long. */
struct executor *local_create(uv_loop_t *loop, const char *shim_path, const char *words_path,
                              int64_t young_ms, const struct executor_listener *listener);

#endif
