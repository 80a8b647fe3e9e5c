/*
 * What workers measured of this machine for their estimates of time: a few numbers under a name, in
 * the JSON file that a task names under --describe (docs/worker-protocol.md), so that each is
 * measured once. The processor's name and the versions of preregd and of its arithmetic become part
 * of the name, because a state folder may serve several machines and outlives a version.
 *
 * A file that cannot be read, or has more than a mebibyte, counts as empty, one that cannot be
 * written as not there.
 */
#ifndef WORKER_REPORT_MACHINE_RATES_H
#define WORKER_REPORT_MACHINE_RATES_H

#include "base/strbuf.h"
#include "worker/report/task.h"

/* The most that a measurement may take: bytes, also no more than half of what is free; operations,
 * ten seconds of a usual processor. */
#define MACHINE_TRIAL_BYTES ((double)((int64_t)1 << 30))
#define MACHINE_TRIAL_FLOPS (10.0 * TASK_USUAL_FLOPS)

/* Whether `what` is there with n numbers, finite and not negative; values is untouched if not. */
bool machine_rates_find(const struct worker_task *task, const char *what, double *values, size_t n);
void machine_rates_keep(const struct worker_task *task, const char *what, const double *values,
                        size_t n);
/* Bytes that a measurement may take now. */
double machine_rates_room(void);
/* Whether a measurement that takes so much may be made. If not, appends to `why` what it would take
 * and what it may. */
bool machine_rates_allowed(double bytes, double flops, struct strbuf *why);
/* A sentence for the answer of --describe: the time is assumed, because of `why`. */
void machine_rates_assumed(const char *why, struct strbuf *note);

#endif
