/*
 * Our tensors and transformers' are the same numbers under other cuts: list_parts() lists, for a
 * shape, each of their tensors as a range of our parameter array. Reading and writing both follow
 * that list, so neither moves a number; only stacked experts are cut into w1, w2 and w3.
 *
 * Reading checks names and shapes of every part against the headers before any memory is taken for
 * weights.
 */
#include "worker/model/formats/hf.h"

#include <assert.h>
#include <math.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/model/formats/safetensors.h"
#include "worker/model/formats/shards.h"

#define CONFIG_MAX (16u << 20)
#define NAME_SIZE  96

struct hf_part {
    char name[NAME_SIZE];
    size_t offset; /* of weights.params */
    int64_t rows;
    int64_t cols; /* 0: one dimension */
};

struct hf_part_list {
    struct hf_part *items;
    size_t n;
    size_t cap;
};

static struct hf_part *add_part(struct hf_part_list *list, size_t offset, size_t rows, size_t cols)
{
    ARRAY_GROW(list->items, list->n, list->cap);
    struct hf_part *p = &list->items[list->n++];
    *p = (struct hf_part){.offset = offset, .rows = (int64_t)rows, .cols = (int64_t)cols};
    return p;
}

/* Per expert w1 (gate), w3 (up) of a stacked gate_up, or w2 (down). */
static void add_experts(struct hf_part_list *list, const struct model_config *cfg,
                        const struct tensor *t)
{
    size_t each = tensor_size(t) / (size_t)cfg->experts, rows = t->rows / (size_t)cfg->experts;
    bool down = t->role == TENSOR_EXPERT_DOWN;

    for (int e = 0; e < cfg->experts; e++)
        for (int half = 0; half < (down ? 1 : 2); half++) {
            size_t n = down ? each : each / 2;
            struct hf_part *p = add_part(list, t->offset + (size_t)e * each + (size_t)half * n,
                                         down ? rows : rows / 2, t->cols);
            (void)snprintf(p->name, sizeof(p->name),
                           "model.layers.%d.block_sparse_moe.experts.%d.w%d.weight", t->layer, e,
                           down ? 2 : 1 + 2 * half);
        }
}

/* *n parts in the order of the table; the caller frees them. The shape has passed
 * hf_config_check(). */
static struct hf_part *list_parts(const struct model_config *cfg, const struct tensor_table *table,
                                  size_t *n)
{
    struct hf_part_list list = {0};

    for (size_t i = 0; i < table->n; i++) {
        const struct tensor *t = &table->items[i];
        if (t->role == TENSOR_EXPERT_GATE_UP || t->role == TENSOR_EXPERT_DOWN) {
            add_experts(&list, cfg, t);
            continue;
        }
        bool flat = t->role == TENSOR_NORM_ATTENTION || t->role == TENSOR_NORM_FFN ||
                    t->role == TENSOR_NORM_FINAL;
        struct hf_part *p = add_part(&list, t->offset, t->rows, flat ? 0 : t->cols);
        assert(t->role != TENSOR_SHARED_GATE && t->role != TENSOR_SHARED_UP &&
               t->role != TENSOR_SHARED_DOWN);
        (void)snprintf(p->name, sizeof(p->name), "%s", t->name);
    }
    *n = list.n;
    return list.items;
}

int hf_read_config(const char *folder, struct model_config *cfg, struct err *err)
{
    char *path = path_join(folder, HF_FILE_CONFIG);
    cJSON *obj = NULL;

    /* Python writes NaN and Infinity into some configs; no member that is read may hold one. */
    int rc = json_read_file_lax(path, CONFIG_MAX, &obj, err);
    if (rc == ERR_SYNTAX)
        rc = err->code = ERR_CORRUPT;
    if (rc == 0)
        rc = hf_config_get(obj, cfg, err);
    cJSON_Delete(obj);
    if (rc < 0)
        rc = err_wrap(err, "%s", path);
    free(path);
    return rc;
}

static size_t part_numbers(const struct hf_part *part)
{
    return (size_t)part->rows * (size_t)(part->cols == 0 ? 1 : part->cols);
}

static int check_part(const struct hf_part *part, const struct safetensors_entry *e,
                      struct err *err)
{
    int n_dims = part->cols == 0 ? 1 : 2;

    if (e->n_dims == n_dims && e->shape[0] == part->rows &&
        (n_dims == 1 || e->shape[1] == part->cols))
        return 0;
    struct strbuf found = STRBUF_INIT;
    for (int i = 0; i < e->n_dims; i++)
        strbuf_addf(&found, "%s%lld", i == 0 ? "" : ", ", (long long)e->shape[i]);
    if (n_dims == 1)
        (void)err_set(err, ERR_CORRUPT, "tensor %s: shape (%.60s), config.json says (%lld)",
                      part->name, found.buf, (long long)part->rows);
    else
        (void)err_set(err, ERR_CORRUPT, "tensor %s: shape (%.60s), config.json says (%lld, %lld)",
                      part->name, found.buf, (long long)part->rows, (long long)part->cols);
    strbuf_release(&found);
    return err->code;
}

static int read_part(const struct shards *shards, const struct hf_part *part, float *out,
                     struct err *err)
{
    const struct shards_tensor *found = shards_find(shards, part->name);

    assert(found != NULL); /* check_parts() */
    int rc = safetensors_read(found->file, found->entry, out, err);
    if (rc < 0)
        return rc;
    size_t n = part_numbers(part);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(out[i]))
            return err_set(err, ERR_CORRUPT, "tensor %s: number %zu is not finite", part->name, i);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct hf_part *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* Tensors that old files carry and that follow from the rest. */
static bool may_be_ignored(const struct model_config *cfg, const char *name)
{
    static const char table[] = ".rotary_emb.inv_freq";
    size_t n = strlen(name), m = sizeof(table) - 1;

    if (n > m && strcmp(name + n - m, table) == 0)
        return true;
    return cfg->tie_embeddings && strcmp(name, "lm_head.weight") == 0;
}

/* Every part is there in its shape, and nothing else: a tensor without a part would be a piece of
 * the model that is not computed. Leaves the parts sorted by name. */
static int check_parts(const struct shards *shards, const struct model_config *cfg,
                       struct hf_part *parts, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct shards_tensor *found = shards_find(shards, parts[i].name);
        if (found == NULL)
            return err_set(err, ERR_CORRUPT, "tensor %s is missing", parts[i].name);
        int rc = check_part(&parts[i], found->entry, err);
        if (rc < 0)
            return rc;
    }
    qsort(parts, n, sizeof(*parts), by_name);
    for (size_t i = 0; i < shards->n_tensors; i++) {
        struct hf_part key = {0};
        const char *name = shards->tensors[i].entry->name;
        (void)snprintf(key.name, sizeof(key.name), "%s", name);
        const struct hf_part *p = bsearch(&key, parts, n, sizeof(*parts), by_name);
        if ((p == NULL || strcmp(p->name, name) != 0) && !may_be_ignored(cfg, name))
            return err_set(err, ERR_REFUSED, "tensor %.80s is not part of this architecture", name);
    }
    return 0;
}

/* Memory is allocated only for a model that the files hold: config.json alone may name any size. */
static int read_parts(const struct shards *shards, const struct model_config *cfg,
                      struct weights *w, struct err *err)
{
    struct tensor_table table;
    size_t n = 0;

    tensor_table_init(&table, cfg);
    struct hf_part *parts = list_parts(cfg, &table, &n);
    tensor_table_release(&table);
    int rc = check_parts(shards, cfg, parts, n, err);
    if (rc == 0)
        rc = weights_init(w, cfg, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = read_part(shards, &parts[i], w->params + parts[i].offset, err);
    free(parts);
    return rc;
}

int hf_read_weights(const char *folder, struct weights *w, struct err *err)
{
    struct model_config cfg;
    struct shards shards = {0};

    *w = (struct weights){0};
    int rc = hf_read_config(folder, &cfg, err);
    if (rc < 0)
        return rc;
    rc = shards_open(folder, &shards, err);
    if (rc == 0)
        rc = read_parts(&shards, &cfg, w, err);
    shards_close(&shards);
    if (rc < 0) {
        weights_release(w);
        return err_wrap(err, "%s", folder);
    }
    return 0;
}

int hf_check_weights(const struct weights *w, struct err *err)
{
    size_t experts = (size_t)w->cfg.experts;

    int rc = hf_config_check(&w->cfg, err);
    for (size_t i = 0; rc == 0 && i < weights_n_bias(&w->cfg); i++)
        if (w->route_bias[i] != 0.0f)
            rc = err_set(err, ERR_REFUSED,
                         "bias_update_rate: layer %zu chooses expert %zu with a bias of %g, and "
                         "Mixtral's router has none",
                         i / experts, i % experts, (double)w->route_bias[i]);
    return rc;
}

int hf_write_weights(const char *path, const struct weights *w, struct err *err)
{
    size_t n = 0;

    int rc = hf_check_weights(w, err);
    if (rc < 0)
        return rc;
    struct hf_part *parts = list_parts(&w->cfg, &w->table, &n);
    struct safetensors_item *items = xcalloc(n, sizeof(*items));
    for (size_t i = 0; i < n; i++)
        items[i] = (struct safetensors_item){.name = parts[i].name,
                                             .rows = parts[i].rows,
                                             .cols = parts[i].cols,
                                             .data = w->params + parts[i].offset};
    rc = safetensors_write(path, items, n, err);
    free(items);
    free(parts);
    return rc;
}
