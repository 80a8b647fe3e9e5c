/*
 * A lab's outcomes against its priors, over all its programs: what was given to what came, and how
 * often what was said with a confidence held.
 *
 * Reads files alone, each program's folder for itself: the verdict must be of its lock and, of an
 * executed program, have the digest that its journal ends with. What does not follow is listed,
 * never scored; nor are VOID, INDETERMINATE and superseded programs.
 */
#ifndef CTL_CALIBRATION_H
#define CTL_CALIBRATION_H

#include <cjson/cJSON.h>

#include "base/err.h"

#define CALIBRATION_BINS 5 /* of confidence, equally wide */

/* One program's row: {"program","folder","history","root","status","outcome","prior","bits",
 * "brier","why","stated":[{"prior","held"}],"forecasts":[{"name","confidence","outcome"}]};
 * status is "scored", "void", "indeterminate", "no verdict", "superseded" or "unverified". */
cJSON *calibration_program(const char *folder) __attribute__((returns_nonnull));

/* {"programs":rows,"priors":{…},"forecasts":{…}}; takes the rows over, and marks the superseded
 * among them. */
cJSON *calibration_sum(cJSON *rows) __attribute__((returns_nonnull));

#endif
