/* Where attempts can run: on the daemon's own machine, or as jobs of a Slurm cluster. The names are
 * those of `[run] executor`, the journal and the database. */
#ifndef PREREG_PROGRAM_EXECUTOR_KIND_H
#define PREREG_PROGRAM_EXECUTOR_KIND_H

enum executor_kind { EXECUTOR_LOCAL, EXECUTOR_SLURM, EXECUTOR_NR };

const char *executor_kind_name(enum executor_kind kind);      /* "local", "slurm" */
enum executor_kind executor_kind_from_name(const char *name); /* EXECUTOR_NR when unknown */

#endif
