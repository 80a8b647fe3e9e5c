/*
 * A receipt copied into the program's folder when it is submitted, so that it may be moved
 * afterwards and export finds it again, and the results that are accepted of it. The copy is made
 * beside its place and renamed; every file of it is compared with SHA256SUMS, and that with the
 * lock.
 */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/reuse/reuse_source.h"

#define SUMS_MAX    ((size_t)8 << 20)
#define FOLDER_MODE 0700
#define FILE_MODE   0600

char *reuse_task_folder(const char *program_folder, size_t task)
{
    return xasprintf("%s/" REUSE_FOLDER "/" REUSE_TASKS "/%06zu", program_folder, task);
}

static int copy_one(const char *from, const char *to, const char *name, struct err *err)
{
    char *a = path_join(from, name);
    char *b = path_join(to, name);
    char *below = path_folder(b);
    int rc = dir_make_durable(below, FOLDER_MODE, err);
    rc = rc == 0 ? file_copy(a, b, FILE_MODE, err) : rc;
    free(below);
    free(b);
    free(a);
    return rc;
}

/* Every file that the sums list; signatures are not among them. */
static int copy_files(const char *from, const char *to, struct strbuf *sums, struct err *err)
{
    int rc = copy_one(from, to, LAYOUT_SUMS, err);
    char *rest = NULL;
    char *text = xstrndup(sums->buf == NULL ? "" : sums->buf, sums->len);
    for (char *line = strtok_r(text, "\n", &rest); rc == 0 && line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strlen(line) < DIGEST_HEX_SIZE + 2) {
            rc = err_set(err, ERR_LOCK, LAYOUT_SUMS ": a line is not a digest and a name");
            break;
        }
        const char *name = line + DIGEST_HEX_SIZE + 1;
        rc =
            path_stays_inside(name) /* anything but a regular file is refused, not waited for */
                ? reuse_check_sum(from, sums->buf, name, err)
                : err_set(err, ERR_LOCK, LAYOUT_SUMS ": \"%.100s\" leads out of the receipt", name);
        rc = rc == 0 ? copy_one(from, to, name, err) : rc;
        rc = rc == 0 ? reuse_check_sum(to, sums->buf, name, err) : rc;
    }
    free(text);
    return rc;
}

/* Compares the sums with the lock before anything is copied. */
static int copy_receipt(const char *from, const char *to, const char *locked, struct err *err)
{
    struct strbuf sums = STRBUF_INIT;
    char hex[DIGEST_HEX_SIZE];
    char *path = path_join(from, LAYOUT_SUMS);
    char *temp = xasprintf("%s.new", to);
    int rc = file_read(path, SUMS_MAX, &sums, err);
    if (rc != 0) {
        goto out;
    }
    const struct digest found = digest_bytes(sums.buf, sums.len);
    digest_hex(&found, hex);
    if (locked == NULL || strcmp(hex, locked) != 0) {
        rc =
            err_set(err, ERR_LOCK, "the receipt was changed after locking: locked %.16s, now %.16s",
                    locked == NULL ? "nothing" : locked, hex);
        goto out;
    }
    if ((file_kind_at(temp) != FILE_ABSENT && (rc = dir_remove(temp, err)) != 0) ||
        (rc = dir_make(temp, FOLDER_MODE, err)) != 0 ||
        (rc = copy_files(from, temp, &sums, err)) != 0) {
        goto out;
    }
    rc = dir_publish(temp, to, false, err);
out:
    free(temp);
    free(path);
    strbuf_release(&sums);
    return rc == 0 ? 0 : err_wrap(err, "reuse.receipt: %.150s", from);
}

/* Computes again what is pinned: a lock need not have been made by `preregctl lock`. */
static int check_pins(const struct plan_program *p, const struct lock *lock,
                      const struct reuse_source *src, struct err *err)
{
    struct diag diag;
    cJSON *pins = NULL;
    diag_init(&diag, p->path);
    int rc = reuse_match(p, lock, src, &diag, &pins, err);
    if (rc == 0 && !json_equal(pins, lock->reuse)) {
        rc = err_set(err, ERR_LOCK,
                     "[reuse]: the lock pins other results than those that the receipt has for "
                     "these cells: lock the program again");
    }
    cJSON_Delete(pins);
    diag_release(&diag);
    return rc;
}

/* The items beside it, under the name that the result has for them. */
static int store_items(const char *folder, const char *items, const char *name, struct err *err)
{
    char *to = path_join(folder, name);
    char *below = path_folder(to);
    int rc = path_stays_inside(name)
                 ? dir_make_durable(below, FOLDER_MODE, err)
                 : err_set(err, ERR_PROTOCOL, "items %.100s is outside the attempt", name);
    rc = rc == 0 ? file_copy(items, to, FILE_MODE, err) : rc;
    free(below);
    free(to);
    return rc;
}

/* The result last: with it, the folder is whole. */
static int store_task(const struct reuse_source *src, size_t then, const char *folder,
                      struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *items = NULL;
    char *name = NULL;
    char *path = path_join(folder, LAYOUT_RESULT);
    int rc = dir_make_durable(folder, FOLDER_MODE, err);
    rc = rc == 0 ? reuse_text(src, then, &text, &items, &name, err) : rc;
    rc = rc == 0 && items != NULL ? store_items(folder, items, name, err) : rc;
    rc = rc == 0 ? file_write_atomic(path, text.buf, text.len, FILE_MODE, err) : rc;
    free(path);
    free(items);
    free(name);
    strbuf_release(&text);
    return rc;
}

static int store_tasks(const struct plan_program *p, const struct lock *lock,
                       const struct reuse_source *src, const char *folder, struct err *err)
{
    struct reuse_pin *pins = NULL;
    int rc = reuse_pins(p, lock, &pins, err);
    for (size_t t = 0; rc == 0 && t < program_n_tasks(p); t++) {
        if (pins[t].of == NULL) {
            continue;
        }
        const size_t then = reuse_find_task(src->program, pins[t].of);
        char *to = reuse_task_folder(folder, t);
        rc = then == INDEX_NONE ? err_set(err, ERR_LOCK, "the receipt has no %.150s", pins[t].of)
                                : store_task(src, then, to, err);
        free(to);
    }
    free(pins);
    return rc;
}

int reuse_store(const struct plan_program *p, const struct lock *lock, const char *folder,
                struct err *err)
{
    struct reuse_source src = {0};
    if (lock->reuse == NULL) {
        return 0;
    }
    const cJSON *locked = json_member(lock->reuse, "receipt");
    char *own = xasprintf("%s/" REUSE_FOLDER "/" REUSE_RECEIPT, folder);
    char *tasks = xasprintf("%s/" REUSE_FOLDER "/" REUSE_TASKS, folder);
    int rc = dir_make_below(folder, tasks, true, err);
    if (rc == 0 && file_kind_at(own) == FILE_ABSENT) {
        rc = copy_receipt(p->reuse.receipt, own,
                          cJSON_IsString(locked) ? locked->valuestring : NULL, err);
    }
    rc = rc == 0 ? reuse_open(&src, own, err) : rc;
    rc = rc == 0 ? check_pins(p, lock, &src, err) : rc;
    rc = rc == 0 ? store_tasks(p, lock, &src, folder, err) : rc;
    reuse_close(&src);
    free(tasks);
    free(own);
    return rc;
}
