/*
 * What the rest of a plan makes of a change: which conditions read what it is of, which measure had
 * its metric, which files are pinned. Conditions are not parsed (their grammar is truthtable's):
 * names are looked for as words, so that rather too much than too little is found.
 */
#ifndef PREREG_AMEND_READS_H
#define PREREG_AMEND_READS_H

#include <cjson/cJSON.h>
#include <stdbool.h>

/* Whether a name stands in the text, not as a part of a longer one. */
bool amend_text_names(const char *text, const char *name);

/* bf10 of a contrast follows from the priors of the first bayes instrument that names it. The
 * first condition of an input or a validity, before or after, that reads one whose priors become
 * others, or come or go, by this change of an instrument; NULL: there is none. `before` and `after`
 * are plans. */
const char *amend_bf10_reader(const cJSON *before, const cJSON *after, const cJSON *change);

/* The condition of the first forecast before that reads the instrument that this change is of, or a
 * bf10 whose priors become others by it; NULL: there is none. */
const char *amend_forecast_reader(const cJSON *before, const cJSON *after, const cJSON *change);

/* The other measure of the plan that has the metric which this change gives to one; NULL. */
const char *amend_metric_owner(const cJSON *plan, const cJSON *change);

/* Whether a reference model of the plan is that file; and whether anything of it is. */
bool amend_names_model(const cJSON *plan, const char *file);
bool amend_names_file(const cJSON *plan, const char *file);

#endif
