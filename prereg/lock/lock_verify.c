/* Compares a program as it is now with its lock, part by part, and stops at the first
 * difference, which the message names by its path. The cheap part comes first: the plan is
 * compared in memory, then files are hashed, through the caller's cache if it has one. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/lock/environment.h"
#include "prereg/lock/imported.h"
#include "prereg/lock/lock.h"
#include "prereg/lock/object.h"
#include "prereg/lock/pinned_files.h"

#define VALUE_SHOWN 48 /* bytes of a value in a message */

/* A value on one line for a message, cut to VALUE_SHOWN bytes. NULL: the value is absent. */
static const char *show(const cJSON *v, struct strbuf *out)
{
    struct err err;
    strbuf_clear(out);
    if (v == NULL) {
        strbuf_adds(out, "nothing");
    } else if (json_line(v, out, &err) != 0) {
        strbuf_adds(out, "?");
    }
    if (out->len > VALUE_SHOWN) {
        size_t cut = VALUE_SHOWN;
        while (cut > 0 && ((unsigned char)out->buf[cut] & 0xC0U) == 0x80U) {
            cut--;
        }
        out->len = cut;
        out->buf[cut] = '\0';
        strbuf_adds(out, "...");
    }
    return out->buf;
}

/* The error for one differing value. */
static int differs(const cJSON *locked, const cJSON *now, const struct strbuf *path,
                   struct err *err)
{
    struct strbuf a = STRBUF_INIT;
    struct strbuf b = STRBUF_INIT;
    int rc = err_set(err, ERR_LOCK, "%.100s: locked %s, now %s", path->buf, show(locked, &a),
                     show(now, &b));
    strbuf_release(&a);
    strbuf_release(&b);
    return rc;
}

/* Numbers are equal when their canonical texts are, as under the root. */
static bool same_scalar(const cJSON *a, const cJSON *b)
{
    if (cJSON_IsNumber(a) && cJSON_IsNumber(b)) {
        char x[JSON_NUMBER_MAX];
        char y[JSON_NUMBER_MAX];
        json_number_text(a->valuedouble, x);
        json_number_text(b->valuedouble, y);
        return strcmp(x, y) == 0;
    }
    if (cJSON_IsString(a) && cJSON_IsString(b)) {
        return strcmp(a->valuestring, b->valuestring) == 0;
    }
    return (cJSON_IsBool(a) && cJSON_IsBool(b) && cJSON_IsTrue(a) == cJSON_IsTrue(b)) ||
           (cJSON_IsNull(a) && cJSON_IsNull(b));
}

static int compare(const cJSON *locked, const cJSON *now, struct strbuf *path, struct err *err);

/* One member of a table or element of an array; either side may be missing. */
static int compare_member(const cJSON *locked, const cJSON *now, size_t index, struct strbuf *path,
                          struct err *err)
{
    size_t len = path->len;
    const char *key = locked != NULL ? locked->string : now->string;
    if (key == NULL) {
        strbuf_addf(path, "[%zu]", index);
    } else {
        strbuf_addf(path, "%s%s", len == 0 ? "" : ".", key);
    }
    int rc = locked == NULL || now == NULL ? differs(locked, now, path, err)
                                           : compare(locked, now, path, err);
    path->len = len;
    path->buf[len] = '\0';
    return rc;
}

/* Locked members first, then those that are new. */
static int compare_tables(const cJSON *locked, const cJSON *now, struct strbuf *path,
                          struct err *err)
{
    for (const cJSON *m = locked->child; m != NULL; m = m->next) {
        int rc = compare_member(m, json_member(now, m->string), 0, path, err);
        if (rc != 0) {
            return rc;
        }
    }
    for (const cJSON *m = now->child; m != NULL; m = m->next) {
        if (json_member(locked, m->string) == NULL) {
            return compare_member(NULL, m, 0, path, err);
        }
    }
    return 0;
}

/* Element by element. */
static int compare_arrays(const cJSON *locked, const cJSON *now, struct strbuf *path,
                          struct err *err)
{
    const cJSON *a = locked->child;
    const cJSON *b = now->child;
    for (size_t i = 0; a != NULL || b != NULL; i++) {
        int rc = compare_member(a, b, i, path, err);
        if (rc != 0) {
            return rc;
        }
        a = a == NULL ? NULL : a->next;
        b = b == NULL ? NULL : b->next;
    }
    return 0;
}

/* Compares two values that both exist; path is that of the values, and is restored. */
static int compare(const cJSON *locked, const cJSON *now, struct strbuf *path, struct err *err)
{
    if (cJSON_IsObject(locked) && cJSON_IsObject(now)) {
        return compare_tables(locked, now, path, err);
    }
    if (cJSON_IsArray(locked) && cJSON_IsArray(now)) {
        return compare_arrays(locked, now, path, err);
    }
    return same_scalar(locked, now) ? 0 : differs(locked, now, path, err);
}

/* Compares the plan of the program with the locked one. */
static int verify_plan(const struct plan_program *p, const struct lock *lock, struct err *err)
{
    struct strbuf path = STRBUF_INIT;
    cJSON *now = program_covered(p);
    strbuf_reserve(&path, 64);
    int rc = compare(lock->plan, now, &path, err);
    cJSON_Delete(now);
    strbuf_release(&path);
    return rc;
}

/* Whether the folder is empty, as the mount point of a disk that is not mounted is. */
static bool is_empty_folder(const char *path)
{
    struct name_list names;
    struct err ignored;
    bool empty = dir_list(path, &names, &ignored) == 0 && names.n == 0;
    name_list_release(&names);
    return empty;
}

int lock_verify_path(struct pin_cache *cache, const char *locked, const char *path, struct err *err)
{
    struct digest want;
    struct digest found;
    char hex[DIGEST_HEX_SIZE];
    if (locked == NULL || digest_from_hex(locked, &want, err) != 0) {
        return err_set(err, ERR_LOCK, "not in the lock");
    }
    if (pin_digest(cache, path, &found, err) != 0) {
        return err_wrap(err, "cannot be checked");
    }
    if (digest_equal(&want, &found)) {
        return 0;
    }
    if (is_empty_folder(path)) {
        return err_set(err, ERR_NOT_FOUND, "%s is empty", path);
    }
    digest_hex(&found, hex);
    return err_set(err, ERR_LOCK, "locked %.16s, now %.16s (%.120s)", locked, hex, path);
}

/* A missing file is a difference (ERR_LOCK), unless the caller wants it reported as missing. */
static int code_of(bool tell_absent, struct err *err)
{
    if (err->code == ERR_NOT_FOUND && !tell_absent) {
        err->code = ERR_LOCK;
    }
    return err->code;
}

/* What a plan reuses is pinned, and nothing else is. */
static int verify_reuse(const struct plan_program *p, const struct lock *lock, struct err *err)
{
    if ((p->reuse.receipt != NULL) == (lock->reuse != NULL)) {
        return 0;
    }
    return err_set(err, ERR_LOCK,
                   lock->reuse == NULL
                       ? "[reuse]: the lock does not pin what is reused: lock the program again"
                       : "reuse: locked, and the program has no [reuse]");
}

/* Compares the digests of [data]. */
static int verify_data(const struct plan_program *p, const struct lock *lock, bool tell_absent,
                       struct pin_cache *cache, struct err *err)
{
    for (size_t i = 0; i < p->n_data; i++) {
        const struct data_input *d = &p->data[i];
        if (lock_verify_path(cache, lock_data_digest(lock, d->name), d->abs_path, err) != 0) {
            (void)err_wrap(err, "data.%s", d->name);
            return code_of(tell_absent, err);
        }
    }
    return 0;
}

/* Compares the files of one command. An argument is a file if the lock pins it; one that became
 * a file since is still a plain argument. */
static int verify_command(const struct plan_program *p, const struct lock *lock, size_t stage,
                          struct pin_cache *cache, struct err *err)
{
    const struct plan_stage *s = &p->stages[stage];
    for (size_t i = 0; i < s->n_command; i++) {
        const char *locked = lock_file_digest(lock, s->command[i]);
        char *path = NULL;
        if (i > 0 ? locked == NULL : object_is_of_image(s)) {
            continue; /* a plain argument when it was locked */
        }
        int rc = object_resolve_argument(p, stage, i, &path, err);
        if (rc == 0 && path == NULL) {
            rc = err_set(err, ERR_NOT_FOUND, "the file is gone");
        }
        if (rc == 0) {
            rc = lock_verify_path(cache, locked, path, err);
        }
        free(path);
        if (rc != 0) {
            (void)err_wrap(err, "files.%s", s->command[i]);
            return code_of(false, err);
        }
    }
    return 0;
}

/* Under [pin] workers = "record", a difference is noted and not an error. */
static int verify_files(const struct plan_program *p, const struct lock *lock,
                        struct pin_cache *cache, struct strbuf *notes, struct err *err)
{
    for (size_t i = 0; i < p->n_stages; i++) {
        int rc = verify_command(p, lock, i, cache, err);
        if (rc == ERR_LOCK && p->pin_workers_record) {
            if (notes != NULL) {
                strbuf_addf(notes, "%s\n", err->msg);
            }
            err_clear(err);
        } else if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int verify_pin(const struct plan_program *p, const struct lock *lock, const char *name,
                      struct pin_cache *cache, struct err *err)
{
    char *path = path_absolute(p->folder, name);
    int rc = lock_verify_path(cache, lock_file_digest(lock, name), path, err);
    free(path);
    if (rc != 0) {
        (void)err_wrap(err, "files.%s", name);
        rc = code_of(false, err);
    }
    return rc;
}

/* Compares [pin] files and reference models. */
static int verify_pins(const struct plan_program *p, const struct lock *lock,
                       struct pin_cache *cache, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->n_pin_files; i++) {
        rc = verify_pin(p, lock, p->pin_files[i], cache, err);
    }
    for (size_t i = 0; rc == 0 && i < p->n_apparatus; i++) {
        rc = verify_pin(p, lock, p->apparatus[i].model, cache, err);
    }
    return rc;
}

/* Compares the environments of the stages, each once. */
int lock_verify_environments(const struct plan_program *p, const struct lock *lock,
                             struct pin_cache *cache, struct err *err)
{
    const cJSON *lists = json_member(lock->locked, "environments");
    for (size_t i = 0; i < p->n_stages; i++) {
        const struct plan_stage *s = &p->stages[i];
        bool is_first = s->environment != NULL;
        for (size_t k = 0; is_first && k < i; k++) {
            const char *other = p->stages[k].environment;
            is_first = other == NULL || strcmp(other, s->environment) != 0;
        }
        if (is_first &&
            environment_verify(cache, json_member(lists, s->environment), s, err) != 0) {
            return err_wrap(err, "stage.%s.environment", s->name);
        }
    }
    return 0;
}

static bool is_data(const struct plan_program *p, const char *name)
{
    for (size_t i = 0; i < p->n_data; i++) {
        if (strcmp(p->data[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether some command, [pin] or check of the program names the file. */
static bool is_file(const struct plan_program *p, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < p->n_stages; i++) {
        for (size_t k = 0; k < p->stages[i].n_command; k++) {
            found = found || strcmp(p->stages[i].command[k], name) == 0;
        }
    }
    for (size_t i = 0; i < p->n_pin_files; i++) {
        found = found || strcmp(p->pin_files[i], name) == 0;
    }
    for (size_t i = 0; i < p->n_apparatus; i++) {
        found = found || strcmp(p->apparatus[i].model, name) == 0;
    }
    return found;
}

/* Whether some stage runs in the environment. */
static bool is_environment(const struct plan_program *p, const char *name)
{
    for (size_t i = 0; i < p->n_stages; i++) {
        if (p->stages[i].environment != NULL && strcmp(p->stages[i].environment, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_condition(const struct plan_program *p, const char *name)
{
    for (size_t i = 0; i < p->n_conditions; i++) {
        if (strcmp(p->conditions[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_part(const struct plan_program *p, const char *name)
{
    static const char *const known[] = {"plan",   "data",     "files", "environments",
                                        "solved", "imported", "reuse"};
    (void)p;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strcmp(known[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Every name in the lock must belong to something in the plan; any other was added by hand. */
static int verify_names(const struct plan_program *p, const struct lock *lock, struct err *err)
{
    const struct {
        const cJSON *table;
        const char *what;
        bool (*is_of)(const struct plan_program *p, const char *name);
    } rows[] = {{lock->locked, "locked", is_part},
                {lock->data, "data", is_data},
                {lock->files, "files", is_file},
                {json_member(lock->locked, "environments"), "environments", is_environment},
                {lock->solved, "solved", is_condition}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const cJSON *table = rows[i].table; /* NULL: a lock without environments */
        for (const cJSON *m = table == NULL ? NULL : table->child; m != NULL; m = m->next) {
            if (!rows[i].is_of(p, m->string)) {
                return err_set(err, ERR_LOCK, "%s.%.80s: locked, and nothing in the program is it",
                               rows[i].what, m->string);
            }
        }
    }
    return 0;
}

/* What was solved is an object of parameters for each stage of a condition: it becomes part of a
 * task's parameters, and a lock may be a stranger's. */
static int verify_solved(const struct plan_program *p, const struct lock *lock, struct err *err)
{
    const cJSON *condition = NULL;
    const cJSON *stage = NULL;
    cJSON_ArrayForEach(condition, lock->solved)
    {
        if (!cJSON_IsObject(condition)) {
            return err_set(err, ERR_LOCK, "solved.%.80s: expected an object of stages",
                           condition->string);
        }
        cJSON_ArrayForEach(stage, condition)
        {
            if (program_find_stage(p, stage->string) == INDEX_NONE || !cJSON_IsObject(stage)) {
                return err_set(err, ERR_LOCK,
                               "solved.%.80s.%.60s: expected a stage with an object of parameters",
                               condition->string, stage->string);
            }
        }
    }
    return 0;
}

int lock_verify(const struct plan_program *p, const struct lock *lock, unsigned parts,
                struct pin_cache *cache, struct strbuf *notes, struct err *err)
{
    if ((parts & (LOCK_DATA | LOCK_FILES)) != 0 && imported_lock(lock)) {
        return err_set(err, ERR_LOCK,
                       "the lock was made for imported records: it pins no data and no worker, and "
                       "nothing runs under it");
    }
    int rc = 0;
    if ((parts & LOCK_PLAN) != 0 &&
        ((rc = verify_plan(p, lock, err)) != 0 || (rc = verify_names(p, lock, err)) != 0 ||
         (rc = verify_solved(p, lock, err)) != 0 || (rc = verify_reuse(p, lock, err)) != 0)) {
        return rc;
    }
    if ((parts & LOCK_DATA) != 0 &&
        (rc = verify_data(p, lock, (parts & LOCK_TELL_ABSENT) != 0, cache, err)) != 0) {
        return rc;
    }
    if ((parts & LOCK_FILES) != 0 && (rc = verify_files(p, lock, cache, notes, err)) != 0) {
        return rc;
    }
    if ((parts & LOCK_PINS) == 0) {
        return 0;
    }
    rc = verify_pins(p, lock, cache, err);
    if (rc == 0 && (rc = lock_verify_environments(p, lock, cache, err)) != 0) {
        rc = code_of(false, err);
    }
    return rc;
}
