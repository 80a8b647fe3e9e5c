/* All results of apparatus checks, under whatever declaration they were made. Each attempt's
 * task.json has the question as it was asked, its result.json the answer, so no history is needed.
 * Attempts asked by an amendment that never took effect are left out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/program/apparatus.h"
#include "prereg/amend/amend_known.h"
#include "prereg/task/task.h"

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
    const char *dot = strchr(a->metric_text, '.');
    a->metric = dot == NULL ? a->metric_text : dot + 1;
    return 0;
}

/* One result beside its question; NULL when the question cannot be read or never held. */
static cJSON *told(const struct lock *lock, const char *name, const cJSON *task,
                   const cJSON *result)
{
    struct plan_apparatus a = {.name = name};
    struct err ignored;
    const char *stage = NULL;
    const char *head = NULL;
    double value = (double)NAN;
    char text[APPARATUS_TEXT_SIZE];
    if (read_asked(task, &a, &stage, &head, &ignored) != 0) {
        return NULL;
    }
    int64_t amendment = amendments_at(lock, head);
    bool holds = apparatus_judge(&a, result, &value, text, sizeof(text)) == RESULT_VALID;
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
    json_put_number(o, "value", value);
    json_put_bool(o, "holds", holds);
    json_put_string(o, "text", text);
    return o;
}

/* A result that cannot be parsed still counts as an answer without a value. */
static cJSON *result_of(const struct lock *lock, const char *name, const char *attempt)
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
        o = told(lock, name, task, result);
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
            cJSON *o = attempt_name_parse(names.names[i], &a) ? result_of(lock, name, path) : NULL;
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

cJSON *apparatus_all_results(const struct hosted *h, const struct lock *lock)
{
    cJSON *all = json_array();
    for (size_t i = 0; i < h->n_checks; i++) {
        char *folder = hosted_task_folder(h, (uint32_t)(h->n_tasks + i));
        cJSON *list = apparatus_results(lock, h->checks[i].name, folder);
        while (list->child != NULL) {
            json_push(all, cJSON_DetachItemFromArray(list, 0));
        }
        cJSON_Delete(list);
        free(folder);
    }
    return all;
}
