/*
 * Shapes: each different set of resources and [run.slurm] settings once, by a number that the book
 * knows. What has the same shape may share an array, and is tested once (rule 23). A shape is of
 * one program, whose jobs/ folder holds its scripts.
 */
#ifndef DAEMON_EXECUTOR_SLURM_SHAPE_H
#define DAEMON_EXECUTOR_SLURM_SHAPE_H

#include "base/arena.h"
#include "daemon/executor/executor.h"
#include "daemon/executor/slurm/command.h"

struct slurm_shape {
    char *key; /* all of it as one text */
    uint32_t program;
    struct slurm_request request; /* texts are of the shape's arena */
    const char *folder;           /* the program's, as the daemon names it */
    char *jobs; /* its jobs/, absolute, without links; NULL until a job off the loop has found it */
    const char *shim;
    const char **setup;
    size_t n_setup;
    int64_t grace_ms;
    int64_t poll_ms;
    size_t n_attempts; /* that have it now */
    struct arena texts;
};

struct slurm_shapes {
    struct slurm_shape **list; /* by number */
    size_t n;
    size_t cap;
};

/* The number of what `place` asks for. own_shim: where [run.slurm] names none. */
uint32_t slurm_shape_number(struct slurm_shapes *s, const struct attempt_place *place,
                            const char *own_shim);
void slurm_shapes_release(struct slurm_shapes *s);

#endif
