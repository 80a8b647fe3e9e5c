/* Apparatus checks: the plan says what was demanded, the journal how each ended. The value is
 * only the maker's claim, but whether it is within the tolerance must agree with what is stated
 * to hold. */
#include <math.h>
#include <string.h>

#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "prereg/program/analysis.h"

/* The check of that name in the present plan; NULL when an amendment removed it, or it never
 * was. */
static const struct plan_apparatus *declared(const struct verifying *v, const char *name,
                                             size_t len)
{
    for (size_t i = 0; i < v->program->n_apparatus; i++) {
        const struct plan_apparatus *a = &v->program->apparatus[i];
        if (strlen(a->name) == len && strncmp(a->name, name, len) == 0) {
            return a;
        }
    }
    return NULL;
}

/* The entry of that check in provenance.json. */
static const cJSON *told(const struct verifying *v, const char *name)
{
    const cJSON *o = NULL;
    cJSON_ArrayForEach(o, json_member(v->provenance, "apparatus"))
    {
        const cJSON *its = json_member(o, "name");
        if (cJSON_IsString(its) && strcmp(its->valuestring, name) == 0) {
            return o;
        }
    }
    return NULL;
}

/* The number of attempts is the journal's, and each ran what the lock pins. */
static int check_attempts(struct verifying *v, const struct plan_apparatus *a, const cJSON *list,
                          int n)
{
    const cJSON *t = NULL;
    if (cJSON_GetArraySize(list) != n) {
        return err_differs_int(v->err, "attempts", n, cJSON_GetArraySize(list));
    }
    cJSON_ArrayForEach(t, list)
    {
        int rc = verify_worker(v, "an attempt", a->stage, t);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

/* A check holds exactly when the journal has its task as done; then its value must be within the
 * tolerance. */
static int check_standing(struct verifying *v, const struct plan_apparatus *a, const cJSON *found)
{
    const cJSON *row = json_member(v->history.checks, a->name);
    const cJSON *state = json_member(row, "state");
    const cJSON *holds = json_member(found, "holds");
    const cJSON *value = json_member(found, "value");
    const bool done =
        cJSON_IsString(state) && strcmp(state->valuestring, task_state_name(TASK_DONE)) == 0;
    if (cJSON_IsTrue(holds) != done) {
        return err_differs(v->err, "holds", done ? "true" : "not true, as the journal has it",
                           done ? "not true" : "true");
    }
    const cJSON *first = json_member(found, "first");
    if (cJSON_IsNumber(value) && !cJSON_IsNull(holds) &&
        !verify_bears_out(a, value->valuedouble,
                          cJSON_IsNumber(first) ? first->valuedouble : (double)NAN, done)) {
        return err_set(v->err, ERR_LOCK, "value lies %s the tolerance, and so it %s",
                       done ? "beyond" : "within", done ? "does not hold" : "holds");
    }
    const cJSON *n = json_member(row, "attempts");
    return check_attempts(v, a, json_member(found, "attempts"), n == NULL ? 0 : n->valueint);
}

/* What the file states as demanded must be the plan's. */
static int check_told(struct verifying *v, const struct plan_apparatus *a, const cJSON *found)
{
    cJSON *expected = json_object();
    int rc = 0;
    json_put_string(expected, "stage", v->program->stages[a->stage].name);
    json_put_string(expected, "metric", a->metric_text);
    json_put_number(expected, "expected", a->value);
    json_put_number(expected, "within", a->within);
    if (a->first != INDEX_NONE) {
        json_put_number(expected, "again", a->again);
    }
    for (const cJSON *m = expected->child; rc == 0 && m != NULL; m = m->next) {
        const cJSON *is = json_member(found, m->string);
        rc = is == NULL ? err_set(v->err, ERR_LOCK, "%s is missing", m->string)
                        : mismatch_trees(v->err, m->string, m, is);
    }
    cJSON_Delete(expected);
    return rc == 0 ? check_standing(v, a, found) : rc;
}

/* One file of apparatus/: known to plan or journal, equal to its entry in provenance.json. */
static int check_file(struct verifying *v, const char *name)
{
    static const char prefix[] = LAYOUT_APPARATUS "/";
    const char *stem = name + strlen(prefix);
    if (strncmp(name, prefix, strlen(prefix)) != 0) {
        return 0;
    }
    err_at(v->err, name, 0);
    const size_t len = strlen(stem) - strlen(".json");
    const struct plan_apparatus *a = declared(v, stem, len);
    cJSON *found = NULL;
    char *check = xasprintf("%.*s", (int)len, stem);
    const cJSON *expected = told(v, check);
    const bool is_known = a != NULL || json_member(v->history.checks, check) != NULL;
    free(check);
    if (!is_known) {
        return err_set(v->err, ERR_LOCK, "the plan knows no such check, nor does the journal");
    }
    int rc = files_read_json(&v->files, name, &found, v->err);
    if (rc != 0) {
        goto out;
    }
    rc = expected == NULL ? err_set(v->err, ERR_LOCK, "provenance.json knows no such check")
                          : mismatch_trees(v->err, "", expected, found);
    if (rc != 0) {
        goto out;
    }
    if (cJSON_IsTrue(json_member(found, "declared")) != (a != NULL)) {
        rc = err_differs(v->err, "declared", a != NULL ? "true" : "false", NULL);
        goto out;
    }
    if (a != NULL) {
        rc = check_told(v, a, found);
    }
out:
    cJSON_Delete(found);
    return rc;
}

/* What the check itself states repeats its last result, whose text is the journal's
 * (verify_checks.c): the value once it has ended, and all of it once an amendment removed it. */
static int check_last(struct verifying *v, const cJSON *found)
{
    static const char *const keys[] = {"value", "holds", "stage", "metric", "expected", "within"};
    const cJSON *results = json_member(found, "results");
    const cJSON *last = cJSON_GetArrayItem(results, cJSON_GetArraySize(results) - 1);
    const cJSON *name = json_member(found, "name");
    const struct plan_apparatus *a =
        cJSON_IsString(name) ? declared(v, name->valuestring, strlen(name->valuestring)) : NULL;
    const bool ended = a == NULL || !cJSON_IsNull(json_member(found, "holds"));
    cJSON *nothing = cJSON_CreateNull();
    int rc = 0;
    err_at(v->err, RECEIPT_PROVENANCE, 0);
    for (size_t i = 0; rc == 0 && i < (a == NULL ? ARRAY_LEN(keys) : 1); i++) {
        const cJSON *said = json_member(found, keys[i]);
        const cJSON *expected = ended && last != NULL ? json_member(last, keys[i]) : NULL;
        rc = said == NULL
                 ? err_set(v->err, ERR_LOCK, "%s is missing", keys[i])
                 : mismatch_trees(v->err, keys[i], expected == NULL ? nothing : expected, said);
    }
    cJSON_Delete(nothing);
    return rc;
}

/* Every file is known, every check of the plan has its file, and provenance.json declares no
 * more. */
int verify_apparatus(struct verifying *v)
{
    size_t n_lacking = 0;
    int rc = 0;
    for (size_t i = 0; i < v->files.n; i++) {
        if ((rc = check_file(v, v->files.items[i].name)) != 0) {
            return rc;
        }
    }
    for (size_t i = 0; rc == 0 && i < v->program->n_apparatus; i++) {
        char *name = xasprintf(LAYOUT_APPARATUS "/%s.json", v->program->apparatus[i].name);
        if (verify_lacks_again(v, v->program->apparatus[i].name)) {
            n_lacking++;
        } else if (!files_have(&v->files, name)) {
            err_at(v->err, name, 0);
            rc = err_set(v->err, ERR_LOCK, "is missing, and the plan demands this check");
        }
        free(name);
    }
    if (rc != 0) {
        return rc;
    }
    const cJSON *said = NULL;
    size_t n_said = 0;
    cJSON_ArrayForEach(said, json_member(v->provenance, "apparatus"))
    {
        n_said += cJSON_IsTrue(json_member(said, "declared")) ? 1 : 0;
    }
    const size_t n_made = v->program->n_apparatus - n_lacking;
    if (n_said != n_made) {
        err_at(v->err, RECEIPT_PROVENANCE, 0);
        return err_differs_int(v->err, "apparatus", (long long)n_made, (long long)n_said);
    }
    if ((rc = verify_check_results(v)) != 0) {
        return rc;
    }
    cJSON_ArrayForEach(said, json_member(v->provenance, "apparatus"))
    {
        if ((rc = check_last(v, said)) != 0) {
            return rc;
        }
    }
    v->lacks_again = n_lacking > 0;
    return verify_again(v);
}
