/*
 * What workers measured of this machine for their estimates of time: a few numbers under a name, in
 * the JSON file that a task names under --describe (docs/worker-protocol.md), so that each is
 * measured once. The processor's name and the version of the arithmetic become part of the name,
 * because a state folder may serve several machines and outlives a version.
 *
 * A file that cannot be read counts as empty, one that cannot be written as not there.
 */
#ifndef WORKER_REPORT_MACHINE_RATES_H
#define WORKER_REPORT_MACHINE_RATES_H

#include "worker/report/task.h"

/* Whether `what` is there with n numbers, finite and not negative; values is untouched if not. */
bool machine_rates_find(const struct worker_task *task, const char *what, double *values, size_t n);
void machine_rates_keep(const struct worker_task *task, const char *what, const double *values,
                        size_t n);

#endif
