/*
 * A lab's outcomes against its priors, over all its programs: what was given to what came, and how
 * often what was said with a confidence held.
 *
 * Reads files alone, each program's folder for itself: the verdict must be of its lock and have, of
 * an executed program, the digest that its journal ends with, of an imported one the outcome that
 * its records give. What does not follow is listed, never scored; nor are VOID and INDETERMINATE
 * programs. A program that was superseded is: a successor takes back no outcome.
 */
#ifndef CTL_CALIBRATION_H
#define CTL_CALIBRATION_H

#include <cjson/cJSON.h>

#include "base/err.h"

#define CALIBRATION_BINS 5 /* of confidence, equally wide */

/* One program's row: {"program","folder","history","root","status","outcome","prior","bits",
 * "brier","why","stated":[{"prior","held"}],"forecasts_why","forecasts":[{"name",
 * "confidence","outcome","post_hoc"}],"supersedes","superseded_by"}; status is "scored", "void",
 * "indeterminate", "no verdict", "superseded" (without a verdict), "repeated" (its root was scored
 * before) or "unverified". */
cJSON *calibration_program(const char *folder) __attribute__((returns_nonnull));

/* {"programs":rows,"priors":{…},"forecasts":{…}}; takes the rows over, and marks the superseded
 * and the repeated among them. */
cJSON *calibration_sum(cJSON *rows) __attribute__((returns_nonnull));

#endif
