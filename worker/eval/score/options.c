/*
 * Reads the parameters group by group. The task comes first, because its description supplies the
 * defaults of others (data, split, shots). Names of data are resolved against task.json at once, so
 * that a misspelt one is a fault of its own key. The task may be changed here by `groups` and
 * `members`, which leave a part of it.
 */
#include "worker/eval/score/options.h"

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/eval/score/bootstrap.h"

#define CONTEXT_MAX     (1 << 20)
#define MAX_TOKENS      4096
#define NAMES_MAX       256
#define VIABILITY_ITEMS 16
#define AT_MIN          1e-9
#define VIABILITY_SHARE 0.9

/* Resolves the name, if one is given. */
static void find_data(struct params *p, const struct worker_task *task, const char *key,
                      const char *name, struct task_data *out)
{
    struct err err = {0};
    if (name != NULL && task_find_data(task, name, out, &err) != 0)
        params_fault(p, key, "%s", err.msg);
}

static void read_task_name(struct params *p, const struct worker_task *task, struct eval_options *o)
{
    const char *name = params_string(p, "task", NULL);
    const char *file = params_string(p, "task_file", NULL);
    struct err err = {0};
    if ((name == NULL) == (file == NULL)) {
        params_fault(p, "task",
                     name == NULL ? "is required, or task_file"
                                  : "task_file is given too; say one of them");
        return;
    }
    find_data(p, task, "task_file", file, &o->task_file);
    if (name != NULL && task_builtin_read(name, &o->spec, &err) != 0)
        params_fault(p, "task", "%s", err.msg);
    else if (o->task_file.name != NULL && task_spec_read(o->task_file.path, &o->spec, &err) != 0)
        params_fault(p, "task_file", "%s", err.msg);
}

/* A split is a part of a file's name in the data's folder, and nothing outside is pinned. */
static const char *read_split(struct params *p, const char *key, const char *fallback)
{
    const char *split = params_string(p, key, fallback);
    if (params_has(p, key) && !path_stays_inside(split))
        params_fault(p, key, "'%.60s' leaves the folder of the data; expected a name, as '%s'",
                     split, fallback);
    return split;
}

/* The data, its splits, and the two optional sets beside it. */
static void read_data(struct params *p, const struct worker_task *task, struct eval_options *o)
{
    const char *name = params_string(p, "data", o->spec == NULL ? NULL : o->spec->name);
    const char *key = params_string(p, "second_key", NULL);
    struct err err = {0};
    const int rc = name == NULL ? 0 : task_find_data(task, name, &o->data, &err);
    if (rc == ERR_USAGE && !params_has(p, "data"))
        params_fault(p, "data", "is not given, and the task has no data called '%s'", name);
    else if (rc != 0)
        params_fault(p, "data", "%s", err.msg);
    find_data(p, task, "second_key", key, &o->second_key);
    if (key != NULL && o->spec != NULL && o->spec->kind != TASK_CHOICE &&
        o->spec->kind != TASK_CONTEXT)
        params_fault(p, "second_key", "tasks of kind %s have no choices",
                     task_kind_name(o->spec->kind));
    find_data(p, task, "fewshot_data", params_string(p, "fewshot_data", NULL), &o->fewshot_data);
    o->split = read_split(p, "split", o->spec == NULL ? "test" : o->spec->split);
    o->fewshot_split =
        read_split(p, "fewshot_split", o->spec == NULL ? "train" : o->spec->fewshot_split);
}

/* A list of names, of which `choose` makes the task a part of itself. */
static void read_choice(struct params *p, struct eval_options *o, const char *key,
                        int (*choose)(struct task_spec *, const char *const *, size_t,
                                      struct err *))
{
    const cJSON *list = params_value(p, key);
    const cJSON *member = NULL;
    const char *names[NAMES_MAX];
    size_t n = 0;
    struct err err = {0};
    if (list == NULL)
        return;
    cJSON_ArrayForEach(member, list)
    {
        if (!cJSON_IsString(member) || n == NAMES_MAX)
            break;
        names[n++] = member->valuestring;
    }
    if (!cJSON_IsArray(list) || member != NULL)
        params_fault(p, key, "expected a list of at most %d names", NAMES_MAX);
    else if (o->spec != NULL && choose(o->spec, names, n, &err) != 0)
        params_fault(p, key, "%s", err.msg);
}

/* What only tasks of style dclm have, and what they do not. */
static void read_dclm(struct params *p, const struct worker_task *task, struct eval_options *o)
{
    static const char *const versions[BASELINES_NR] = {[BASELINE_V2] = "v2", [BASELINE_V1] = "v1"};
    static const char *const others[] = {"fewshot_data", "fewshot_split", "second_key", "split"};
    if (o->spec == NULL || o->spec->style != STYLE_DCLM)
        return;
    o->baselines = (enum baseline_version)params_choice(p, "baselines", versions, BASELINES_NR, 0);
    if (o->spec->n_members > 0) {
        read_choice(p, o, "members", task_spec_choose_members);
        find_data(p, task, "more_data", params_string(p, "more_data", NULL), &o->more_data);
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (params_has(p, others[i]))
            params_fault(p, others[i],
                         "tasks of style dclm have none: one file has their items, which are their "
                         "examples too");
}

/* limit or items, never both. */
static void read_subset(struct params *p, struct eval_options *o)
{
    o->limit = params_int(p, "limit", 1, JSON_INT_MAX, 0);
    const bool given = params_has(p, "items");
    struct params items;
    params_init_table(&items, p, "items");
    if (given) {
        params_require(&items, "count");
        params_require(&items, "seed");
    }
    o->subset_count = params_int(&items, "count", 1, UINT32_MAX, 0);
    o->subset_seed = params_int(&items, "seed", 0, JSON_INT_MAX, 0);
    params_finish(&items);
    if (given && o->limit > 0)
        params_fault(p, "items", "limit is given too; say one of them");
}

/* The table `viability`, whose defaults apply without it. */
static void read_viability(struct params *p, struct eval_options *o)
{
    struct viability_rules *rules = &o->viability;
    struct params table;
    params_init_table(&table, p, "viability");
    rules->items = (int)params_int(&table, "items", 0, 1000000, VIABILITY_ITEMS);
    rules->least = (int)params_int(&table, "least", 0, 1000000, 1);
    rules->degenerate = params_number(&table, "degenerate", 0.0, 1.0, VIABILITY_SHARE);
    params_finish(&table);
    if (rules->items > 0 && rules->least > rules->items)
        params_fault(p, "viability", "asks for %d of %d generations", rules->least, rules->items);
}

/* An input of the task by default; data of the task when the name is one. */
static void read_model(struct params *p, const struct worker_task *task, struct eval_options *o)
{
    const cJSON *only = NULL;
    if (task->inputs != NULL && cJSON_GetArraySize(task->inputs) == 1)
        only = task->inputs->child;
    const char *name = params_string(p, "model", only == NULL ? "train" : only->string);
    const bool is_input = task->inputs != NULL && json_member(task->inputs, name) != NULL;
    const bool is_data = task->data != NULL && json_member(task->data, name) != NULL;
    if (params_has(p, "model") && !is_input && is_data)
        find_data(p, task, "model", name, &o->model_data);
    else
        o->model = name;
    o->at = params_number(p, "at", AT_MIN, 1.0, 0.0);
    if (o->at > 0.0 && o->model == NULL)
        params_fault(p, "at", "is of a stage that trains, and \"%.60s\" is data", name);
    find_data(p, task, "tokenizer", params_string(p, "tokenizer", NULL), &o->tokenizer);
}

/* What depends on the harness's version, and settings beside it. */
static void read_rules(struct params *p, struct eval_options *o)
{
    const char *const *names = NULL;
    const size_t n = harness_rules_names(&names);
    static const char *const spaces[] = {"tokenizer", "keep", "tidy"};
    o->rules = harness_rules_find(names[params_choice(p, "harness", names, n, 0)]);
    o->add_bos = params_bool(p, "add_bos", false);
    o->bootstrap = (int)params_int(p, "bootstrap", 0, BOOTSTRAP_ITERS_MAX, BOOTSTRAP_ITERS);
    o->spaces = (enum option_spaces)params_choice(p, "spaces", spaces, ARRAY_LEN(spaces), 0);
}

void eval_options_release(struct eval_options *o)
{
    task_spec_free(o->spec);
    o->spec = NULL;
}

void eval_options_read(const struct worker_task *task, struct eval_options *o,
                       struct param_faults *faults)
{
    struct params p;
    memset(o, 0, sizeof(*o));
    params_init(&p, task->params, faults);
    read_task_name(&p, task, o);
    read_data(&p, task, o);
    read_choice(&p, o, "groups", task_spec_choose_groups);
    read_dclm(&p, task, o);
    o->shots = (int)params_int(&p, "shots", 0, SHOTS_MAX, o->spec == NULL ? 0 : o->spec->shots);
    read_subset(&p, o);
    read_model(&p, task, o);
    o->description_newlines = (int)params_int(&p, "description_newlines", 1, 2, 0);
    read_rules(&p, o);
    o->context = (int)params_int(&p, "context", 1, CONTEXT_MAX, 0);
    o->max_tokens = (int)params_int(&p, "max_tokens", 1, MAX_TOKENS, 0);
    o->samples = params_bool(&p, "samples", false);
    read_viability(&p, o);
    params_finish(&p);
}
