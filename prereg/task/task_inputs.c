/*
 * Compares each entry of "inputs" with the artifacts of the stage that it names. For prereg-eval
 * one artifact counts, found as that worker finds it: params.model names the stage, params.at a
 * folder of its snapshots, and a training of our own leaves its last model in model/. Other workers
 * may leave a model of our form in their attempt's folder itself, which then comes first.
 */
#include "prereg/task/task_inputs.h"

#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/task/task.h"

#define PATH_SIZE (sizeof(LAYOUT_SNAPSHOT LAYOUT_MODEL LAYOUT_MODEL_BIN) + JSON_NUMBER_MAX + 4)

/* The model that the params of an evaluation determine. */
struct model_read {
    size_t stage;             /* INDEX_NONE: no stage's, or the worker is not prereg-eval */
    bool is_trained;          /* by prereg-train, which always leaves it */
    char paths[2][PATH_SIZE]; /* of the artifact; the first that is listed counts */
    size_t n_paths;
};

/* Whether a stage runs the worker of that name, wherever it is installed. */
static bool runs(const struct plan_stage *s, const char *worker)
{
    return s->n_command > 0 && strcmp(path_name(s->command[0]), worker) == 0;
}

/* The stage that params.model names; without it the only one before, else "train". */
static size_t model_stage(const struct plan_program *p, const struct plan_stage *s,
                          const cJSON *params)
{
    const cJSON *model = json_member(params, "model");
    const char *name = cJSON_IsString(model) ? model->valuestring
                       : s->n_after == 1     ? p->stages[s->after[0]].name
                                             : "train";
    for (size_t i = 0; i < s->n_after; i++) {
        if (strcmp(p->stages[s->after[i]].name, name) == 0) {
            return s->after[i];
        }
    }
    return INDEX_NONE;
}

/* Lists where the model may be among the artifacts of its stage. */
static void list_paths(struct model_read *m, const cJSON *params)
{
    const cJSON *at = json_member(params, "at");
    const bool is_snapshot = cJSON_IsNumber(at) && at->valuedouble > 0;
    char number[JSON_NUMBER_MAX];
    char folder[PATH_SIZE - sizeof(LAYOUT_MODEL "/" LAYOUT_MODEL_BIN)] = "";
    if (is_snapshot) {
        json_number_text(at->valuedouble, number);
        (void)snprintf(folder, sizeof(folder), LAYOUT_SNAPSHOT "/%s/", number);
    }
    if (!m->is_trained || is_snapshot) {
        (void)snprintf(m->paths[m->n_paths++], PATH_SIZE, "%s" LAYOUT_MODEL_BIN, folder);
    }
    if (!m->is_trained || !is_snapshot) {
        (void)snprintf(m->paths[m->n_paths++], PATH_SIZE, "%s" LAYOUT_MODEL "/" LAYOUT_MODEL_BIN,
                       folder);
    }
}

/* Which model the task scores. */
static struct model_read find_model(const struct task_inputs *t)
{
    struct model_read m = {.stage = INDEX_NONE};
    const struct plan_stage *s = &t->program->stages[t->stage];
    if (t->find == NULL || !runs(s, "prereg-eval")) {
        return m;
    }
    cJSON *params = task_params(t->program, t->lock, t->cell, t->stage);
    m.stage = model_stage(t->program, s, params);
    m.is_trained = m.stage != INDEX_NONE && runs(&t->program->stages[m.stage], "prereg-train");
    list_paths(&m, params);
    cJSON_Delete(params);
    return m;
}

const cJSON *task_artifacts(const cJSON *result)
{
    const cJSON *reused = json_member(result, "reused");
    return json_member(reused != NULL ? reused : result, "artifacts");
}

/* How often a result lists that path among its artifacts, and the first digest that is not `hex`.
 */
static size_t count_path(const cJSON *result, const char *path, const char *hex, const char **other)
{
    const cJSON *a = NULL;
    size_t n = 0;
    *other = NULL;
    cJSON_ArrayForEach(a, task_artifacts(result))
    {
        const cJSON *its = json_member(a, "path");
        const cJSON *sha256 = json_member(a, "sha256");
        if (!cJSON_IsString(its) || strcmp(its->valuestring, path) != 0) {
            continue;
        }
        n++;
        if (*other == NULL && (!cJSON_IsString(sha256) || strcmp(sha256->valuestring, hex) != 0)) {
            *other = cJSON_IsString(sha256) ? sha256->valuestring : "no digest";
        }
    }
    return n;
}

/* The digest must be that of the model's own artifact, not of just any. */
static int check_model(const struct model_read *m, const cJSON *named, const cJSON *result,
                       struct err *err)
{
    const char *other = NULL;
    char what[200];
    for (size_t i = 0; i < m->n_paths; i++) {
        const char *path = m->paths[i];
        if (count_path(result, path, named->valuestring, &other) > 0) {
            (void)snprintf(what, sizeof(what),
                           "the model that it read of \"%.60s\" is not %s of the accepted result, "
                           "which its params name",
                           named->string, path);
            return other == NULL ? 0 : err_differs(err, what, other, named->valuestring);
        }
    }
    (void)snprintf(what, sizeof(what),
                   "it read a model of \"%.60s\", whose accepted result has no artifact %s",
                   named->string, m->paths[m->n_paths - 1]);
    return err_differs(err, what, NULL, named->valuestring);
}

/* Whether a result states an artifact of that digest. */
static bool has_artifact(const cJSON *result, const char *hex)
{
    const cJSON *a = NULL;
    cJSON_ArrayForEach(a, task_artifacts(result))
    {
        const cJSON *sha256 = json_member(a, "sha256");
        if (cJSON_IsString(sha256) && strcmp(sha256->valuestring, hex) == 0) {
            return true;
        }
    }
    return false;
}

/* One entry, of a stage whose accepted result is there. */
static int check_found(const struct task_inputs *t, const struct model_read *m, const cJSON *named,
                       const cJSON *result, struct err *err)
{
    char what[200];
    if (m->stage != INDEX_NONE && strcmp(t->program->stages[m->stage].name, named->string) == 0) {
        return check_model(m, named, result, err);
    }
    if (runs(&t->program->stages[t->stage], "prereg-eval")) {
        return err_set(err, ERR_PROTOCOL, "inputs.%.60s: its params name no model of that stage",
                       named->string);
    }
    if (has_artifact(result, named->valuestring)) {
        return 0;
    }
    (void)snprintf(what, sizeof(what),
                   "it read %.16s... of \"%.60s\", whose accepted result has no such artifact",
                   named->valuestring, named->string);
    const cJSON *list = task_artifacts(result);
    const cJSON *only = cJSON_GetArraySize(list) == 1 ? json_member(list->child, "sha256") : NULL;
    return err_differs(err, what, cJSON_IsString(only) ? only->valuestring : "one of its artifacts",
                       named->valuestring);
}

/* One entry: STAGE = digest. */
static int check_entry(const struct task_inputs *t, const struct model_read *m, const cJSON *named,
                       struct err *err)
{
    bool known = false;
    cJSON *result = NULL;
    if (!cJSON_IsString(named)) {
        return err_set(err, ERR_PROTOCOL, "inputs.%.60s is not a digest", named->string);
    }
    if (t->find == NULL) {
        return 0;
    }
    int rc = t->find(t->ctx, named->string, &known, &result, err);
    if (rc == 0 && !known) {
        rc = err_set(err, ERR_PROTOCOL, "inputs.%.60s: the stage does not come after it",
                     named->string);
    } else if (rc == 0 && result != NULL) {
        rc = check_found(t, m, named, result, err);
    }
    cJSON_Delete(result);
    return rc;
}

int task_inputs_check(const struct task_inputs *t, const cJSON *result, struct err *err)
{
    const cJSON *inputs = json_member(result, "inputs");
    const cJSON *named = NULL;
    if (inputs != NULL && !cJSON_IsObject(inputs)) {
        return err_set(err, ERR_PROTOCOL, "\"inputs\" is not an object");
    }
    const struct model_read m = find_model(t);
    cJSON_ArrayForEach(named, inputs)
    {
        int rc = check_entry(t, &m, named, err);
        if (rc != 0) {
            return rc;
        }
    }
    if (m.is_trained && json_member(inputs, t->program->stages[m.stage].name) == NULL) {
        return err_set(err, ERR_PROTOCOL,
                       "inputs.%.60s is missing: it does not say which model it scored",
                       t->program->stages[m.stage].name);
    }
    return 0;
}
