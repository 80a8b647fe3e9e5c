/* A program's first transaction: its tables and row 1 of its journal. Nothing of it is in the store
 * before, and nothing of a submission that stopped half-way counts (submission.c). */
#include <errno.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "prereg/program/same_work.h"
#include "state/store/apparatus.h"
#include "state/store/internal.h"

/* One parameterised INSERT of a program's parts: values beyond the program's number by the caller.
 */
static int insert_program(struct store *store, const struct store_program *sp, uint32_t *no,
                          struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    char root[DIGEST_HEX_SIZE];
    char head[DIGEST_HEX_SIZE];
    char zero[DIGEST_HEX_SIZE];
    int rc = sql_prepare(
        store->db,
        "INSERT INTO programs(id, name, root, head, submitted_ms, n_cells, n_stages, unverified, "
        "journal_head) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)",
        &stmt, err);
    if (rc != 0) {
        return rc;
    }
    digest_hex(&sp->root, root);
    digest_hex(&sp->head, head);
    digest_hex(&(struct digest){{0}}, zero);
    sql_bind_text(stmt, 1, sp->id);
    sql_bind_text(stmt, 2, sp->name);
    sql_bind_text(stmt, 3, root);
    sql_bind_text(stmt, 4, head);
    sql_bind_int(stmt, 5, sp->submitted.ms);
    sql_bind_int(stmt, 6, sp->n_cells);
    sql_bind_int(stmt, 7, sp->n_stages);
    sql_bind_int(stmt, 8, sp->unverified_history);
    sql_bind_text(stmt, 9, zero);
    rc = sql_run(stmt, NULL, err);
    (void)sqlite3_finalize(stmt);
    *no = (uint32_t)sqlite3_last_insert_rowid(store->db);
    return rc;
}

static int insert_stages(struct store *store, const struct plan_program *p, uint32_t no,
                         struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sql_prepare(store->db,
                         "INSERT INTO stages(program, stage, name, after) VALUES(?1,?2,?3,?4)",
                         &stmt, err);
    for (size_t s = 0; rc == 0 && s < p->n_stages; s++) {
        struct strbuf after = STRBUF_INIT;
        for (size_t i = 0; i < p->stages[s].n_after; i++) {
            strbuf_addf(&after, "%s%zu", i > 0 ? "," : "", p->stages[s].after[i]);
        }
        sql_bind_int(stmt, 1, no);
        sql_bind_int(stmt, 2, (int64_t)s);
        sql_bind_text(stmt, 3, p->stages[s].name);
        sql_bind_text(stmt, 4, after.buf);
        rc = sql_run(stmt, NULL, err);
        strbuf_release(&after);
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

static int insert_cells(struct store *store, const struct plan_program *p, uint32_t no,
                        struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sql_prepare(store->db, "INSERT INTO cells(program, cell, name) VALUES(?1,?2,?3)",
                         &stmt, err);
    for (size_t i = 0; rc == 0 && i < p->n_cells; i++) {
        sql_bind_int(stmt, 1, no);
        sql_bind_int(stmt, 2, (int64_t)i);
        sql_bind_text(stmt, 3, p->cells[i].name);
        rc = sql_run(stmt, NULL, err);
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

static int insert_tasks(struct store *store, const struct plan_program *p, uint32_t no,
                        struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    size_t n = program_n_tasks(p);
    int rc = sql_prepare(store->db, "INSERT INTO tasks(program, task, state) VALUES(?1,?2,?3)",
                         &stmt, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        sql_bind_int(stmt, 1, no);
        sql_bind_int(stmt, 2, (int64_t)i);
        sql_bind_text(stmt, 3,
                      task_state_name(program_task_waits(p, i) ? TASK_WAITING : TASK_READY));
        rc = sql_run(stmt, NULL, err);
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

int create_tables(struct store *store, const struct plan_program *p, const struct store_program *sp,
                  uint32_t *no, struct err *err)
{
    assert(store != NULL && p != NULL && sp != NULL && no != NULL);
    if (insert_program(store, sp, no, err) != 0 || insert_stages(store, p, *no, err) != 0 ||
        insert_cells(store, p, *no, err) != 0 || insert_tasks(store, p, *no, err) != 0) {
        return err->code;
    }
    /* A journal that is replayed says itself which checks there were, and in which order. */
    return store->replaying ? 0 : store_apparatus_sync(store, *no, p, err);
}

int create_first_row(struct store *store, const struct plan_program *p,
                     const struct store_program *sp, uint32_t no, struct err *err)
{
    assert(store != NULL && p != NULL && sp != NULL);
    char hex[DIGEST_HEX_SIZE];
    cJSON *body = json_object();
    cJSON *program = json_object();
    cJSON *stages = json_array();
    json_put_string(body, "event", row_kind_name(ROW_SUBMITTED));
    line_put_time(body, sp->submitted, sp->behind_ms);
    json_put_string(program, "id", sp->id);
    json_put_string(program, "name", sp->name);
    digest_hex(&sp->root, hex);
    json_put_string(program, "root", hex);
    digest_hex(&sp->head, hex);
    json_put_string(program, "head", hex);
    json_put_int(program, "cells", sp->n_cells);
    for (size_t s = 0; s < p->n_stages; s++) {
        json_push_string(stages, p->stages[s].name);
    }
    json_put(program, "stages", stages);
    json_put(body, "program", program);
    json_put(body, "run", p->run.covered != NULL ? json_copy(p->run.covered) : json_object());
    if (sp->unverified_history) {
        json_put_string(body, "detail", "UNVERIFIED HISTORY: rebuilt from the cells' files");
    }
    int rc = journal_file_add(store, no, body, err);
    cJSON_Delete(body);
    return rc;
}

/* A journal of one row is what a submission leaves behind that was cut off before its commit: it
 * never took effect. */
static int clear_leftover(const struct store *store, const char *id, struct err *err)
{
    char *path = store_program_path(store, id, LAYOUT_JOURNAL);
    struct strbuf text = STRBUF_INIT;
    int rc = 0;
    if (file_kind_at(path) != FILE_ABSENT) {
        rc = file_read(path, JOURNAL_LINE_MAX * 2, &text, err);
        const char *nl = memchr(text.buf, '\n', text.len);
        if (rc == ERR_RANGE || (rc == 0 && nl != NULL && nl + 1 < text.buf + text.len)) {
            rc = err_set(err, ERR_REFUSED,
                         "%s holds the history of an earlier run that the database does not know: "
                         "`preregctl "
                         "rebuild` takes it in",
                         path);
        }
        if (rc == 0 && unlink(path) != 0) {
            rc = err_set_errno(err, errno, "remove %s", path);
        }
    }
    strbuf_release(&text);
    free(path);
    return rc;
}

static int refuse_known(struct store *store, const struct digest *root, struct err *err)
{
    struct arena texts;
    struct store_program known;
    struct err why = {0};
    arena_init(&texts);
    int rc = store_program_by_root(store, root, &texts, &known, &why);
    if (rc == 0) {
        rc = err_set(err, ERR_EXISTS, "it was submitted before: %s", known.id);
    } else if (rc == ERR_NOT_FOUND) {
        rc = 0;
    } else {
        *err = why;
    }
    arena_release(&texts);
    return rc;
}

int store_program_create(struct store *store, const struct plan_program *p,
                         const struct store_submission *submission, uint32_t *no, struct err *err)
{
    assert(store != NULL && p != NULL && submission != NULL && no != NULL);
    struct store_program sp = {
        .id = submission->id,
        .name = p->name,
        .root = submission->root,
        .head = submission->root,
        .submitted = submission->time,
        .n_cells = (uint32_t)p->n_cells,
        .n_stages = (uint32_t)p->n_stages,
    };
    if (sp.submitted.ms < submission->locked.ms) {
        sp.behind_ms = submission->locked.ms - sp.submitted.ms;
        sp.submitted = submission->locked;
    }
    if (refuse_known(store, &submission->root, err) != 0 ||
        clear_leftover(store, submission->id, err) != 0 || store_begin(store, err) != 0) {
        return err->code;
    }
    if (create_tables(store, p, &sp, no, err) != 0 ||
        create_first_row(store, p, &sp, *no, err) != 0) {
        store_rollback(store);
        return err_wrap(err, "submit %s", submission->id);
    }
    return store_commit(store, err);
}
