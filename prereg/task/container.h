/*
 * The command that starts a stage's worker: as it is, or in the container that the stage's image
 * makes. In a container the worker finds the files of its task under the paths that task.json has.
 */
#ifndef PREREG_TASK_CONTAINER_H
#define PREREG_TASK_CONTAINER_H

#include <stdint.h>

#include "base/err.h"
#include "prereg/program/program.h"

/* All borrowed. */
struct container_task {
    const struct plan_stage *stage;
    const char *image;  /* its digest, which is run whatever the name leads to; NULL: by name */
    const char *folder; /* the attempt's, the only one that the worker can write to */
    const char *task;   /* the path of task.json, which is written already */
    const char *name;   /* of the container; NULL: podman chooses one */
    int64_t timeout_ms; /* then its container ends, whatever became of podman; 0: none */
};

/* Changes `argv` and `env` of the worker to what has to be executed, and sets *exec, all of them
 * for free(); argv[0] is the path of the worker's file. A stage without an image has its worker
 * executed, under its own name. */
int container_command(const struct container_task *t, char ***argv, char ***env, char **exec,
                      struct err *err) MUST_CHECK;

#endif
