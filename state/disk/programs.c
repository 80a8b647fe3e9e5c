/*
 * Goes through the rows of the store and the folders below STATE/programs side by side: a program
 * needs both, and whatever has only one of them is listed as damaged.
 */
#include "state/disk/programs.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/load/toml.h"
#include "prereg/program/verdict_kind.h"
#include "state/disk/usage.h"
#include "state/store/store.h"
#include "state/tenure/record.h"

struct listing {
    const char *state;
    const char *only; /* or NULL */
    bool details;
    struct store *store;
    struct name_list known; /* ids of the store */
    cJSON *programs;
    cJSON *damaged;
};

static void put_time(cJSON *o, const char *key, struct wall_time t)
{
    char text[WALL_TEXT_SIZE];
    clock_wall_text(t, text);
    json_put_string(o, key, t.ms == 0 ? NULL : text);
}

static void note_damage(struct listing *l, const char *id, const char *why)
{
    cJSON *o = json_object();
    json_put_string(o, "id", id);
    json_put_string(o, "why", why);
    json_push(l->damaged, o);
}

/* ---- one program ---- */

/* The time of a journal's line. */
static int take_time(void *ctx, int64_t seq, const char *line, struct err *err)
{
    struct wall_time *time = ctx;
    cJSON *row = NULL;
    const char *text = NULL;
    (void)seq;
    int rc = json_parse(line, strlen(line), &row, err);
    if (rc == 0) {
        rc = json_get_string(row, "time", &text, err);
    }
    if (rc == 0) {
        (void)clock_wall_parse(text, time);
    }
    cJSON_Delete(row);
    return rc;
}

static int put_last(struct listing *l, const struct store_program *p, cJSON *o, struct err *err)
{
    struct digest head;
    int64_t n = 0;
    struct wall_time last = {0};
    int rc = store_journal_head(l->store, p->no, &head, &n, err);
    if (rc == 0) {
        rc = store_journal(l->store, p->no, n, take_time, &last, err);
    }
    put_time(o, "last", last);
    return rc;
}

/* Counts, and the state that follows from the rows alone. */
static int put_tasks(struct listing *l, const struct store_program *p, cJSON *o, struct err *err)
{
    struct task_row *rows = NULL;
    size_t n = 0;
    int64_t by_state[TASK_STATE_NR] = {0};
    const size_t n_grid = (size_t)p->n_cells * p->n_stages;
    int rc = store_task_rows(l->store, p->no, &rows, &n, err);
    for (size_t i = 0; i < n && i < n_grid; i++) {
        by_state[rows[i].state]++;
    }
    free(rows);
    const int64_t ended = by_state[TASK_DONE] + by_state[TASK_BLOCKED] + by_state[TASK_NEVER_RUN];
    json_put_string(o, "state",
                    p->status.reported         ? "finished"
                    : ended == (int64_t)n_grid ? "finishing"
                    : p->status.paused != 0    ? "paused"
                                               : "running");
    cJSON *tasks = json_object();
    json_put_int(tasks, "planned", (int64_t)n_grid);
    json_put_int(tasks, "starting", by_state[TASK_STARTING]); /* perhaps in Slurm's queue */
    json_put_int(tasks, "running", by_state[TASK_RUNNING]);
    json_put_int(tasks, "done", by_state[TASK_DONE]);
    json_put_int(tasks, "blocked", by_state[TASK_BLOCKED]);
    json_put_int(tasks, "never_run", by_state[TASK_NEVER_RUN]);
    json_put(o, "tasks", tasks);
    return rc;
}

static void put_verdict(cJSON *o, const struct program_row *status)
{
    cJSON *verdict = NULL;
    if (status->verdict) {
        verdict = json_object();
        verdict_kind_put(verdict, status->outcome);
    }
    json_put(o, "verdict", verdict == NULL ? cJSON_CreateNull() : verdict);
}

static void put_sizes(cJSON *o, const struct usage *u)
{
    cJSON *size = json_object();
    int64_t all = 0;
    for (int k = 0; k < USAGE_KIND_NR; k++) {
        all += u->bytes[k];
    }
    json_put_int(size, "cells", usage_cells(u));
    json_put_int(size, "journal", u->bytes[USAGE_JOURNAL]);
    json_put_int(size, "report", u->bytes[USAGE_REPORT]);
    json_put_int(size, "other", u->bytes[USAGE_PLAN] + u->bytes[USAGE_RERUNS]);
    json_put_int(size, "all", all);
    json_put_bool(size, "partial", u->partial);
    json_put(o, "bytes", size);
}

/* What is missing of a folder whose program is in the database; NULL: nothing. */
static const char *find_fault(const char *folder, const struct program_row *status)
{
    static const struct {
        const char *name;
        const char *why;
    } files[] = {
        {LAYOUT_GRID, "its grid.toml is missing: restore its folder from a copy"},
        {LAYOUT_LOCK, "its grid.toml.lock is missing: restore its folder from a copy"},
        {LAYOUT_JOURNAL, "its journal.jsonl is missing: the next `preregd serve` writes it again "
                         "from the database"},
        {LAYOUT_IN_REPORT(LAYOUT_VERDICT), "its verdict.json is missing: the next `preregd serve` "
                                           "writes it again"},
    };
    if (file_kind_at(folder) != FILE_FOLDER) {
        return "its folder is missing: restore it from a copy, or mount its disk";
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        const bool due = i < 3 || status->reported;
        char *path = path_join(folder, files[i].name);
        const bool is = file_kind_at(path) == FILE_REGULAR;
        free(path);
        if (due && !is) {
            return files[i].why;
        }
    }
    return NULL;
}

/* [run] priority of the program's own copy, which a daemon applies when it starts; null where that
 * cannot be read. */
static void put_priority(cJSON *o, const char *folder)
{
    struct strbuf text = STRBUF_INIT;
    struct toml_node *root = NULL;
    struct arena arena;
    struct diag diag;
    struct err ignored;
    char *path = path_join(folder, LAYOUT_GRID);
    arena_init(&arena);
    diag_init(&diag, NULL);
    if (file_read(path, LAYOUT_GRID_MAX, &text, &ignored) == 0 &&
        text_is_utf8(text.buf, text.len) &&
        toml_parse(text.buf, text.len, &arena, &root, &diag) == 0) {
        const struct toml_node *n = toml_member(toml_member(root, "run"), "priority");
        json_put_int(o, "priority", n != NULL && n->kind == TOML_INTEGER ? n->integer : 0);
    } else {
        json_put_null(o, "priority");
    }
    diag_release(&diag);
    arena_release(&arena);
    strbuf_release(&text);
    free(path);
}

static int put_summary(struct listing *l, const struct store_program *p, cJSON *o, struct err *err)
{
    char root[DIGEST_HEX_SIZE];
    digest_hex(&p->root, root);
    json_put_string(o, "name", p->name);
    json_put_string(o, "root", root);
    int rc = put_tasks(l, p, o, err);
    put_verdict(o, &p->status);
    json_put_bool(o, "paused", p->status.paused != 0 && !p->status.verdict);
    put_time(o, "submitted", p->submitted);
    if (rc == 0) {
        rc = put_last(l, p, o, err);
    }
    json_put_bool(o, "unverified", p->unverified_history);
    json_put_bool(o, "removed", p->status.removed);
    return rc;
}

static void push_freeable(cJSON *list, const char *what, int64_t bytes, const char *how)
{
    if (bytes <= 0) {
        return;
    }
    cJSON *o = json_object();
    json_put_string(o, "what", what);
    json_put_int(o, "bytes", bytes);
    json_put_string(o, "how", how);
    json_push(list, o);
}

static void put_details(const struct store_program *p, const struct usage *u, cJSON *o)
{
    cJSON *kinds = json_object();
    cJSON *list = json_array();
    for (int k = 0; k < USAGE_KIND_NR; k++) {
        json_put_int(kinds, usage_kind_name((enum usage_kind)k), u->bytes[k]);
    }
    push_freeable(list, "checkpoints of finished tasks but the last of each", u->superseded_last,
                  "[run] keep = \"last\", and `preregd submit` again");
    push_freeable(list, "all checkpoints of finished tasks", u->superseded_none,
                  "[run] keep = \"none\", and `preregd submit` again");
    char *how = xasprintf("preregctl export %s, then preregctl remove %s", p->id, p->id);
    if (p->status.reported && !p->status.removed) {
        push_freeable(list, "all cells", usage_cells(u), how);
    }
    free(how);
    json_put(o, "kinds", kinds);
    json_put(o, "freeable", list);
}

static int list_one(void *ctx, const struct store_program *p, struct err *err)
{
    struct listing *l = ctx;
    struct usage u;
    int rc = 0;
    ARRAY_GROW(l->known.names, l->known.n, l->known.cap);
    l->known.names[l->known.n++] = xstrdup(p->id);
    if (l->only != NULL && strcmp(l->only, p->id) != 0) {
        return 0;
    }
    char *folder = layout_program(l->state, p->id);
    cJSON *o = json_object();
    const char *why = find_fault(folder, &p->status);
    usage_of_program(folder, l->details, &u);
    json_put_string(o, "id", p->id);
    if (l->details) {
        put_details(p, &u, o);
    } else {
        rc = put_summary(l, p, o, err);
        put_priority(o, folder);
    }
    put_sizes(o, &u);
    if (why != NULL) {
        note_damage(l, p->id, why);
    }
    (void)cJSON_InsertItemInArray(l->programs, 0, o); /* newest first */
    free(folder);
    return rc;
}

/* ---- folders without a row ---- */

static bool is_known(const struct listing *l, const char *id)
{
    for (size_t i = 0; i < l->known.n; i++) {
        if (strcmp(l->known.names[i], id) == 0) {
            return true;
        }
    }
    return false;
}

static void list_strangers(struct listing *l, const char *why)
{
    struct name_list names = {0};
    struct err ignored;
    char *root = path_join(l->state, LAYOUT_PROGRAMS);
    if (file_kind_at(root) == FILE_FOLDER && dir_list(root, &names, &ignored) == 0) {
        for (size_t i = 0; i < names.n; i++) {
            char *folder = path_join(root, names.names[i]);
            const bool is = file_kind_at(folder) == FILE_FOLDER && !is_known(l, names.names[i]);
            if (is && (l->only == NULL || strcmp(l->only, names.names[i]) == 0)) {
                note_damage(l, names.names[i], why);
            }
            free(folder);
        }
    }
    name_list_release(&names);
    free(root);
}

static int list_all(struct listing *l, struct err *err)
{
    struct err why = {0};
    if (file_kind_at(l->state) != FILE_FOLDER) {
        return err_set(err, ERR_NOT_FOUND, "%.180s: there is no such state folder", l->state);
    }
    int rc = store_open(l->state, STORE_READER, &l->store, &why);
    if (rc == 0) {
        rc = store_programs(l->store, list_one, l, &why);
    }
    store_close(l->store);
    l->store = NULL;
    if (rc != 0) {
        char *text = xasprintf("the database cannot be read: %s", why.msg);
        list_strangers(l, text);
        free(text);
        return 0;
    }
    list_strangers(l, "the database does not know it: stop preregd, run `preregctl rebuild`");
    return 0;
}

static int list_state(struct listing *l, cJSON **out, struct err *err)
{
    l->programs = json_array();
    l->damaged = json_array();
    *out = NULL;
    int rc = list_all(l, err);
    if (rc == 0) {
        char *objects = path_join(l->state, LAYOUT_OBJECTS);
        char *local = tenure_local_folder(l->state);
        char *database = path_join(local, LAYOUT_DATABASE);
        char *wal = xasprintf("%s-wal", database);
        char *log = path_join(local, LAYOUT_LOG);
        *out = json_object();
        json_put(*out, "programs", l->programs);
        json_put(*out, "damaged", l->damaged);
        json_put_int(*out, "objects_bytes", usage_of_path(objects));
        json_put_int(*out, "database_bytes", usage_of_path(database) + usage_of_path(wal));
        json_put_int(*out, "log_bytes", usage_of_path(log));
        json_put_int(*out, "free_bytes", disk_free_bytes(l->state));
        free(objects);
        free(database);
        free(local);
        free(wal);
        free(log);
    } else {
        cJSON_Delete(l->programs);
        cJSON_Delete(l->damaged);
    }
    name_list_release(&l->known);
    return rc;
}

int disk_programs(const char *state, cJSON **out, struct err *err)
{
    assert(state != NULL && out != NULL);
    struct listing l = {.state = state};
    return list_state(&l, out, err);
}

int disk_details(const char *state, const char *only, cJSON **out, struct err *err)
{
    assert(state != NULL && out != NULL);
    struct listing l = {.state = state, .only = only, .details = true};
    return list_state(&l, out, err);
}
