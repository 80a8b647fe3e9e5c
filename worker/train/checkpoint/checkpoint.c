/*
 * Writes one checkpoint so that a crash at any point leaves the one before it: files are synced as
 * they are closed, the manifest comes last, the folder gets its name by a rename, and only then are
 * older ones removed. Digests are of the bytes in memory, so a disk that alters them is found when
 * the checkpoint is read.
 *
 * checkpoint_write() runs in a thread of its own (checkpoint_writer.c) and therefore touches
 * nothing but its arguments and the working directory.
 */
#include "worker/train/checkpoint/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/text.h"

#define STEP_PREFIX       "step-"
#define ASSUMED_SECONDS   3600.0 /* mean time between failures before any was seen */
#define SHORTEST_INTERVAL 0.5 /* seconds; and never more than a tenth of the time spent writing */
#define WRITE_CHUNK       ((size_t)1 << 18) /* numbers that are checked and written at a time */

struct digest checkpoint_key(const struct worker_task *task, const struct train_data *data)
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
    if (data->validation.name != NULL) {
        digest_hex(&data->validation.read, hex);
        strbuf_addf(&text, "\nvalidation %s", hex);
    }
    if (!digest_is_zero(&data->tokenizer_read)) {
        digest_hex(&data->tokenizer_read, hex);
        strbuf_addf(&text, "\ntokenizer %s", hex);
    }
    if (!digest_is_zero(&data->init)) {
        digest_hex(&data->init, hex);
        strbuf_addf(&text, "\ninit %s", hex);
    }
    struct digest key = digest_bytes(text.buf, text.len);
    strbuf_release(&text);
    return key;
}

void checkpoint_path(int64_t step, char *out, size_t size)
{
    (void)snprintf(out, size, LAYOUT_CHECKPOINT "/" STEP_PREFIX "%06lld", (long long)step);
}

double checkpoint_interval(double cost_seconds, double worked_seconds, int64_t failures)
{
    double between = (worked_seconds + ASSUMED_SECONDS) / (double)(failures + 1);
    double daly = sqrt(2.0 * cost_seconds * between) - cost_seconds;

    return fmax(fmax(daly, 10.0 * cost_seconds), SHORTEST_INTERVAL);
}

/* --- writing --- */

/* One file of a checkpoint that is being written. Its digest is of the bytes in memory. */
struct out_file {
    const char *folder;
    const char *name;
    int fd;
    int64_t n_bytes;
    struct digest_stream stream;
};

static int out_open(struct out_file *f, const char *folder, const char *name, struct err *err)
{
    *f = (struct out_file){.folder = folder, .name = name};
    char *path = path_join(folder, name);

    f->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int rc = f->fd < 0 ? err_set_errno(err, errno, "open %s", name) : 0;
    free(path);
    digest_start(&f->stream);
    return rc;
}

static int out_add(struct out_file *f, const void *data, size_t len, struct err *err)
{
    digest_add(&f->stream, data, len);
    f->n_bytes += (int64_t)len;
    int rc = file_write_all(f->fd, data, len, err);
    return rc < 0 ? err_wrap(err, "%s", f->name) : 0;
}

/* Adds the file to the manifest's list once it is on the disk. */
static int out_close(struct out_file *f, int rc, cJSON *files, struct err *err)
{
    char hex[DIGEST_HEX_SIZE];

    if (f->fd < 0)
        return rc;
    if (rc == 0 && fsync(f->fd) != 0)
        rc = err_set_errno(err, errno, "fsync %s", f->name);
    if (close(f->fd) != 0 && rc == 0)
        rc = err_set_errno(err, errno, "close %s", f->name);
    if (rc < 0)
        return rc;
    cJSON *entry = json_object();
    struct digest digest = digest_finish(&f->stream);
    digest_hex(&digest, hex);
    json_put_string(entry, "path", f->name);
    json_put_string(entry, "sha256", hex);
    json_put_int(entry, "bytes", f->n_bytes);
    json_push(files, entry);
    return 0;
}

/* x - x is 0 for every finite number and NaN for the others. */
static bool all_finite(const float *x, size_t n)
{
    float sum = 0.0F;

    for (size_t i = 0; i < n; i++)
        sum += x[i] - x[i];
    return sum == 0.0F;
}

/* Refuses numbers that are not finite: a checkpoint must be a state one can continue from. */
static int add_numbers(struct out_file *f, const float *x, size_t n, struct err *err)
{
    int rc = 0;

    for (size_t at = 0; rc == 0 && at < n; at += WRITE_CHUNK) {
        size_t m = n - at < WRITE_CHUNK ? n - at : WRITE_CHUNK;
        if (!all_finite(x + at, m))
            return err_set(err, ERR_REFUSED, "%s holds numbers that are not finite", f->name);
        rc = out_add(f, x + at, m * sizeof(*x), err);
    }
    return rc;
}

static int write_files(const struct checkpoint_image *img, const char *folder, cJSON *files,
                       struct err *err)
{
    struct out_file f;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < IMAGE_BLOBS; i++) {
        const struct image_blob *b = &img->blobs[i];
        rc = out_open(&f, folder, b->name, err);
        for (size_t part = 0; rc == 0 && part < IMAGE_PARTS; part++)
            rc = add_numbers(&f, b->part[part], b->n[part], err);
        rc = out_close(&f, rc, files, err);
    }
    if (rc < 0)
        return rc;
    rc = out_open(&f, folder, CHECKPOINT_STATE, err);
    if (rc == 0)
        rc = out_add(&f, img->state.buf, img->state.len, err);
    return out_close(&f, rc, files, err);
}

static int write_manifest(const struct checkpoint_run *run, const char *folder, int64_t step,
                          cJSON *files, struct err *err)
{
    char hex[DIGEST_HEX_SIZE];
    cJSON *obj = json_object();
    char *path = path_join(folder, CHECKPOINT_MANIFEST);

    json_put_int(obj, "preregd_checkpoint", CHECKPOINT_VERSION);
    json_put_int(obj, "step", step);
    digest_hex(&run->key, hex);
    json_put_string(obj, "key", hex);
    json_put_string(obj, "products", run->products);
    json_put_int(obj, "threads", run->threads);
    if (run->identity != NULL)
        json_put(obj, CHECKPOINT_IDENTITY, json_copy(run->identity));
    json_put(obj, "files", files);
    int rc = json_write_file(path, obj, 0644, err); /* syncs the folder too */
    cJSON_Delete(obj);
    free(path);
    return rc;
}

int64_t checkpoint_step_of_name(const char *name)
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

/* Keeps the newest two: this one, and the one before it. What cannot be removed now is removed
 * after the next one. */
static void remove_older(int64_t newest)
{
    struct name_list list = {0};
    struct err ignored;
    int64_t before = -1;

    int rc = dir_list(LAYOUT_CHECKPOINT, &list, &ignored);
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        int64_t step = checkpoint_step_of_name(list.names[i]);
        if (step > before && step < newest)
            before = step;
    }
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        int64_t step = checkpoint_step_of_name(list.names[i]);
        if (step < 0 || step >= before)
            continue;
        char *path = path_join(LAYOUT_CHECKPOINT, list.names[i]);
        (void)!dir_remove(path, &ignored);
        free(path);
    }
    name_list_release(&list);
}

/* Fills a folder under its temporary name, manifest last. */
static int fill(const struct checkpoint_image *img, const struct checkpoint_run *run,
                const char *folder, struct err *err)
{
    cJSON *files = json_array();

    int rc = dir_make(folder, 0755, err);
    if (rc == 0)
        rc = write_files(img, folder, files, err);
    if (rc < 0) {
        cJSON_Delete(files);
        return rc;
    }
    return write_manifest(run, folder, img->step, files, err);
}

/* Renames the finished folder over an earlier one of the same step, then drops older steps. */
static int put_in_place(const char *from, const char *to, int64_t step, struct err *err)
{
    int rc = dir_remove(to, err);

    if (rc != 0)
        return rc;
    if (rename(from, to) != 0)
        return err_set_errno(err, errno, "rename");
    if ((rc = dir_sync(LAYOUT_CHECKPOINT, err)) != 0 ||
        (rc = dir_sync(".", err)) != 0) /* the first one made the folder */
        return rc;
    remove_older(step);
    return 0;
}

int checkpoint_write_to(const struct checkpoint_image *img, const struct checkpoint_run *run,
                        const char *folder, struct err *err)
{
    int rc = fill(img, run, folder, err);

    return rc < 0 ? err_wrap(err, "%s", folder) : 0;
}

int checkpoint_write(const struct checkpoint_image *img, const struct checkpoint_run *run,
                     struct err *err)
{
    char folder[64], being_written[80];
    struct err ignored;

    checkpoint_path(img->step, folder, sizeof(folder));
    (void)snprintf(being_written, sizeof(being_written), LAYOUT_CHECKPOINT "/.%s.tmp",
                   path_name(folder));
    int rc = dir_remove(being_written, err);
    if (rc == 0 && (rc = fill(img, run, being_written, err)) == 0)
        rc = put_in_place(being_written, folder, img->step, err);
    if (rc == 0)
        return 0;
    /* What cannot be finished takes no room; when even this fails, the next one tries again. */
    (void)!dir_remove(being_written, &ignored);
    return err_wrap(err, "checkpoint %s", folder);
}
