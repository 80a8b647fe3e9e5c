/* Results of apparatus checks, under every version of the plan that asked for them: no result in
 * the journal is missing, each agrees with the plan of its time, with its own value and with its
 * text, and an amendment that changes a check states what was known of it. Failed checks are
 * reported of a receipt that holds, too. */
#include <math.h>
#include <string.h>

#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "prereg/amend/amend_known.h"
#include "prereg/amend/amendment.h"
#include "prereg/program/apparatus_name.h"
#include "prereg/task/apparatus_text.h"

/* A number member; NaN when it is absent, which equals nothing. */
static double number_of(const cJSON *o, const char *key)
{
    const cJSON *v = json_member(o, key);
    return cJSON_IsNumber(v) ? v->valuedouble : (double)NAN;
}

/* A text member; "" when it is absent. */
static const char *text_of(const cJSON *o, const char *key)
{
    const cJSON *v = json_member(o, key);
    return cJSON_IsString(v) ? v->valuestring : "";
}

/* The result of that attempt; `check` may be NULL in a list of one check. */
static const cJSON *find_attempt(const cJSON *list, const char *check, double attempt)
{
    const cJSON *o = NULL;
    cJSON_ArrayForEach(o, list)
    {
        if (number_of(o, "attempt") == attempt &&
            (check == NULL || strcmp(text_of(o, "check"), check) == 0)) {
            return o;
        }
    }
    return NULL;
}

/* The entry of that check in provenance.json. */
static const cJSON *find_told(const struct verifying *v, const char *check)
{
    const cJSON *o = NULL;
    cJSON_ArrayForEach(o, json_member(v->provenance, "apparatus"))
    {
        if (strcmp(text_of(o, "name"), check) == 0) {
            return o;
        }
    }
    return NULL;
}

/* ---- against the journal ---- */

/* Every result in the journal must be in provenance.json, with the journal's text (unless the
 * history is unverified: its texts were rebuilt). */
static int check_journal(struct verifying *v)
{
    const cJSON *check = NULL;
    cJSON_ArrayForEach(check, v->history.checks)
    {
        const cJSON *results = json_member(find_told(v, check->string), "results");
        const cJSON *row = NULL;
        cJSON_ArrayForEach(row, json_member(check, "results"))
        {
            const char *said = text_of(row, "text");
            const double no = number_of(row, "attempt");
            const cJSON *r = find_attempt(results, check->string, no);
            err_at(v->err, RECEIPT_PROVENANCE, 0);
            if (r == NULL) {
                return err_set(v->err, ERR_LOCK,
                               "apparatus.%.60s: the result of attempt %.0f is missing",
                               check->string, no);
            }
            if (!v->history.unverified && strcmp(said, text_of(r, "text")) != 0) {
                return err_differs(v->err, "a result's text is not the journal's", said,
                                   text_of(r, "text"));
            }
        }
    }
    return 0;
}

/* ---- against the plan of its time ---- */

/* One text of the result must be that of the plan. */
static int compare_text(struct verifying *v, const char *key, const cJSON *asked, const cJSON *r)
{
    const char *expected = text_of(asked, key);
    return strcmp(expected, text_of(r, key)) == 0
               ? 0
               : err_differs(v->err, key, expected, text_of(r, key));
}

/* What a result says that was asked of it. */
static struct plan_apparatus asked_of(const cJSON *r)
{
    const double again = number_of(r, "again");
    return (struct plan_apparatus){.metric_text = text_of(r, "metric"),
                                   .value = number_of(r, "expected"),
                                   .within = number_of(r, "within"),
                                   .again = isnan(again) ? 0 : again};
}

/* Whether "holds" agrees with value and tolerance. */
static int check_arithmetic(struct verifying *v, const cJSON *r)
{
    const struct plan_apparatus a = asked_of(r);
    const bool holds = cJSON_IsTrue(json_member(r, "holds"));
    if (!verify_bears_out(&a, number_of(r, "value"), number_of(r, "first"), holds)) {
        return err_set(v->err, ERR_LOCK,
                       "a result of apparatus.%.60s claims %s, which its value does not bear out",
                       text_of(r, "check"), holds ? "to hold" : "not to hold");
    }
    return 0;
}

/* Whether the text of a result is the text for that value. A value that was not measured has the
 * worker's reason behind it, which is nowhere else. `said` gets APPARATUS_TEXT_SIZE. */
static bool is_said_of(const cJSON *r, double value, char *said)
{
    const struct plan_apparatus a = asked_of(r);
    const struct apparatus_score score = {.value = value, .first = number_of(r, "first")};
    const char *text = text_of(r, "text");
    apparatus_text(&a, &score, cJSON_IsTrue(json_member(r, "holds")), said);
    return isnan(value) ? strncmp(text, said, strlen(said)) == 0 : strcmp(text, said) == 0;
}

/* The text, which is the journal's, must say the value and whether it holds. A number in a file has
 * lost the sign of a zero, which the text has. */
static int check_words(struct verifying *v, const cJSON *r)
{
    const double value = number_of(r, "value");
    char said[APPARATUS_TEXT_SIZE];
    if ((value == 0 && is_said_of(r, -0.0, said)) || is_said_of(r, value, said)) {
        return 0;
    }
    char *what = xasprintf("a result of apparatus.%.60s: its value and \"holds\" are not what its "
                           "text says",
                           text_of(r, "check"));
    int rc = err_differs(v->err, what, text_of(r, "text"), said);
    free(what);
    return rc;
}

/* A second run was asked for the plan's `again`, and no first run for any. */
static bool is_asked_again(const cJSON *expect, const cJSON *r)
{
    const cJSON *again = json_member(expect, "again");
    if (!apparatus_name_is_end(text_of(r, "check"))) {
        return json_member(r, "again") == NULL && json_member(r, "first") == NULL;
    }
    return number_of(r, "again") == (again == NULL ? 0 : number_of(expect, "again"));
}

/* The result must be of a check that the plan declared then, with its model, metric and
 * tolerance. */
static int check_asked(struct verifying *v, const cJSON *r, const cJSON *plan)
{
    const char *check = text_of(r, "check");
    char *name = xstrndup(check, apparatus_name_length(check));
    const cJSON *asked = json_member(json_member(plan, "apparatus"), name);
    const cJSON *expect = json_member(asked, "expect");
    free(name);
    err_at(v->err, RECEIPT_PROVENANCE, 0);
    if (!cJSON_IsObject(expect)) {
        return err_set(v->err, ERR_LOCK,
                       "apparatus.%.60s was not declared when provenance.json says it had a result",
                       text_of(r, "check"));
    }
    int rc = compare_text(v, "stage", asked, r);
    if (rc != 0 || (rc = compare_text(v, "model", asked, r)) != 0 ||
        (rc = compare_text(v, "metric", expect, r)) != 0) {
        return rc;
    }
    if (number_of(expect, "value") != number_of(r, "expected") ||
        number_of(expect, "within") != number_of(r, "within") || !is_asked_again(expect, r)) {
        return err_set(v->err, ERR_LOCK,
                       "a result of apparatus.%.60s was asked for another value or tolerance, as "
                       "the plan was then",
                       text_of(r, "check"));
    }
    if ((rc = check_arithmetic(v, r)) != 0) {
        return rc;
    }
    return check_words(v, r);
}

/* Each result must name one of the plan's versions, or no version would be held against it. */
static int check_numbers(struct verifying *v)
{
    const double last = (double)v->lock->n_amendments;
    const cJSON *check = NULL;
    cJSON_ArrayForEach(check, json_member(v->provenance, "apparatus"))
    {
        const cJSON *r = NULL;
        cJSON_ArrayForEach(r, json_member(check, "results"))
        {
            const double n = number_of(r, "amendment");
            if (!(n >= 0 && n <= last) || n != floor(n)) {
                err_at(v->err, RECEIPT_PROVENANCE, 0);
                return err_set(v->err, ERR_LOCK,
                               "a result of apparatus.%.60s: \"amendment\" must be a whole number "
                               "from 0 to %zu",
                               text_of(check, "name"), v->lock->n_amendments);
            }
        }
    }
    return 0;
}

/* Checks the results that were asked for when `n` amendments were in force. */
static int check_version(struct verifying *v, const cJSON *plan, size_t n)
{
    const cJSON *check = NULL;
    cJSON_ArrayForEach(check, json_member(v->provenance, "apparatus"))
    {
        const cJSON *r = NULL;
        cJSON_ArrayForEach(r, json_member(check, "results"))
        {
            if (number_of(r, "amendment") == (double)n) {
                int rc = check_asked(v, r, plan);
                if (rc != 0) {
                    return rc;
                }
            }
        }
    }
    return 0;
}

/* Applies the amendments one by one, and checks the results under each plan. */
static int check_versions(struct verifying *v)
{
    struct amendment_chain chain;
    int rc = check_numbers(v);
    if (rc != 0) {
        return rc;
    }
    amendments_begin(v->lock, &chain);
    rc = check_version(v, json_member(chain.locked, "plan"), 0);
    for (size_t n = 1; rc == 0 && n <= v->lock->n_amendments; n++) {
        cJSON *a = json_copy(cJSON_GetArrayItem(v->lock->amendments, (int)n - 1));
        if (amendments_append(&chain, v->lock->root, a, v->err) != 0) {
            cJSON_Delete(a);
            rc = mismatch_code(v->err);
            break;
        }
        rc = check_version(v, json_member(chain.locked, "plan"), n);
    }
    amendments_release(&chain);
    return rc;
}

/* ---- what was known when it was amended ---- */

/* Whether some change of the amendment touches the result's check. */
static bool is_of(const cJSON *amendment, const cJSON *result)
{
    const cJSON *change = NULL;
    cJSON_ArrayForEach(change, json_member(amendment, "changes"))
    {
        if (amend_touches(change, result)) {
            return true;
        }
    }
    return false;
}

/* An amendment that changes a check must list every result of it that the journal had before the
 * amendment's row, as it was. */
static int check_amendment(struct verifying *v, size_t number, double row)
{
    const cJSON *amendment = cJSON_GetArrayItem(v->lock->amendments, (int)number - 1);
    const cJSON *check = NULL;
    cJSON_ArrayForEach(check, v->history.checks)
    {
        const cJSON *results = json_member(find_told(v, check->string), "results");
        const cJSON *j = NULL;
        cJSON_ArrayForEach(j, json_member(check, "results"))
        {
            const double no = number_of(j, "attempt");
            const cJSON *r = find_attempt(results, check->string, no);
            const cJSON *known = json_member(amendment, AMENDMENT_KNOWN);
            if (number_of(j, "row") > row || !is_of(amendment, r)) {
                continue;
            }
            const cJSON *told = find_attempt(known, check->string, no);
            char *file = amendment_file(LAYOUT_AMENDMENTS, number, "json");
            err_at(v->err, file, 0);
            free(file);
            if (told == NULL) {
                return err_set(v->err, ERR_LOCK,
                               "it changes apparatus.%.60s, whose attempt %.0f had a result, and "
                               "does not say so",
                               check->string, no);
            }
            int rc = mismatch_trees(v->err, AMENDMENT_KNOWN, r, told);
            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

/* Goes through the journal's rows of amendments, which say when each took effect. */
static int check_amendments(struct verifying *v)
{
    int rc = 0;
    const cJSON *amended = NULL;
    cJSON_ArrayForEach(amended, v->history.amended)
    {
        const double number = number_of(amended, "number");
        if (rc == 0 && number >= 1 && number <= (double)v->lock->n_amendments) {
            rc = check_amendment(v, (size_t)number, number_of(amended, "row"));
        }
    }
    return rc;
}

/* ---- in words ---- */

/* The number of the first amendment that changed the check when this result was known; 0: none
 * did. */
static size_t changed_by(const struct verifying *v, const cJSON *result)
{
    size_t n = 0;
    const cJSON *a = NULL;
    cJSON_ArrayForEach(a, v->lock->amendments)
    {
        n++;
        if (find_attempt(json_member(a, AMENDMENT_KNOWN), text_of(result, "check"),
                         number_of(result, "attempt")) != NULL) {
            return n;
        }
    }
    return 0;
}

/* One sentence about a result that does not hold. */
static void tell_failure(struct verifying *v, const cJSON *r)
{
    const double asked = number_of(r, "amendment");
    char *by = asked == 0 ? xstrdup("as locked") : xasprintf("after amendment %.0f", asked);
    const size_t n = changed_by(v, r);
    char *then = n == 0 ? xstrdup("")
                        : xasprintf("; amendment %zu changed the check when that was known", n);
    verifying_says(v, "apparatus.%s: attempt %.0f, %s: %s: DOES NOT HOLD%s", text_of(r, "check"),
                   number_of(r, "attempt"), by, text_of(r, "text"), then);
    free(then);
    free(by);
}

/* Reports every result that does not hold, of whichever version of the plan. */
static void tell_failures(struct verifying *v)
{
    const cJSON *check = NULL;
    cJSON_ArrayForEach(check, json_member(v->provenance, "apparatus"))
    {
        const cJSON *r = NULL;
        cJSON_ArrayForEach(r, json_member(check, "results"))
        {
            if (!cJSON_IsTrue(json_member(r, "holds"))) {
                tell_failure(v, r);
            }
        }
    }
}

int verify_check_results(struct verifying *v)
{
    int rc = check_journal(v);
    if (rc != 0 || (rc = check_versions(v)) != 0 || (rc = check_amendments(v)) != 0) {
        return rc;
    }
    tell_failures(v);
    return 0;
}
