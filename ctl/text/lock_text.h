/* What `lock` prints of a lock that it wrote, and `lock --verify` with its output. */
#ifndef CTL_TEXT_LOCK_TEXT_H
#define CTL_TEXT_LOCK_TEXT_H

#include "base/err.h"
#include "ctl/ctl.h"
#include "prereg/lock/lock.h"

struct lock_paths { /* all owned */
    char *lock;     /* GRID.TOML.lock */
    char *tsq;      /* the time-stamp request beside it */
    char *tsr;      /* the authority's response */
};

/* The three paths beside GRID.TOML. */
void lock_paths_init(struct lock_paths *paths, const char *program_path);
void lock_paths_release(struct lock_paths *paths);

/* Prints the lock that is on disk now, and how to get its time stamp. */
int lock_say_written(const struct ctl_options *o, const struct lock *lock,
                     const struct lock_paths *paths, struct err *err) MUST_CHECK;

/* The lock beside o->args[0] against the program, its signature and its time stamp. Executes no
 * worker and writes nothing; the first thing that does not hold is the error. */
int lock_say_verified(const struct ctl_options *o, struct err *err) MUST_CHECK;

#endif
