/*
 * The command line of prereg-eval show, turned into the JSON of a task, so that options are read
 * and checked as in a run. A table says for each flag which parameter it sets and how; flags about
 * the display have no parameter. Without a model or tokenizer only texts are shown.
 */
#include "base/json/json.h"
#include "base/terminal.h"
#include "base/xalloc.h"
#include "worker/eval/cli/commands.h"
#include "worker/eval/cli/item_printer.h"
#include "worker/eval/cli/scored_model.h"
#include "worker/report/flags.h"

#define COUNT_MAX 10000000

/* In the order of the flags below. */
enum {
    FLAG_TASK_FILE,
    FLAG_DATA,
    FLAG_FEWSHOT_DATA,
    FLAG_MORE_DATA,
    FLAG_TOKENIZER,
    FLAG_MODEL,
    FLAG_SPLIT,
    FLAG_FEWSHOT_SPLIT,
    FLAG_HARNESS,
    FLAG_GROUPS,
    FLAG_SHOTS,
    FLAG_NEWLINES,
    FLAG_CONTEXT,
    FLAG_ITEM,
    FLAG_COUNT,
    FLAG_GROUP,
    FLAG_JSON,
    FLAG_NR,
};

/* What becomes of a flag's value. */
enum meaning { MEANS_PATH, MEANS_TEXT, MEANS_NAMES, MEANS_NUMBER, MEANS_OURS };

static const struct {
    const char *name;
    const char *param;
    enum meaning meaning;
} meanings[FLAG_NR] = {
    [FLAG_TASK_FILE] = {"--task-file", "task_file", MEANS_PATH},
    [FLAG_DATA] = {"--data", "data", MEANS_PATH},
    [FLAG_FEWSHOT_DATA] = {"--fewshot-data", "fewshot_data", MEANS_PATH},
    [FLAG_MORE_DATA] = {"--more-data", "more_data", MEANS_PATH},
    [FLAG_TOKENIZER] = {"--tokenizer", "tokenizer", MEANS_PATH},
    [FLAG_MODEL] = {"--model", "model", MEANS_PATH},
    [FLAG_SPLIT] = {"--split", "split", MEANS_TEXT},
    [FLAG_FEWSHOT_SPLIT] = {"--fewshot-split", "fewshot_split", MEANS_TEXT},
    [FLAG_HARNESS] = {"--harness", "harness", MEANS_TEXT},
    [FLAG_GROUPS] = {"--groups", "groups", MEANS_NAMES},
    [FLAG_SHOTS] = {"--shots", "shots", MEANS_NUMBER},
    [FLAG_NEWLINES] = {"--description-newlines", "description_newlines", MEANS_NUMBER},
    [FLAG_CONTEXT] = {"--context", "context", MEANS_NUMBER},
    [FLAG_ITEM] = {"--item", NULL, MEANS_OURS},
    [FLAG_COUNT] = {"--count", NULL, MEANS_OURS},
    [FLAG_GROUP] = {"--group", NULL, MEANS_OURS},
    [FLAG_JSON] = {"--json", NULL, MEANS_OURS},
};

/* Zeroed, then filled from top to bottom. */
struct command {
    struct flag flags[FLAG_NR];
    struct worker_task task;
    struct eval_options options;
    struct benchmark bench;
    struct model *model;
    struct tokenizer *tok;
    struct scorer scorer;
    struct item_printer show;
};

static void put_path(cJSON *task, const char *param, const char *path)
{
    cJSON *entry = json_object();
    json_put_string(entry, "path", path);
    json_put(cJSON_GetObjectItemCaseSensitive(task, "data"), param, entry);
    json_put_string(cJSON_GetObjectItemCaseSensitive(task, "params"), param, param);
}

/* "anatomy,virology" */
static void put_names(cJSON *params, const char *param, const char *names)
{
    cJSON *list = json_array();
    while (*names != '\0') {
        const size_t n = strcspn(names, ",");
        char *name = xstrndup(names, n);
        json_push_string(list, name);
        free(name);
        names += names[n] == ',' ? n + 1 : n;
    }
    json_put(params, param, list);
}

static int put_flag(cJSON *task, size_t i, const struct flag *flag, struct err *err)
{
    cJSON *params = cJSON_GetObjectItemCaseSensitive(task, "params");
    int64_t number = 0;
    int rc = 0;
    if (flag->value == NULL || meanings[i].meaning == MEANS_OURS)
        return 0;
    if (meanings[i].meaning == MEANS_PATH)
        put_path(task, meanings[i].param, flag->value);
    else if (meanings[i].meaning == MEANS_TEXT)
        json_put_string(params, meanings[i].param, flag->value);
    else if (meanings[i].meaning == MEANS_NAMES)
        put_names(params, meanings[i].param, flag->value);
    else if ((rc = flag_int(flag, 0, INT32_MAX, &number, err)) == 0)
        json_put_int(params, meanings[i].param, number);
    return rc;
}

/* The task that the flags describe, with paths as data. */
static int make_task(struct command *c, const char *name, struct err *err)
{
    cJSON *json = json_object();
    json_put_int(json, "protocol", TASK_PROTOCOL);
    json_put(json, "params", json_object());
    json_put(json, "data", json_object());
    if (name != NULL)
        json_put_string(cJSON_GetObjectItemCaseSensitive(json, "params"), "task", name);
    int rc = 0;
    for (size_t i = 0; i < FLAG_NR && rc == 0; i++)
        rc = put_flag(json, i, &c->flags[i], err);
    if (rc == 0)
        return task_from_json(json, &c->task, err);
    cJSON_Delete(json);
    return rc;
}

static int read_arguments(struct command *c, char **args, struct err *err)
{
    for (size_t i = 0; i < FLAG_NR; i++)
        c->flags[i] = (struct flag){.name = meanings[i].name, .alone = i == FLAG_JSON};
    int rc = flags_take(args, c->flags, FLAG_NR, err);
    if (rc != 0)
        return rc;
    if ((args[0] == NULL) == (c->flags[FLAG_TASK_FILE].value == NULL))
        return err_set(err, ERR_USAGE, "show takes the name of a task, or --task-file");
    if (args[0] != NULL && args[1] != NULL)
        return err_set(err, ERR_USAGE, "show takes one task");
    if (c->flags[FLAG_DATA].value == NULL)
        return err_set(err, ERR_USAGE, "show needs --data");
    return make_task(c, args[0], err);
}

static int read_options(struct command *c, struct err *err)
{
    struct param_faults faults = {0};
    eval_options_read(&c->task, &c->options, &faults);
    int rc = param_faults_result(&faults, err);
    param_faults_say(&faults, "prereg-eval");
    param_faults_release(&faults);
    return rc;
}

/* Requests as a run makes them; without a model the only limit is --context. */
static int open_tokenizer(struct command *c, struct err *err)
{
    const struct eval_options *o = &c->options;
    size_t most = o->context > 0 ? (size_t)o->context : SIZE_MAX / 2;
    int rc = 0;
    if (o->model_data.name != NULL) {
        rc = scored_model_open(&c->task, o, &c->model, &c->tok, err);
        if (rc == 0)
            most = (size_t)model_shape(c->model)->context;
    } else if (o->tokenizer.name != NULL) {
        rc = tokenizer_open(o->tokenizer.path, &c->tok, err);
    }
    if (rc != 0 || c->tok == NULL)
        return rc;
    const struct scorer_setup setup = {.prompts = &c->bench.prompts,
                                       .rules = {.tok = c->tok,
                                                 .max_length = most,
                                                 .add_bos = o->add_bos,
                                                 .one_bos = o->rules->one_bos}};
    return scorer_init(&c->scorer, &setup, err);
}

/* The items asked for: of the set, or of one of its groups. */
static int find_items(const struct command *c, size_t *first, size_t *n, struct err *err)
{
    const struct item_set *set = &c->bench.set;
    const char *name = c->flags[FLAG_GROUP].value;
    int64_t item = 0;
    int64_t count = 1;
    size_t from = 0;
    size_t there = set->n;
    int rc = flag_int(&c->flags[FLAG_ITEM], 0, INT32_MAX, &item, err);
    if (rc == 0)
        rc = flag_int(&c->flags[FLAG_COUNT], 1, COUNT_MAX, &count, err);
    if (rc != 0)
        return rc;
    if (name != NULL) {
        size_t g = 0;
        while (g < set->n_groups && strcmp(set->groups[g].name, name) != 0)
            g++;
        if (g == set->n_groups)
            return err_set(err, ERR_USAGE, "--group: there is no '%.60s'", name);
        from = set->groups[g].first;
        there = set->groups[g].n;
    }
    if ((size_t)item >= there)
        return err_set(err, ERR_USAGE, "--item %lld: there are %zu, counted from 0",
                       (long long)item, there);
    *first = from + (size_t)item;
    *n = (size_t)count < there - (size_t)item ? (size_t)count : there - (size_t)item;
    return 0;
}

/* Prints the chosen items one after the other. */
static int show_items(struct command *c, FILE *out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    size_t first = 0;
    size_t n = 0;
    c->show.bench = &c->bench;
    c->show.tok = c->tok;
    c->show.scorer = &c->scorer;
    int rc = find_items(c, &first, &n, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        strbuf_clear(&text);
        rc = item_print(&c->show, first + i, c->flags[FLAG_JSON].value != NULL, &text, err);
        if (rc == 0)
            terminal_data(out, text.buf, text.len);
    }
    strbuf_release(&text);
    return rc;
}

/* show TASK --data PATH [...] */
int command_show(char **args, FILE *out, struct err *err)
{
    struct command c = {0};
    request_text_init(&c.show.text);
    int rc = read_arguments(&c, args, err);
    if (rc == 0 && (rc = read_options(&c, err)) == 0 &&
        (rc = benchmark_load(&c.bench, &c.options, err)) == 0 &&
        (rc = open_tokenizer(&c, err)) == 0)
        rc = show_items(&c, out, err);
    request_text_release(&c.show.text);
    request_list_release(&c.show.requests);
    scorer_release(&c.scorer);
    tokenizer_free(c.tok);
    model_free(c.model);
    benchmark_release(&c.bench);
    eval_options_release(&c.options);
    task_release(&c.task);
    return rc;
}
