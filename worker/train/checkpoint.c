#include "worker/train/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "worker/model/store.h"
#include "worker/nn/gemm.h"
#include "worker/train/checkpoint_state.h"

#define MANIFEST          "manifest.json"
#define MANIFEST_MAX      65536u
#define STEP_PREFIX       "step-"
#define ASSUMED_SECONDS   3600.0 /* mean time between failures before any was seen */
#define SHORTEST_INTERVAL 0.5 /* seconds; and never more than a tenth of the time spent writing */

/* One file of floats: up to two arrays, one after the other. */
struct blob {
    const char *name;
    float *part[2];
    size_t n[2];
};

#define BLOBS_NR 4

static void blobs_of(const struct trainer *t, int64_t step, struct blob out[BLOBS_NR])
{
    size_t n = t->w.table.n_params;

    out[0] = (struct blob){
        "weights.bin", {t->w.params, t->w.route_bias}, {n, weights_n_bias(&t->w.cfg)}};
    out[1] = (struct blob){"moment1.bin", {t->m, NULL}, {n, 0}};
    out[2] = (struct blob){"moment2.bin", {t->v, NULL}, {n, 0}};
    out[3] = (struct blob){"history.bin", {&t->history[0].loss, NULL}, {2 * (size_t)step, 0}};
}

struct digest checkpoint_key(const struct task *task, const struct train_data *data)
{
    struct strbuf text = STRBUF_INIT;
    struct err err;
    char hex[DIGEST_HEX_SIZE];

    /* Parameters came through JSON, so they can be written as JSON. */
    if (json_canonical(task->params, &text, &err) < 0)
        strbuf_clear(&text);
    for (size_t i = 0; i < data->n_sources; i++) {
        digest_hex(&data->sources[i].read, hex);
        strbuf_addf(&text, "\n%s %s", hex, data->sources[i].name);
    }
    struct digest key = digest_bytes(text.buf, text.len);
    strbuf_release(&text);
    return key;
}

void checkpoint_path(int64_t step, char *out, size_t size)
{
    (void)snprintf(out, size, CHECKPOINT_FOLDER "/" STEP_PREFIX "%06lld", (long long)step);
}

double checkpoint_interval(double cost_seconds, double worked_seconds, int64_t failures)
{
    double between = (worked_seconds + ASSUMED_SECONDS) / (double)(failures + 1);
    double daly = sqrt(2.0 * cost_seconds * between) - cost_seconds;

    return fmax(fmax(daly, 10.0 * cost_seconds), SHORTEST_INTERVAL);
}

static int write_blob(const char *path, const struct blob *b, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int rc = 0;

    if (fd < 0)
        return err_set_errno(err, errno, "open");
    for (size_t i = 0; rc == 0 && i < 2; i++)
        if (b->n[i] > 0)
            rc = file_write_all(fd, b->part[i], b->n[i] * sizeof(float), err);
    if (rc == 0 && fsync(fd) != 0)
        rc = err_set_errno(err, errno, "fsync");
    if (close(fd) != 0 && rc == 0)
        rc = err_set_errno(err, errno, "close");
    return rc;
}

static int add_file(cJSON *files, const char *folder, const char *name, struct err *err)
{
    char hex[DIGEST_HEX_SIZE];
    struct digest digest;
    int64_t n_bytes = 0;
    char *path = path_join(folder, name);

    int rc = digest_file(path, &digest, &n_bytes, err);
    free(path);
    if (rc < 0)
        return rc;
    cJSON *f = json_object();
    digest_hex(&digest, hex);
    json_put_string(f, "path", name);
    json_put_string(f, "sha256", hex);
    json_put_int(f, "bytes", n_bytes);
    json_push(files, f);
    return 0;
}

static int write_files(const struct trainer *t, const char *folder, cJSON *files, struct err *err)
{
    struct blob blobs[BLOBS_NR];
    int rc = 0;

    blobs_of(t, t->step, blobs);
    for (size_t i = 0; rc == 0 && i < BLOBS_NR; i++) {
        char *path = path_join(folder, blobs[i].name);
        rc = write_blob(path, &blobs[i], err);
        free(path);
        if (rc == 0)
            rc = add_file(files, folder, blobs[i].name, err);
    }
    if (rc < 0)
        return rc;
    char *state = path_join(folder, "state.json");
    rc = checkpoint_state_write(t, state, err);
    free(state);
    return rc < 0 ? rc : add_file(files, folder, "state.json", err);
}

static int write_manifest(const char *folder, int64_t step, const struct digest *key, int threads,
                          cJSON *files, struct err *err)
{
    char hex[DIGEST_HEX_SIZE];
    cJSON *obj = json_object();
    char *path = path_join(folder, MANIFEST);

    json_put_int(obj, "preregd_checkpoint", CHECKPOINT_VERSION);
    json_put_int(obj, "step", step);
    digest_hex(key, hex);
    json_put_string(obj, "key", hex);
    json_put_string(obj, "blas", gemm_blas_text());
    json_put_int(obj, "threads", threads);
    json_put(obj, "files", files);
    int rc = json_write_file(path, obj, 0644, err);
    cJSON_Delete(obj);
    free(path);
    return rc;
}

/* The step in a folder's name, or -1. */
static int64_t step_of_name(const char *name)
{
    int64_t step = -1;
    struct err err;
    size_t prefix = sizeof(STEP_PREFIX) - 1;

    if (strncmp(name, STEP_PREFIX, prefix) != 0)
        return -1;
    while (name[prefix] == '0' && name[prefix + 1] != '\0')
        prefix++;
    return text_to_int(name + prefix, 0, INT64_MAX, &step, &err) < 0 ? -1 : step;
}

/* Keeps the newest two: this one, and the one before it. */
static int remove_older(int64_t newest, struct err *err)
{
    struct name_list list = {0};
    int64_t before = -1;

    int rc = dir_list(CHECKPOINT_FOLDER, &list, err);
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        int64_t step = step_of_name(list.names[i]);
        if (step > before && step < newest)
            before = step;
    }
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        int64_t step = step_of_name(list.names[i]);
        if (step < 0 || step >= before)
            continue;
        char *path = path_join(CHECKPOINT_FOLDER, list.names[i]);
        rc = dir_remove(path, err);
        free(path);
    }
    name_list_release(&list);
    return rc;
}

int checkpoint_write(const struct trainer *t, const struct digest *key, int threads,
                     struct err *err)
{
    char folder[64];
    cJSON *files = json_array();

    checkpoint_path(t->step, folder, sizeof(folder));
    int rc = dir_remove(folder, err);
    if (rc == 0)
        rc = dir_make(folder, 0755, err);
    if (rc == 0)
        rc = write_files(t, folder, files, err);
    if (rc < 0) {
        cJSON_Delete(files);
        return err_wrap(err, "checkpoint %s", folder);
    }
    rc = write_manifest(folder, t->step, key, threads, files, err);
    if (rc == 0)
        rc = dir_sync(CHECKPOINT_FOLDER, err);
    if (rc == 0)
        rc = dir_sync(".", err); /* the first one made the folder */
    if (rc == 0)
        rc = remove_older(t->step, err);
    return rc < 0 ? err_wrap(err, "checkpoint %s", folder) : 0;
}

/* --- taking one up
 * --------------------------------------------------------------------------------------------- */

struct candidate {
    char *path;
    int64_t step;
    size_t age; /* position in the task's list: 0 is the newest attempt */
};

struct candidates {
    struct candidate *items;
    size_t n;
    size_t cap;
};

static int newest_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->step != y->step)
        return x->step > y->step ? -1 : 1;
    return x->age < y->age ? -1 : x->age > y->age;
}

static void find_candidates(const struct task *task, struct events *ev, struct candidates *out)
{
    for (size_t i = 0; i < task->n_resume; i++) {
        struct name_list list = {0};
        struct err err;
        char *folder = path_join(task->resume[i], CHECKPOINT_FOLDER);
        /* An attempt that died before its first checkpoint has no folder. */
        int rc = dir_list(folder, &list, &err);
        if (rc < 0 && rc != ERR_NOT_FOUND)
            events_note(ev, "checkpoints skipped: %s", err.msg);
        for (size_t j = 0; rc == 0 && j < list.n; j++) {
            int64_t step = step_of_name(list.names[j]);
            if (step < 0)
                continue;
            ARRAY_GROW(out->items, out->n, out->cap);
            out->items[out->n++] = (struct candidate){path_join(folder, list.names[j]), step, i};
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
    const char *blas;
};

static int read_manifest(const char *folder, struct manifest *m, struct err *err)
{
    const cJSON *files = NULL, *file;
    int64_t version = 0;
    char *path = path_join(folder, MANIFEST);

    *m = (struct manifest){0};
    int rc = json_read_file(path, MANIFEST_MAX, &m->json, err);
    free(path);
    if (rc < 0 ||
        (rc = json_get_int(m->json, "preregd_checkpoint", CHECKPOINT_VERSION, CHECKPOINT_VERSION,
                           &version, err)) < 0 ||
        (rc = json_get_int(m->json, "step", 1, INT32_MAX, &m->step, err)) < 0 ||
        (rc = json_get_int(m->json, "threads", 1, INT32_MAX, &m->threads, err)) < 0 ||
        (rc = json_get_string(m->json, "key", &m->key, err)) < 0 ||
        (rc = json_get_string(m->json, "blas", &m->blas, err)) < 0 ||
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

static int read_blob(const char *folder, const struct blob *b, struct err *err)
{
    struct digest_stream stream;
    char *path = path_join(folder, b->name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 ? err_set_errno(err, errno, "open %s", path) : 0;

    digest_start(&stream);
    for (size_t i = 0; rc == 0 && i < 2; i++)
        if (b->n[i] > 0)
            rc = store_read_floats(fd, b->part[i], b->n[i], &stream, err);
    if (fd >= 0)
        (void)close(fd);
    free(path);
    return rc;
}

static int load(struct trainer *t, const char *folder, int64_t step, struct err *err)
{
    struct blob blobs[BLOBS_NR];
    char *state = path_join(folder, "state.json");

    int rc = checkpoint_state_read(t, state, err);
    free(state);
    if (rc == 0 && t->step != step)
        rc = err_set(err, ERR_CORRUPT, "state and manifest name different steps");
    blobs_of(t, step, blobs);
    for (size_t i = 0; rc == 0 && i < BLOBS_NR; i++)
        rc = read_blob(folder, &blobs[i], err);
    return rc;
}

static int check_machine(const struct manifest *m, const struct task *task, const char *folder,
                         struct err *err)
{
    if (strcmp(m->blas, gemm_blas_text()) == 0 && m->threads == task->threads)
        return 0;
    return err_set(err, ERR_OTHER,
                   "%s is of %s with %lld threads, this is %s with %d: not the same run "
                   "(params.resume_any_core = true allows it)",
                   path_name(folder), m->blas, (long long)m->threads, gemm_blas_text(),
                   task->threads);
}

/* 1: taken up; 0: skipped, with the reason in err; negative: refused. */
static int try_candidate(struct trainer *t, const struct task *task, const struct digest *key,
                         const char *folder, struct err *err)
{
    struct manifest m;
    char hex[DIGEST_HEX_SIZE];
    int taken = 0;

    digest_hex(key, hex);
    int rc = read_manifest(folder, &m, err);
    if (rc == 0 && strcmp(m.key, hex) != 0)
        rc = err_set(err, ERR_CORRUPT, "of another run");
    if (rc == 0 && m.step > t->opt->steps)
        rc = err_set(err, ERR_CORRUPT, "past the horizon");
    if (rc == 0 && !t->opt->resume_any_core)
        taken = check_machine(&m, task, folder, err);
    if (rc == 0 && taken == 0) {
        rc = load(t, folder, m.step, err);
        /* Digests held, so what does not load now was never ours or the disk fails: not to be
         * skipped. */
        taken = rc < 0 ? rc : 1;
    }
    cJSON_Delete(m.json);
    return taken;
}

int checkpoint_resume(struct trainer *t, const struct task *task, const struct digest *key,
                      struct events *ev, bool *found, struct err *err)
{
    struct candidates all = {0};
    int taken = 0;

    *found = false;
    find_candidates(task, ev, &all);
    for (size_t i = 0; taken == 0 && i < all.n; i++) {
        taken = try_candidate(t, task, key, all.items[i].path, err);
        if (taken == 0)
            events_note(ev, "checkpoint %s skipped: %s", all.items[i].path, err->msg);
    }
    release_candidates(&all);
    if (taken < 0)
        return err_wrap(err, "resume");
    *found = taken == 1;
    return 0;
}
