/*
 * The work that was lost with attempts that left no result: what their task did again, or never
 * made use of. Estimated from files alone: provenance.json has when an attempt began and ended, and
 * from which step the next one went on; the attempt's own events have how far it came. Progress is
 * taken to be even over an attempt's time.
 */
#ifndef TRUTHTABLE_REPORT_REPORT_LOSSES_H
#define TRUTHTABLE_REPORT_REPORT_LOSSES_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

/* One attempt without a result. NaN where no file says enough. */
struct report_loss {
    double ms;
    double tokens; /* of a training: its steps times the tokens of a step */
};

struct report_losses {
    struct report_loss *items; /* in the order of provenance.json, its checks left out */
    size_t n;
};

struct report_model;

/* Reads the events of those attempts under `folder`, a program's. Results and provenance are the
 * model's, which has been read. */
void report_losses_read(struct report_losses *out, const struct report_model *m, const char *folder,
                        struct arena *a);

/* Of an attempt in provenance.json: whether it ended without a result, and its wall time; NaN where
 * the clock ran backwards, or an end is not known. */
bool attempt_is_lost(const cJSON *attempt);
double attempt_wall_ms(const cJSON *attempt);

#endif
