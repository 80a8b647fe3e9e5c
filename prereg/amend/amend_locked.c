/*
 * Builds `locked` of an amended program from the lock and the amended text. Digests are copied from
 * the lock wherever the plan still names the same file, never computed again: an amendment must not
 * absorb a file that was changed on disk since the program was locked. Only data whose path changed
 * and reference models that are new are hashed here.
 */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/amend/amend_reads.h"
#include "prereg/amend/amend_rules.h"

/* Hashes a file or folder and stores the digest under `name`. */
static int put_digest(cJSON *out, const char *name, const char *path, struct err *err)
{
    struct digest d;
    char hex[DIGEST_HEX_SIZE];
    if (digest_path(path, &d, err) != 0) {
        return err_wrap(err, "%s", name);
    }
    digest_hex(&d, hex);
    json_put_string(out, name, hex);
    return 0;
}

/* The path of that entry of [data] as written; NULL when the program has none. */
static const char *path_of_data(const struct plan_program *p, const char *name)
{
    for (size_t i = 0; i < p->n_data; i++) {
        if (strcmp(p->data[i].name, name) == 0) {
            return p->data[i].path;
        }
    }
    return NULL;
}

/* One digest for each entry of [data], taken from the lock when name and path are as before. */
static int build_data(const struct lock *lock, const struct amend_state *s, cJSON *out,
                      struct err *err)
{
    for (size_t i = 0; i < s->then->n_data; i++) {
        const struct data_input *d = &s->then->data[i];
        const char *before = path_of_data(s->now, d->name);
        const char *digest = lock_data_digest(lock, d->name);
        if (before != NULL && digest != NULL && strcmp(before, d->path) == 0) {
            json_put_string(out, d->name, digest);
        } else if (put_digest(out, d->name, d->abs_path, err) != 0) {
            return err_wrap(err, "[data]");
        }
    }
    return 0;
}

/* First keeps all pinned files but reference models that nothing names any more, then adds the
 * models that are not pinned yet. */
static int build_files(const struct lock *lock, const struct amend_state *s, cJSON *out,
                       struct err *err)
{
    for (const cJSON *m = lock->files->child; m != NULL; m = m->next) {
        if (!amend_names_model(s->now->tree, m->string) ||
            amend_names_file(s->then->tree, m->string)) {
            json_put(out, m->string, json_copy(m));
        }
    }
    for (size_t i = 0; i < s->then->n_apparatus; i++) {
        const char *model = s->then->apparatus[i].model;
        if (json_member(out, model) != NULL) {
            continue;
        }
        char *path = path_absolute(s->then->folder, model);
        int rc = put_digest(out, model, path, err);
        free(path);
        if (rc != 0) {
            return err_wrap(err, "[apparatus.%s]", s->then->apparatus[i].name);
        }
    }
    return 0;
}

int amend_build_locked(const struct lock *lock, const struct amend_state *state,
                       const cJSON *solved, cJSON **out, struct err *err)
{
    cJSON *data = json_object();
    cJSON *files = json_object();
    cJSON *locked = json_copy(lock->locked);
    *out = NULL;
    int rc = build_data(lock, state, data, err);
    if (rc == 0) {
        rc = build_files(lock, state, files, err);
    }
    /* everything else in `locked` is as the lock has it */
    const char *const parts[] = {"plan", "data", "files", "solved"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        cJSON_DeleteItemFromObjectCaseSensitive(locked, parts[i]);
    }
    json_put(locked, "plan", program_covered(state->then));
    json_put(locked, "data", data);
    json_put(locked, "files", files);
    json_put(locked, "solved", json_copy(solved == NULL ? lock->solved : solved));
    if (rc != 0) {
        cJSON_Delete(locked);
        return rc;
    }
    *out = locked;
    return 0;
}
