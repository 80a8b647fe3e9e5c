/*
 * A snapshot is written between two steps, before the evaluation of its step, and synced before any
 * later checkpoint that names its digest. So a whole checkpoint without its snapshots is damage,
 * not a crash at a bad moment.
 */
#include "worker/train/checkpoint/snapshot.h"

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/model/store.h"
#include "worker/train/checkpoint/checkpoint.h"

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

static int write_one(struct trainer *t, size_t mark, struct err *err)
{
    struct store_info info = {
        .tokenizer_spec = xstrdup(t->opt->tokenizer),
        .tokenizer = tokenizer_digest(t->data->tokenizer),
        .step = t->step,
    };
    char *folder = store_snapshot_folder(t->opt->marks[mark]);
    const char *name = NULL;

    int rc = store_save(folder, &t->w, &info, err);
    if (rc == 0)
        rc = tokenizer_save(t->data->tokenizer, folder, &name, err);
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

/* Whether the folder holds the model of that digest, whole. */
static bool is_whole(const char *folder, const char *hex)
{
    struct model_config cfg;
    struct store_info info;
    struct digest found, want;
    struct err ignored;
    int64_t size = 0;
    char *bin = path_join(folder, MODEL_FILE_BIN);

    bool whole = digest_from_hex(hex, &want, &ignored) == 0 &&
                 digest_file(bin, &found, &size, &ignored) == 0 && digest_equal(&found, &want);
    free(bin);
    if (!whole || store_load_info(folder, &cfg, &info, &ignored) < 0)
        return false;
    whole = digest_equal(&info.weights, &want);
    store_info_release(&info);
    return whole;
}

/* The files of a snapshot into this attempt's folder. */
static int copy_files(const char *from, const char *to, struct err *err)
{
    struct name_list list = {0};

    int rc = dir_make(to, 0755, err);
    if (rc == 0)
        rc = dir_list(from, &list, err);
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        char *source = path_join(from, list.names[i]), *target = path_join(to, list.names[i]);
        rc = file_copy(source, target, 0644, err);
        free(source);
        free(target);
    }
    name_list_release(&list);
    return rc;
}

static int adopt_one(const struct worker_task *task, double at, const char *hex, struct err *err)
{
    char *name = store_snapshot_folder(at);
    int rc = err_set(err, ERR_CORRUPT, "snapshot %g is not whole in any earlier attempt", at);

    if (is_whole(name, hex)) { /* by hand, the attempt's folder is its own predecessor's */
        free(name);
        return 0;
    }
    for (size_t i = 0; rc == ERR_CORRUPT && i < task->n_resume; i++) {
        char *folder = path_join(task->resume[i], name);
        if (is_whole(folder, hex))
            rc = copy_files(folder, name, err);
        free(folder);
    }
    free(name);
    return rc;
}

int snapshot_adopt(const struct worker_task *task, const struct train_options *opt,
                   const char *folder, struct err *err)
{
    cJSON *state = NULL;
    char *path = path_join(folder, CHECKPOINT_STATE);

    int rc = json_read_file(path, CHECKPOINT_STATE_MAX, &state, err);
    free(path);
    const cJSON *marks = rc == 0 ? json_member(state, "marks") : NULL;
    for (size_t i = 0; rc == 0 && i < opt->n_marks; i++) {
        const cJSON *m = checkpoint_state_find_mark(marks, opt->marks[i]);
        const cJSON *hex = m == NULL ? NULL : json_member(m, "snapshot");
        if (opt->is_snapshot[i] && cJSON_IsString(hex))
            rc = adopt_one(task, opt->marks[i], hex->valuestring, err);
    }
    cJSON_Delete(state);
    return rc;
}

static int name_files(const char *folder, struct worker_result *r, struct err *err)
{
    struct name_list list = {0};

    int rc = dir_list(folder, &list, err);
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        char *path = path_join(folder, list.names[i]);
        rc = result_artifact(r, path, err);
        free(path);
    }
    name_list_release(&list);
    return rc;
}

int snapshot_artifacts(const struct trainer *t, struct worker_result *r, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < t->opt->n_marks; i++) {
        if (!t->opt->is_snapshot[i] || digest_is_zero(&t->snapshots[i]))
            continue;
        char *folder = store_snapshot_folder(t->opt->marks[i]);
        rc = name_files(folder, r, err);
        free(folder);
    }
    return rc;
}
