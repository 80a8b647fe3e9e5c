/*
 * A snapshot is written between two steps, before the evaluation of its step, and synced before any
 * later checkpoint that names its digest. So a whole checkpoint without its snapshots is damage,
 * not a crash at a bad moment. Each file is on the disk before the next is begun, and model.json is
 * the last: a folder that a crash left half written or half copied never counts as whole.
 */
#include "worker/train/checkpoint/snapshot.h"

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/model/store.h"
#include "worker/train/checkpoint/checkpoint.h"

#define SNAPSHOT_FILES 3 /* at most */

static bool is_due(const struct trainer *t, size_t mark)
{
    return t->opt->is_snapshot[mark] && digest_is_zero(&t->snapshots[mark]) &&
           horizon_fraction(t->opt->steps, t->opt->marks[mark]) == t->step;
}

bool snapshot_is_due(const struct trainer *t)
{
    for (size_t i = 0; i < t->opt->n_marks; i++)
        if (is_due(t, i))
            return true;
    return false;
}

/* As save_model() does, model.json last, so that a folder that has it has all. */
static int write_one(struct trainer *t, size_t mark, struct err *err)
{
    struct store_info info = {
        .tokenizer_spec = xstrdup(t->opt->tokenizer),
        .tokenizer = tokenizer_digest(t->data->tokenizer),
        .step = t->step,
    };
    char *folder = store_snapshot_folder(t->opt->marks[mark]);
    const char *name = NULL;

    int rc = dir_make_durable(folder, 0755, err);
    if (rc == 0 && (rc = tokenizer_save(t->data->tokenizer, folder, &name, err)) == 0)
        rc = store_save(folder, &t->w, &info, err);
    if (rc == 0)
        t->snapshots[mark] = info.weights;
    store_info_release(&info);
    free(folder);
    return rc < 0 ? err_wrap(err, "snapshot %g", t->opt->marks[mark]) : 0;
}

int snapshot_write(struct trainer *t, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < t->opt->n_marks; i++)
        if (is_due(t, i))
            rc = write_one(t, i, err);
    return rc;
}

/* The files of a snapshot in the order in which they are written. */
static size_t list_files(const struct tokenizer *tok, const char *names[SNAPSHOT_FILES])
{
    const char *tokenizer = tokenizer_file_name(tok);
    size_t n = 0;

    if (tokenizer != NULL)
        names[n++] = tokenizer;
    names[n++] = MODEL_FILE_BIN;
    names[n++] = MODEL_FILE_JSON;
    return n;
}

static bool has_weights(const char *folder, const struct digest *want)
{
    struct digest found;
    struct err ignored;
    int64_t size = 0;
    char *path = path_join(folder, MODEL_FILE_BIN);

    bool same = digest_file(path, &found, &size, &ignored) == 0 && digest_equal(&found, want);
    free(path);
    return same;
}

/* Whether the tokenizer in the folder is tok; without a file it is named in model.json alone. */
static bool has_tokenizer(const char *folder, const struct tokenizer *tok)
{
    const struct digest want = tokenizer_digest(tok);
    struct tokenizer *saved = NULL;
    struct err ignored;

    if (tokenizer_file_name(tok) == NULL)
        return true;
    char *path = path_join(folder, tokenizer_file_name(tok));
    bool same = tokenizer_open(path, &saved, &ignored) == 0;
    if (same) {
        const struct digest found = tokenizer_digest(saved);
        same = digest_equal(&found, &want);
    }
    tokenizer_free(saved);
    free(path);
    return same;
}

/* Whether the folder has the model of that digest and its tokenizer, whole. */
static bool is_whole(const char *folder, const struct digest *want, const struct tokenizer *tok)
{
    const struct digest tokenizer = tokenizer_digest(tok);
    struct model_config cfg;
    struct store_info info;
    struct err ignored;

    if (store_load_info(folder, &cfg, &info, &ignored) < 0)
        return false;
    bool whole = digest_equal(&info.weights, want) && digest_equal(&info.tokenizer, &tokenizer);
    store_info_release(&info);
    return whole && has_weights(folder, want) && has_tokenizer(folder, tok);
}

/* The files of a snapshot into this attempt's folder, each on the disk before the next. */
static int copy_files(const char *from, const char *to, const struct tokenizer *tok,
                      struct err *err)
{
    const char *names[SNAPSHOT_FILES];
    const size_t n = list_files(tok, names);

    int rc = dir_make_durable(to, 0755, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        char *source = path_join(from, names[i]), *target = path_join(to, names[i]);
        rc = file_copy(source, target, 0644, err);
        free(source);
        free(target);
    }
    return rc;
}

static int adopt_one(const struct trainer *t, const struct worker_task *task, double at,
                     const struct digest *want, struct err *err)
{
    const struct tokenizer *tok = t->data->tokenizer;
    char *name = store_snapshot_folder(at);
    int rc = err_set(err, ERR_CORRUPT, "snapshot %g is not whole in any earlier attempt", at);

    if (is_whole(name, want, tok)) { /* by hand, the attempt's folder is its own predecessor's */
        free(name);
        return 0;
    }
    for (size_t i = 0; rc == ERR_CORRUPT && i < task->n_resume; i++) {
        char *folder = path_join(task->resume[i], name);
        if (is_whole(folder, want, tok))
            rc = copy_files(folder, name, tok, err);
        free(folder);
    }
    free(name);
    return rc;
}

int snapshot_adopt(const struct trainer *t, const struct worker_task *task, const char *folder,
                   struct err *err)
{
    const struct train_options *opt = t->opt;
    struct digest want;
    cJSON *state = NULL;
    char *path = path_join(folder, CHECKPOINT_STATE);

    int rc = json_read_file(path, CHECKPOINT_STATE_MAX, &state, err);
    free(path);
    const cJSON *marks = rc == 0 ? json_member(state, "marks") : NULL;
    for (size_t i = 0; rc == 0 && i < opt->n_marks; i++) {
        const cJSON *m = checkpoint_state_find_mark(marks, opt->marks[i]);
        const cJSON *hex = m == NULL ? NULL : json_member(m, "snapshot");
        if (!opt->is_snapshot[i] || !cJSON_IsString(hex))
            continue;
        rc = digest_from_hex(hex->valuestring, &want, err);
        if (rc == 0)
            rc = adopt_one(t, task, opt->marks[i], &want, err);
    }
    cJSON_Delete(state);
    return rc;
}

static int name_files(const char *folder, const struct tokenizer *tok, struct worker_result *r,
                      struct err *err)
{
    const char *names[SNAPSHOT_FILES];
    const size_t n = list_files(tok, names);
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        char *path = path_join(folder, names[i]);
        rc = result_artifact(r, path, err);
        free(path);
    }
    return rc;
}

int snapshot_artifacts(const struct trainer *t, struct worker_result *r, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < t->opt->n_marks; i++) {
        if (!t->opt->is_snapshot[i] || digest_is_zero(&t->snapshots[i]))
            continue;
        char *folder = store_snapshot_folder(t->opt->marks[i]);
        rc = name_files(folder, t->data->tokenizer, r, err);
        free(folder);
    }
    return rc;
}
