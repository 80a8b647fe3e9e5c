/*
 * model.bin is written first and model.json last, since model.json holds the digest of model.bin: a
 * folder whose save was interrupted has no model.json or one that does not match. Loading hashes
 * while it reads, so the numbers in memory are the ones that were verified.
 */
#include "worker/model/store.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"

#define MODEL_JSON_MAX (16u << 20)
#define READ_CHUNK     (1u << 20)

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files hold little-endian floats");

void store_info_release(struct store_info *info)
{
    free(info->tokenizer_spec);
    *info = (struct store_info){0};
}

static void put_tensors(const struct weights *w, cJSON *array)
{
    for (size_t i = 0; i < w->table.n; i++) {
        const struct tensor *t = &w->table.items[i];
        cJSON *item = json_object();
        json_put_string(item, "name", t->name);
        json_put_int(item, "offset", (int64_t)t->offset);
        json_put_int(item, "rows", (int64_t)t->rows);
        json_put_int(item, "cols", (int64_t)t->cols);
        json_push(array, item);
    }
}

static int save_json(const char *folder, const struct weights *w, const struct store_info *info,
                     struct err *err)
{
    char hex[DIGEST_HEX_SIZE];
    cJSON *obj = json_object(), *config = json_object(), *tok = json_object();
    cJSON *tensors = json_array();
    char *path = path_join(folder, MODEL_FILE_JSON);

    model_config_put(&w->cfg, config);
    json_put_string(tok, "spec", info->tokenizer_spec);
    digest_hex(&info->tokenizer, hex);
    json_put_string(tok, "sha256", hex);
    put_tensors(w, tensors);
    json_put_int(obj, "preregd_model", STORE_VERSION);
    json_put(obj, "config", config);
    json_put(obj, "tokenizer", tok);
    json_put_int(obj, "step", info->step);
    digest_hex(&info->weights, hex);
    json_put_string(obj, "weights_sha256", hex);
    json_put(obj, "tensors", tensors);
    int rc = json_write_file(path, obj, 0644, err);
    cJSON_Delete(obj);
    free(path);
    return rc;
}

char *store_snapshot_folder(double fraction)
{
    char number[JSON_NUMBER_MAX];

    json_number_text(fraction, number);
    return path_join(SNAPSHOT_FOLDER, number);
}

int store_save(const char *folder, const struct weights *w, struct store_info *info,
               struct err *err)
{
    size_t n = w->table.n_params, n_bias = weights_n_bias(&w->cfg);
    float *all = malloc((n + n_bias) * sizeof(*all));

    if (all == NULL)
        return err_set(err, ERR_OTHER, "no memory to write %zu parameters", n);
    memcpy(all, w->params, n * sizeof(*all));
    if (n_bias > 0)
        memcpy(all + n, w->route_bias, n_bias * sizeof(*all));
    char *path = path_join(folder, MODEL_FILE_BIN);
    int rc = dir_make(folder, 0755, err);
    if (rc == 0)
        rc = file_write_atomic(path, all, (n + n_bias) * sizeof(*all), 0644, err);
    info->weights = digest_bytes(all, (n + n_bias) * sizeof(*all));
    if (rc == 0)
        rc = save_json(folder, w, info, err);
    free(path);
    free(all);
    return rc;
}

int store_read_floats(int fd, float *out, size_t n, struct digest_stream *stream, struct err *err)
{
    char *at = (char *)out;
    size_t left = n * sizeof(*out);

    while (left > 0) {
        ssize_t got = read(fd, at, left < READ_CHUNK ? left : READ_CHUNK);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set_errno(err, errno, "read");
        if (got == 0)
            return err_set(err, ERR_CORRUPT, "%zu bytes short", left);
        digest_add(stream, at, (size_t)got);
        at += got;
        left -= (size_t)got;
    }
    return 0;
}

/* Exactly the expected number of floats; one byte more is an error. */
static int load_bin(const char *folder, struct weights *w, const struct digest *want,
                    struct err *err)
{
    struct digest_stream stream;
    char *path = path_join(folder, MODEL_FILE_BIN);
    char extra;
    int rc = 0;

    digest_start(&stream);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        rc = err_set_errno(err, errno, "open");
    if (rc < 0 || (rc = store_read_floats(fd, w->params, w->table.n_params, &stream, err)) < 0 ||
        (rc = store_read_floats(fd, w->route_bias, weights_n_bias(&w->cfg), &stream, err)) < 0)
        goto out;
    struct digest found = digest_finish(&stream);
    if (read(fd, &extra, 1) != 0)
        rc = err_set(err, ERR_CORRUPT, "longer than model.json says");
    else if (!digest_equal(&found, want))
        rc = err_set(err, ERR_CORRUPT, "digest does not hold");
out:
    if (fd >= 0)
        (void)close(fd);
    if (rc < 0)
        rc = err_wrap(err, "%s", path);
    free(path);
    return rc;
}

static int load_json(const cJSON *obj, struct model_config *cfg, struct store_info *info,
                     struct err *err)
{
    const cJSON *config = NULL, *tok = NULL;
    const char *spec = NULL, *tok_hex = NULL, *hex = NULL;
    int64_t version = 0;
    int rc;

    if ((rc = json_get_int(obj, "preregd_model", 0, INT32_MAX, &version, err)) < 0)
        return rc;
    if (version != STORE_VERSION)
        return err_set(err, ERR_VERSION, "model version %lld, expected %d", (long long)version,
                       STORE_VERSION);
    if ((rc = json_get_object(obj, "config", &config, err)) < 0 ||
        (rc = json_get_object(obj, "tokenizer", &tok, err)) < 0 ||
        (rc = json_get_string(tok, "spec", &spec, err)) < 0 ||
        (rc = json_get_string(tok, "sha256", &tok_hex, err)) < 0 ||
        (rc = json_get_string(obj, "weights_sha256", &hex, err)) < 0 ||
        (rc = json_opt_int(obj, "step", 0, JSON_INT_MAX, &info->step, err)) < 0 ||
        (rc = digest_from_hex(tok_hex, &info->tokenizer, err)) < 0 ||
        (rc = digest_from_hex(hex, &info->weights, err)) < 0 ||
        (rc = model_config_get(config, cfg, err)) < 0)
        return rc;
    info->tokenizer_spec = xstrdup(spec);
    return 0;
}

int store_load_info(const char *folder, struct model_config *cfg, struct store_info *info,
                    struct err *err)
{
    cJSON *obj = NULL;
    char *path = path_join(folder, MODEL_FILE_JSON);

    *info = (struct store_info){0};
    int rc = json_read_file(path, MODEL_JSON_MAX, &obj, err);
    if (rc == 0) {
        rc = load_json(obj, cfg, info, err);
        if (rc < 0 && rc != ERR_VERSION)
            rc = err->code = ERR_CORRUPT;
    }
    if (rc < 0)
        rc = err_wrap(err, "%s", path);
    cJSON_Delete(obj);
    free(path);
    return rc;
}

int store_load(const char *folder, struct weights *w, struct store_info *info, struct err *err)
{
    struct model_config cfg;

    *w = (struct weights){0};
    int rc = store_load_info(folder, &cfg, info, err);
    if (rc < 0 || (rc = weights_init(w, &cfg, err)) < 0 ||
        (rc = load_bin(folder, w, &info->weights, err)) < 0) {
        weights_release(w);
        store_info_release(info);
    }
    return rc;
}
