/*
 * prereg-eval --describe: what would be measured, on how much, in about what time. It reads the
 * items and makes every request's text, but no weights. Shape and tokenizer of the model, which is
 * data of the task or will be made by a training of ours, give tokens and a time; of another model
 * both stay rough guesses by bytes.
 *
 * Faults of parameters are reported by key; what goes wrong with the data itself is a fault of
 * "data". Of several tasks, one that asks the same items as the one before does not read them
 * again.
 */
#include "worker/report/describe.h"

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/eval/cli/estimate.h"
#include "worker/eval/cli/run.h"
#include "worker/eval/cli/scored_model.h"
#include "worker/eval/score/benchmark.h"
#include "worker/eval/score/summary.h"
#include "worker/model/store.h"
#include "worker/report/machine_rates.h"

/* A guess for models of a few hundred thousand parameters on one core, to be read as an order of
 * magnitude: the model is not known yet. `prereg-eval --plan` knows better. */
#define SECONDS_PER_BYTE 1e-5
#define PROCESS_BYTES    0x1p25 /* libraries, items, requests and tokens */

/* The items that were read last. Everything here borrows from `task`. */
struct known_items {
    char *key; /* of everything that they follow from; NULL: none are known */
    struct worker_task task;
    struct eval_options options;
    struct benchmark bench;
    struct benchmark_size size;
};

static void known_items_release(struct known_items *k)
{
    if (k->key != NULL) {
        benchmark_release(&k->bench);
        eval_options_release(&k->options);
        task_release(&k->task);
        free(k->key);
    }
    *k = (struct known_items){0};
}

/* The task as canonical text, without members from which no item, and no prompt, follows. */
static char *items_of_task(const struct worker_task *task)
{
    static const char *const others[] = {"cell",           "digest", "stage",    "sealed",
                                         "sealed_metrics", "peers",  "producers"};
    static const char *const of_model[] = {"at", "model"};
    cJSON *json = json_copy(task->json);
    cJSON *params = cJSON_GetObjectItemCaseSensitive(json, "params");
    struct strbuf text = STRBUF_INIT;
    struct err err;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        cJSON_DeleteItemFromObjectCaseSensitive(json, others[i]);
    for (size_t i = 0; params != NULL && i < ARRAY_LEN(of_model); i++)
        cJSON_DeleteItemFromObjectCaseSensitive(params, of_model[i]);
    if (json_canonical(json, &text, &err) != 0)
        strbuf_clear(&text);
    cJSON_Delete(json);
    return strbuf_detach(&text);
}

/* Reads and measures the items of the task, unless they are known. */
static int find_items(struct known_items *k, const struct worker_task *task, struct err *err)
{
    struct param_faults faults = {0};
    char *key = items_of_task(task);
    if (k->key != NULL && key[0] != '\0' && strcmp(k->key, key) == 0) {
        free(key);
        return 0;
    }
    known_items_release(k);
    k->key = key;
    int rc = task_from_json(json_copy(task->json), &k->task, err);
    if (rc == 0) {
        eval_options_read(&k->task, &k->options, &faults);
        rc = benchmark_load(&k->bench, &k->options, err);
    }
    if (rc == 0)
        benchmark_measure(&k->bench, SIZE_MAX, &k->size);
    param_faults_release(&faults);
    if (rc != 0)
        known_items_release(k);
    return rc;
}

static void put_name(void *self, const char *name)
{
    description_metric(self, name);
}

/* What a run will give, also of each group of its items, and under a second key. */
static int describe_metrics(struct description *d, const struct benchmark *bench,
                            const struct eval_options *o, struct err *err)
{
    struct second_key second = {0};
    struct judge judge = {0};
    int rc = 0;
    if (o->second_key.name != NULL) {
        const struct item_source src = benchmark_source(o, o->second_key.path, o->split);
        rc = second_key_read(&second, o->second_key.name, &bench->set, &src, err);
    }
    if (rc == 0)
        rc = judge_init(&judge, &bench->set, second.name == NULL ? NULL : &second, err);
    if (rc == 0)
        summary_each_name(&judge, put_name, d);
    judge_release(&judge);
    second_key_release(&second);
    return rc;
}

/* Tokens of the longest request. */
static int count_longest(const struct benchmark *bench, const struct benchmark_size *size,
                         const struct tokenizer *tok, size_t *n, struct err *err)
{
    struct request_text text;
    struct token_list tokens = {0};
    request_text_init(&text);
    prompt_request(&bench->prompts, size->longest_item, size->longest_option, &text);
    strbuf_add(&text.preamble, text.context.buf, text.context.len);
    strbuf_add(&text.preamble, text.continuation.buf, text.continuation.len);
    int rc = tokenizer_encode(tok, text.preamble.buf, text.preamble.len, &tokens, err);
    *n = tokens.n;
    token_list_release(&tokens);
    request_text_release(&text);
    return rc;
}

/* The tokens that the run generates, at most. */
static double generated_tokens(const struct benchmark *bench, const struct eval_options *o)
{
    if (o->spec->kind != TASK_GENERATE)
        return 0.0;
    return (double)bench->n_selected * (o->max_tokens > 0 ? o->max_tokens : o->spec->max_tokens);
}

/* What guessing gets: the mean of 1 / choices over the items, where all of them are of choices. */
static void describe_chance(struct description *d, const struct benchmark *bench)
{
    double sum = 0.0;
    for (size_t i = 0; i < bench->n_selected; i++) {
        const struct item *item = &bench->set.items[bench->selected[i]];
        if (item->n_options == 0)
            return;
        sum += 1.0 / (double)item->n_options;
    }
    if (bench->n_selected > 0)
        description_fact(d, "chance", sum / (double)bench->n_selected);
}

static int describe_seconds(struct description *d, const struct estimate_of *of, double *seconds,
                            struct err *err)
{
    struct strbuf why = STRBUF_INIT, note = STRBUF_INIT;
    struct estimate_of x = *of;
    x.why = &why;
    int rc = estimate_seconds(&x, seconds, err);
    if (rc == 0 && why.len > 0) {
        machine_rates_assumed(why.buf, &note);
        description_note(d, note.buf);
    }
    strbuf_release(&why);
    strbuf_release(&note);
    return rc;
}

/* Of the run, and without which it is refused (model_check_memory()). */
static void describe_memory(struct description *d, const struct eval_options *o,
                            const struct scored_model_look *look)
{
    struct model_config cfg = look->cfg;
    cfg.context = (int)look->context;
    const double least = model_bytes(&cfg, o->spec->kind == TASK_GENERATE);
    description_fact(d, "memory_bytes", least + PROCESS_BYTES);
    description_fact(d, "memory_least_bytes", least);
}

static int describe_size(struct description *d, const struct worker_task *task,
                         const struct known_items *items, const struct eval_options *o,
                         const struct scored_model_look *look, struct err *err)
{
    const struct benchmark *bench = &items->bench;
    const struct benchmark_size *size = &items->size;
    const double generated = generated_tokens(bench, o);
    double seconds = 0.0;
    size_t longest = 0;
    description_fact(d, "items", (double)bench->n_selected);
    describe_chance(d, bench);
    description_fact(d, "requests", size->requests);
    description_fact(d, "request_bytes", size->bytes);
    description_fact(d, "distinct_request_bytes", size->distinct_bytes);
    description_fact(d, "longest_request_bytes", (double)size->longest);
    if (look->tok == NULL) {
        seconds = (size->distinct_bytes + generated) * SECONDS_PER_BYTE;
    } else {
        int rc = count_longest(bench, size, look->tok, &longest, err);
        if (rc != 0)
            return rc;
        description_fact(d, "longest_request_tokens", (double)longest);
        description_fact(d, "context_tokens", (double)look->context);
        describe_memory(d, o, look);
        rc = describe_seconds(d, &(struct estimate_of){task, bench, size, o, look, NULL}, &seconds,
                              err);
        if (rc != 0)
            return rc;
    }
    description_seconds(d, seconds);
    return 0;
}

/* Reads the items; what fails becomes a fault of "data". */
static void describe_benchmark(struct description *d, const struct worker_task *task,
                               const struct eval_options *o, const struct scored_model_look *look,
                               struct known_items *items, struct param_faults *faults)
{
    struct err err = {0};
    int rc = find_items(items, task, &err);
    if (rc == 0 && (rc = describe_metrics(d, &items->bench, o, &err)) == 0)
        rc = describe_size(d, task, items, o, look, &err);
    if (rc != 0) {
        struct params p;
        params_init(&p, NULL, faults);
        params_fault(&p, "data", "%s", err.msg);
    }
}

/* The training must leave it. */
static void describe_snapshot(const struct eval_options *o, struct description *d)
{
    char *folder = store_snapshot_folder(o->at), *path = path_join(folder, MODEL_FILE_BIN);

    description_reads(d, o->model, path);
    free(path);
    free(folder);
}

static int describe_task(const struct worker_task *task, struct known_items *items, FILE *out,
                         struct err *err)
{
    struct param_faults faults = {0};
    struct scored_model_look look = {0};
    struct eval_options options;
    struct description d;
    description_init(&d);
    eval_options_read(task, &options, &faults);
    if (faults.n == 0)
        scored_model_check(task, &options, &look, &faults);
    if (faults.n == 0)
        describe_benchmark(&d, task, &options, &look, items, &faults);
    if (options.at > 0.0 && options.model != NULL)
        describe_snapshot(&options, &d);
    int rc = description_print(&d, &faults, out, err);
    description_release(&d);
    tokenizer_free(look.tok);
    eval_options_release(&options);
    param_faults_release(&faults);
    return rc;
}

int eval_describe(char *const *paths, size_t n, FILE *out, struct err *err)
{
    struct known_items items = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct worker_task task = {0};
        rc = task_read(paths[i], &task, err);
        if (rc == 0)
            rc = describe_task(&task, &items, out, err);
        task_release(&task);
    }
    known_items_release(&items);
    return rc;
}
