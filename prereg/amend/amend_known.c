/*
 * Links changes of an amendment to results of apparatus checks by the path of the change alone.
 * What links them is generous on purpose: a change of any parameter of the stage counts, since the
 * reference model is scored with those parameters.
 */
#include "prereg/amend/amend_known.h"

#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"

/* The n-th key of the change's path; "" beyond its end, which equals no name. */
static const char *key_at(const cJSON *change, int n)
{
    const cJSON *key = cJSON_GetArrayItem(json_member(change, "path"), n);
    return cJSON_IsString(key) ? key->valuestring : "";
}

static const char *text_of(const cJSON *result, const char *key)
{
    const cJSON *v = json_member(result, key);
    return cJSON_IsString(v) ? v->valuestring : "";
}

static bool is_at(const cJSON *change, const char *first, const char *second)
{
    return strcmp(key_at(change, 0), first) == 0 && strcmp(key_at(change, 1), second) == 0;
}

/* A path that ends at [apparatus] adds or removes the whole section, and with it the only check. */
static bool is_of_check(const cJSON *change, const char *check)
{
    if (cJSON_GetArraySize(json_member(change, "path")) > 2) {
        return strcmp(key_at(change, 2), check) == 0;
    }
    return json_member(json_member(change, "from"), check) != NULL ||
           json_member(json_member(change, "to"), check) != NULL;
}

bool amend_touches(const cJSON *change, const cJSON *result)
{
    const char *stage = text_of(result, "stage");
    if (is_at(change, "plan", "apparatus")) {
        return is_of_check(change, text_of(result, "check"));
    }
    if (strcmp(key_at(change, 0), "files") == 0) {
        return strcmp(key_at(change, 1), text_of(result, "model")) == 0;
    }
    if (strcmp(key_at(change, 0), "solved") == 0) {
        return strcmp(key_at(change, 2), stage) == 0;
    }
    return is_at(change, "plan", "stage") && strcmp(key_at(change, 2), stage) == 0;
}

bool amend_is_known(const cJSON *known, const cJSON *change)
{
    const cJSON *result;
    cJSON_ArrayForEach(result, known)
    {
        if (amend_touches(change, result)) {
            return true;
        }
    }
    return false;
}

/* Whether some change concerns the result. */
static bool is_touched(const cJSON *changes, const cJSON *result)
{
    const cJSON *change;
    cJSON_ArrayForEach(change, changes)
    {
        if (amend_touches(change, result)) {
            return true;
        }
    }
    return false;
}

cJSON *amend_known_of(const cJSON *known, const cJSON *changes)
{
    cJSON *list = json_array();
    const cJSON *result;
    cJSON_ArrayForEach(result, known)
    {
        if (is_touched(changes, result)) {
            json_push(list, json_copy(result));
        }
    }
    if (list->child == NULL) {
        cJSON_Delete(list);
        list = NULL;
    }
    return list;
}

/* The members that the report reads must be there with their types. "value" may be null: a check
 * that failed to run has no value. */
static int check_result(const cJSON *result, struct err *err)
{
    static const char *const texts[] = {"check", "stage", "model", "metric", "text"};
    int64_t n = 0;
    bool ok = cJSON_IsNumber(json_member(result, "expected")) &&
              cJSON_IsNumber(json_member(result, "within")) &&
              cJSON_IsBool(json_member(result, "holds")) &&
              json_get_int(result, "attempt", 1, UINT32_MAX, &n, err) == 0 &&
              json_get_int(result, "amendment", 0, UINT32_MAX, &n, err) == 0;
    for (size_t i = 0; ok && i < ARRAY_LEN(texts); i++) {
        const char *text = NULL;
        ok = json_get_string(result, texts[i], &text, err) == 0;
    }
    return ok ? 0
              : err_set(err, ERR_LOCK,
                        "its \"known\" has an element that is not the result of a check");
}

int amend_check_known(const cJSON *known, struct err *err)
{
    int rc = 0;
    if (known == NULL) {
        return 0;
    }
    if (!cJSON_IsArray(known) || known->child == NULL) {
        return err_set(err, ERR_LOCK, "its \"known\" is not a list of results");
    }
    for (const cJSON *result = known->child; rc == 0 && result != NULL; result = result->next) {
        rc = check_result(result, err);
    }
    return rc;
}
