/*
 * What the rest of a plan makes of a change: which conditions read the changed value, which measure
 * already has the metric, which files are pinned. A reader of an amendment has plans as JSON alone;
 * what their conditions read is decided by the names in them (condition_names.h).
 */
#ifndef PREREG_AMEND_AMEND_READS_H
#define PREREG_AMEND_AMEND_READS_H

#include <cjson/cJSON.h>
#include <stdbool.h>

/* Returns the first condition of an input or a validity rule, in either plan, that reads a bf10
 * whose priors this change of an instrument replaces, adds or removes; NULL when there is none. The
 * bf10 of a contrast follows from the priors of the first bayes instrument that names it. */
const char *amend_bf10_reader(const cJSON *before, const cJSON *after, const cJSON *change);

/* Returns the condition of the first forecast of `before` that reads the changed instrument, or a
 * bf10 whose priors the change replaces; NULL when there is none. */
const char *amend_forecast_reader(const cJSON *before, const cJSON *after, const cJSON *change);

/* Returns the other measure of the plan that already has the metric which this change gives to a
 * measure; NULL when there is none. */
const char *amend_metric_owner(const cJSON *plan, const cJSON *change);

/* Whether a reference model of the plan is that file; and whether anything that the plan pins is (a
 * command's argument, [pin] or a model). */
bool amend_names_model(const cJSON *plan, const char *file);
bool amend_names_file(const cJSON *plan, const char *file);

#endif
