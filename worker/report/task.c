/*
 * Reads the members of task.json into struct worker_task. Missing members get defaults, members of
 * the wrong type are errors, unknown members are ignored: a newer daemon may send more. `params`
 * stays JSON, because each worker reads its own (worker/report/params.h).
 */
#include "worker/report/task.h"

#include "base/json/json.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"

static int read_resume(struct worker_task *task, struct err *err)
{
    const cJSON *list = json_member(task->json, "resume");
    if (list == NULL || cJSON_IsNull(list))
        return 0;
    if (!cJSON_IsArray(list))
        return err_set(err, ERR_USAGE, "resume: expected an array of folders");
    task->resume = xcalloc((size_t)cJSON_GetArraySize(list) + 1, sizeof(*task->resume));
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsString(item))
            return err_set(err, ERR_USAGE, "resume: expected an array of folders");
        task->resume[task->n_resume++] = item->valuestring;
    }
    return 0;
}

/* Seconds as a number, "300s" and the like, or "auto". */
static int read_checkpoint(struct worker_task *task, struct err *err)
{
    const cJSON *v = json_member(task->json, "checkpoint");
    int64_t ms = 0;

    task->checkpoint_seconds = -1.0;
    if (v == NULL || cJSON_IsNull(v))
        return 0;
    if (cJSON_IsString(v) && strcmp(v->valuestring, "auto") == 0)
        return 0;
    if (cJSON_IsString(v) && text_to_ms(v->valuestring, &ms, err) == 0)
        task->checkpoint_seconds = (double)ms / 1000.0;
    else if (cJSON_IsNumber(v) && v->valuedouble >= 0.0)
        task->checkpoint_seconds = v->valuedouble;
    else
        return err_set(err, ERR_USAGE, "checkpoint: expected seconds, \"300s\" or \"auto\"");
    return 0;
}

/* null counts as absent. */
static int opt_object(const cJSON *obj, const char *key, const cJSON **out, struct err *err)
{
    const cJSON *v = json_member(obj, key);
    if (v != NULL && cJSON_IsNull(v))
        v = NULL;
    if (v != NULL && !cJSON_IsObject(v))
        return err_set(err, ERR_USAGE, "%s: expected an object", key);
    *out = v;
    return 0;
}

/* The limits of `preregctl try`. */
static int read_try(const cJSON *limits, struct worker_task *task, struct err *err)
{
    if (limits == NULL)
        return 0;
    int rc = json_opt_int(limits, "steps", 1, JSON_INT_MAX, &task->try_steps, err);
    if (rc == 0)
        rc = json_opt_int(limits, "items", 1, JSON_INT_MAX, &task->try_items, err);
    return rc < 0 ? err_wrap(err, "try") : 0;
}

static int read_sealed(struct worker_task *task, struct err *err)
{
    const cJSON *list = json_member(task->json, "sealed_metrics");
    const cJSON *name = NULL;

    if (list != NULL && !cJSON_IsArray(list))
        return err_set(err, ERR_USAGE, "task: \"sealed_metrics\" is not a list of names");
    cJSON_ArrayForEach(name, list)
    {
        if (!cJSON_IsString(name))
            return err_set(err, ERR_USAGE, "task: \"sealed_metrics\" is not a list of names");
    }
    task->sealed_metrics = list;
    return 0;
}

/* "val_loss" of "val_loss@0.2" and "val_loss:a". */
static size_t stem_length(const char *metric)
{
    return strcspn(metric, "@:");
}

bool task_seals(const struct worker_task *task, const char *metric)
{
    const size_t n = stem_length(metric);
    const cJSON *name = NULL;

    cJSON_ArrayForEach(name, task->sealed_metrics)
    {
        if (stem_length(name->valuestring) == n && memcmp(name->valuestring, metric, n) == 0)
            return true;
    }
    return task->sealed && task->sealed_metrics == NULL;
}

static int read_members(struct worker_task *task, struct err *err)
{
    const cJSON *obj = task->json;
    const cJSON *cell = NULL;
    const cJSON *limits = NULL;
    int64_t protocol = 0, threads = 1;
    int rc;

    if ((rc = json_get_int(obj, "protocol", 1, INT32_MAX, &protocol, err)) < 0)
        return rc;
    if (protocol != TASK_PROTOCOL)
        return err_set(err, ERR_VERSION, "task protocol %lld: this worker speaks %d",
                       (long long)protocol, TASK_PROTOCOL);
    if ((rc = json_opt_string(obj, "program", &task->program, err)) < 0 ||
        (rc = json_opt_string(obj, "stage", &task->stage, err)) < 0 ||
        (rc = json_opt_string(obj, "attempt", &task->attempt, err)) < 0 ||
        (rc = json_opt_int(obj, "attempt_no", 1, INT32_MAX, &task->attempt_no, err)) < 0 ||
        (rc = json_opt_bool(obj, "sealed", &task->sealed, err)) < 0 ||
        (rc = read_sealed(task, err)) < 0 ||
        (rc = json_opt_int(obj, "threads", 1, 1024, &threads, err)) < 0 ||
        (rc = json_opt_int(obj, "memory_bytes", 0, JSON_INT_MAX, &task->memory_bytes, err)) < 0 ||
        (rc = json_opt_string(obj, "rates", &task->rates, err)) < 0 ||
        (rc = opt_object(obj, "producers", &task->producers, err)) < 0 ||
        (rc = json_get_object(obj, "params", &task->params, err)) < 0 ||
        (rc = opt_object(obj, "inputs", &task->inputs, err)) < 0 ||
        (rc = opt_object(obj, "data", &task->data, err)) < 0 ||
        (rc = opt_object(obj, "peers", &task->peers, err)) < 0 ||
        (rc = opt_object(obj, "cell", &cell, err)) < 0 ||
        (rc = opt_object(obj, "try", &limits, err)) < 0 || (rc = read_try(limits, task, err)) < 0)
        return rc;
    task->threads = (int)threads;
    if (cell != NULL && (rc = json_opt_string(cell, "name", &task->cell_name, err)) < 0)
        return rc;
    if ((rc = read_resume(task, err)) < 0)
        return rc;
    return read_checkpoint(task, err);
}

int task_from_json(cJSON *json, struct worker_task *task, struct err *err)
{
    *task = (struct worker_task){.json = json,
                                 .program = "",
                                 .stage = "",
                                 .cell_name = "",
                                 .attempt = "",
                                 .attempt_no = 1,
                                 .threads = 1};
    return read_members(task, err);
}

int task_read(const char *path, struct worker_task *task, struct err *err)
{
    cJSON *json = NULL;
    *task = (struct worker_task){0};
    int rc = json_read_file(path, LAYOUT_TASK_MAX, &json, err);
    if (rc == 0)
        rc = task_from_json(json, task, err);
    return rc < 0 ? err_wrap(err, "%s", path) : 0;
}

int task_read_attempt(const char *folder, struct worker_task *task, struct err *err)
{
    cJSON *json = NULL;
    *task = (struct worker_task){0};
    int rc = attempt_task_read(folder, &json, err);
    if (rc == 0)
        rc = task_from_json(json, task, err);
    return rc < 0 ? err_wrap(err, LAYOUT_TASK) : 0;
}

void task_release(struct worker_task *task)
{
    free(task->resume);
    cJSON_Delete(task->json);
    *task = (struct worker_task){0};
}

int task_find_input(const struct worker_task *task, const char *stage, const char **folder,
                    struct err *err)
{
    const cJSON *v = task->inputs == NULL ? NULL : json_member(task->inputs, stage);
    if (v == NULL)
        return err_set(err, ERR_USAGE, "the task has no input \"%s\"", stage);
    if (!cJSON_IsString(v))
        return err_set(err, ERR_USAGE, "inputs.%s: expected a folder", stage);
    *folder = v->valuestring;
    return 0;
}

int task_find_data(const struct worker_task *task, const char *name, struct task_data *out,
                   struct err *err)
{
    const cJSON *v = task->data == NULL ? NULL : json_member(task->data, name);
    const char *hex = NULL;
    int rc;

    *out = (struct task_data){.name = name};
    if (v == NULL || !cJSON_IsObject(v))
        return err_set(err, ERR_USAGE, "the task has no data \"%s\"", name);
    if ((rc = json_get_string(v, "path", &out->path, err)) < 0 ||
        (rc = json_opt_string(v, "sha256", &hex, err)) < 0)
        return err_wrap(err, "data.%s", name);
    if (hex != NULL && (rc = digest_from_hex(hex, &out->sha256, err)) < 0)
        return err_wrap(err, "data.%s.sha256", name);
    return 0;
}

int task_verify_data(const struct task_data *data, struct digest *found, struct err *err)
{
    int rc = digest_path(data->path, found, err);
    if (rc < 0)
        return err_wrap(err, "data \"%s\"", data->name);
    if (!digest_is_zero(&data->sha256) && !digest_equal(&data->sha256, found))
        return err_set(err, ERR_CORRUPT, "data \"%s\": %s is not what was locked", data->name,
                       data->path);
    return 0;
}
