/* diff: a program against its lock and every amendment; needs no daemon. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "ctl/changes.h"
#include "ctl/ctl.h"
#include "ctl/load.h"
#include "ctl/out.h"
#include "daemon/rpc/client.h"
#include "prereg/amendment.h"

struct diff {
    char *folder; /* STATE/programs/<id>, or NULL: not submitted here */
    struct lock *lock;
    struct program *program; /* of the file; NULL: none was given */
};

static int state_of(const struct ctl_options *o, char **state, struct err *err)
{
    if (o->state != NULL) {
        *state = xstrdup(o->state);
        return 0;
    }
    return rpc_state_folder(state, err);
}

/* A file: its lock lies beside it, its amendments in the state folder when it was submitted. */
static int open_file(struct diff *d, const char *path, const char *state, struct err *err)
{
    int rc = load_program(path, &d->program, err);
    char *lock_path = lock_path_of(path);
    if (rc == 0) {
        rc = lock_read(lock_path, &d->lock, err);
    }
    if (rc == 0) {
        char *id = lock_program_id(d->lock);
        char *folder = xasprintf("%s/programs/%s", state, id);
        if (file_kind_at(folder) == FILE_FOLDER) {
            lock_free(d->lock);
            d->lock = NULL;
            d->folder = xstrdup(folder);
            rc = lock_read_amended(folder, &d->lock, err);
        }
        free(folder);
        free(id);
    }
    free(lock_path);
    return rc;
}

/* "NAME" of "NAME-01234567" */
static bool is_named(const char *id, const char *name)
{
    size_t n = strlen(name);
    return strcmp(id, name) == 0 ||
           (strlen(id) == n + 9 && strncmp(id, name, n) == 0 && id[n] == '-');
}

static int open_named(struct diff *d, const char *name, const char *state, struct err *err)
{
    struct name_list names = {0};
    const char *found = NULL;
    size_t n = 0;
    char *programs = path_join(state, "programs");
    int rc = dir_list(programs, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        if (name == NULL || is_named(names.names[i], name)) {
            found = names.names[i];
            n++;
        }
    }
    if (rc == 0 && n != 1) {
        rc = n == 0 ? err_set(err, ERR_NOT_FOUND, "no program is called \"%.80s\" in %s",
                              name == NULL ? "" : name, programs)
                    : err_set(err, ERR_USAGE, "%zu programs could be meant: give the id", n);
    }
    if (rc == 0) {
        d->folder = path_join(programs, found);
        rc = lock_read_amended(d->folder, &d->lock, err);
    }
    name_list_release(&names);
    free(programs);
    return rc;
}

static cJSON *differing(const struct diff *d)
{
    if (d->program == NULL) {
        return json_array();
    }
    cJSON *now = json_object();
    cJSON *was = json_object();
    json_put(now, "plan", program_covered(d->program));
    json_put(was, "plan", json_copy(d->lock->plan));
    cJSON *changes = amendment_changes(was, now);
    cJSON_Delete(was);
    cJSON_Delete(now);
    return changes;
}

static const char *supersedes_of(const struct lock *lock)
{
    return answer_text(json_member(lock->plan, "program"), "supersedes", NULL);
}

static int say_json(const struct diff *d, const cJSON *changes, struct err *err)
{
    cJSON *o = json_object();
    json_put_string(o, "root", d->lock->root);
    json_put_string(o, "head", d->lock->head);
    json_put_string(o, "supersedes", supersedes_of(d->lock));
    json_put_bool(o, "submitted", d->folder != NULL);
    json_put(o, "amendments",
             d->lock->amendments == NULL ? json_array() : json_copy(d->lock->amendments));
    json_put(o, "unlocked", json_copy(changes));
    int rc = out_json(o, err);
    cJSON_Delete(o);
    return rc;
}

static void say_amendment(const cJSON *a)
{
    printf("\namendment %lld, %s, %s%s\n  head %s\n  reason: %s\n",
           (long long)answer_int(a, "number", 0), answer_text(a, "time", "?"),
           answer_text(a, "level", "?"),
           cJSON_IsObject(json_member(a, "signature")) ? ", signed" : ", not signed",
           answer_text(a, "head", "?"), answer_text(a, "reason", "?"));
    changes_print(json_member(a, "changes"), stdout);
}

static void say_text(const struct diff *d, const cJSON *changes)
{
    const cJSON *a;
    printf("root %s\nhead %s\n", d->lock->root, d->lock->head);
    if (supersedes_of(d->lock) != NULL) {
        printf("supersedes %s\n", supersedes_of(d->lock));
    }
    if (d->folder == NULL) {
        printf("not submitted here\n");
    }
    cJSON_ArrayForEach(a, d->lock->amendments)
    {
        say_amendment(a);
    }
    if (changes->child != NULL) {
        printf("\nin the file, neither locked nor amended:\n");
        changes_print(changes, stdout);
    } else if (d->lock->n_amendments == 0) {
        printf("no amendments\n");
    }
}

int cmd_diff(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    struct diff d = {0};
    char *state = NULL;
    const char *what = o->n_args > 0 ? o->args[0] : NULL;
    *code = EXIT_OK;
    int rc = state_of(o, &state, err);
    if (rc == 0) {
        rc = what != NULL && file_kind_at(what) == FILE_REGULAR ? open_file(&d, what, state, err)
                                                                : open_named(&d, what, state, err);
    }
    if (rc == 0) {
        cJSON *changes = differing(&d);
        if (o->json) {
            rc = say_json(&d, changes, err);
        } else {
            say_text(&d, changes);
        }
        cJSON_Delete(changes);
    }
    program_free(d.program);
    lock_free(d.lock);
    free(d.folder);
    free(state);
    return rc;
}
