/*
 * Turns the arguments of --plan into the JSON of a task, so that everything after that is the same
 * as for a task.json. Paths become data of the task under the name of their parameter.
 */
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/eval/cli/plan.h"

/* Flags whose value is a path become data of the task, and a parameter names them. */
static const struct {
    const char *flag;
    const char *param;
} paths[] = {
    {"--data", "data"},           {"--more-data", "more_data"},
    {"--model", "model"},         {"--fewshot-data", "fewshot_data"},
    {"--tokenizer", "tokenizer"}, {"--second-key", "second_key"},
};

static void put_path(cJSON *task, const char *param, const char *path)
{
    cJSON *entry = json_object();
    json_put_string(entry, "path", path);
    json_put(cJSON_GetObjectItemCaseSensitive(task, "data"), param, entry);
    json_put_string(cJSON_GetObjectItemCaseSensitive(task, "params"), param, param);
}

/* KEY=VALUE: the value as JSON where it is some, else as text. */
static int put_param(cJSON *task, const char *text, struct err *err)
{
    const char *equals = strchr(text, '=');
    cJSON *value = NULL;
    struct err none = {0};
    if (equals == NULL || equals == text)
        return err_set(err, ERR_USAGE, "--set %.80s: expected KEY=VALUE", text);
    char *key = xstrndup(text, (size_t)(equals - text));
    cJSON *params = cJSON_GetObjectItemCaseSensitive(task, "params");
    if (json_parse(equals + 1, strlen(equals + 1), &value, &none) == 0)
        json_put(params, key, value);
    else
        json_put_string(params, key, equals + 1);
    free(key);
    return 0;
}

static int put_flag(cJSON *task, const char *flag, const char *value, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        if (strcmp(flag, paths[i].flag) == 0) {
            put_path(task, paths[i].param, value);
            return 0;
        }
    }
    if (strcmp(flag, "--set") == 0)
        return put_param(task, value, err);
    return err_set(err, ERR_USAGE, "--plan: unknown argument '%.80s'", flag);
}

/* The name or description of a task, then pairs of flag and value. */
static int from_flags(int argc, char **argv, cJSON *task, struct err *err)
{
    json_put_int(task, "protocol", TASK_PROTOCOL);
    json_put(task, "params", json_object());
    json_put(task, "data", json_object());
    if (file_kind_at(argv[0]) == FILE_REGULAR)
        put_path(task, "task_file", argv[0]);
    else
        json_put_string(cJSON_GetObjectItemCaseSensitive(task, "params"), "task", argv[0]);
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            return err_set(err, ERR_USAGE, "--plan: '%.80s' wants a value", argv[i]);
        int rc = put_flag(task, argv[i], argv[i + 1], err);
        if (rc != 0)
            return rc;
    }
    const cJSON *data = json_member(task, "data");
    if (json_member(data, "data") == NULL || json_member(data, "model") == NULL)
        return err_set(err, ERR_USAGE, "--plan %.80s: --data and --model are needed", argv[0]);
    return 0;
}

int plan_read_arguments(int argc, char **argv, struct worker_task *task, struct err *err)
{
    *task = (struct worker_task){0};
    if (argc == 0)
        return err_set(err, ERR_USAGE, "--plan: a task.json or the name of a task is needed");
    if (argc == 1)
        return task_read(argv[0], task, err);
    cJSON *json = json_object();
    int rc = from_flags(argc, argv, json, err);
    if (rc != 0) {
        cJSON_Delete(json);
        return rc;
    }
    return task_from_json(json, task, err);
}
