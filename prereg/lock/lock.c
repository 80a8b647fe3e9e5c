/*
 * Builds, writes and reads locks. The root is computed over "locked" alone; members beside it
 * (tool, time, git, describe, proof) inform people and are covered by a signature only. A lock that
 * was read is checked before anything else looks into it, and its parts are pointers into the one
 * tree it owns.
 */
#include "prereg/lock/lock.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/lock/environment.h"
#include "prereg/lock/imported.h"
#include "prereg/lock/pinned_files.h"
#include "prereg/lock/signature.h"

#ifndef PREREGD_VERSION
#define PREREGD_VERSION "unknown"
#endif

char *lock_path_of(const char *program_path)
{
    return xasprintf("%s" LAYOUT_LOCK_SUFFIX, program_path);
}

void lock_free(struct lock *lock)
{
    if (lock != NULL) {
        cJSON_Delete(lock->json);
        cJSON_Delete(lock->amended);
        cJSON_Delete(lock->amendments);
        cJSON_Delete(lock->environments);
        free(lock);
    }
}

/* The SHA-256 of the canonical text of "locked". */
static int root_of(const cJSON *locked, char hex[DIGEST_HEX_SIZE], struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = json_canonical(locked, &text, err);
    if (rc == 0) {
        struct digest d = digest_bytes(text.buf, text.len);
        digest_hex(&d, hex);
    }
    strbuf_release(&text);
    return rc;
}

/* Points into json; false when a part is missing or of the wrong kind. */
static bool take_parts(struct lock *lock)
{
    lock->locked = json_member(lock->json, "locked");
    lock->describe = json_member(lock->json, "describe");
    lock->proof = json_member(lock->json, "proof");
    if (!cJSON_IsObject(lock->locked)) {
        return false;
    }
    lock->plan = json_member(lock->locked, "plan");
    lock->data = json_member(lock->locked, "data");
    lock->files = json_member(lock->locked, "files");
    lock->solved = json_member(lock->locked, "solved");
    lock->reuse = json_member(lock->locked, "reuse");
    const cJSON *environments = json_member(lock->locked, "environments");
    return cJSON_IsObject(lock->plan) && cJSON_IsObject(lock->data) &&
           cJSON_IsObject(lock->files) && cJSON_IsObject(lock->solved) &&
           cJSON_IsObject(lock->describe) &&
           (environments == NULL || cJSON_IsObject(environments)) &&
           (lock->reuse == NULL || cJSON_IsObject(lock->reuse));
}

/* Hashes a file or folder into `out` under `name`. */
static int digest_into(cJSON *out, const char *name, const char *path, struct err *err)
{
    struct digest d;
    char hex[DIGEST_HEX_SIZE];
    int rc = digest_path(path, &d, err);
    if (rc != 0) {
        return rc;
    }
    digest_hex(&d, hex);
    json_put_string(out, name, hex);
    return 0;
}

/* Digests of [data], by name. */
static int add_data(const struct plan_program *p, cJSON *locked, struct err *err)
{
    cJSON *data = json_object();
    json_put(locked, "data", data);
    for (size_t i = 0; i < p->n_data; i++) {
        int rc = digest_into(data, p->data[i].name, p->data[i].abs_path, err);
        if (rc != 0) {
            return err_wrap(err, "data.%s", p->data[i].name);
        }
    }
    return 0;
}

/* Digests of all other pinned files, by the name in the program. */
static int add_files(const struct plan_program *p, cJSON *locked, struct err *err)
{
    cJSON *files = json_object();
    json_put(locked, "files", files);
    struct pinned_list list;
    int rc = pinned_collect(p, &list, NULL, err);
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        rc = digest_into(files, list.items[i].name, list.items[i].path, err);
        if (rc != 0) {
            (void)err_wrap(err, "files.%s", list.items[i].name);
        }
    }
    pinned_release(&list);
    return rc;
}

/* The lists of all environments, by the path in the program. Without any there is no such member,
 * so that the root of such a program is what it always was. */
static int add_environments(const struct plan_program *p, cJSON *locked, struct err *err)
{
    cJSON *lists = json_object();
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->n_stages; i++) {
        const struct plan_stage *s = &p->stages[i];
        cJSON *list = NULL;
        if (s->environment == NULL || json_member(lists, s->environment) != NULL) {
            continue;
        }
        rc = environment_of_stage(NULL, s, &list, err);
        if (rc == 0) {
            json_put(lists, s->environment, list);
        } else {
            err->code = rc == ERR_LOCK ? ERR_INVALID : rc; /* nothing is locked yet */
            rc = err_wrap(err, "stage.%s.environment", s->name);
        }
    }
    if (lists->child == NULL) {
        cJSON_Delete(lists);
    } else {
        json_put(locked, "environments", lists);
    }
    return rc;
}

const char *lock_image(const struct lock *lock, const struct plan_stage *s)
{
    const cJSON *lists = json_member(lock->locked, "environments");
    return s->image == NULL ? NULL : environment_image(json_member(lists, s->environment));
}

cJSON *lock_environments(const struct lock *lock)
{
    return json_copy(lock->environments);
}

/* Conditions and stages without solved params are left out. */
cJSON *lock_solved(const cJSON *describe)
{
    cJSON *solved = json_object();
    for (const cJSON *c = describe == NULL ? NULL : describe->child; c != NULL; c = c->next) {
        cJSON *stages = json_object();
        /* It may come from a client: an array's elements have no names. */
        for (const cJSON *s = cJSON_IsObject(c) ? c->child : NULL; s != NULL; s = s->next) {
            const cJSON *params = json_member(s, "params");
            if (cJSON_IsObject(params) && params->child != NULL) {
                json_put(stages, s->string, json_copy(params));
            }
        }
        if (stages->child == NULL) {
            cJSON_Delete(stages);
        } else {
            json_put(solved, c->string, stages);
        }
    }
    return solved;
}

static cJSON *tool_of(void)
{
    cJSON *tool = json_object();
    json_put_string(tool, "name", "preregd");
    json_put_string(tool, "version", PREREGD_VERSION);
    return tool;
}

/* All members after the root, which comes first in the file. json owns `locked` then. */
static void add_rest(cJSON *json, cJSON *locked, const cJSON *describe, const cJSON *proof)
{
    char now[WALL_TEXT_SIZE];
    clock_wall_text(clock_wall(), now);
    json_put(json, "locked", locked);
    json_put(json, "tool", tool_of());
    json_put_string(json, "time", now);
    json_put_null(json, "git");
    json_put(json, "describe", describe == NULL ? json_object() : json_copy(describe));
    json_put(json, "proof", proof == NULL ? cJSON_CreateNull() : json_copy(proof));
    json_put_null(json, "signature");
}

/* Builds the lock around `locked`, which it owns from here on, also when it fails. */
static int build(cJSON *locked, const cJSON *describe, const cJSON *proof, struct lock **out,
                 struct err *err)
{
    struct lock *lock = xcalloc(1, sizeof(*lock));
    int rc = root_of(locked, lock->root, err);
    memcpy(lock->head, lock->root, sizeof(lock->head));
    lock->json = json_object();
    json_put_int(lock->json, "schema", LOCK_SCHEMA);
    json_put_string(lock->json, "root", lock->root);
    add_rest(lock->json, locked, describe, proof);
    if (rc != 0) {
        lock_free(lock);
        return rc;
    }
    if (!take_parts(lock)) {
        lock_free(lock);
        return err_set(err, ERR_INVALID, "what the workers describe is not an object");
    }
    *out = lock;
    return 0;
}

int lock_build(const struct plan_program *p, const cJSON *describe, const cJSON *proof,
               struct lock **out, struct err *err)
{
    *out = NULL;
    cJSON *locked = json_object();
    json_put(locked, "plan", program_covered(p));
    int rc = add_data(p, locked, err);
    if (rc == 0) {
        rc = add_files(p, locked, err);
    }
    if (rc == 0) {
        rc = add_environments(p, locked, err);
    }
    if (rc != 0) {
        cJSON_Delete(locked);
        return rc;
    }
    json_put(locked, "solved", lock_solved(describe));
    return build(locked, describe, proof, out, err);
}

int imported_lock_build(const struct plan_program *p, const cJSON *proof, struct lock **out,
                        struct err *err)
{
    *out = NULL;
    cJSON *locked = json_object();
    json_put(locked, "plan", program_covered(p));
    json_put(locked, "data", json_object());
    json_put(locked, "files", json_object());
    json_put(locked, "solved", json_object());
    json_put_bool(locked, "imported", true);
    return build(locked, NULL, proof, out, err);
}

/* Of the same tree that take_parts() points into. */
int lock_set_reuse(struct lock *lock, cJSON *pins, struct err *err)
{
    cJSON *locked = cJSON_GetObjectItemCaseSensitive(lock->json, "locked");
    cJSON *root = cJSON_GetObjectItemCaseSensitive(lock->json, "root");
    json_put(locked, "reuse", pins);
    int rc = root_of(locked, lock->root, err);
    if (rc == 0) {
        memcpy(lock->head, lock->root, sizeof(lock->head));
        (void)cJSON_SetValuestring(root, lock->root);
        lock->reuse = pins;
    }
    return rc;
}

void lock_set_git(struct lock *lock, cJSON *git)
{
    cJSON_DeleteItemFromObjectCaseSensitive(lock->json, "git");
    json_put(lock->json, "git", git);
    lock->git = cJSON_IsNull(git) ? NULL : git;
}

static const char *signer_of(const struct lock *lock)
{
    return lock->signature == NULL ? NULL
                                   : json_member(lock->signature, "fingerprint")->valuestring;
}

/* Decides what happens to the lock at path: *keep leaves it as it is, an error refuses to
 * replace it. */
static int look_at_old(const struct lock *lock, const char *path, bool *keep, struct err *err)
{
    struct lock *old = NULL;
    int rc = lock_read(path, &old, err);
    if (rc != 0) {
        return rc;
    }
    const char *had = signer_of(old);
    const char *has = signer_of(lock);
    if (strcmp(old->root, lock->root) != 0) {
        rc = err_set(err, ERR_EXISTS, "%s locks other values, under the root %.16s%s%s", path,
                     old->root, had != NULL ? ", signed by the key " : "", had != NULL ? had : "");
    } else if (had != NULL && has != NULL && strcmp(had, has) != 0) {
        rc = err_set(err, ERR_EXISTS, "%s is signed by the key %s, not by %s", path, had, has);
    } else {
        rc = lock_check_time(old, clock_wall(), err);
        *keep = has == NULL || had != NULL;
    }
    lock_free(old);
    return rc;
}

int lock_write(const struct lock *lock, const char *path, bool replace, struct err *err)
{
    bool keep = false;
    if (file_kind_at(path) != FILE_ABSENT) {
        int rc = look_at_old(lock, path, &keep, err);
        if (rc != 0 && !replace) {
            return rc;
        }
    }
    return keep && !replace ? 0 : json_write_file(path, lock->json, 0644, err);
}

static bool is_commit(const cJSON *v)
{
    size_t len = cJSON_IsString(v) ? strlen(v->valuestring) : 0;
    return (len == 40 || len == 64) && strspn(v->valuestring, "0123456789abcdef") == len;
}

/* Checks "git" and "signature", which the root does not cover, and sets their pointers. */
static int take_rest(struct lock *lock, const char *path, struct err *err)
{
    const cJSON *git = json_member(lock->json, "git");
    const cJSON *signature = json_member(lock->json, "signature");
    if (git != NULL && !cJSON_IsNull(git)) {
        if (!cJSON_IsObject(git) || !is_commit(json_member(git, "commit")) ||
            !cJSON_IsBool(json_member(git, "clean"))) {
            return err_set(err, ERR_LOCK, "%s: \"git\" says no commit", path);
        }
        lock->git = git;
    }
    if (signature != NULL && !cJSON_IsNull(signature)) {
        if (signature_json_shape(signature, err) != 0) {
            return err_wrap(err, "%s", path);
        }
        lock->signature = signature;
    }
    return 0;
}

/* Schema first, then the parts, then the root over them: a newer schema is not reported as
 * tampered. */
static int check_read(struct lock *lock, const char *path, struct err *err)
{
    const char *root = NULL;
    int64_t schema = 0;
    char found[DIGEST_HEX_SIZE];
    if (json_get_int(lock->json, "schema", 0, INT32_MAX, &schema, err) != 0 ||
        json_get_string(lock->json, "root", &root, err) != 0) {
        return err_set(err, ERR_LOCK, "%s is not a lock", path);
    }
    if (schema != LOCK_SCHEMA) {
        return err_set(err, ERR_VERSION, "%s has schema %lld; this version reads %d", path,
                       (long long)schema, LOCK_SCHEMA);
    }
    if (!take_parts(lock)) {
        return err_set(err, ERR_LOCK, "%s is not a whole lock", path);
    }
    int rc = root_of(lock->locked, found, err);
    if (rc != 0 || strcmp(found, root) != 0) {
        return err_set(err, ERR_LOCK, "%s was changed after locking: its root is %.16s, not %.16s",
                       path, rc != 0 ? "none" : found, root);
    }
    memcpy(lock->root, found, sizeof(lock->root));
    memcpy(lock->head, found, sizeof(lock->head));
    return take_rest(lock, path, err);
}

/* lock_environments() hashes whole lists of packages, and is asked for at every answer: made once,
 * since amendments leave environments alone. */
static cJSON *environments_of(const struct lock *lock)
{
    const cJSON *lists = json_member(lock->locked, "environments");
    const cJSON *stage = NULL;
    cJSON *out = json_object();
    cJSON_ArrayForEach(stage, json_member(lock->plan, "stage"))
    {
        const cJSON *name = json_member(stage, "environment");
        const cJSON *list = cJSON_IsString(name) ? json_member(lists, name->valuestring) : NULL;
        if (list != NULL) {
            char hex[DIGEST_HEX_SIZE];
            cJSON *o = json_object();
            environment_digest(list, hex);
            json_put_string(o, "environment", name->valuestring);
            json_put_string(o, "digest", hex);
            json_put(out, stage->string, o);
        }
    }
    return out;
}

/* Makes a lock of the tree, which it owns from here on, also when it fails. */
static int take_tree(cJSON *tree, const char *path, struct lock **out, struct err *err)
{
    struct lock *lock = xcalloc(1, sizeof(*lock));
    lock->json = tree;
    int rc = check_read(lock, path, err);
    if (rc != 0) {
        lock_free(lock);
        return rc;
    }
    lock->environments = environments_of(lock);
    *out = lock;
    return 0;
}

int lock_read(const char *path, struct lock **out, struct err *err)
{
    cJSON *tree = NULL;
    *out = NULL;
    int rc = json_read_file(path, LAYOUT_LOCK_MAX, &tree, err);
    if (rc == ERR_SYNTAX || rc == ERR_INVALID) { /* no JSON, or no file at all but a folder */
        err->code = ERR_LOCK;
        return err_wrap(err, "not a lock");
    }
    return rc == 0 ? take_tree(tree, path, out, err) : rc;
}

int lock_parse(const char *text, size_t len, const char *path, struct lock **out, struct err *err)
{
    cJSON *tree = NULL;
    *out = NULL;
    if (len > LAYOUT_LOCK_MAX) {
        return err_set(err, ERR_LOCK, "%s has %zu bytes; a lock has %zu at most", path, len,
                       (size_t)LAYOUT_LOCK_MAX);
    }
    if (json_parse(text, len, &tree, err) != 0) {
        err->code = ERR_LOCK;
        return err_wrap(err, "%s", path);
    }
    return take_tree(tree, path, out, err);
}

int lock_copy(const struct lock *lock, struct lock **out, struct err *err)
{
    *out = NULL;
    return take_tree(json_copy(lock->json), "the lock", out, err);
}

char *lock_program_id(const struct lock *lock)
{
    const cJSON *program = json_member(lock->plan, "program");
    const cJSON *name = program == NULL ? NULL : json_member(program, "name");
    return xasprintf("%s-%.8s", cJSON_IsString(name) ? name->valuestring : "program", lock->root);
}

static const char *digest_in(const cJSON *table, const char *name)
{
    const cJSON *v = json_member(table, name);
    return cJSON_IsString(v) ? v->valuestring : NULL;
}

const char *lock_data_digest(const struct lock *lock, const char *name)
{
    return digest_in(lock->data, name);
}

const char *lock_file_digest(const struct lock *lock, const char *arg)
{
    return digest_in(lock->files, arg);
}

/* ---- the time ---- */

/* The time in a lock is its maker's clock. It proves nothing by itself, but a lock from the future
 * shows that one of two clocks is wrong, before any record carries a time that precedes its lock.
 */

struct wall_time lock_made_at(const struct lock *lock)
{
    const cJSON *time = json_member(lock->json, "time");
    struct wall_time made = {0};
    if (cJSON_IsString(time)) {
        (void)clock_wall_parse(time->valuestring, &made);
    }
    return made;
}

int lock_check_time(const struct lock *lock, struct wall_time now, struct err *err)
{
    const cJSON *time = json_member(lock->json, "time");
    struct wall_time made = {0};
    char here[WALL_TEXT_SIZE];
    if (!cJSON_IsString(time) || !clock_wall_parse(time->valuestring, &made)) {
        return err_set(err, ERR_LOCK, "the lock does not say when it was made");
    }
    if (made.ms - now.ms <= LOCK_CLOCK_SLACK_MS) {
        return 0;
    }
    clock_wall_text(now, here);
    return err_set(
        err, ERR_LOCK,
        "the lock was made at %s, and this machine's clock says %s: set the clock right, or, when "
        "it was the locker's that was wrong, lock again",
        time->valuestring, here);
}
