/* The names of executors, one table for both directions. */
#include "prereg/program/executor_kind.h"

#include <assert.h>
#include <string.h>

static const char *const NAMES[EXECUTOR_NR] = {
    [EXECUTOR_LOCAL] = "local", [EXECUTOR_SLURM] = "slurm"};

const char *executor_kind_name(enum executor_kind kind)
{
    assert(kind < EXECUTOR_NR);
    return NAMES[kind];
}

enum executor_kind executor_kind_from_name(const char *name)
{
    int i = 0;
    while (i < EXECUTOR_NR && strcmp(NAMES[i], name) != 0) {
        i++;
    }
    return (enum executor_kind)i;
}
