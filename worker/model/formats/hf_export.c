/*
 * The order of work: refuse a bad destination, load and check the model, choose its tokenizer, fill
 * a temporary folder next to the destination, check the destination once more, publish. Errors that
 * need no data are found before gigabytes are read, and the second check covers what changed
 * meanwhile.
 *
 * A tokenizer is accepted only when its digest is the one the model was trained with, where the
 * model names one.
 */
#include "worker/model/formats/hf_export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/data/tokenizer/tokenizer.h"
#include "worker/model/formats/hf.h"
#include "worker/model/formats/hf_tokenizer.h"
#include "worker/model/formats/import.h"

#define FILE_GENERATION    "generation_config.json"
#define TOKENIZER_JSON_MAX (256u << 20)

/* What goes into the folder. */
struct content {
    struct import_source source;
    struct weights weights;
    struct store_info info;
    const char *tokenizer; /* the file to copy; NULL: none, or "bytes" */
    bool bytes;
    int64_t end_of_text;    /* -1: not known */
    char *end_of_text_name; /* NULL: not known */
};

/* The text of a token that tokenizer.json lists among its added ones; NULL when it does not. */
static char *added_token_name(const char *path, int64_t id)
{
    cJSON *obj = NULL;
    const cJSON *list = NULL, *token;
    struct err err;
    char *name = NULL;

    if (json_read_file(path, TOKENIZER_JSON_MAX, &obj, &err) < 0 ||
        json_get_array(obj, "added_tokens", &list, &err) < 0) {
        cJSON_Delete(obj);
        return NULL;
    }
    cJSON_ArrayForEach(token, list)
    {
        int64_t found = -1;
        const char *content = NULL;
        if (name == NULL && json_get_int(token, "id", 0, INT32_MAX, &found, &err) == 0 &&
            found == id && json_get_string(token, "content", &content, &err) == 0)
            name = xstrdup(content);
    }
    cJSON_Delete(obj);
    return name;
}

static int check_tokenizer(struct content *c, const char *path, struct err *err)
{
    struct tokenizer *tok = NULL;

    int rc = tokenizer_open(path, &tok, err);
    if (rc < 0)
        return rc;
    struct digest found = tokenizer_digest(tok);
    uint32_t vocab = tokenizer_vocab(tok);
    c->end_of_text = tokenizer_end_of_text(tok);
    const char *form = tokenizer_file_name(tok);
    bool json = form != NULL && strcmp(form, HF_FILE_TOKENIZER) == 0;
    tokenizer_free(tok);
    if (!digest_is_zero(&c->info.tokenizer) && !digest_equal(&found, &c->info.tokenizer))
        return err_set(err, ERR_CORRUPT, "tokenizer %s is not the one the model was trained with",
                       path);
    if (vocab > (uint32_t)c->weights.cfg.vocab)
        return err_set(err, ERR_USAGE, "tokenizer %s has %u tokens, the model %d", path, vocab,
                       c->weights.cfg.vocab);
    if (!json || file_kind_at(path) != FILE_REGULAR)
        return err_set(err, ERR_REFUSED,
                       "tokenizer %s is not a tokenizer.json; --no-tokenizer leaves it out", path);
    c->tokenizer = path;
    c->end_of_text_name = added_token_name(path, c->end_of_text);
    return 0;
}

/* --tokenizer, the file beside the model, or our form of "bytes"; fills the end-of-text token. */
static int choose_tokenizer(const struct hf_export *job, struct content *c, struct err *err)
{
    const char *path = job->tokenizer != NULL ? job->tokenizer : c->source.tokenizer;

    c->end_of_text = -1;
    if (job->no_tokenizer)
        return 0;
    if (path != NULL)
        return check_tokenizer(c, path, err);
    c->bytes = strcmp(c->info.tokenizer_spec, TOKENIZER_BYTES) == 0;
    if (c->bytes) {
        c->end_of_text = TOKENIZER_BYTES_VOCAB - 1;
        c->end_of_text_name = xstrdup(HF_END_OF_TEXT);
        return 0;
    }
    return err_set(err, ERR_USAGE,
                   "no tokenizer is beside the model: give %.60s with --tokenizer, or leave it out "
                   "with --no-tokenizer",
                   c->info.tokenizer_spec[0] != '\0' ? c->info.tokenizer_spec : "it");
}

static int write_object(const char *folder, const char *name, cJSON *obj, struct err *err)
{
    char *path = path_join(folder, name);
    int rc = json_write_file(path, obj, 0644, err);

    free(path);
    cJSON_Delete(obj);
    return rc;
}

static int write_configs(const char *folder, const struct content *c, struct err *err)
{
    cJSON *config = json_object(), *generation = json_object();

    hf_config_put(&c->weights.cfg, c->end_of_text, config);
    json_put_bool(generation, "do_sample", false);
    if (c->end_of_text >= 0) {
        json_put_int(generation, "bos_token_id", c->end_of_text);
        json_put_int(generation, "eos_token_id", c->end_of_text);
    }
    int rc = write_object(folder, HF_FILE_CONFIG, config, err);
    if (rc < 0) {
        cJSON_Delete(generation);
        return rc;
    }
    return write_object(folder, FILE_GENERATION, generation, err);
}

static int write_tokenizer(const char *folder, const struct content *c, struct err *err)
{
    int rc = 0;

    if (c->bytes) {
        rc = hf_tokenizer_write_bytes(folder, err);
    } else if (c->tokenizer != NULL) {
        char *path = path_join(folder, HF_FILE_TOKENIZER);
        rc = file_copy(c->tokenizer, path, 0644, err);
        free(path);
    } else {
        return 0;
    }
    if (rc < 0)
        return rc;
    return hf_tokenizer_write_config(folder, c->end_of_text_name, c->weights.cfg.context, err);
}

static int write_files(const char *folder, const struct content *c, struct err *err)
{
    char *path = path_join(folder, HF_FILE_WEIGHTS);

    int rc = hf_write_weights(path, &c->weights, err);
    free(path);
    if (rc < 0 || (rc = write_configs(folder, c, err)) < 0 ||
        (rc = write_tokenizer(folder, c, err)) < 0)
        return rc;
    return dir_sync(folder, err);
}

/* What an export may write. */
static const char *const FILES[] = {HF_FILE_CONFIG, FILE_GENERATION, HF_FILE_WEIGHTS,
                                    HF_FILE_TOKENIZER, HF_FILE_TOKENIZER_CONFIG};

static bool is_written_here(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++)
        if (strcmp(name, FILES[i]) == 0)
            return true;
    return false;
}

/* Replacing removes the folder: it must hold an export, and nothing else. */
static int check_earlier(const char *out, struct err *err)
{
    struct name_list list = {0};
    size_t n_needed = 0;
    const char *strange = NULL;

    int rc = dir_list(out, &list, err);
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        const char *name = list.names[i];
        n_needed += strcmp(name, HF_FILE_CONFIG) == 0 || strcmp(name, HF_FILE_WEIGHTS) == 0;
        if (strange == NULL && !is_written_here(name))
            strange = name;
    }
    if (rc == 0 && n_needed < 2)
        rc = err_set(err, ERR_USAGE, "%s is not an earlier export and is not replaced", out);
    else if (rc == 0 && strange != NULL)
        rc = err_set(err, ERR_USAGE, "%s holds %.60s, which no export wrote; it is not replaced",
                     out, strange);
    name_list_release(&list);
    return rc;
}

/* Whether `out` may be written: absent, or an earlier export together with --force. */
static int check_place(const struct hf_export *job, const char *out, struct err *err)
{
    struct stat info;

    if (lstat(out, &info) != 0)
        return 0; /* what else may be wrong with it, making the folder will say */
    if (!job->force)
        return err_set(err, ERR_USAGE, "%s is there already; --force replaces an earlier export",
                       out);
    if (!S_ISDIR(info.st_mode))
        return err_set(err, ERR_USAGE, "%s is not an earlier export and is not replaced", out);
    return check_earlier(out, err);
}

static int make_folder(const struct hf_export *job, const char *out, const struct content *c,
                       struct err *err)
{
    char *parent = path_folder(out), *made = xasprintf("%s.XXXXXX", out);
    struct err ignored;

    int rc = check_place(job, out, err);
    if (rc < 0 || (rc = dir_make(parent, 0755, err)) < 0)
        goto out;
    if (mkdtemp(made) == NULL || chmod(made, 0755) != 0) {
        rc = err_set_errno(err, errno, "make %s", made);
        goto out;
    }
    if (((rc = write_files(made, c, err)) < 0 || (rc = check_place(job, out, err)) < 0 ||
         (rc = dir_publish(made, out, job->force, err)) < 0) &&
        dir_remove(made, &ignored) < 0)
        (void)err_wrap(err, "%s is left", made);
out:
    free(parent);
    free(made);
    return rc;
}

static int load(const struct hf_export *job, struct content *c, struct err *err)
{
    int rc = import_find(job->model, &c->source, err);
    if (rc < 0 || (rc = import_weights(&c->source, &c->weights, &c->info, err)) < 0)
        return rc;
    if (import_check_finite(&c->weights, err) < 0 || hf_check_weights(&c->weights, err) < 0)
        return err_wrap(err, "%s", job->model);
    return choose_tokenizer(job, c, err);
}

int hf_export(const struct hf_export *job, struct err *err)
{
    struct content c = {0};
    char *out = path_absolute(NULL, job->out);

    /* A trailing slash would put the temporary folder inside the destination. */
    for (size_t n = strlen(out); n > 1 && out[n - 1] == '/'; n--)
        out[n - 1] = '\0';
    int rc = check_place(job, out, err);
    if (rc == 0 && (rc = load(job, &c, err)) == 0)
        rc = make_folder(job, out, &c, err);
    weights_release(&c.weights);
    store_info_release(&c.info);
    import_source_release(&c.source);
    free(c.end_of_text_name);
    free(out);
    return rc;
}
