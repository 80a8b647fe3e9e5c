/*
 * Opens the model and finds its tokenizer, with the checks that keep the two together: digest and
 * size of the vocabulary. Memory is checked from the shape before weights are read.
 * scored_model_check() does the same for --describe without reading weights.
 */
#include "worker/eval/cli/scored_model.h"

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "worker/model/formats/hf_tokenizer.h"
#include "worker/model/formats/import.h"
#include "worker/model/store.h"

#define TOKENIZER_CONFIG_MAX (1u << 22)

/* What a model says of its tokenizer. */
struct wish {
    const char *spec; /* "bytes", the name of data, or "" */
    const char *file; /* beside the model, or NULL */
    struct digest digest;
    int vocab; /* of the model */
};

/* *spec is "bytes" or a path. */
static int find_spec(const struct worker_task *task, const struct eval_options *o,
                     const struct wish *wish, const char **spec, struct err *err)
{
    struct task_data data;

    *spec = wish->spec;
    if (o->tokenizer.name != NULL) {
        *spec = o->tokenizer.path;
    } else if (wish->file != NULL) {
        *spec = wish->file;
    } else if (wish->spec[0] == '\0') {
        return err_set(err, ERR_USAGE,
                       "the model comes without a tokenizer: name one with params.tokenizer");
    } else if (strcmp(wish->spec, TOKENIZER_BYTES) != 0) {
        if (task_find_data(task, wish->spec, &data, err) != 0)
            return err_wrap(err, "the model's tokenizer");
        *spec = data.path;
    }
    return 0;
}

/* Opens and checks it; *tok is set as soon as it is open, also on a later error. */
static int open_tokenizer(const struct worker_task *task, const struct eval_options *o,
                          const struct wish *wish, struct tokenizer **tok, struct err *err)
{
    const char *spec = NULL;

    int rc = find_spec(task, o, wish, &spec, err);
    if (rc == 0)
        rc = tokenizer_open(spec, tok, err);
    if (rc < 0)
        return rc;
    const struct digest found = tokenizer_digest(*tok);
    if (!digest_is_zero(&wish->digest) && !digest_equal(&wish->digest, &found))
        return err_set(err, ERR_CORRUPT, "tokenizer %s is not the one the model was trained with",
                       spec);
    if (tokenizer_vocab(*tok) > (uint32_t)wish->vocab)
        return err_set(err, ERR_CORRUPT, "tokenizer %s has %u tokens, the model %d", spec,
                       tokenizer_vocab(*tok), wish->vocab);
    return 0;
}

/* Whether the task needs the slots of generations. */
static bool generates(const struct eval_options *o)
{
    return o->spec != NULL && o->spec->kind == TASK_GENERATE;
}

/* The attempt of an input: its folder has the file itself, or a link to it. */
static char *attempt_folder(const char *folder)
{
    char *link = path_join(folder, LAYOUT_RESULT);
    char *true_path = realpath(link, NULL);
    char *found = true_path == NULL ? xstrdup(folder) : path_folder(true_path);

    free(link);
    free(true_path);
    return found;
}

/* Where the model is: data, the result of a stage, or a snapshot of that. The caller's. */
static int find_model(const struct worker_task *task, const struct eval_options *o, char **out,
                      struct err *err)
{
    const char *folder = o->model_data.path;

    *out = NULL;
    int rc = folder != NULL ? 0 : task_find_input(task, o->model, &folder, err);
    if (rc < 0)
        return rc;
    if (o->at <= 0.0) {
        *out = xstrdup(folder);
        return 0;
    }
    char *attempt = attempt_folder(folder), *name = store_snapshot_folder(o->at);
    *out = path_join(attempt, name);
    if (file_kind_at(*out) != FILE_FOLDER)
        rc = err_set(err, ERR_USAGE,
                     "at = %g: stage \"%s\" left no such model; name it in its params.snapshots",
                     o->at, o->model);
    free(attempt);
    free(name);
    return rc;
}

/* Memory, weights, tokenizer, in this order. */
int scored_model_open(const struct worker_task *task, const struct eval_options *o,
                      struct model **model, struct tokenizer **tok, struct err *err)
{
    char *folder = NULL;

    int rc = find_model(task, o, &folder, err);
    if (rc == 0 &&
        (rc = model_check_memory(folder, o->context, generates(o), task->memory_bytes, err)) == 0)
        rc = model_open_within(folder, o->context, model, err);
    free(folder);
    if (rc < 0)
        return rc;
    const struct wish wish = {.spec = model_tokenizer_spec(*model),
                              .file = model_tokenizer_file(*model),
                              .digest = model_tokenizer_digest(*model),
                              .vocab = model_shape(*model)->vocab};
    return open_tokenizer(task, o, &wish, tok, err);
}

/* ERR_NOT_FOUND: there is no such file in the folder. */
static int read_tidies(const char *folder, bool *tidies, struct err *err)
{
    cJSON *config = NULL;
    char *path = path_join(folder, HF_FILE_TOKENIZER_CONFIG);
    int rc = file_kind_at(path) == FILE_REGULAR
                 ? json_read_file(path, TOKENIZER_CONFIG_MAX, &config, err)
                 : ERR_NOT_FOUND;
    *tidies = true;
    if (rc == 0)
        rc = json_opt_bool(config, "clean_up_tokenization_spaces", tidies, err);
    if (rc != 0 && rc != ERR_NOT_FOUND)
        rc = err_wrap(err, "%s", path);
    cJSON_Delete(config);
    free(path);
    return rc;
}

int scored_model_tidies_spaces(const struct worker_task *task, const struct eval_options *o,
                               bool *tidies, struct err *err)
{
    struct import_source src = {0};
    char *folder = NULL;
    int rc = ERR_NOT_FOUND;
    *tidies = o->spaces == SPACES_TIDIED;
    if (o->spaces != SPACES_AS_TOKENIZER)
        return 0;
    if (o->tokenizer.name != NULL)
        rc = read_tidies(o->tokenizer.path, tidies, err);
    if (rc != ERR_NOT_FOUND)
        return rc;
    rc = find_model(task, o, &folder, err);
    if (rc == 0)
        rc = import_find(folder, &src, err);
    free(folder);
    if (rc != 0)
        return rc;
    *tidies = src.form == IMPORT_HF;
    if (src.form == IMPORT_HF && (rc = read_tidies(src.path, tidies, err)) == ERR_NOT_FOUND)
        rc = 0;
    import_source_release(&src);
    return rc;
}

/* Shape and tokenizer of a model, without its weights. */
static int look_at(const struct worker_task *task, const struct eval_options *o,
                   const struct import_source *src, struct scored_model_look *look, struct err *err)
{
    struct model_config cfg;
    struct store_info info;

    int rc = import_info(src, &cfg, &info, err);
    if (rc < 0)
        return rc;
    const struct wish wish = {.spec = info.tokenizer_spec,
                              .file = src->tokenizer,
                              .digest = info.tokenizer,
                              .vocab = cfg.vocab};
    rc = open_tokenizer(task, o, &wish, &look->tok, err);
    look->context = (size_t)(o->context > 0 ? o->context : cfg.context);
    look->cfg = cfg;
    store_info_release(&info);
    return rc;
}

/* What the training says of the model that it makes. Whatever is wrong there is not said here: that
 * stage is described, too. */
static void look_at_producer(const struct worker_task *task, const struct eval_options *o,
                             struct scored_model_look *look)
{
    const cJSON *producer = o->model == NULL ? NULL : json_member(task->producers, o->model);
    const cJSON *params = producer == NULL ? NULL : json_member(producer, "params");
    struct wish wish = {.spec = ""};
    struct err ignored;
    if (params == NULL || model_config_get(params, &look->cfg, &ignored) != 0 ||
        json_opt_string(params, "tokenizer", &wish.spec, &ignored) != 0)
        return;
    wish.vocab = look->cfg.vocab;
    const int context = o->context > 0 ? o->context : look->cfg.context;
    look->context = (size_t)context;
    if (context <= look->cfg.context && open_tokenizer(task, o, &wish, &look->tok, &ignored) == 0)
        return;
    tokenizer_free(look->tok);
    look->tok = NULL;
}

/* The reference model of an apparatus check is there before anything has run. What is wrong with it
 * is said by the check itself. */
static bool look_at_input(const struct worker_task *task, const struct eval_options *o,
                          struct scored_model_look *look)
{
    struct import_source src = {0};
    char *folder = NULL;
    struct err ignored;

    int rc = find_model(task, o, &folder, &ignored);
    if (rc == 0 && (rc = import_find(folder, &src, &ignored)) == 0)
        rc = look_at(task, o, &src, look, &ignored);
    if (rc < 0) {
        tokenizer_free(look->tok);
        look->tok = NULL;
    }
    import_source_release(&src);
    free(folder);
    return rc == 0;
}

void scored_model_check(const struct worker_task *task, const struct eval_options *o,
                        struct scored_model_look *look, struct param_faults *faults)
{
    struct import_source src = {0};
    struct params p;
    struct err err;

    *look = (struct scored_model_look){0};
    if (o->model_data.name == NULL) {
        if (!look_at_input(task, o, look))
            look_at_producer(task, o, look);
        return;
    }
    params_init(&p, NULL, faults);
    int rc =
        model_check_memory(o->model_data.path, o->context, generates(o), task->memory_bytes, &err);
    if (rc == 0 && (rc = import_find(o->model_data.path, &src, &err)) == 0)
        rc = look_at(task, o, &src, look, &err);
    import_source_release(&src);
    if (rc < 0)
        params_fault(&p, "model", "%s", err.msg);
}
