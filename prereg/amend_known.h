/*
 * Results of apparatus checks that were known when an amendment was made: whoever changes what a
 * check demands after its result is known has seen what would hold. The amendment bears them in
 * "known", under its head, and what it changes of those checks is post hoc.
 *
 * A result: {"check":NAME,"attempt":N,"amendment":K,"stage","model","metric","expected","within",
 * "value":number|null,"holds":bool,"text"}. K counts the amendments that were in force when it was
 * asked for, 0: as locked.
 */
#ifndef PREREG_AMEND_KNOWN_H
#define PREREG_AMEND_KNOWN_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/err.h"

#define AMENDMENT_KNOWN "known"

/* Whether a change (amendment_changes()) is of the check that the result is of: of its declaration,
 * its pinned model, or params of the stage that it runs. */
bool amend_touches(const cJSON *change, const cJSON *result);
/* Of any of the results; NULL is none. */
bool amend_is_known(const cJSON *known, const cJSON *change);
/* Those of the results that some change is of; NULL when there is none. The caller deletes it. */
cJSON *amend_known_of(const cJSON *known, const cJSON *changes);
/* Whether a member "known" of a file is what it should be; NULL is. ERR_LOCK. */
int amend_check_known(const cJSON *known, struct err *err) MUST_CHECK;

#endif
