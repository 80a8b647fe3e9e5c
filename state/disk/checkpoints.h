/*
 * The checkpoints of a task that is done: `checkpoint/step-N` in the folders of its attempts. What
 * the accepted result names as artifact or items, directly or through links, is needed by later
 * stages, `rerun` and `export`, and is never superseded. Checkpoints with names of another form
 * belong to the worker and are left alone, as is what only a link leads to. Blocking.
 */
#ifndef STATE_DISK_CHECKPOINTS_H
#define STATE_DISK_CHECKPOINTS_H

#include <stdbool.h>

#include "base/files/file.h"

/* Whether `name`, of an entry of checkpoint/, has the form step-N; *step gets N. */
bool checkpoint_step(const char *name, int64_t *step);

/* Adds to *out the paths of the checkpoints in `task_folder` that are superseded: of all attempts,
 * but those that the accepted result names and, with keep_last, the newest whole one of the
 * accepted attempt (of all attempts if it has none). None while no result is linked. ERR_CORRUPT
 * when the result cannot be read: then nothing is. */
int checkpoints_superseded(const char *task_folder, bool keep_last, struct name_list *out,
                           struct err *err) MUST_CHECK;

#endif
