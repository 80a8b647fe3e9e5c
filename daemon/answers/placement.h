/* Where attempts run or ran, for status, cells and explain: GPUs, and a cluster's job and node. */
#ifndef DAEMON_ANSWERS_PLACEMENT_H
#define DAEMON_ANSWERS_PLACEMENT_H

#include <cjson/cJSON.h>

#include "daemon/shell/shell.h"

/* GPUs of a placement's UUIDs: [{"uuid","index","model"}], the last two null for one that this
 * machine has no longer. */
cJSON *placement_gpus(const struct shell *sh, const char *uuids);

/* Adds "executor", "gpus", "node" and "job" of an attempt. What another scheduler gave it is in its
 * folder, which is not read while it may wait in a queue. Blocking, two small files; NULL for the
 * folder: neither is read. */
void placement_put(cJSON *o, const struct shell *sh, const char *folder,
                   const struct attempt_row *a);

/* The GPUs that live attempts of a program hold:
 * [{"uuid","index","model","n_tasks","tasks":[NAME]}], of the names at most PLACEMENT_TASKS_MAX. */
#define PLACEMENT_TASKS_MAX 8
cJSON *placement_held(const struct shell *sh, const struct hosted *h);

/* How many of its tasks wait in another scheduler's queue: they count as starting elsewhere. */
uint32_t placement_n_queued(const struct shell *sh, const struct hosted *h);

#endif
