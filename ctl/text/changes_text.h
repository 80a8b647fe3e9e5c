/* The changes of an amendment, a line each, for people. */
#ifndef CTL_TEXT_CHANGES_TEXT_H
#define CTL_TEXT_CHANGES_TEXT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "base/strbuf.h"

/* " plan.measure.mmlu.metric: "acc" -> "acc_norm" (post hoc)", a line for each change. */
void changes_print(const cJSON *changes, FILE *to);

/* "attempt 1, as locked: acc: expected 0.7 within 0.01, got 0.65: DOES NOT HOLD": a result of an
 * apparatus check (prereg/amend/amend_known.h). */
void changes_add_result(struct strbuf *sb, const cJSON *result);
/* What was known of the apparatus checks that an amendment changes, a line each. */
void changes_print_known(const cJSON *amendment, FILE *to);

#endif
