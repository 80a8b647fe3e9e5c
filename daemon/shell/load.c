/*
 * Loads every program of the store at the start: its bundle from its folder, and through
 * add_program.c its rows and open attempts.
 *
 * A program that cannot be loaded is left out and reported; it never keeps the daemon from
 * starting. An amendment that was interrupted is healed before the bundle is read. verdict.json is
 * written again when it is gone or changed, because it follows from the store.
 */
#include "daemon/shell/load.h"

#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/program/work.h"
#include "daemon/shell/shell.h"
#include "prereg/amend/amend_heal.h"

int load_origin(const char *folder, char **origin, struct err *err)
{
    cJSON *o = NULL;
    const char *path = NULL;
    char *file = path_join(folder, LAYOUT_ORIGIN);
    *origin = NULL;
    int rc = json_read_file(file, LAYOUT_ORIGIN_MAX, &o, err);
    if (rc == 0) {
        rc = json_get_string(o, "path", &path, err);
    }
    if (rc == 0) {
        *origin = xstrdup(path);
    }
    cJSON_Delete(o);
    free(file);
    return rc;
}

int load_save_origin(const char *folder, const char *origin, struct err *err)
{
    cJSON *o = json_object();
    char *file = path_join(folder, LAYOUT_ORIGIN);
    json_put_int(o, "schema", 1);
    json_put_string(o, "path", origin);
    int rc = json_write_file(file, o, 0600, err);
    free(file);
    cJSON_Delete(o);
    return rc;
}

/* ---- all programs ---- */

struct program_list {
    struct arena texts;
    struct store_program *items;
    size_t n;
    size_t cap;
};

static int take_program(void *ctx, const struct store_program *p, struct err *err)
{
    struct program_list *list = ctx;
    (void)err;
    ARRAY_GROW(list->items, list->n, list->cap);
    list->items[list->n] = *p;
    list->items[list->n].id = arena_strdup(&list->texts, p->id);
    list->items[list->n].name = arena_strdup(&list->texts, p->name);
    list->n++;
    return 0;
}

/* Heals an interrupted amendment first: the store's head says whether it took effect. Then the
 * folder must be of the root that the store has. */
static int load_bundle(struct hosted *h, const struct store_program *row, struct err *err)
{
    char *origin = NULL;
    int rc = load_origin(h->folder, &origin, err);
    if (rc == 0) {
        char root[DIGEST_HEX_SIZE];
        char head[DIGEST_HEX_SIZE];
        digest_hex(&row->root, root);
        digest_hex(&row->head, head);
        rc = amendments_heal(h->folder, head, err);
        if (rc == 0) {
            rc = bundle_load_own(h->folder, origin, &h->bundle, err);
        }
        if (rc == 0 && strcmp(root, h->bundle->lock->root) != 0) {
            rc = err_set(err, ERR_LOCK, "the lock in %s is of another program", h->folder);
        }
    }
    free(origin);
    return rc;
}

/* Whether verdict.json has the digest that was journalled. If not, it is written again. */
static bool verdict_is_there(const struct hosted *h, const struct program_row *status)
{
    struct digest d;
    struct err err;
    char *path = path_join(h->folder, LAYOUT_IN_REPORT(LAYOUT_VERDICT));
    bool same = digest_file(path, &d, NULL, &err) == 0 && digest_equal(&d, &status->verdict_digest);
    free(path);
    return same;
}

/* Without its verdict.json a reported program counts as not reported, so the core asks for the
 * report. */
static int load_one(struct shell *sh, const struct store_program *stored, struct err *err)
{
    struct store_program copy = *stored;
    const struct store_program *row = &copy;
    struct hosted *h = hosted_new(row->no, sh->state, row->id);
    int rc = load_bundle(h, row, err);
    if (rc == 0 && !row->status.removed) {
        rc = work_load(h, &sh->owner, row->status.reported, err);
    }
    if (rc != 0) {
        hosted_free(h);
        return rc;
    }
    if (copy.status.removed && !verdict_is_there(h, &copy.status)) {
        log_error("%s: verdict.json is gone or changed, and cannot be computed again, because its "
                  "cells were removed: restore it from its receipt",
                  h->id);
    } else if (copy.status.reported && !verdict_is_there(h, &copy.status)) {
        log_warn("%s: verdict.json is gone or changed: it is written again", row->id);
        copy.status.reported = false;
    }
    rc = shell_add_program(sh, h, row, err);
    if (rc == 0) {
        shell_mend_report(sh, h);
        shell_prune_all(sh, h);
    }
    return rc;
}

/* A later reason replaces an earlier one of the same program. */
void load_note_unloaded(struct shell *sh, const char *id, const char *name, const struct err *why)
{
    load_forget_unloaded(sh, id);
    ARRAY_GROW(sh->unloaded, sh->n_unloaded, sh->cap_unloaded);
    sh->unloaded[sh->n_unloaded++] =
        (struct unloaded){.id = xstrdup(id), .name = xstrdup(name), .why = *why};
}

void load_forget_unloaded(struct shell *sh, const char *id)
{
    size_t kept = 0;
    for (size_t i = 0; i < sh->n_unloaded; i++) {
        if (strcmp(sh->unloaded[i].id, id) == 0) {
            free(sh->unloaded[i].id);
            free(sh->unloaded[i].name);
        } else {
            sh->unloaded[kept++] = sh->unloaded[i];
        }
    }
    sh->n_unloaded = kept;
}

int load_all(struct shell *sh, struct err *err)
{
    struct program_list list = {0};
    arena_init(&list.texts);
    int rc = store_programs(sh->store, take_program, &list, err);
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        struct err why;
        if (load_one(sh, &list.items[i], &why) != 0) {
            log_error("%s: %s", list.items[i].id, why.msg);
            load_note_unloaded(sh, list.items[i].id, list.items[i].name, &why);
        }
    }
    free(list.items);
    arena_release(&list.texts);
    return rc;
}
