/* Tasks behind the grid: their names in a table of their own, their rows among those of all tasks.
 */
#include "state/store/apparatus.h"

#include "state/store/internal.h"

struct bound {       /* ?1 and, where they are given, ?2 to ?4 */
    int64_t args[2]; /* program, task (-1: none) */
    const char *name;
    const char *stage;
};

static int run_bound(struct store *store, const char *sql, const struct bound *b, int *n_changed,
                     struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sql_prepare(store->db, sql, &stmt, err);
    if (rc == 0) {
        sql_bind_int(stmt, 1, b->args[0]);
        if (b->args[1] >= 0) {
            sql_bind_int(stmt, 2, b->args[1]);
        }
        if (b->name != NULL) {
            sql_bind_text(stmt, 3, b->name);
            sql_bind_text(stmt, 4, b->stage);
        }
        rc = sql_run(stmt, n_changed, err);
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* One number of a program: "SELECT ... WHERE program=?1 [AND name=?2]"; -1 when there is none. */
static int ask_int(struct store *store, const char *sql, uint32_t program, const char *name,
                   int64_t *out, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    *out = -1;
    int rc = sql_prepare(store->db, sql, &stmt, err);
    if (rc == 0) {
        sql_bind_int(stmt, 1, program);
        if (name != NULL) {
            sql_bind_text(stmt, 2, name);
        }
        rc = sql_step(stmt, &row, err);
    }
    if (rc == 0 && row) {
        *out = sql_col_int(stmt, 0);
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

static int grid_size(struct store *store, uint32_t program, int64_t *out, struct err *err)
{
    int rc = ask_int(store, "SELECT n_cells * n_stages FROM programs WHERE no=?1", program, NULL,
                     out, err);
    return rc == 0 && *out < 0 ? err_set(err, ERR_NOT_FOUND, "there is no program %u", program)
                               : rc;
}

/* One task more, behind all others; nothing is declared of it yet. */
static int append(struct store *store, uint32_t program, int64_t task, struct err *err)
{
    const struct bound args = {.args = {program, task}};
    int rc = run_bound(store, "INSERT INTO tasks(program, task, state) VALUES(?1, ?2, 'ready')",
                       &args, NULL, err);
    return rc != 0 ? rc
                   : run_bound(store,
                               "INSERT INTO apparatus(program, task, name, stage, declared)"
                               " VALUES(?1, ?2, ?3, ?4, 0)",
                               &(struct bound){{args.args[0], args.args[1]}, "", ""}, NULL, err);
}

static int next_free(struct store *store, uint32_t program, int64_t *out, struct err *err)
{
    int64_t grid = 0;
    int rc = grid_size(store, program, &grid, err);
    if (rc == 0) {
        rc = ask_int(store, "SELECT max(task) + 1 FROM tasks WHERE program=?1", program, NULL, out,
                     err);
    }
    if (rc == 0 && *out - grid >= STORE_APPARATUS_MAX) {
        rc = err_set(err, ERR_RANGE, "more than %u apparatus checks", STORE_APPARATUS_MAX);
    }
    return rc;
}

/* The task of this name, or one that has no name yet, or a new one. */
static int find_or_append(struct store *store, uint32_t program, const char *name, int64_t *task,
                          struct err *err)
{
    int rc = ask_int(store, "SELECT task FROM apparatus WHERE program=?1 AND name=?2", program,
                     name, task, err);
    if (rc != 0 || *task >= 0) {
        return rc;
    }
    rc = ask_int(store, "SELECT task FROM apparatus WHERE program=?1 AND name=?2 ORDER BY task",
                 program, "", task, err);
    if (rc != 0 || *task >= 0) {
        return rc;
    }
    rc = next_free(store, program, task, err);
    return rc != 0 ? rc : append(store, program, *task, err);
}

int store_apparatus_sync(struct store *store, uint32_t program, const struct plan_program *p,
                         struct err *err)
{
    assert(store->open_transaction);
    const struct bound all = {.args = {program, -1}};
    int rc = run_bound(store, "UPDATE apparatus SET declared=0 WHERE program=?1", &all, NULL, err);
    for (size_t i = 0; rc == 0 && i < p->n_apparatus; i++) {
        const struct plan_apparatus *a = &p->apparatus[i];
        int64_t task = -1;
        rc = find_or_append(store, program, a->name, &task, err);
        if (rc == 0) {
            const struct bound args = {.args = {program, task}};
            rc = run_bound(
                store,
                "UPDATE apparatus SET declared=1, name=?3, stage=?4"
                " WHERE program=?1 AND task=?2",
                &(struct bound){{args.args[0], args.args[1]}, a->name, p->stages[a->stage].name},
                NULL, err);
        }
    }
    return rc;
}

int store_apparatus(struct store *store, uint32_t program, store_apparatus_fn *fn, void *ctx,
                    struct err *err)
{
    assert(store != NULL && fn != NULL);
    sqlite3_stmt *stmt = NULL;
    bool row = true;
    int stop = 0;
    int rc = sql_prepare(
        store->db,
        "SELECT task, name, stage, declared FROM apparatus WHERE program=?1 ORDER BY task", &stmt,
        err);
    if (rc == 0) {
        sql_bind_int(stmt, 1, program);
    }
    while (rc == 0 && row && stop == 0) {
        rc = sql_step(stmt, &row, err);
        if (rc == 0 && row) {
            struct store_apparatus a = {.task = (uint32_t)sql_col_int(stmt, 0),
                                        .name = sql_col_text(stmt, 1),
                                        .stage = sql_col_text(stmt, 2),
                                        .declared = sql_col_int(stmt, 3) != 0};
            stop = fn(ctx, &a, err);
        }
    }
    (void)sqlite3_finalize(stmt);
    return rc != 0 ? rc : stop < 0 ? stop : 0;
}

/* A journal names tasks that an amendment added, or removed again. Tasks of lower numbers exist
 * then, too; they get their names from their own rows. */
int apparatus_take_line(struct store *store, const struct state_row *row, struct err *err)
{
    assert(store != NULL && row != NULL);
    int64_t grid = 0;
    int64_t next = 0;
    const struct bound args = {.args = {row->program, row->task}};
    int rc = grid_size(store, row->program, &grid, err);
    if (rc == 0 && (row->task < grid || row->task - grid >= STORE_APPARATUS_MAX)) {
        rc = err_set(err, ERR_CORRUPT, "task %u cannot be apparatus check \"%.60s\"", row->task,
                     row->apparatus);
    }
    if (rc == 0) {
        rc = ask_int(store, "SELECT max(task) + 1 FROM tasks WHERE program=?1", row->program, NULL,
                     &next, err);
    }
    for (; rc == 0 && next <= row->task; next++) {
        rc = append(store, row->program, next, err);
    }
    return rc != 0
               ? rc
               : run_bound(store,
                           "UPDATE apparatus SET name=?3, stage=?4 WHERE program=?1 AND task=?2",
                           &(struct bound){{args.args[0], args.args[1]},
                                           row->apparatus,
                                           row->stage == NULL ? "" : row->stage},
                           NULL, err);
}

int apparatus_forget_result(struct store *store, const struct state_row *row, struct err *err)
{
    assert(store != NULL && row != NULL);
    const struct bound args = {.args = {row->program, row->task}};
    int n = 0;
    int rc = run_bound(store, "UPDATE apparatus SET name=name WHERE program=?1 AND task=?2", &args,
                       &n, err);
    if (rc == 0 && n != 1) {
        rc = err_set(err, ERR_CORRUPT, "task %u of program %u is not an apparatus check", row->task,
                     row->program);
    }
    return rc != 0 ? rc
                   : run_bound(store, "DELETE FROM results WHERE program=?1 AND task=?2", &args,
                               NULL, err);
}
