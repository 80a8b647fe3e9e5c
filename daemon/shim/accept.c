/*
 * Links the files of a result into this attempt, then writes the result: like any worker's, it
 * comes last and whole, so an attempt that dies on the way leaves none and is repeated. Nothing
 * here decides what is accepted; the daemon compares the two results afterwards.
 */
#include "daemon/shim/accept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"

#define FILE_MODE   0600
#define FOLDER_MODE 0700

/* What task.json names. */
struct accepting {
    cJSON *task;
    const char *attempt;  /* this one's id */
    const char *folder;   /* of the attempt that did the work */
    struct digest digest; /* of its result.json */
};

static int read_task(struct accepting *a, struct err *err)
{
    const cJSON *accepts = NULL;
    const char *hex = NULL;
    int rc = json_read_file(LAYOUT_TASK, LAYOUT_RESULT_MAX, &a->task, err);
    if (rc == 0 && (rc = json_get_string(a->task, "attempt", &a->attempt, err)) == 0 &&
        (rc = json_get_object(a->task, "accepts", &accepts, err)) == 0 &&
        (rc = json_get_string(accepts, "folder", &a->folder, err)) == 0 &&
        (rc = json_get_string(accepts, "sha256", &hex, err)) == 0) {
        rc = digest_from_hex(hex, &a->digest, err);
    }
    return rc == 0 ? 0 : err_wrap(err, LAYOUT_TASK);
}

/* Its result.json, whose bytes must be those that were accepted. */
static int read_result(const struct accepting *a, cJSON **out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(a->folder, LAYOUT_RESULT);
    int rc = file_read(path, LAYOUT_RESULT_MAX, &text, err);
    if (rc == 0) {
        struct digest found = digest_bytes(text.buf, text.len);
        rc = digest_equal(&found, &a->digest)
                 ? json_parse_lax(text.buf, text.len, out, err)
                 : err_set(err, ERR_CORRUPT, "%s is not what was accepted", path);
    }
    free(path);
    strbuf_release(&text);
    return rc;
}

/* Whether an error of linkat() says that a link cannot be made: between file systems, on one
 * without any, of files of another owner, beyond the number that it allows. */
static bool has_no_links(int error)
{
    return error == EXDEV || error == EPERM || error == EMLINK || error == ENOSYS ||
           error == EOPNOTSUPP;
}

/* One file, by its name within both attempts. A file that is there already is of an earlier entry
 * that names it, too. */
static int take_file(const struct accepting *a, const char *name, struct err *err)
{
    if (!path_stays_inside(name)) {
        return err_set(err, ERR_PROTOCOL, "%.100s is outside the attempt", name);
    }
    char *from = path_join(a->folder, name);
    char *below = path_folder(name);
    int rc = strcmp(below, ".") == 0 ? 0 : dir_make(below, FOLDER_MODE, err);
    if (rc == 0 && linkat(AT_FDCWD, from, AT_FDCWD, name, 0) != 0 && errno != EEXIST) {
        rc = has_no_links(errno) ? file_copy(from, name, FILE_MODE, err)
                                 : err_set_errno(err, errno, "link %s", from);
    }
    free(below);
    free(from);
    return rc;
}

static int take_files(const struct accepting *a, const cJSON *result, struct err *err)
{
    const char *items = NULL;
    int rc = json_opt_string(result, "items", &items, err);
    if (rc == 0 && items != NULL) {
        rc = take_file(a, items, err);
    }
    const cJSON *m;
    cJSON_ArrayForEach(m, json_member(result, "artifacts"))
    {
        const char *path = NULL;
        if (rc == 0 && (rc = json_get_string(m, "path", &path, err)) == 0) {
            rc = take_file(a, path, err);
        }
    }
    return rc;
}

/* Indented, unless only one line fits in what the daemon accepts. */
static int print_result(const cJSON *result, struct strbuf *text, struct err *err)
{
    int rc = json_pretty(result, text, err);
    if (rc == 0 && text->len >= LAYOUT_RESULT_MAX) {
        strbuf_clear(text);
        rc = json_line(result, text, err);
    }
    if (rc == 0 && text->len >= LAYOUT_RESULT_MAX) {
        rc = err_set(err, ERR_RANGE,
                     "%s: %zu bytes with what another name of a work adds; at most %zu are "
                     "accepted: write a smaller result",
                     LAYOUT_RESULT, text->len + 1, LAYOUT_RESULT_MAX);
    }
    return rc;
}

static int write_result(const struct accepting *a, cJSON *result, struct err *err)
{
    const char *worker = NULL;
    char hex[DIGEST_HEX_SIZE];
    struct strbuf text = STRBUF_INIT;
    cJSON *of = json_object();
    int rc = json_get_string(result, "attempt", &worker, err);
    json_put_string(of, "attempt", worker);
    digest_hex(&a->digest, hex);
    json_put_string(of, "sha256", hex);
    cJSON_DeleteItemFromObjectCaseSensitive(result, "same_work"); /* of a work that was reused */
    json_put(result, "same_work", of);
    cJSON_DeleteItemFromObjectCaseSensitive(result, "attempt");
    json_put_string(result, "attempt", a->attempt);
    if (rc == 0 && (rc = print_result(result, &text, err)) == 0) {
        strbuf_addc(&text, '\n');
        rc = file_write_atomic(LAYOUT_RESULT, text.buf, text.len, FILE_MODE, err);
    }
    strbuf_release(&text);
    return rc;
}

int accept_run(struct err *err)
{
    struct accepting a = {0};
    cJSON *result = NULL;
    int rc = read_task(&a, err);
    if (rc == 0 && (rc = read_result(&a, &result, err)) == 0 &&
        (rc = take_files(&a, result, err)) == 0) {
        rc = write_result(&a, result, err);
    }
    cJSON_Delete(result);
    cJSON_Delete(a.task);
    return rc;
}
