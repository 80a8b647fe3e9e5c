/*
 * Amendments as a hash chain over JSON trees: comparing two versions of `locked`, applying one
 * amendment with all checks, reading the folder, and putting the result into a struct lock. An
 * amendment is applied to a copy, which replaces the chain's tree only after every check passed.
 * Everything here comes from files that others may have written, so every member is checked before
 * it is read.
 */
#include "prereg/amend/amendment.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/amend/amend_known.h"
#include "prereg/amend/amend_rules.h"
#include "prereg/lock/signature.h"

char *amendment_file(const char *folder, size_t number, const char *kind)
{
    return xasprintf("%s/%04zu.%s", folder, number, kind);
}

int amendment_check_reason(const char *reason, struct err *err)
{
    if (reason[strspn(reason, " ")] == '\0') {
        return err_set(err, ERR_USAGE, "an amendment needs a reason: it is journalled and printed");
    }
    if (strlen(reason) > AMENDMENT_REASON_MAX) {
        return err_set(err, ERR_USAGE, "the reason is longer than %d bytes", AMENDMENT_REASON_MAX);
    }
    return text_is_plain(reason)
               ? 0
               : err_set(err, ERR_USAGE,
                         "the reason is not plain text on one line: it has control characters, or "
                         "is not UTF-8");
}

int amendment_text(const cJSON *amendment, struct strbuf *out, struct err *err)
{
    cJSON *body = json_copy(amendment);
    cJSON_DeleteItemFromObjectCaseSensitive(body, "head");
    cJSON_DeleteItemFromObjectCaseSensitive(body, "signature");
    int rc = json_canonical(body, out, err);
    cJSON_Delete(body);
    if (rc != 0) {
        err->code = ERR_LOCK;
    }
    return rc == 0 ? 0 : ERR_LOCK;
}

/* ---- applying ---- */

/* The error for one change, beginning with its path. */
static int refuse_change(const cJSON *change, const char *why, struct err *err)
{
    struct strbuf path = STRBUF_INIT;
    amendment_path_text(change, &path);
    int rc = err_set(err, ERR_LOCK, "%.120s %s", path.buf == NULL ? "" : path.buf, why);
    strbuf_release(&path);
    return rc;
}

/* The object that holds the last key of the path; NULL when the path leads nowhere. */
static cJSON *holder_of(cJSON *locked, const cJSON *path)
{
    const cJSON *key = path->child;
    cJSON *at = locked;
    for (; at != NULL && key->next != NULL; key = key->next) {
        at = cJSON_IsObject(at) && cJSON_IsString(key)
                 ? cJSON_GetObjectItemCaseSensitive(at, key->valuestring)
                 : NULL;
    }
    return cJSON_IsObject(at) && cJSON_IsString(key) ? at : NULL;
}

/* The value to replace must be the one named in "from", and the change must change something. */
static int apply_change(cJSON *locked, const cJSON *change, struct err *err)
{
    const cJSON *path = cJSON_IsObject(change) ? json_member(change, "path") : NULL;
    if (!cJSON_IsArray(path) || path->child == NULL) {
        return err_set(err, ERR_LOCK, "a change without a path");
    }
    const cJSON *from = json_member(change, "from");
    const cJSON *to = json_member(change, "to");
    cJSON *holder = holder_of(locked, path);
    if (holder == NULL || (from == NULL && to == NULL)) {
        return refuse_change(change, "leads to nothing", err);
    }
    const char *key = cJSON_GetArrayItem(path, cJSON_GetArraySize(path) - 1)->valuestring;
    const cJSON *now = json_member(holder, key);
    if ((now == NULL) != (from == NULL) || (now != NULL && !amendment_same_value(now, from))) {
        return refuse_change(change, "is not what it changes from", err);
    }
    if (amendment_same_value(from, to)) {
        return refuse_change(change, "is changed to what it is", err);
    }
    if (to == NULL) {
        cJSON_DeleteItemFromObjectCaseSensitive(holder, key);
    } else if (now == NULL) {
        json_put(holder, key, json_copy(to));
    } else if (!cJSON_ReplaceItemInObjectCaseSensitive(holder, key, json_copy(to))) {
        abort(); /* the member was found a moment ago */
    }
    return 0;
}

/* Changes are applied in their order; the first that fails leaves the tree half changed, which
 * is why callers pass a copy. */
static int apply_changes(cJSON *locked, const cJSON *amendment, struct err *err)
{
    const cJSON *list = json_member(amendment, "changes");
    if (!cJSON_IsArray(list) || list->child == NULL) {
        return err_set(err, ERR_LOCK, "it changes nothing");
    }
    const cJSON *change;
    cJSON_ArrayForEach(change, list)
    {
        if (apply_change(locked, change, err) != 0) {
            return err->code;
        }
    }
    return 0;
}

/* ---- the chain ---- */

void amendments_begin(const struct lock *lock, struct amendment_chain *chain)
{
    const cJSON *locked = json_member(lock->json, "locked");
    *chain = (struct amendment_chain){
        .locked = json_copy(locked),
        .as_locked = json_member(locked, "plan"),
    };
    memcpy(chain->head, lock->root, sizeof(chain->head));
}

void amendments_release(struct amendment_chain *chain)
{
    for (size_t i = 0; i < chain->n; i++) {
        cJSON_Delete(chain->list[i]);
    }
    free(chain->list);
    cJSON_Delete(chain->locked);
    *chain = (struct amendment_chain){0};
}

/* Comes first: the other members of a newer schema may mean something else. */
static int check_schema(const cJSON *amendment, struct err *err)
{
    int64_t schema = 0;
    if (!cJSON_IsObject(amendment) ||
        json_get_int(amendment, "schema", 0, INT32_MAX, &schema, err) != 0) {
        return err_set(err, ERR_LOCK, "it is not an amendment");
    }
    return schema == AMENDMENT_SCHEMA
               ? 0
               : err_set(err, ERR_VERSION, "it has schema %lld; this version reads %d",
                         (long long)schema, AMENDMENT_SCHEMA);
}

/* Level, time, names, reason, describe, signature and known: each present where it must be, of
 * its type. */
static int check_words(const cJSON *a, struct err *err)
{
    const char *text = NULL;
    const cJSON *describe = json_member(a, "describe");
    const cJSON *signature = json_member(a, "signature");
    struct wall_time made = {0};
    if (json_get_string(a, "level", &text, err) != 0 || access_level_from_name(text) == ACCESS_NR) {
        return err_set(err, ERR_LOCK, "its \"level\" is none");
    }
    if (json_get_string(a, "time", &text, err) != 0 || !clock_wall_parse(text, &made)) {
        return err_set(err, ERR_LOCK, "its \"time\" is none");
    }
    if (json_get_string(a, "program", &text, err) != 0 ||
        json_get_string(a, "reason", &text, err) != 0 ||
        (describe != NULL && !cJSON_IsObject(describe)) ||
        (signature != NULL && !cJSON_IsObject(signature) && !cJSON_IsNull(signature))) {
        return err_set(err, ERR_LOCK, "it is not a whole amendment");
    }
    if (cJSON_IsObject(signature) && signature_json_shape(signature, err) != 0) {
        return err->code;
    }
    if (amendment_check_reason(text, err) != 0) {
        err->code = ERR_LOCK;
        return ERR_LOCK;
    }
    return amend_check_known(json_member(a, AMENDMENT_KNOWN), err);
}

/* Recomputes the head and compares it with the one in the file. */
static int check_head(const cJSON *a, char hex[DIGEST_HEX_SIZE], struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    const char *head = NULL;
    int rc = amendment_text(a, &text, err);
    if (rc == 0) {
        struct digest d = digest_bytes(text.buf, text.len);
        digest_hex(&d, hex);
        if (json_get_string(a, "head", &head, err) != 0 || strcmp(head, hex) != 0) {
            rc = err_set(err, ERR_LOCK,
                         "it was changed after it was made: its head is %.16s, not %.16s", hex,
                         head == NULL ? "none" : head);
        }
    }
    strbuf_release(&text);
    return rc;
}

/* Checks its place in the chain: this root, the head before it, the next number. */
static int check_place(const struct amendment_chain *chain, const char *root, const cJSON *a,
                       struct err *err)
{
    const char *its_root = NULL;
    const char *previous = NULL;
    int64_t number = 0;
    if (json_get_string(a, "root", &its_root, err) != 0 || strcmp(its_root, root) != 0) {
        return err_set(err, ERR_LOCK, "it amends another program (root %.16s, not %.16s)",
                       its_root == NULL ? "none" : its_root, root);
    }
    if (json_get_int(a, "number", 1, AMENDMENT_MAX, &number, err) != 0 ||
        number != (int64_t)chain->n + 1) {
        return err_set(err, ERR_LOCK, "its number is %lld, not %zu", (long long)number,
                       chain->n + 1);
    }
    if (json_get_string(a, "previous", &previous, err) != 0 || strcmp(previous, chain->head) != 0) {
        return err_set(err, ERR_LOCK, "it follows %.16s, not %.16s, the head before it",
                       previous == NULL ? "nothing" : previous, chain->head);
    }
    return 0;
}

/* A path may replace a part as a whole: the result must still have the four parts of a lock. */
static int check_parts(const cJSON *locked, struct err *err)
{
    static const char *const parts[] = {"plan", "data", "files", "solved"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (!cJSON_IsObject(json_member(locked, parts[i]))) {
            return err_set(err, ERR_LOCK, "it leaves no \"%s\"", parts[i]);
        }
    }
    return 0;
}

/* Levels never fall along the chain: results that were seen stay seen. */
static int check_level(const struct amendment_chain *chain, const cJSON *a, struct err *err)
{
    const cJSON *last = chain->n == 0 ? NULL : json_member(chain->list[chain->n - 1], "level");
    const char *level = json_member(a, "level")->valuestring;
    if (last == NULL ||
        access_level_from_name(level) >= access_level_from_name(last->valuestring)) {
        return 0;
    }
    return err_set(err, ERR_LOCK, "its \"level\" is %s, after one of %s", level, last->valuestring);
}

/* The table of rules, at a level that check_words() has validated. */
static int check_rules(const struct amendment_chain *chain, const cJSON *a, const cJSON *after,
                       struct err *err)
{
    struct amend_file f = {
        .changes = json_member(a, "changes"),
        .level = access_level_from_name(json_member(a, "level")->valuestring),
        .known = json_member(a, AMENDMENT_KNOWN),
        .locked = chain->as_locked,
        .before = json_member(chain->locked, "plan"),
        .after = json_member(after, "plan"),
    };
    return amend_check_file(&f, err);
}

/* Checks in the order schema, head, place, words, level, changes, rules: each may rely on those
 * before it. */
int amendments_append(struct amendment_chain *chain, const char *root, cJSON *amendment,
                      struct err *err)
{
    char head[DIGEST_HEX_SIZE];
    cJSON *locked = NULL;
    int rc = check_schema(amendment, err);
    if (rc == 0 && (rc = check_head(amendment, head, err)) == 0 &&
        (rc = check_place(chain, root, amendment, err)) == 0 &&
        (rc = check_words(amendment, err)) == 0 && (rc = check_level(chain, amendment, err)) == 0) {
        locked = json_copy(chain->locked);
        rc = apply_changes(locked, amendment, err);
    }
    if (rc == 0) {
        rc = check_parts(locked, err);
    }
    if (rc == 0) {
        rc = check_rules(chain, amendment, locked, err);
    }
    if (rc != 0) {
        cJSON_Delete(locked);
        return rc;
    }
    cJSON_Delete(chain->locked);
    chain->locked = locked;
    chain->list = xreallocarray(chain->list, chain->n + 1, sizeof(cJSON *));
    chain->list[chain->n++] = amendment;
    memcpy(chain->head, head, sizeof(head));
    return 0;
}

/* ---- files ---- */

/* NNNN.json */
static bool is_amendment_name(const char *name)
{
    return strlen(name) == 9 && strspn(name, "0123456789") == 4 && strcmp(name + 4, ".json") == 0;
}

/* Files of other names are ignored, such as NNNN.toml and NNNN.json.aside. */
static size_t count_files(const struct name_list *names)
{
    size_t n = 0;
    for (size_t i = 0; i < names->n; i++) {
        n += is_amendment_name(names->names[i]);
    }
    return n;
}

/* A gap is an error: there are as many files as count_files() found, so a later one exists. */
static int read_one(const char *folder, const struct lock *lock, struct amendment_chain *chain,
                    struct err *err)
{
    cJSON *amendment = NULL;
    char *path = amendment_file(folder, chain->n + 1, "json");
    int rc = json_read_file(path, LAYOUT_AMENDMENT_MAX, &amendment, err);
    if (rc == ERR_NOT_FOUND) {
        rc = err_set(err, ERR_LOCK, "%s is missing: later ones are there", path);
    } else if (rc != 0) {
        err->code = rc == ERR_SYNTAX ? ERR_LOCK : rc;
    } else if (amendments_append(chain, lock->root, amendment, err) != 0) {
        rc = err_wrap(err, "%s", path);
        cJSON_Delete(amendment);
    }
    free(path);
    return rc == 0 ? 0 : err->code;
}

int amendments_read(const char *folder, const struct lock *lock, struct amendment_chain *out,
                    struct err *err)
{
    struct name_list names = {0};
    int rc = 0;
    amendments_begin(lock, out);
    if (file_kind_at(folder) != FILE_ABSENT) {
        rc = dir_list(folder, &names, err);
    }
    size_t n = rc == 0 ? count_files(&names) : 0;
    while (rc == 0 && out->n < n) {
        rc = read_one(folder, lock, out, err);
    }
    name_list_release(&names);
    return rc;
}

/* ---- an amended lock ---- */

void lock_take_amendments(struct lock *lock, struct amendment_chain *chain)
{
    if (chain->n > 0) {
        lock->amended = chain->locked;
        lock->locked = chain->locked;
        lock->plan = json_member(lock->locked, "plan");
        lock->data = json_member(lock->locked, "data");
        lock->files = json_member(lock->locked, "files");
        lock->solved = json_member(lock->locked, "solved");
        lock->amendments = json_array();
        for (size_t i = 0; i < chain->n; i++) {
            const cJSON *describe = json_member(chain->list[i], "describe");
            lock->describe = describe == NULL ? lock->describe : describe;
            json_push(lock->amendments, chain->list[i]);
        }
        memcpy(lock->head, chain->head, sizeof(lock->head));
        lock->n_amendments = chain->n;
        chain->locked = NULL;
        chain->n = 0;
    }
    amendments_release(chain);
}

/* Starts from a fresh copy, since a lock with amendments no longer has the earlier states. */
int lock_at_head(const struct lock *lock, const char *head, struct lock **out, struct err *err)
{
    struct lock *then = NULL;
    struct amendment_chain chain = {0};
    *out = NULL;
    int rc = lock_copy(lock, &then, err);
    if (rc == 0) {
        amendments_begin(then, &chain);
    }
    const cJSON *next = lock->amendments == NULL ? NULL : lock->amendments->child;
    for (; rc == 0 && next != NULL && strcmp(chain.head, head) != 0; next = next->next) {
        cJSON *amendment = json_copy(next);
        rc = amendments_append(&chain, then->root, amendment, err);
        if (rc != 0) {
            cJSON_Delete(amendment);
        }
    }
    if (rc == 0 && strcmp(chain.head, head) != 0) {
        rc = err_set(err, ERR_LOCK, "no amendment has the head %.16s", head);
    }
    if (rc == 0) {
        lock_take_amendments(then, &chain);
        *out = then;
    } else {
        lock_free(then);
    }
    amendments_release(&chain);
    return rc;
}

int lock_read_amended(const char *program_folder, struct lock **out, struct err *err)
{
    struct lock *lock = NULL;
    struct amendment_chain chain = {0};
    char *path = path_join(program_folder, LAYOUT_LOCK);
    char *folder = path_join(program_folder, LAYOUT_AMENDMENTS);
    *out = NULL;
    int rc = lock_read(path, &lock, err);
    if (rc == 0) {
        rc = amendments_read(folder, lock, &chain, err);
    }
    if (rc == 0) {
        lock_take_amendments(lock, &chain);
        *out = lock;
    } else {
        lock_free(lock);
    }
    amendments_release(&chain);
    free(folder);
    free(path);
    return rc;
}
