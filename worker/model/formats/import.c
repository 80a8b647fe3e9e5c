/*
 * import_find() decides the form once, for a folder in a fixed order (ours, transformers',
 * llama2.c's); the other functions dispatch on it. Our own models carry digests in model.json; for
 * imported ones they are computed here over the numbers in our order, which is what model.bin would
 * hold.
 */
#include "worker/model/formats/import.h"

#include <math.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "worker/data/tokenizer/tokenizer.h"
#include "worker/model/formats/hf.h"
#include "worker/model/formats/hf_tokenizer.h"
#include "worker/model/formats/llama2c.h"

#define BIN_ENDING    ".bin"
#define TOKENIZER_BIN "tok"

/* A regular file of that name, in the folder itself. */
static bool has_file(const char *folder, const char *name)
{
    char *path = path_join(folder, name);
    bool there = file_kind_at(path) == FILE_REGULAR;

    free(path);
    return there;
}

/* The folder that holds model.json: beside the true place of result.json, or the folder itself.
 * NULL: there is none. */
static char *find_ours(const char *folder)
{
    char *link = path_join(folder, LAYOUT_RESULT);
    char *true_path = realpath(link, NULL);
    char *base = true_path == NULL ? xstrdup(folder) : path_folder(true_path);
    char *inner = path_join(base, MODEL_FOLDER), *found = NULL;

    if (has_file(base, MODEL_FILE_JSON))
        found = xstrdup(base);
    else if (has_file(inner, MODEL_FILE_JSON) ||
             (file_kind_at(inner) == FILE_FOLDER && !has_file(folder, HF_FILE_CONFIG)))
        found = xstrdup(inner);
    free(link);
    free(true_path);
    free(base);
    free(inner);
    return found;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

/* What tokenizer_save() left beside our weights. */
static char *find_saved_tokenizer(const char *folder)
{
    static const char *const names[] = {HF_FILE_TOKENIZER, TOKENIZER_FILE_LLAMA2C};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (has_file(folder, names[i]))
            return path_join(folder, names[i]);
    return NULL;
}

/* The tokenizer in a folder of transformers; their form of "bytes" counts as "bytes". */
static char *find_tokenizer_json(const char *folder)
{
    char *path = path_join(folder, HF_FILE_TOKENIZER);

    if (file_kind_at(path) == FILE_REGULAR && !hf_tokenizer_is_bytes(path))
        return path;
    free(path);
    return NULL;
}

/* The one *.bin that is not a tokenizer, and the one tok*.bin, if any. */
static int find_llama2c(const char *folder, struct import_source *src, struct err *err)
{
    struct name_list list = {0};

    int rc = dir_list(folder, &list, err);
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        const char *name = list.names[i];
        bool tok = strncmp(name, TOKENIZER_BIN, sizeof(TOKENIZER_BIN) - 1) == 0;
        char **slot = tok ? &src->tokenizer : &src->path;
        if (!ends_with(name, BIN_ENDING))
            continue;
        if (*slot != NULL)
            rc = err_set(err, ERR_NOT_FOUND, "%s: more than one %s; name the file", folder,
                         tok ? "tok*.bin" : "*.bin");
        else
            *slot = path_join(folder, name);
    }
    name_list_release(&list);
    if (rc == 0 && src->path == NULL)
        rc = err_set(err, ERR_NOT_FOUND, "%s: no model (neither model.json, config.json nor *.bin)",
                     folder);
    return rc;
}

int import_find(const char *path, struct import_source *src, struct err *err)
{
    int rc = 0;

    *src = (struct import_source){.form = IMPORT_LLAMA2C};
    if (file_kind_at(path) == FILE_REGULAR) {
        if (ends_with(path, ".json") || ends_with(path, ".safetensors"))
            return err_set(err, ERR_NOT_FOUND, "%s: a part of a model; name its folder", path);
        src->path = xstrdup(path);
    } else if (file_kind_at(path) != FILE_FOLDER) {
        return err_set(err, ERR_NOT_FOUND, "%s: no such file or folder", path);
    } else if ((src->path = find_ours(path)) != NULL) {
        src->form = IMPORT_PREREGD;
        src->tokenizer = find_saved_tokenizer(src->path);
    } else if (has_file(path, HF_FILE_CONFIG)) {
        src->form = IMPORT_HF;
        src->path = xstrdup(path);
        src->tokenizer = find_tokenizer_json(path);
    } else {
        rc = find_llama2c(path, src, err);
    }
    if (rc < 0)
        import_source_release(src);
    return rc;
}

void import_source_release(struct import_source *src)
{
    free(src->path);
    free(src->tokenizer);
    *src = (struct import_source){0};
}

/* As store_save() would name them. */
static struct digest weights_digest(const struct weights *w)
{
    struct digest_stream stream;
    size_t n_bias = weights_n_bias(&w->cfg);

    digest_start(&stream);
    digest_add(&stream, w->params, w->table.n_params * sizeof(*w->params));
    if (n_bias > 0)
        digest_add(&stream, w->route_bias, n_bias * sizeof(*w->route_bias));
    return digest_finish(&stream);
}

/* The tokenizer "bytes" is known by the file that an export writes for it. On error nothing is to
 * be released. */
static int name_tokenizer(const struct import_source *src, struct store_info *info, struct err *err)
{
    struct tokenizer *tok = NULL;
    bool bytes =
        src->form == IMPORT_HF && src->tokenizer == NULL && has_file(src->path, HF_FILE_TOKENIZER);

    if (bytes) {
        int rc = tokenizer_open(TOKENIZER_BYTES, &tok, err);
        if (rc < 0)
            return rc;
        info->tokenizer = tokenizer_digest(tok);
        tokenizer_free(tok);
    }
    info->tokenizer_spec = xstrdup(bytes ? TOKENIZER_BYTES : "");
    return 0;
}

int import_info(const struct import_source *src, struct model_config *cfg, struct store_info *info,
                struct err *err)
{
    int rc;

    if (src->form == IMPORT_PREREGD)
        return store_load_info(src->path, cfg, info, err);
    *info = (struct store_info){0};
    if (src->form == IMPORT_HF)
        rc = hf_read_config(src->path, cfg, err);
    else
        rc = llama2c_read_config(src->path, cfg, err);
    return rc == 0 ? name_tokenizer(src, info, err) : rc;
}

int import_config(const struct import_source *src, struct model_config *cfg, struct err *err)
{
    struct store_info info;

    int rc = import_info(src, cfg, &info, err);
    if (rc == 0)
        store_info_release(&info);
    return rc;
}

int import_weights(const struct import_source *src, struct weights *w, struct store_info *info,
                   struct err *err)
{
    int rc;

    if (src->form == IMPORT_PREREGD)
        return store_load(src->path, w, info, err);
    *info = (struct store_info){0};
    if (src->form == IMPORT_HF)
        rc = hf_read_weights(src->path, w, err);
    else
        rc = llama2c_read_weights(src->path, w, err);
    if (rc < 0)
        return rc;
    info->weights = weights_digest(w);
    rc = name_tokenizer(src, info, err);
    if (rc < 0) {
        weights_release(w);
        store_info_release(info);
    }
    return rc;
}

int import_check_finite(const struct weights *w, struct err *err)
{
    for (size_t i = 0; i < w->table.n_params; i++)
        if (!isfinite(w->params[i]))
            return err_set(err, ERR_CORRUPT, "tensor %s: a number is not finite",
                           tensor_holding(&w->table, i)->name);
    for (size_t i = 0; i < weights_n_bias(&w->cfg); i++)
        if (!isfinite(w->route_bias[i]))
            return err_set(err, ERR_CORRUPT, "the choice biases of layer %zu are not finite",
                           i / (size_t)w->cfg.experts);
    return 0;
}
