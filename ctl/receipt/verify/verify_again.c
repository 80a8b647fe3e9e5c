/* The second runs of the apparatus checks, after the last evaluation: how each ended by the
 * journal, and whether it was compared with the score of the first run. That it began when the grid
 * had ended is seen while the journal is read (history.c). */
#include <math.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/parts.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "prereg/program/apparatus_name.h"

#define ROUNDING 1e-9 /* of the tolerance: decimals are not exact */

static const char *text_of(const cJSON *o, const char *key)
{
    const cJSON *v = json_member(o, key);
    return cJSON_IsString(v) ? v->valuestring : "";
}

/* The entry of that check in provenance.json. */
static const cJSON *find_told(const struct verifying *v, const char *name)
{
    const cJSON *o = NULL;
    cJSON_ArrayForEach(o, json_member(v->provenance, "apparatus"))
    {
        if (strcmp(text_of(o, "name"), name) == 0) {
            return o;
        }
    }
    return NULL;
}

/* 1: beyond the tolerance; -1: within it; 0: so near its edge that either may be claimed, since the
 * value is at the tolerance in decimals, not in doubles. A tolerance of 0 has no edge. */
static int side_of(double value, double other, double within)
{
    const double off = fabs(value - other);
    const double slack = within > 0 ? ROUNDING * (fabs(other) + within) : 0;
    return off > within + slack ? 1 : within == 0 || off < within - slack ? -1 : 0;
}

bool verify_bears_out(const struct plan_apparatus *a, double value, double first, bool holds)
{
    if (isnan(value)) {
        return !holds;
    }
    const int band = a->within > 0 ? side_of(value, a->value, a->within)
                                   : side_of(value, a->value, ROUNDING * fabs(a->value));
    const int again = isnan(first) ? -1 : side_of(value, first, a->again);
    return holds ? band <= 0 && again <= 0 : band >= 0 || again >= 0;
}

bool verify_lacks_again(const struct verifying *v, const char *name)
{
    return apparatus_name_is_end(name) && json_member(v->history.checks, name) == NULL &&
           find_told(v, name) == NULL;
}

/* Whether some stage that waited for the checks has a result. */
static bool has_scores(const struct verifying *v)
{
    const struct plan_program *p = v->program;
    for (size_t i = 0; i < v->history.n_tasks; i++) {
        const size_t s = i % p->n_stages;
        if (v->history.tasks[i].state == TASK_DONE && p->stages[s].n_after > 0 &&
            program_stage_is_sealed(p, s)) {
            return true;
        }
    }
    return false;
}

/* How provenance.json says that a check ended, where it does (not of earlier versions). */
static int check_said_end(struct verifying *v, const char *name, const cJSON *row)
{
    const cJSON *told = find_told(v, name);
    const char *cause = text_of(row, "cause");
    if (json_member(told, "end") == NULL || row == NULL) {
        return 0;
    }
    if (strcmp(text_of(told, "end"), text_of(row, "state")) != 0) {
        return err_differs(v->err, "end", text_of(row, "state"), text_of(told, "end"));
    }
    return strcmp(text_of(told, "cause"), cause) == 0
               ? 0
               : err_differs(v->err, "cause", cause, text_of(told, "cause"));
}

/* Every result of the second run is compared with what the first run scored when it held. */
static int check_first(struct verifying *v, const char *name, const char *first_name)
{
    const cJSON *first = json_member(find_told(v, first_name), "value");
    const cJSON *r = NULL;
    cJSON_ArrayForEach(r, json_member(find_told(v, name), "results"))
    {
        const cJSON *said = json_member(r, "first");
        if (!cJSON_IsNumber(first) || !cJSON_IsNumber(said) ||
            first->valuedouble != said->valuedouble) {
            return err_set(v->err, ERR_LOCK,
                           "a result of apparatus.%.60s: \"first\" is not what the first run "
                           "scored",
                           name);
        }
    }
    return 0;
}

static int check_one(struct verifying *v, const struct plan_apparatus *a)
{
    const char *first = v->program->apparatus[a->first].name;
    const cJSON *row = json_member(v->history.checks, a->name);
    const enum task_end end = parts_end_of(row);
    if (end == TASK_END_PENDING) {
        err_at(v->err, RECEIPT_JOURNAL, v->history.verdict_row);
        return err_set(v->err, ERR_LOCK, "a verdict while apparatus/%.60s has not ended", a->name);
    }
    if (end != TASK_END_DONE && strcmp(text_of(row, "cause"), cause_name(CAUSE_DEPENDENCY)) == 0 &&
        has_scores(v) && parts_end_of(json_member(v->history.checks, first)) == TASK_END_DONE) {
        err_at(v->err, RECEIPT_JOURNAL, 0);
        return err_set(v->err, ERR_LOCK,
                       "apparatus/%.60s was not run, and the first run held and scores rest on it",
                       a->name);
    }
    err_at(v->err, RECEIPT_PROVENANCE, 0);
    int rc = check_said_end(v, a->name, row);
    rc = rc == 0 ? check_said_end(v, first, json_member(v->history.checks, first)) : rc;
    return rc == 0 ? check_first(v, a->name, first) : rc;
}

/* Both scores, for a reader of the receipt. */
static void say_both(struct verifying *v, const struct plan_apparatus *a)
{
    const cJSON *first = json_member(find_told(v, a->name), "first");
    const cJSON *value = json_member(find_told(v, a->name), "value");
    if (parts_end_of(json_member(v->history.checks, a->name)) == TASK_END_DONE &&
        cJSON_IsNumber(first) && cJSON_IsNumber(value)) {
        verifying_says(v,
                       "apparatus.%s: %s %.10g before the first evaluation, and %.10g after the "
                       "last",
                       v->program->apparatus[a->first].name, a->metric_text, first->valuedouble,
                       value->valuedouble);
    }
}

int verify_again(struct verifying *v)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < v->program->n_apparatus; i++) {
        const struct plan_apparatus *a = &v->program->apparatus[i];
        if (a->first == INDEX_NONE || verify_lacks_again(v, a->name)) {
            continue;
        }
        rc = check_one(v, a);
        if (rc == 0) {
            say_both(v, a);
        }
    }
    return rc;
}
