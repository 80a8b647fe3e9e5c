/*
 * How much one thread of this machine computes in a second, for the estimates of `check`: measured
 * once with the trainer's own --bench, and kept in STATE/machine-rates.json under the processor's
 * name.
 */
#ifndef CTL_MACHINE_RATE_H
#define CTL_MACHINE_RATE_H

#include "prereg/program/program.h"

/* Returns FLOP/s; 0 when no stage runs a worker of ours, or nothing could be measured. `state`:
 * the state folder, NULL: the user's own. */
double machine_rate(const char *state, const struct plan_program *p);

#endif
