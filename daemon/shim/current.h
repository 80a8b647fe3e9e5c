/*
 * TASK/current-attempt, beside the attempts of a task: "<no> <uuid>", the one attempt that may
 * publish a result. The daemon writes it, synced, before it submits an attempt to a queue; the shim
 * reads it before it starts the worker, at every heartbeat and before it writes exit.json.
 *
 * Numbers only rise. A lower number than the reader's own is an old copy that a network file system
 * still had, and fences nothing.
 */
#ifndef DAEMON_SHIM_CURRENT_H
#define DAEMON_SHIM_CURRENT_H

#include <stdint.h>

#include "base/err.h"
#include "base/layout/attempt_name.h"

/* Durable once this returns 0. task_folder: that of the attempts' folders. */
int current_write(const char *task_folder, const struct attempt_name *a,
                  struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND: not visible here (yet). ERR_CORRUPT: not such a line. */
int current_read(const char *task_folder, struct attempt_name *out, struct err *err) MUST_CHECK;

/* The line of such a file. */
int current_parse(const char *line, struct attempt_name *out, struct err *err) MUST_CHECK;

enum current_finding {
    CURRENT_OURS,
    CURRENT_SUPERSEDED, /* it names a later attempt, or another one of the same number: fenced */
    CURRENT_UNKNOWN,    /* an earlier attempt, absent, unreadable: says nothing */
};

/* Compares what the task of an attempt's folder has with that attempt, whose number is in the
 * folder's name. `err` says why it is unknown. */
enum current_finding current_compare(const char *attempt_folder, struct err *err);
/* The comparison alone. */
enum current_finding current_judge(const struct attempt_name *current,
                                   const struct attempt_name *own);

#endif
