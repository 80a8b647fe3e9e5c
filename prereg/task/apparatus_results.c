/* What a result of an apparatus check says, and all results of a check, under whatever declaration
 * they were made. Each attempt's task.json has the question as it was asked, its result.json the
 * answer, so no history is needed. Attempts asked by an amendment that never took effect are left
 * out. */
#include "prereg/task/apparatus_results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/program/apparatus_name.h"

#define ROUNDING 1e-12 /* relative, for decimals: 0.2777 is within 0.004 of 0.2737 */

/* The metric's value; NaN without a number, with the worker's reason in *why. */
static double value_of(const struct plan_apparatus *a, const cJSON *result, const char **why)
{
    const cJSON *m = json_member(json_member(result, "metrics"), a->metric);
    const cJSON *value = cJSON_IsObject(m) ? json_member(m, "value") : m;
    const cJSON *said = cJSON_IsObject(m) ? json_member(m, "why") : NULL;
    *why = cJSON_IsString(said) ? said->valuestring : "it has no value";
    return cJSON_IsNumber(value) && isfinite(value->valuedouble) ? value->valuedouble : (double)NAN;
}

double apparatus_value(const struct plan_apparatus *a, const cJSON *result)
{
    const char *why = NULL;
    return value_of(a, result, &why);
}

bool apparatus_judged(const struct plan_apparatus *a, double first, const cJSON *result,
                      double *value, char text[APPARATUS_TEXT_SIZE])
{
    struct apparatus_score score = {.first = first};
    score.value = value_of(a, result, &score.why);
    *value = score.value;
    bool holds = apparatus_score_holds(a, &score, ROUNDING);
    apparatus_text(a, &score, holds, text);
    return holds;
}

double apparatus_shown_first(const struct plan_apparatus *a, const char *second_folder)
{
    struct err ignored;
    cJSON *result = NULL;
    char *path = xasprintf("%.*s/%s", (int)apparatus_name_length(second_folder), second_folder,
                           LAYOUT_RESULT);
    double value = (double)NAN;
    if (file_kind_at(path) != FILE_ABSENT &&
        json_read_file_lax(path, LAYOUT_RESULT_MAX, &result, &ignored) == 0) {
        value = apparatus_value(a, result);
    }
    cJSON_Delete(result);
    free(path);
    return value;
}

/* ---- all results of a check ---- */

/* How many amendments were in force at that head; -1: not a head of this program. */
static int64_t amendments_at(const struct lock *lock, const char *head)
{
    int64_t n = 0;
    const cJSON *a;
    if (strcmp(head, lock->root) == 0) {
        return 0;
    }
    cJSON_ArrayForEach(a, lock->amendments)
    {
        const cJSON *its = json_member(a, "head");
        n++;
        if (cJSON_IsString(its) && strcmp(its->valuestring, head) == 0) {
            return n;
        }
    }
    return -1;
}

/* The declaration as the attempt was given it; texts are those of `task`. */
static int read_asked(const cJSON *task, struct plan_apparatus *a, const char **stage,
                      const char **head, struct err *err)
{
    const cJSON *check = json_member(task, "apparatus");
    const cJSON *expect = json_member(check, "expect");
    int rc = json_get_string(task, "stage", stage, err);
    if (rc != 0 || (rc = json_get_string(task, "head", head, err)) != 0 ||
        (rc = json_get_string(check, "model", &a->model, err)) != 0 ||
        (rc = json_get_string(expect, "metric", &a->metric_text, err)) != 0 ||
        (rc = json_get_number(expect, "value", &a->value, err)) != 0 ||
        (rc = json_get_number(expect, "within", &a->within, err)) != 0) {
        return rc;
    }
    if (json_member(expect, "again") != NULL &&
        (rc = json_get_number(expect, "again", &a->again, err)) != 0) {
        return rc;
    }
    const char *dot = strchr(a->metric_text, '.');
    a->metric = dot == NULL ? a->metric_text : dot + 1;
    return 0;
}

struct check_folder {
    const char *name;
    const char *folder;
};

/* One result beside its question; NULL when the question cannot be read or never held. */
static cJSON *told(const struct lock *lock, const struct check_folder *check, const cJSON *task,
                   const cJSON *result)
{
    const char *name = check->name;
    const bool again = apparatus_name_is_end(name);
    struct plan_apparatus a = {.name = name};
    struct err ignored;
    const char *stage = NULL;
    const char *head = NULL;
    double value = (double)NAN;
    char text[APPARATUS_TEXT_SIZE];
    if (read_asked(task, &a, &stage, &head, &ignored) != 0) {
        return NULL;
    }
    const double first = again ? apparatus_shown_first(&a, check->folder) : (double)NAN;
    int64_t amendment = amendments_at(lock, head);
    bool holds = apparatus_judged(&a, first, result, &value, text);
    if (amendment < 0) {
        return NULL; /* asked by an amendment that never took effect */
    }
    cJSON *o = json_object();
    json_put_string(o, "check", name);
    json_put_int(o, "amendment", amendment);
    json_put_string(o, "stage", stage);
    json_put_string(o, "model", a.model);
    json_put_string(o, "metric", a.metric_text);
    json_put_number(o, "expected", a.value);
    json_put_number(o, "within", a.within);
    if (again) {
        json_put_number(o, "again", a.again);
        json_put_number(o, "first", first);
    }
    json_put_number(o, "value", value);
    json_put_bool(o, "holds", holds);
    json_put_string(o, "text", text);
    return o;
}

/* A result that cannot be parsed still counts as an answer without a value. */
static cJSON *result_of(const struct lock *lock, const struct check_folder *check,
                        const char *attempt)
{
    struct err ignored;
    cJSON *task = NULL;
    cJSON *result = NULL;
    cJSON *o = NULL;
    char *came = path_join(attempt, LAYOUT_RESULT);
    if (file_kind_at(came) == FILE_REGULAR && attempt_task_read(attempt, &task, &ignored) == 0) {
        if (json_read_file_lax(came, LAYOUT_RESULT_MAX, &result, &ignored) != 0) {
            result = NULL; /* shown as not measured */
        }
        o = told(lock, check, task, result);
    }
    cJSON_Delete(result);
    cJSON_Delete(task);
    free(came);
    return o;
}

cJSON *apparatus_results(const struct lock *lock, const char *name, const char *folder)
{
    struct name_list names = {0};
    struct err ignored;
    cJSON *list = json_array();
    if (file_kind_at(folder) == FILE_FOLDER && dir_list(folder, &names, &ignored) == 0) {
        for (size_t i = 0; i < names.n; i++) {
            struct attempt_name a;
            char *path = path_join(folder, names.names[i]);
            cJSON *o = attempt_name_parse(names.names[i], &a)
                           ? result_of(lock, &(struct check_folder){name, folder}, path)
                           : NULL;
            if (o != NULL) {
                json_put_int(o, "attempt", a.no);
                json_push(list, o);
            }
            free(path);
        }
    }
    name_list_release(&names);
    return list;
}
