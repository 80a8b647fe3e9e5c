/* Reads what a rerun starts from: a cell's accepted results with the heads they were made under,
 * and program and lock as of such a head. All of it comes from the state folder, read only:
 * grid.toml beside the user may have changed since. An accepted result must still have the
 * digest in the database. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/load.h"
#include "ctl/rerun.h"
#include "prereg/amend/amendment.h"
#include "prereg/load/program_load.h"
#include "prereg/lock/imported.h"
#include "prereg/program/cell_name.h"
#include "prereg/task/task.h"
#include "state/store/store.h"

/* ---- plan and lock ---- */

/* Where the program was submitted from: relative paths of its plan start there. */
static int read_origin(struct rerun_source *src, struct err *err)
{
    cJSON *o = NULL;
    const char *path = NULL;
    char *file = path_join(src->folder, LAYOUT_ORIGIN);
    int rc = json_read_file(file, LAYOUT_ORIGIN_MAX, &o, err);
    if (rc == 0) {
        rc = json_get_string(o, "path", &path, err);
    }
    if (rc == 0) {
        src->origin = xstrdup(path);
    }
    cJSON_Delete(o);
    free(file);
    return rc;
}

/* Reads the lock as it was at this head. */
static int read_lock(struct rerun_source *src, const char *head, struct err *err)
{
    struct lock *last = NULL;
    int rc = lock_read_amended(src->folder, &last, err);
    if (rc == 0 && lock_at_head(last, head, &src->lock, err) != 0) {
        rc = err_wrap(err, "%s", src->folder);
    }
    lock_free(last);
    return rc;
}

/* The program's text at the lock's head: amendments/NNNN.toml, or grid.toml when it was never
 * amended. Relative paths are those of the folder that it was submitted from. */
static int read_program(struct rerun_source *src, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct diag diag;
    char *amendments = path_join(src->folder, LAYOUT_AMENDMENTS);
    char *path = amendment_file(amendments, src->lock->n_amendments, "toml");
    if (file_kind_at(path) == FILE_ABSENT && src->lock->n_amendments == 0) {
        free(path); /* never amended: there is only the text that was submitted */
        path = path_join(src->folder, LAYOUT_GRID);
    }
    diag_init(&diag, src->origin);
    int rc = file_read(path, LAYOUT_GRID_MAX, &text, err);
    if (rc == 0) {
        rc = program_parse(text.buf, text.len, src->origin, &src->program, &diag, err);
    }
    diag_release(&diag);
    strbuf_release(&text);
    free(path);
    free(amendments);
    return rc;
}

/* Releases program and lock, before those of another head are read. */
static void forget_plan(struct rerun_source *src)
{
    program_free(src->program);
    lock_free(src->lock);
    src->program = NULL;
    src->lock = NULL;
}

int rerun_source_at(struct rerun_source *src, const char *head, struct err *err)
{
    if (src->lock != NULL && strcmp(src->lock->head, head) == 0) {
        return 0;
    }
    forget_plan(src);
    int rc = read_lock(src, head, err);
    if (rc != 0 || (rc = read_program(src, err)) != 0) {
        return rc;
    }
    return lock_verify(src->program, src->lock, LOCK_PLAN | LOCK_DATA | LOCK_PINS, NULL, NULL, err);
}

/* ---- the accepted results ---- */

/* Called for every accepted result of the program; keeps those of the cell. */
static int take_result(void *ctx, uint32_t task, uint32_t attempt_no, const struct digest *digest,
                       struct err *err)
{
    struct rerun_source *src = ctx;
    (void)attempt_no;
    (void)err;
    /* tasks are numbered cell by cell */
    if (task / src->n_stages == src->cell) {
        src->accepted[task % src->n_stages].done = true;
        src->accepted[task % src->n_stages].digest = *digest;
    }
    return 0;
}

/* The head in the attempt's task; a task without one was made under the root. */
static int read_head(struct rerun_source *src, struct rerun_accepted *a, struct err *err)
{
    cJSON *task = NULL;
    const char *head = src->lock->root;
    int rc = attempt_task_read(a->folder, &task, err);
    if (rc == 0) {
        rc = json_opt_string(task, "head", &head, err);
    }
    if (rc == 0) {
        (void)snprintf(a->head, sizeof(a->head), "%s", head);
    }
    cJSON_Delete(task);
    return rc;
}

/* Reads an accepted result, verifies its digest, and finds the attempt that the link points
 * into. */
static int read_accepted(struct rerun_source *src, size_t stage, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct rerun_accepted *a = &src->accepted[stage];
    char *path = xasprintf("%s/" LAYOUT_CELLS "/%s/%s/" LAYOUT_RESULT, src->folder,
                           src->program->cells[src->cell].folder, src->program->stages[stage].name);
    /* the path goes through a link to the accepted attempt */
    char *real = realpath(path, NULL);
    int rc = real == NULL ? err_set_errno(err, errno, "read %s", path)
                          : file_read(real, LAYOUT_RESULT_MAX, &text, err);
    if (rc == 0) {
        const struct digest found = digest_bytes(text.buf, text.len);
        rc = digest_equal(&found, &a->digest)
                 ? json_parse_lax(text.buf, text.len, &a->result, err)
                 : err_set(err, ERR_CORRUPT, "%s was changed after it had been accepted", path);
    }
    if (rc == 0) {
        a->folder = path_folder(real);
        rc = read_head(src, a, err);
    }
    strbuf_release(&text);
    free(real);
    free(path);
    return rc;
}

/* Reads every accepted result of the cell; at least one is needed. */
static int read_all(struct rerun_source *src, struct err *err)
{
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < src->n_stages; i++) {
        if (src->accepted[i].done) {
            rc = read_accepted(src, i, err);
            n++;
        }
    }
    return rc == 0 && n == 0 ? err_set(err, ERR_REFUSED,
                                       "no stage of %s is done: there is nothing to compare with",
                                       src->program->cells[src->cell].name)
                             : rc;
}

/* ---- opening ---- */

/* The cell by name, its factors in any order. */
static int find_cell(struct rerun_source *src, const char *name, struct err *err)
{
    const struct plan_program *p = src->program;
    src->cell = program_match_cell(p, name);
    if (src->cell != INDEX_NONE) {
        return 0;
    }
    const char **names = xcalloc(p->n_cells, sizeof(*names));
    for (size_t i = 0; i < p->n_cells; i++) {
        names[i] = p->cells[i].name;
    }
    const char *near = text_nearest(name, names, p->n_cells);
    free(names);
    return near != NULL
               ? err_set(err, ERR_NOT_FOUND, "no cell is called \"%.80s\"; did you mean \"%.80s\"?",
                         name, near)
               : err_set(err, ERR_NOT_FOUND, "no cell is called \"%.100s\" (see `preregctl cells`)",
                         name);
}

/* Refuses a program whose scores are sealed, then opens plan, cell and accepted results. */
static int open_program(struct rerun_source *src, struct store *store,
                        const struct store_program *p, const char *cell, struct err *err)
{
    char root[DIGEST_HEX_SIZE];
    /* a rerun prints scores */
    if (!p->status.unsealed && !p->status.unblinded) {
        return err_set(err, ERR_REFUSED,
                       "the scores of %s are sealed: a cell is run again when all counted tasks "
                       "have ended",
                       p->id);
    }
    src->folder = layout_program(src->state, p->id);
    digest_hex(&p->root, root);
    int rc = read_origin(src, err);
    if (rc != 0 || (rc = rerun_source_at(src, root, err)) != 0) {
        return rc;
    }
    if (strcmp(src->lock->root, root) != 0) {
        return err_set(err, ERR_LOCK, "%s holds the lock of another program", src->folder);
    }
    if ((rc = find_cell(src, cell, err)) != 0) {
        return rc;
    }
    src->n_stages = src->program->n_stages;
    src->accepted = xcalloc(src->n_stages, sizeof(*src->accepted));
    rc = store_results(store, p->no, take_result, src, err);
    return rc == 0 ? read_all(src, err) : rc;
}

/* The store is open only while the accepted results are listed. */
int rerun_source_open(struct rerun_source *src, const struct rerun_ask *ask, struct err *err)
{
    struct store *store = NULL;
    struct store_program p;
    struct arena texts;
    *src = (struct rerun_source){0};
    if (ask->program != NULL && imported_is_folder(ask->program)) {
        return err_set(
            err, ERR_REFUSED,
            "%.150s was imported: preregd ran none of it, and there is nothing to run again",
            ask->program);
    }
    arena_init(&texts);
    int rc = load_state_folder(ask->state, &src->state, err);
    if (rc != 0 || (rc = store_open(src->state, STORE_READER, &store, err)) != 0 ||
        (rc = store_program_find(store, ask->program, &texts, &p, err)) != 0) {
        goto out;
    }
    rc = open_program(src, store, &p, ask->cell, err);
out:
    store_close(store);
    arena_release(&texts);
    return rc;
}

void rerun_source_release(struct rerun_source *src)
{
    for (size_t i = 0; src->accepted != NULL && i < src->n_stages; i++) {
        free(src->accepted[i].folder);
        cJSON_Delete(src->accepted[i].result);
    }
    free(src->accepted);
    forget_plan(src);
    free(src->origin);
    free(src->folder);
    free(src->state);
    *src = (struct rerun_source){0};
}
