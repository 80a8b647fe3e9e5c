/* diff: a program against its lock and every amendment; needs no daemon. The argument is a file
 * or a program's name. A file is compared with the lock beside it, or with the submitted program
 * of that lock, whose amendments are in the state folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/terminal.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/load.h"
#include "ctl/local_answers.h"
#include "ctl/text/out.h"
#include "ctl/text/status_text.h"
#include "daemon/rpc/client.h"
#include "prereg/amend/access_level.h"
#include "prereg/amend/amendment.h"
#include "prereg/load/program_load.h"

/* What is compared; members stay NULL until they are opened. */
struct diff {
    const char *file; /* grid.toml, or a copy; NULL: none was given */
    char *id;         /* NULL: not submitted here */
    char *folder;     /* STATE/programs/<id>; likewise */
    struct lock *lock;
    struct plan_program *program; /* of the file */
    cJSON *changes;               /* of the file: neither locked nor amended */
    bool as_locked;               /* what it lacks is the amendments, all of them */
    bool other_run;               /* its [run] is not the one that was submitted */
};

/* The state folder that was named, or the user's own. */
static int state_of(const struct ctl_options *o, char **state, struct err *err)
{
    if (o->state != NULL) {
        *state = xstrdup(o->state);
        return 0;
    }
    return rpc_state_folder(state, err);
}

/* Opens a submitted program; its amendments are applied to the lock. */
static int open_folder(struct diff *d, const char *state, const char *id, struct err *err)
{
    d->id = xstrdup(id);
    d->folder = layout_program(state, id);
    return lock_read_amended(d->folder, &d->lock, err);
}

/* Opens the lock beside the file, or the submitted program of that lock, if there is one. */
static int open_beside(struct diff *d, const char *state, struct err *err)
{
    char *lock_path = lock_path_of(d->file);
    int rc = lock_read(lock_path, &d->lock, err);
    if (rc == ERR_NOT_FOUND) {
        rc = err_set(err, ERR_LOCK,
                     "there is no %s to say what it was locked as: lock it, or name a submitted "
                     "program with --program",
                     lock_path);
    } else if (rc == 0) {
        char *id = lock_program_id(d->lock);
        char *folder = layout_program(state, id);
        /* submitted: its amendments may be newer than the lock beside the file */
        if (file_kind_at(folder) == FILE_FOLDER) {
            lock_free(d->lock);
            d->lock = NULL;
            rc = open_folder(d, state, id, err);
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

/* Opens the program that the database finds, where the folder's name alone does not tell. */
static int open_found(struct diff *d, const struct ctl_options *o, const char *name,
                      const char *state, struct err *err)
{
    struct local_program p;
    int rc = local_program_find(o, name, &p, err);
    if (rc == 0) {
        rc = open_folder(d, state, p.id, err);
    }
    local_program_release(&p);
    return rc;
}

/* Opens a submitted program by its name or id; NULL is the program that every command would
 * choose. */
static int open_named(struct diff *d, const struct ctl_options *o, const char *name,
                      const char *state, struct err *err)
{
    struct name_list names = {0};
    const char *found = NULL;
    size_t n = 0;
    char *programs = path_join(state, LAYOUT_PROGRAMS);
    int rc = dir_list(programs, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        if (name == NULL || is_named(names.names[i], name)) {
            found = names.names[i];
            n++;
        }
    }
    if (rc == 0) {
        /* several programs share a name, or there is none: the database decides */
        rc = n == 1 ? open_folder(d, state, found, err) : open_found(d, o, name, state, err);
    }
    name_list_release(&names);
    free(programs);
    return rc;
}

/* ---- how the file differs from the program ---- */

/* The changes from `plan` to the file's plan, with paths as amendments have them. */
static cJSON *changes_to(const struct plan_program *p, const cJSON *plan)
{
    cJSON *now = json_object();
    cJSON *was = json_object();
    json_put(now, "plan", program_covered(p));
    json_put(was, "plan", json_copy(plan));
    cJSON *changes = amendment_changes(was, now);
    cJSON_Delete(was);
    cJSON_Delete(now);
    return changes;
}

/* Whether the file's [run] is not the submitted one; [run] is not part of a plan. */
static bool has_other_run(const struct diff *d)
{
    struct plan_program *submitted = NULL;
    struct diag diag;
    struct err ignored;
    char *path = path_join(d->folder, LAYOUT_GRID);
    diag_init(&diag, path);
    bool other = program_load(path, &submitted, &diag, &ignored) == 0 &&
                 !program_same_run(submitted, d->program);
    program_free(submitted);
    diag_release(&diag);
    free(path);
    return other;
}

/* Compares the file with the amended plan and with the locked one. A file that equals the locked
 * one is not edited: it only lacks the amendments. */
static void compare_file(struct diff *d)
{
    if (d->program == NULL) {
        d->changes = json_array();
        return;
    }
    const cJSON *locked = json_member(json_member(d->lock->json, "locked"), "plan");
    /* against the plan as it was locked: no change means that only the amendments are missing */
    cJSON *of_root = changes_to(d->program, locked);
    d->changes = changes_to(d->program, d->lock->plan);
    d->as_locked = d->lock->n_amendments > 0 && of_root->child == NULL;
    d->other_run = d->folder != NULL && has_other_run(d);
    cJSON_Delete(of_root);
}

/* ---- output ---- */

/* The root that the plan supersedes; NULL when it supersedes none. */
static const char *supersedes_of(const struct lock *lock)
{
    return answer_text(json_member(lock->plan, "program"), "supersedes", NULL);
}

/* The members are documented in docs/; "unlocked" has the file's changes. */
static int say_json(const struct diff *d, struct err *err)
{
    cJSON *o = json_object();
    json_put_string(o, "program", d->id);
    json_put_string(o, "root", d->lock->root);
    json_put_string(o, "head", d->lock->head);
    json_put_string(o, "supersedes", supersedes_of(d->lock));
    json_put_bool(o, "submitted", d->folder != NULL);
    json_put(o, "amendments",
             d->lock->amendments == NULL ? json_array() : json_copy(d->lock->amendments));
    json_put(o, "unlocked", json_copy(d->changes));
    json_put_bool(o, "as_locked", d->as_locked);
    json_put_bool(o, "other_run", d->other_run);
    int rc = out_json(o, err);
    cJSON_Delete(o);
    return rc;
}

/* One amendment: when, at which level, by whom, why, and what it changed. */
static void say_amendment(const cJSON *a)
{
    const char *level = answer_text(a, "level", "?");
    const char *key = answer_text(json_member(a, "signature"), "fingerprint", NULL);
    terminal_printf(stdout, "\namendment %lld, %s: %s\n  head %s\n  %s%s\n  reason: %s\n",
                    (long long)answer_int(a, "number", 0), answer_text(a, "time", "?"),
                    access_level_words(access_level_from_name(level)), answer_text(a, "head", "?"),
                    key == NULL ? "not signed" : "signed by the key ", key == NULL ? "" : key,
                    answer_text(a, "reason", "?"));
    changes_print(json_member(a, "changes"), stdout);
    changes_print_known(a, stdout);
}

/* What the file adds to the amended program, and which command would take it. */
static void say_file(const struct diff *d)
{
    if (d->as_locked) {
        terminal_printf(stdout,
                        "\n%s is the program as it was locked: it has none of the amendments\n",
                        d->file);
    } else if (d->changes->child != NULL) {
        terminal_printf(stdout, "\nin %s, neither locked nor amended:\n", d->file);
        changes_print(d->changes, stdout);
        terminal_printf(
            stdout, "%s\n",
            d->folder != NULL
                ? "`preregctl amend` with --reason asks for that (--dry-run: whether it may)"
                : "`preregctl lock --replace` locks it so");
    } else {
        terminal_printf(stdout, "\n%s is the program %s\n", d->file,
                        d->lock->n_amendments > 0 ? "as it was amended" : "as it was locked");
    }
    if (d->other_run) {
        terminal_printf(
            stdout,
            "its [run] is not the one that was submitted: `preregd submit` takes it over\n");
    }
}

/* The program's amendments in order, then the file. */
static void say_text(const struct diff *d)
{
    const cJSON *a;
    size_t n = d->lock->n_amendments;
    terminal_printf(stdout, "%s: ", d->id != NULL ? d->id : "not submitted here");
    if (n == 0) {
        terminal_printf(stdout, "no amendments\n");
    } else {
        terminal_printf(stdout, "%zu amendment%s\n", n, n == 1 ? "" : "s");
    }
    terminal_printf(stdout, "root %s\nhead %s\n", d->lock->root, d->lock->head);
    if (supersedes_of(d->lock) != NULL) {
        terminal_printf(stdout, "supersedes %s\n", supersedes_of(d->lock));
    }
    cJSON_ArrayForEach(a, d->lock->amendments)
    {
        say_amendment(a);
    }
    if (d->file != NULL) {
        say_file(d);
    }
}

/* Whether an argument looks like a file, even if there is none. */
static bool is_path(const char *what)
{
    size_t n = strlen(what);
    return strchr(what, '/') != NULL || (n > 5 && strcmp(what + n - 5, ".toml") == 0);
}

/* Decides whether the argument is a file or a name, and opens what it names. */
static int open_all(struct diff *d, const struct ctl_options *o, const char *state, struct err *err)
{
    const char *what = o->n_args > 0 ? o->args[0] : NULL;
    bool file = what != NULL && (is_path(what) || file_kind_at(what) == FILE_REGULAR);
    if (what != NULL && !file && o->program != NULL) {
        return err_set(err, ERR_USAGE, "%s and --program both name a program", what);
    }
    if (!file) {
        return open_named(d, o, what != NULL ? what : o->program, state, err);
    }
    if (file_kind_at(what) == FILE_ABSENT) {
        return err_set(err, ERR_NOT_FOUND, "%s: no such file", what);
    }
    d->file = what;
    int rc = load_program(what, &d->program, err);
    if (rc != 0) {
        return rc;
    }
    return o->program != NULL ? open_named(d, o, o->program, state, err)
                              : open_beside(d, state, err);
}

/* Opens everything first, then prints: an error never follows half an answer. */
int cmd_diff(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    struct diff d = {0};
    char *state = NULL;
    *code = EXIT_OK;
    int rc = state_of(o, &state, err);
    if (rc == 0) {
        rc = open_all(&d, o, state, err);
    }
    if (rc == 0) {
        compare_file(&d);
        if (o->json) {
            rc = say_json(&d, err);
        } else {
            say_text(&d);
        }
    }
    cJSON_Delete(d.changes);
    program_free(d.program);
    lock_free(d.lock);
    free(d.folder);
    free(d.id);
    free(state);
    return rc;
}
