/*
 * The checks of a result.json, from its header to the data it says were read. What was read is
 * compared last, so that ERR_LOCK (drift) is given only for a result that is otherwise well formed.
 * No message holds a value of a metric: they are printed before the lock, where no score may be
 * seen.
 */
#include "prereg/task/task_result.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/task/task.h"

#define RESULT_PROTOCOL 1

/* A result.json of another attempt is refused by its id. */
static int check_header(const cJSON *o, const char *attempt_id, struct err *err)
{
    int64_t protocol = 0;
    const char *id = NULL;
    if (!cJSON_IsObject(o)) {
        return err_set(err, ERR_PROTOCOL, "result.json is not an object");
    }
    if (json_get_int(o, "protocol", RESULT_PROTOCOL, RESULT_PROTOCOL, &protocol, err) != 0 ||
        json_get_string(o, "attempt", &id, err) != 0) {
        return err_wrap(err, "result.json is not valid");
    }
    if (id[0] == '\0') {
        return err_set(err, ERR_PROTOCOL, "result.json has no attempt id");
    }
    if (strcmp(id, attempt_id) != 0) {
        return err_set(err, ERR_PROTOCOL, "result.json is of another attempt, %.40s", id);
    }
    return 0;
}

/* A metric: a finite number, or null (undetermined, kept as such). */
static int check_metric(const cJSON *m, struct err *err)
{
    const cJSON *value = cJSON_IsObject(m) ? json_member(m, "value") : m;
    const char *why = NULL;
    const char *bound = NULL;
    double se = 0;
    int64_t n = 0;
    if (value == NULL || !(cJSON_IsNumber(value) || cJSON_IsNull(value))) {
        return err_set(err, ERR_PROTOCOL, "metric \"%.60s\" has no value that is a number or null",
                       m->string);
    }
    if (cJSON_IsObject(m) &&
        (json_opt_int(m, "n", 0, JSON_INT_MAX, &n, err) != 0 ||
         json_opt_number(m, "se", &se, err) != 0 || json_opt_string(m, "why", &why, err) != 0 ||
         json_opt_string(m, "bound", &bound, err) != 0)) {
        return err_wrap(err, "metric \"%.60s\"", m->string);
    }
    return 0;
}

/* Whether the plan reads this measure from the stage; an apparatus check has its own metric
 * instead. */
static bool is_named(const struct task_result *s, const struct plan_measure *m)
{
    return m->stage == s->stage && s->check == NULL;
}

/* Extra metrics are fine if well formed; one that the plan names must be there. */
static int check_metrics(const struct task_result *s, const cJSON *o, struct err *err)
{
    const struct plan_program *p = s->program;
    const cJSON *metrics = NULL;
    int rc = json_get_object(o, "metrics", &metrics, err);
    const cJSON *m;
    cJSON_ArrayForEach(m, metrics)
    {
        if (rc == 0) {
            rc = check_metric(m, err);
        }
    }
    for (size_t i = 0; rc == 0 && i < p->n_measures; i++) {
        const struct plan_measure *measure = &p->measures[i];
        if (is_named(s, measure) && json_member(metrics, measure->metric) == NULL) {
            rc = err_set(err, ERR_PROTOCOL, "the plan names metric \"%s\", which is missing",
                         measure->metric);
        }
    }
    if (rc == 0 && s->check != NULL && json_member(metrics, s->check->metric) == NULL) {
        rc = err_set(err, ERR_PROTOCOL, "the check is of metric \"%s\", which is missing",
                     s->check->metric);
    }
    return rc;
}

/* The path must stay inside the attempt, be a regular file (not a link), and have the stated
 * digest. */
static int check_artifact(const cJSON *a, const char *folder, struct pin_cache *cache,
                          struct err *err)
{
    const char *path = NULL;
    const char *hex = NULL;
    int64_t bytes = -1;
    struct digest stated;
    struct digest found;
    if (json_get_string(a, "path", &path, err) != 0 ||
        json_get_string(a, "sha256", &hex, err) != 0 ||
        json_opt_int(a, "bytes", 0, JSON_INT_MAX, &bytes, err) != 0 ||
        digest_from_hex(hex, &stated, err) != 0) {
        return err_wrap(err, "artifacts");
    }
    if (!path_stays_inside(path)) {
        return err_set(err, ERR_PROTOCOL, "artifact %.100s is outside the attempt", path);
    }
    char *full = path_join(folder, path);
    struct stat st;
    int rc = file_lstat(full, &st, err);
    if (rc == ERR_NOT_FOUND || (rc == 0 && !S_ISREG(st.st_mode))) {
        rc = err_set(err, ERR_PROTOCOL, "artifact %.100s is not a file", path);
    } else if (rc == 0 && (rc = pin_digest(cache, full, &found, err)) == 0 &&
               (!digest_equal(&found, &stated) || (bytes >= 0 && bytes != (int64_t)st.st_size))) {
        rc = err_set(err, ERR_PROTOCOL, "artifact %.100s is not what its digest says", path);
    }
    free(full);
    return rc;
}

/* As check_artifact, by size instead of digest. */
static int glance_artifact(const cJSON *a, const char *folder, struct err *err)
{
    const char *path = NULL;
    int64_t bytes = -1;
    struct stat st;
    if (json_get_string(a, "path", &path, err) != 0 ||
        json_opt_int(a, "bytes", 0, JSON_INT_MAX, &bytes, err) != 0) {
        return err_wrap(err, "artifacts");
    }
    char *full = path_join(folder, path);
    int rc = file_lstat(full, &st, err);
    if (rc == ERR_NOT_FOUND || (rc == 0 && !S_ISREG(st.st_mode))) {
        rc = err_set(err, ERR_PROTOCOL, "artifact %.100s is not a file", path);
    } else if (rc == 0 && bytes >= 0 && bytes != (int64_t)st.st_size) {
        rc = err_set(err, ERR_PROTOCOL, "artifact %.100s has %lld bytes, not %lld", path,
                     (long long)st.st_size, (long long)bytes);
    }
    free(full);
    return rc;
}

int task_result_glance_artifacts(const cJSON *o, const char *folder, size_t *n, struct err *err)
{
    const cJSON *a;
    *n = 0;
    cJSON_ArrayForEach(a, json_member(o, "artifacts"))
    {
        int rc = glance_artifact(a, folder, err);
        if (rc != 0) {
            return rc;
        }
        ++*n;
    }
    return 0;
}

/* Hashes every artifact. "items" has no digest of its own here; it only has to be a file of the
 * attempt. */
int task_result_check_artifacts(const cJSON *o, const char *folder, struct pin_cache *cache,
                                struct err *err)
{
    const cJSON *list = json_member(o, "artifacts");
    if (list != NULL && !cJSON_IsArray(list)) {
        return err_set(err, ERR_PROTOCOL, "\"artifacts\" is not a list");
    }
    const cJSON *a;
    cJSON_ArrayForEach(a, list)
    {
        int rc = check_artifact(a, folder, cache, err);
        if (rc != 0) {
            return rc;
        }
    }
    const char *items = NULL;
    int rc = json_opt_string(o, "items", &items, err);
    if (rc == 0 && items != NULL) {
        char *full = path_join(folder, items);
        enum file_kind kind = FILE_ABSENT;
        bool inside = path_stays_inside(items);
        rc = inside ? file_look(full, &kind, err) : 0;
        if (rc == 0 && kind != FILE_REGULAR) {
            rc = err_set(err, ERR_PROTOCOL, "items %.100s is not a file of the attempt", items);
        }
        free(full);
    }
    return rc;
}

int task_result_check_read(const struct lock *lock, const cJSON *o, struct err *err)
{
    const cJSON *read = json_member(o, "read");
    if (read != NULL && !cJSON_IsObject(read)) {
        return err_set(err, ERR_PROTOCOL, "\"read\" is not an object");
    }
    const cJSON *r;
    cJSON_ArrayForEach(r, read)
    {
        const char *locked = lock_data_digest(lock, r->string);
        if (!cJSON_IsString(r)) {
            return err_set(err, ERR_PROTOCOL, "\"read\" holds something that is not a digest");
        }
        if (locked == NULL || strcmp(locked, r->valuestring) != 0) {
            return err_set(err, ERR_LOCK,
                           "it read other \"%.60s\" than was locked (%.16s..., not %.16s...)",
                           r->string, r->valuestring, locked == NULL ? "nothing" : locked);
        }
    }
    return 0;
}

/* The members are compared one by one, so that the message can name the one that differs. */
int task_result_check_same(const cJSON *result, const cJSON *work, const struct digest *accepted,
                           struct err *err)
{
    const cJSON *of = NULL;
    const char *hex = NULL;
    struct digest stated;
    if (json_get_object(result, "same_work", &of, err) != 0 ||
        json_get_string(of, "sha256", &hex, err) != 0 || digest_from_hex(hex, &stated, err) != 0) {
        return err_wrap(err, "it is another name of a work, and does not say so");
    }
    if (!digest_equal(&stated, accepted) ||
        !json_equal(json_member(of, "attempt"), json_member(work, "attempt"))) {
        return err_set(err, ERR_PROTOCOL, "it is of another result than that of its work");
    }
    for (const cJSON *list = result, *other = work; list != NULL; list = other, other = result) {
        const cJSON *m;
        cJSON_ArrayForEach(m, list)
        {
            if (strcmp(m->string, "attempt") != 0 && strcmp(m->string, "same_work") != 0 &&
                !json_equal(m, json_member(other, m->string))) {
                return err_set(err, ERR_PROTOCOL, "\"%.60s\" is not that of its work", m->string);
            }
        }
        if (list == work) {
            break;
        }
    }
    return 0;
}

int task_result_check_own(const cJSON *result, struct err *err)
{
    if (json_member(result, "reused") != NULL) {
        return err_set(err, ERR_PROTOCOL,
                       "it says that it is from an earlier receipt, which the lock does not");
    }
    return json_member(result, "same_work") == NULL
               ? 0
               : err_set(err, ERR_PROTOCOL,
                         "it says that another task did its work, which the plan "
                         "does not");
}

/* A missing file and one that is not regular are faults of the worker; a failed read is not. */
static int read_bytes(const char *path, struct strbuf *text, struct err *err)
{
    struct stat st;
    int rc = file_lstat(path, &st, err);
    if (rc != 0) {
        return rc == ERR_NOT_FOUND ? err_set(err, rc, "result.json is missing") : rc;
    }
    if (!S_ISREG(st.st_mode)) {
        return err_set(err, ERR_PROTOCOL, "result.json is not a file");
    }
    return file_read(path, LAYOUT_RESULT_MAX, text, err);
}

int task_result_read(const struct task_result *t, struct digest *digest, cJSON **out,
                     struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(t->folder, LAYOUT_RESULT);
    const struct task_inputs inputs = {.program = t->program,
                                       .lock = t->lock,
                                       .cell = t->cell,
                                       .stage = t->stage,
                                       .find = t->find_input,
                                       .ctx = t->inputs};
    *out = NULL;
    int rc = read_bytes(path, &text, err);
    free(path);
    if (rc == 0) {
        *digest = digest_bytes(text.buf, text.len); /* of the very bytes that are parsed */
        rc = json_parse_lax(text.buf, text.len, out, err);
        if (rc != 0) {
            (void)err_wrap(err, "result.json is not valid");
        }
    }
    strbuf_release(&text);
    if (rc == 0 && (rc = check_header(*out, t->attempt, err)) == 0 &&
        (rc = check_metrics(t, *out, err)) == 0 &&
        (rc = task_result_check_artifacts(*out, t->folder, NULL, err)) == 0 &&
        (rc = task_inputs_check(&inputs, *out, err)) == 0) {
        rc = task_result_check_read(t->lock, *out, err);
    }
    if (rc != 0) {
        cJSON_Delete(*out);
        *out = NULL;
    }
    return rc;
}
