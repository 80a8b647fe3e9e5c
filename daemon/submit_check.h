/* What `preregd submit` asks before it hands a program over: the folder of [run] work, and Slurm
 * where a stage runs under it. Faults are printed with their places, as `preregctl check` does. */
#ifndef DAEMON_SUBMIT_CHECK_H
#define DAEMON_SUBMIT_CHECK_H

#include "base/err.h"
#include "daemon/submit.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"

/* Asks nothing about a program that is known here with the same [run]. ERR_INVALID: errors were
 * printed; others: as slurm_check(). */
int submit_check(const struct submit_options *o, const char *state, const struct plan_program *p,
                 const struct lock *lock, struct err *err) MUST_CHECK;

#endif
