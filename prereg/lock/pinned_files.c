/*
 * Collects what a program pins, in the order commands, [pin] files, models. A name is the key of
 * the lock's "files", so one name must not resolve to two files: a bare worker in $PATH and a [pin]
 * file of the same name would.
 */
#include "prereg/lock/pinned_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "prereg/lock/object.h"

/* A fault of a file: into diag, if the caller collects them. */
static int fault(struct diag *diag, struct place at, const char *what, struct err *err)
{
    if (diag == NULL) {
        return err_wrap(err, "%s", what);
    }
    diag_add(diag, DIAG_ERROR, at.line, at.column, "%s: %s", what, err->msg);
    return 0;
}

/* Adds an item, or merges it with the one of the same name. Owns item->path, also on failure. */
static int add(struct pinned_list *list, const struct pinned *item, struct err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->items[i].name, item->name) != 0) {
            continue;
        }
        bool same = strcmp(list->items[i].path, item->path) == 0;
        int rc = same ? 0
                      : err_set(err, ERR_INVALID, "\"%s\" would name two files, %s and %s",
                                item->name, list->items[i].path, item->path);
        list->items[i].command = list->items[i].command || item->command;
        free(item->path);
        return rc;
    }
    ARRAY_GROW(list->items, list->n, list->cap);
    list->items[list->n++] = *item;
    return 0;
}

/* The files of one stage's command; plain arguments are skipped. */
static int add_command(const struct plan_program *p, size_t stage, struct pinned_list *list,
                       struct diag *diag, struct err *err)
{
    const struct plan_stage *s = &p->stages[stage];
    for (size_t i = 0; i < s->n_command; i++) {
        struct pinned item = {.name = s->command[i], .command = true, .place = s->place};
        int rc = object_resolve_argument(p, stage, i, &item.path, err);
        if (rc == 0 && item.path != NULL) {
            rc = add(list, &item, err);
        }
        if (rc != 0) {
            char what[96];
            (void)snprintf(what, sizeof(what), "stage.%s.command", s->name);
            rc = fault(diag, s->place, what, err);
        }
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

/* A [pin] file or a model: file or folder, relative to the program. */
static int add_path(const struct plan_program *p, struct pinned_list *list,
                    const struct pinned *from, struct diag *diag, struct err *err)
{
    struct pinned item = *from;
    item.path = path_absolute(p->folder, item.name);
    enum file_kind kind = file_kind_at(item.path);
    int rc;
    if (kind == FILE_ABSENT || kind == FILE_OTHER) {
        rc = err_set(err, kind == FILE_ABSENT ? ERR_NOT_FOUND : ERR_INVALID,
                     kind == FILE_ABSENT ? "%s does not exist" : "%s is neither file nor folder",
                     item.path);
        free(item.path);
    } else {
        rc = add(list, &item, err);
    }
    return rc == 0 ? 0 : fault(diag, item.place, "pinned file", err);
}

int pinned_collect(const struct plan_program *p, struct pinned_list *out, struct diag *diag,
                   struct err *err)
{
    *out = (struct pinned_list){0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->n_stages; i++) {
        rc = add_command(p, i, out, diag, err);
    }
    for (size_t i = 0; rc == 0 && i < p->n_pin_files; i++) {
        rc = add_path(p, out, &(struct pinned){.name = p->pin_files[i]}, diag, err);
    }
    for (size_t i = 0; rc == 0 && i < p->n_apparatus; i++) {
        const struct plan_apparatus *a = &p->apparatus[i];
        rc = add_path(p, out, &(struct pinned){.name = a->model, .place = a->place}, diag, err);
    }
    return rc;
}

void pinned_release(struct pinned_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i].path);
    }
    free(list->items);
    *list = (struct pinned_list){0};
}

/* Whether a name ends like that of a script. */
static bool is_script(const char *name)
{
    static const char *const ends[] = {".py", ".sh", ".R", ".jl", ".pl"};
    const char *dot = strrchr(name, '.');
    bool is = false;
    for (size_t i = 0; dot != NULL && i < ARRAY_LEN(ends); i++) {
        is = is || strcmp(dot, ends[i]) == 0;
    }
    return is;
}

/* Whether the command, or the last part of its path, is called like an interpreter: the first
 * script behind another program may be what it is to write. */
static bool is_interpreter(const char *command)
{
    static const char *const names[] = {"python", "bash", "sh", "Rscript", "julia", "perl"};
    const char *slash = strrchr(command, '/');
    const char *base = slash == NULL ? command : slash + 1;
    bool is = strcmp(base, "prereg-python") == 0;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const size_t n = strlen(names[i]);
        is = is ||
             (strncmp(base, names[i], n) == 0 && base[n + strspn(base + n, "0123456789.")] == '\0');
    }
    return is;
}

/* ["python3", "-u", "train.py"]: the first word after the options, if it is a script, must be
 * there: else nothing would be pinned, and the interpreter would look in the attempt's folder. */
static void check_script(const struct plan_program *p, const struct plan_stage *s,
                         struct diag *diag)
{
    size_t i = 1;
    if (s->n_command < 2 || !is_interpreter(s->command[0])) {
        return;
    }
    while (i < s->n_command && s->command[i][0] == '-' && strlen(s->command[i]) == 2 &&
           strchr("ceEm", s->command[i][1]) == NULL) { /* what follows these is code, or a module */
        i++;
    }
    if (i >= s->n_command || strchr("-/", s->command[i][0]) != NULL || !is_script(s->command[i]) ||
        strpbrk(s->command[i], " \t\n") != NULL) {
        return;
    }
    char *path = path_absolute(p->folder, s->command[i]);
    if (file_kind_at(path) == FILE_ABSENT) {
        diag_add(diag, DIAG_ERROR, s->place.line, s->place.column,
                 "stage.%s.command: %s does not exist", s->name, path);
    }
    free(path);
}

void program_check_files(const struct plan_program *p, struct diag *diag)
{
    for (size_t i = 0; i < p->n_data; i++) {
        const struct data_input *d = &p->data[i];
        enum file_kind kind = file_kind_at(d->abs_path);
        if (kind == FILE_ABSENT) {
            diag_add(diag, DIAG_ERROR, d->place.line, d->place.column, "data.%s: %s does not exist",
                     d->name, d->abs_path);
        } else if (kind == FILE_OTHER) {
            diag_add(diag, DIAG_ERROR, d->place.line, d->place.column,
                     "data.%s: %s is neither file nor folder", d->name, d->abs_path);
        }
    }
    for (size_t i = 0; i < p->n_stages; i++) {
        const struct plan_stage *s = &p->stages[i];
        if (s->environment_path != NULL && file_kind_at(s->environment_path) != FILE_FOLDER) {
            diag_add(diag, DIAG_ERROR, s->place.line, s->place.column,
                     "stage.%s.environment: %s is not a folder; make it, and install what the "
                     "stage needs",
                     s->name, s->environment_path);
        }
        check_script(p, s, diag);
    }
    struct pinned_list files;
    struct err err;
    if (pinned_collect(p, &files, diag, &err) != 0) {
        diag_add(diag, DIAG_ERROR, 0, 0, "%s", err.msg);
    }
    pinned_release(&files);
}
