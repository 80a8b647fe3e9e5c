/*
 * Looks through the checkpoints of all earlier attempts, newest step first, and loads the first one
 * that is whole and of this run. Torn or foreign ones are skipped with a note. A whole one that was
 * made with another BLAS build or thread count is an error instead: skipping it would silently
 * train on from an older state.
 *
 * Every file is hashed before any is loaded, so a trainer is never half filled from a torn
 * checkpoint.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "worker/model/store.h"
#include "worker/train/checkpoint/checkpoint.h"
#include "worker/train/checkpoint/checkpoint_image.h"
#include "worker/train/checkpoint/snapshot.h"

struct checkpoint_candidate {
    char *path;
    int64_t step;
    size_t age; /* position in the task's list: 0 is the newest attempt */
};

struct candidates {
    struct checkpoint_candidate *items;
    size_t n;
    size_t cap;
};

static int newest_first(const void *a, const void *b)
{
    const struct checkpoint_candidate *x = a, *y = b;

    if (x->step != y->step)
        return x->step > y->step ? -1 : 1;
    return x->age < y->age ? -1 : x->age > y->age;
}

/* Every folder named like a step, in any of the task's resume folders. */
static void find_candidates(const struct worker_task *task, struct events *ev,
                            struct candidates *out)
{
    for (size_t i = 0; i < task->n_resume; i++) {
        struct name_list list = {0};
        struct err err;
        char *folder = path_join(task->resume[i], LAYOUT_CHECKPOINT);
        /* An attempt that died before its first checkpoint has no folder. */
        int rc = dir_list(folder, &list, &err);
        if (rc < 0 && rc != ERR_NOT_FOUND)
            events_note(ev, "checkpoints skipped: %s", err.msg);
        for (size_t j = 0; rc == 0 && j < list.n; j++) {
            int64_t step = checkpoint_step_of_name(list.names[j]);
            if (step < 0)
                continue;
            ARRAY_GROW(out->items, out->n, out->cap);
            out->items[out->n++] =
                (struct checkpoint_candidate){path_join(folder, list.names[j]), step, i};
        }
        name_list_release(&list);
        free(folder);
    }
    if (out->n > 0)
        qsort(out->items, out->n, sizeof(*out->items), newest_first);
}

static void release_candidates(struct candidates *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->items[i].path);
    free(c->items);
}

/* Size and digest of one file against the manifest. */
static int check_file(const char *folder, const cJSON *file, struct err *err)
{
    const char *name = NULL, *hex = NULL;
    struct digest want, found;
    int64_t n_bytes = 0, size = 0;
    int rc;

    if ((rc = json_get_string(file, "path", &name, err)) < 0 ||
        (rc = json_get_string(file, "sha256", &hex, err)) < 0 ||
        (rc = json_get_int(file, "bytes", 0, JSON_INT_MAX, &n_bytes, err)) < 0 ||
        (rc = digest_from_hex(hex, &want, err)) < 0)
        return rc;
    char *path = path_join(folder, name);
    rc = digest_file(path, &found, &size, err);
    free(path);
    if (rc < 0)
        return rc;
    if (size != n_bytes || !digest_equal(&want, &found))
        return err_set(err, ERR_CORRUPT, "%s is not what the manifest says", name);
    return 0;
}

struct manifest {
    cJSON *json;
    int64_t step;
    int64_t threads;
    const char *key;
    const char *products;
};

/* Also verifies every file that the manifest lists. m->json is the caller's to delete, also on
 * error. */
static int read_manifest(const char *folder, struct manifest *m, struct err *err)
{
    const cJSON *files = NULL, *file;
    int64_t version = 0;
    char *path = path_join(folder, CHECKPOINT_MANIFEST);

    *m = (struct manifest){0};
    int rc = json_read_file(path, CHECKPOINT_MANIFEST_MAX, &m->json, err);
    free(path);
    if (rc < 0 ||
        (rc = json_get_int(m->json, "preregd_checkpoint", CHECKPOINT_VERSION, CHECKPOINT_VERSION,
                           &version, err)) < 0 ||
        (rc = json_get_int(m->json, "step", 1, INT32_MAX, &m->step, err)) < 0 ||
        (rc = json_get_int(m->json, "threads", 0, INT32_MAX, &m->threads, err)) < 0 ||
        (rc = json_get_string(m->json, "key", &m->key, err)) < 0 ||
        (rc = json_get_string(m->json, "products", &m->products, err)) < 0 ||
        (rc = json_get_array(m->json, "files", &files, err)) < 0)
        return rc;
    cJSON_ArrayForEach(file, files)
    {
        rc = check_file(folder, file, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_blob(const char *folder, const struct image_blob *b, struct err *err)
{
    struct digest_stream stream;
    char *path = path_join(folder, b->name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 ? err_set_errno(err, errno, "open %s", path) : 0;

    digest_start(&stream);
    for (size_t i = 0; rc == 0 && i < IMAGE_PARTS; i++)
        if (b->n[i] > 0)
            rc = store_read_floats(fd, b->part[i], b->n[i], &stream, err);
    if (fd >= 0)
        (void)close(fd);
    free(path);
    return rc;
}

static int load(struct trainer *t, const char *folder, int64_t step, struct err *err)
{
    struct image_blob blobs[IMAGE_BLOBS];
    char *state = path_join(folder, CHECKPOINT_STATE);

    int rc = checkpoint_state_read(t, state, err);
    free(state);
    if (rc == 0 && t->step != step)
        rc = err_set(err, ERR_CORRUPT, "state and manifest name different steps");
    checkpoint_image_blobs(t, step, blobs);
    for (size_t i = 0; rc == 0 && i < IMAGE_BLOBS; i++)
        rc = read_blob(folder, &blobs[i], err);
    return rc;
}

/* Bits of a run depend on both: another of either would be another run. */
static int check_machine(const struct manifest *m, const struct checkpoint_run *run,
                         const char *folder, struct err *err)
{
    if (strcmp(m->products, run->products) == 0 && m->threads == run->threads)
        return 0;
    return err_set(err, ERR_OTHER,
                   "%s is of %s with %lld threads, this is %s with %d: not the same run "
                   "(params.resume_any_core = true allows it)",
                   path_name(folder), m->products, (long long)m->threads, run->products,
                   run->threads);
}

/* Adds this attempt's build and threads to the checkpoint's list of makers, unless it is there.
 * Owns `us`. */
static void add_maker(struct trainer *t, char *us)
{
    char *before = t->made_by;

    if (strstr(before, us) != NULL) {
        free(us);
        return;
    }
    t->made_by = xasprintf("%s; %s", before, us);
    free(before);
    free(us);
}

static int load_and_check(struct trainer *t, const char *folder, int64_t step, struct err *err)
{
    char *us = xstrdup(t->made_by);
    int rc = load(t, folder, step, err);

    add_maker(t, us);
    if (rc == 0 && trainer_check_finite(t, "the checkpoint cannot be resumed", err) < 0)
        rc = err->code = ERR_CORRUPT; /* bad input, not a divergence of ours */
    return rc;
}

/* 1: loaded; 0: skipped, with the reason in err; negative: refused. */
static int try_candidate(struct trainer *t, const struct worker_task *task,
                         const struct checkpoint_run *run, const char *folder, struct err *err)
{
    struct manifest m;
    char hex[DIGEST_HEX_SIZE];
    int taken = 0;

    digest_hex(&run->key, hex);
    int rc = read_manifest(folder, &m, err);
    if (rc != 0)
        goto out;
    if (strcmp(m.key, hex) != 0) {
        (void)err_set(err, ERR_CORRUPT, "of another run");
        goto out;
    }
    if (m.step > train_options_end(t->opt)) {
        (void)err_set(err, ERR_CORRUPT, "past the horizon");
        goto out;
    }
    if (!t->opt->resume_any_core && (taken = check_machine(&m, run, folder, err)) != 0)
        goto out;
    rc = snapshot_adopt(t, task, folder, err);
    if (rc == ERR_CORRUPT)
        goto out;
    if (rc == 0)
        rc = load_and_check(t, folder, m.step, err);
    /* Digests held, so what does not load now was never ours or the disk fails: not to be
     * skipped. */
    taken = rc < 0 ? rc : 1;
out:
    cJSON_Delete(m.json);
    return taken;
}

int checkpoint_resume(struct trainer *t, const struct worker_task *task,
                      const struct checkpoint_run *run, struct events *ev, bool *found,
                      struct err *err)
{
    struct candidates all = {0};
    int taken = 0;

    *found = false;
    find_candidates(task, ev, &all);
    for (size_t i = 0; taken == 0 && i < all.n; i++) {
        taken = try_candidate(t, task, run, all.items[i].path, err);
        if (taken == 0)
            events_note(ev, "checkpoint %s skipped: %s", all.items[i].path, err->msg);
    }
    release_candidates(&all);
    if (taken < 0)
        return err_wrap(err, "resume");
    *found = taken == 1;
    return 0;
}

/* What both runs read must be the same bytes. */
static int check_data(const cJSON *manifest, const struct checkpoint_run *run, struct err *err)
{
    const cJSON *theirs = json_member(manifest, CHECKPOINT_IDENTITY), *ours = run->identity, *d;

    theirs = theirs == NULL ? NULL : json_member(theirs, CHECKPOINT_RUN_DATA);
    ours = json_member(ours, CHECKPOINT_RUN_DATA);
    cJSON_ArrayForEach(d, ours)
    {
        const cJSON *other = theirs == NULL ? NULL : json_member(theirs, d->string);
        if (other == NULL || !json_equal(d, other))
            return err_set(err, ERR_CORRUPT, "data \"%s\" is not what the earlier run read",
                           d->string);
    }
    return 0;
}

static int load_weights(struct trainer *t, const char *folder, int64_t step, struct err *err)
{
    struct image_blob blobs[IMAGE_BLOBS];

    checkpoint_image_blobs(t, step, blobs);
    return read_blob(folder, &blobs[IMAGE_WEIGHTS], err);
}

int checkpoint_continue(struct trainer *t, const char *folder, const struct checkpoint_run *run,
                        bool weights_only, struct err *err)
{
    struct manifest m;

    int rc = read_manifest(folder, &m, err);
    if (rc < 0 || (rc = check_data(m.json, run, err)) < 0 ||
        (!t->opt->resume_any_core && (rc = check_machine(&m, run, folder, err)) < 0))
        goto out;
    if (weights_only) {
        rc = load_weights(t, folder, 0, err);
        goto out;
    }
    rc = load_and_check(t, folder, m.step, err);
    memset(t->snapshots, 0, sizeof(t->snapshots)); /* those are in the earlier run's folder */
    /* Until then the whole run sums nothing; the earlier one summed for its own end. */
    if (rc == 0 && t->step <= horizon_tail_begin(train_options_end(t->opt)))
        health_clear_window(&t->health);
out:
    cJSON_Delete(m.json);
    return rc;
}
