/*
 * Results of apparatus checks that were known when an amendment was made: a user who changes what a
 * check demands after its result is known has seen what would hold. The amendment carries them in
 * "known", covered by its head, and every change to those checks is marked post hoc.
 *
 * A result: {"check":NAME,"attempt":N,"amendment":K,"stage","model","metric","expected","within",
 * "value":number|null,"holds":bool,"text"}. K counts the amendments that were in force when it was
 * asked for, 0: as locked.
 */
#ifndef PREREG_AMEND_AMEND_KNOWN_H
#define PREREG_AMEND_AMEND_KNOWN_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/err.h"

#define AMENDMENT_KNOWN "known"

/* Whether a change (one of amendment_changes()) concerns the check of that result: its declaration,
 * its pinned model, or the params of the stage that it runs. */
bool amend_touches(const cJSON *change, const cJSON *result);
/* The same for any of the results in `known`; NULL means none. */
bool amend_is_known(const cJSON *known, const cJSON *change);
/* Copies the results that some change concerns; NULL when there is none. The caller deletes the
 * list. */
cJSON *amend_known_of(const cJSON *known, const cJSON *changes);
/* Checks the member "known" of an amendment's file, which may be absent (NULL). ERR_LOCK. */
int amend_check_known(const cJSON *known, struct err *err) MUST_CHECK;

#endif
