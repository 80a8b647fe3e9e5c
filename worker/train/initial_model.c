/*
 * The shape is compared number by number, including rope_theta and norm_eps, which no parameter
 * sets: a model that computes with other constants would not be the model that the parameters
 * describe. The digest of what was read goes into the checkpoint's key, so a run cannot be resumed
 * from another start.
 */
#include "worker/train/initial_model.h"

#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/model/formats/import.h"

#define BY_HAND "--init"

/* One number of the shape: what the model has, what the parameters say. */
struct shape_number {
    const char *key;
    double found;
    double wanted;
};

static void compare(const struct model_config *found, const struct model_config *want,
                    struct param_faults *faults)
{
    bool dense_blocks = model_config_moe_layers(want) < want->layers;
    const struct shape_number numbers[] = {
        {"layers", found->layers, want->layers},
        {"width", found->width, want->width},
        {"heads", found->heads, want->heads},
        {"kv_heads", found->kv_heads, want->kv_heads},
        {"ffn", dense_blocks ? found->ffn : 0, dense_blocks ? want->ffn : 0},
        {"vocab", found->vocab, want->vocab},
        {"tie_embeddings", found->tie_embeddings, want->tie_embeddings},
        {"experts", found->experts, want->experts},
        {"top_k", found->top_k, want->top_k},
        {"expert_ffn", found->expert_ffn, want->expert_ffn},
        {"shared", found->shared, want->shared},
        {"dense_layers", found->dense_layers, want->dense_layers},
        /* Without experts nothing is weighed. */
        {"renormalise", want->experts > 0 && found->renormalise,
         want->experts > 0 && want->renormalise},
        {"rope_theta", found->rope_theta, want->rope_theta},
        {"norm_eps", found->norm_eps, want->norm_eps},
    };
    struct params p;

    params_init(&p, NULL, faults);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if (numbers[i].found != numbers[i].wanted)
            params_fault(&p, "init", "its %s is %.9g, the run's %.9g", numbers[i].key,
                         numbers[i].found, numbers[i].wanted);
}

static int find_source(const struct worker_task *task, const char *name, struct task_data *entry,
                       struct import_source *src, struct err *err)
{
    int rc = task_find_data(task, name, entry, err);
    return rc < 0 ? rc : import_find(entry->path, src, err);
}

int initial_model_check(const struct worker_task *task, const struct train_options *opt,
                        struct param_faults *faults, struct err *err)
{
    struct task_data entry;
    struct import_source src;
    struct model_config found;

    if (opt->init == NULL)
        return 0;
    int rc = find_source(task, opt->init, &entry, &src, err);
    if (rc < 0)
        return err_wrap(err, "init");
    rc = import_config(&src, &found, err);
    import_source_release(&src);
    if (rc < 0)
        return err_wrap(err, "init");
    compare(&found, &opt->model, faults);
    return 0;
}

/* Refuses a model of another tokenizer, whose ids would mean other words. A model that names none
 * is accepted. */
static int check_tokenizer(const struct import_source *src, const struct store_info *info,
                           const struct tokenizer *ours, struct err *err)
{
    struct digest want = tokenizer_digest(ours), found = info->tokenizer;
    struct tokenizer *tok = NULL;

    if (src->tokenizer != NULL) {
        int rc = tokenizer_open(src->tokenizer, &tok, err);
        if (rc < 0)
            return rc;
        found = tokenizer_digest(tok);
        tokenizer_free(tok);
    }
    if (digest_is_zero(&found) || digest_equal(&found, &want))
        return 0;
    return err_set(err, ERR_CORRUPT, "%s is of another tokenizer than the run's", src->path);
}

static int load(const struct worker_task *task, struct train_data *data, const char *name,
                struct weights *w, struct err *err)
{
    struct task_data entry;
    struct import_source src;
    struct store_info info;

    int rc = find_source(task, name, &entry, &src, err);
    if (rc < 0)
        return rc;
    rc = task_verify_data(&entry, &data->init, err);
    if (rc == 0)
        rc = import_weights(&src, w, &info, err);
    if (rc == 0) {
        rc = check_tokenizer(&src, &info, data->tokenizer, err);
        if (rc == 0)
            rc = import_check_finite(w, err);
        store_info_release(&info);
        if (rc < 0)
            weights_release(w);
    }
    import_source_release(&src);
    return rc;
}

int initial_model_load(const struct worker_task *task, struct train_data *data, struct trainer *t,
                       struct err *err)
{
    struct weights w;

    if (t->opt->init == NULL)
        return 0;
    int rc = load(task, data, t->opt->init, &w, err);
    if (rc < 0)
        return err_wrap(err, "init");
    if (w.table.n_params != t->w.table.n_params) {
        weights_release(&w);
        return err_set(err, ERR_CORRUPT, "init: the model changed while it was read");
    }
    weights_release(&t->w);
    t->w = w;
    /* The same tensors; the context is the run's. */
    t->w.cfg = t->opt->model;
    return 0;
}

static cJSON *table_of(cJSON *obj, const char *key)
{
    cJSON *found = cJSON_GetObjectItemCaseSensitive(obj, key);

    if (found != NULL && cJSON_IsObject(found))
        return found;
    if (found != NULL)
        cJSON_DeleteItemFromObjectCaseSensitive(obj, key);
    found = json_object();
    json_put(obj, key, found);
    return found;
}

int initial_model_by_hand(struct worker_task *task, const char *path, struct err *err)
{
    cJSON *params = table_of(task->json, "params"), *data = table_of(task->json, "data");
    cJSON *entry = json_object();

    json_put_string(entry, "path", path);
    json_put(data, BY_HAND, entry);
    task->data = data;
    if (json_member(params, "init") != NULL)
        return err_set(err, ERR_USAGE, "%s: the task names a start already (params.init)", BY_HAND);
    json_put_string(params, "init", BY_HAND);
    return 0;
}
