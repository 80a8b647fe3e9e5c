/*
 * The local executor: one prereg-shim per attempt, spawned in its own session and watched through a
 * pidfd, whether this daemon started it or found it (docs/scheduler.md, Who is alive).
 *
 *   start ──spawned──► watched ──pidfd readable──► examining ──exit.json──► ended
 *   probe ──unknown attempt──► examining ──lock held──► watched
 *                                        ──neither──► fenced, tree cleared ──► ended (lost)
 */
#ifndef DAEMON_LOCAL_H
#define DAEMON_LOCAL_H

#include <uv.h>

#include "daemon/executor.h"

/* shim_path: prereg-shim's absolute path. words_path: the file that shims have as standard error;
 * emptied. */
struct executor *local_create(uv_loop_t *loop, const char *shim_path, const char *words_path,
                              const struct executor_listener *listener);

#endif
