/*
 * What conditions read, as far as an amendment must know it without the grammar of conditions
 * (truthtable/): names are looked for as words, so that rather too much than too little is found.
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

#endif
