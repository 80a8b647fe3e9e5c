/*
 * A lab's outcomes against its priors, over all its programs: which prior the outcome had that
 * came, and how often forecasts of a given confidence held.
 *
 * Reads files alone, each program's folder for itself: the verdict must be of its lock and have, of
 * an executed program, the digest that its journal ends with, of an imported one the outcome that
 * its records give. What does not follow is listed, never scored; nor are VOID and INDETERMINATE
 * programs. A superseded program is scored: a successor takes back no outcome.
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

/* {"programs":rows,"priors":{…},"forecasts":{…}}; the answer owns the rows, among which the
 * superseded and the repeated ones are marked. */
cJSON *calibration_sum(cJSON *rows) __attribute__((returns_nonnull));

#endif
