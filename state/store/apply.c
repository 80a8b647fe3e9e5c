/* Rows into tables. Each row is checked against what is stored, not against what its maker believes
 * (S2). */
#include "base/json/json.h"
#include "state/store/apparatus.h"
#include "state/store/internal.h"

static int update_task(struct store *store, const struct state_row *row, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int n = 0;
    int rc = store_stmt(store, STMT_TASK_UPDATE, &stmt, err);
    if (rc != 0) {
        return rc;
    }
    sql_bind_int(stmt, 1, row->program);
    sql_bind_int(stmt, 2, row->task);
    sql_bind_text(stmt, 3, store->replaying ? NULL : task_state_name(row->from));
    statement_bind(stmt, 4, &TASK_COLUMNS, &row->after);
    rc = sql_run(stmt, &n, err);
    if (rc == 0 && n != 1) {
        rc = err_set(err, ERR_CORRUPT, "task %u of program %u is not %s", row->task, row->program,
                     task_state_name(row->from));
    }
    return rc;
}

static int write_attempt(struct store *store, const struct state_row *row, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int n = 0;
    bool insert = row->kind == ROW_ATTEMPT_STARTED;
    int rc = store_stmt(store, insert ? STMT_ATTEMPT_INSERT : STMT_ATTEMPT_UPDATE, &stmt, err);
    if (rc != 0) {
        return rc;
    }
    sql_bind_int(stmt, 1, row->program);
    sql_bind_int(stmt, 2, row->task);
    statement_bind(stmt, 3, &ATTEMPT_COLUMNS, &row->attempt);
    rc = sql_run(stmt, &n, err);
    if (rc == 0 && n != 1) {
        rc = err_set(err, ERR_CORRUPT, "attempt %u of task %u of program %u is not a live one",
                     row->attempt.no, row->task, row->program);
    }
    return rc;
}

static int insert_result(struct store *store, const struct state_row *row, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    char hex[DIGEST_HEX_SIZE];
    int rc = store_stmt(store, STMT_RESULT_INSERT, &stmt, err);
    if (rc != 0) {
        return rc;
    }
    digest_hex(&row->result_digest, hex);
    sql_bind_int(stmt, 1, row->program);
    sql_bind_int(stmt, 2, row->task);
    sql_bind_int(stmt, 3, row->attempt.no);
    sql_bind_text(stmt, 4, hex);
    return sql_run(stmt, NULL, err);
}

/* The journal keeps its digest. */
static int forget_result(struct store *store, const struct state_row *row, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_stmt(store, STMT_RESULT_DELETE, &stmt, err);
    if (rc != 0) {
        return rc;
    }
    sql_bind_int(stmt, 1, row->program);
    sql_bind_int(stmt, 2, row->task);
    return sql_run(stmt, NULL, err);
}

static int update_program(struct store *store, const struct state_row *row, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int n = 0;
    int rc = store_stmt(store, STMT_PROGRAM_UPDATE, &stmt, err);
    if (rc != 0) {
        return rc;
    }
    sql_bind_int(stmt, 1, row->program);
    statement_bind(stmt, 2, &PROGRAM_COLUMNS, &row->status);
    rc = sql_run(stmt, &n, err);
    return rc == 0 && n != 1 ? err_set(err, ERR_NOT_FOUND, "there is no program %u", row->program)
                             : rc;
}

static int amend_program(struct store *store, const struct state_row *row, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    char hex[DIGEST_HEX_SIZE];
    int rc = store_stmt(store, STMT_PROGRAM_AMEND, &stmt, err);
    if (rc != 0) {
        return rc;
    }
    digest_hex(&row->amendment.head, hex);
    sql_bind_int(stmt, 1, row->program);
    sql_bind_text(stmt, 2, hex);
    return sql_run(stmt, NULL, err);
}

static int journal_row(struct store *store, const struct state_row *row, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool found = true;
    cJSON *body = NULL;
    int rc = 0;
    if (row_kind_is_of_task(row->kind)) {
        rc = store_stmt(store, STMT_TASK_NAMES, &stmt, err);
        if (rc != 0) {
            return rc;
        }
        sql_bind_int(stmt, 1, row->program);
        sql_bind_int(stmt, 2, row->task);
        rc = sql_step(stmt, &found, err);
        if (rc == 0 && found) {
            struct state_row named = *row;
            const char *apparatus = sql_col_text(stmt, 2);
            named.apparatus = apparatus[0] == '\0' ? NULL : apparatus;
            body = line_from_row(&named, sql_col_text(stmt, 0), sql_col_text(stmt, 1));
            (void)sqlite3_reset(stmt);
        }
    } else {
        body = line_from_row(row, NULL, NULL);
    }
    if (rc == 0 && body == NULL) {
        rc = err_set(err, ERR_NOT_FOUND, "there is no task %u of program %u", row->task,
                     row->program);
    }
    if (rc == 0) {
        rc = journal_file_add(store, row->program, body, err);
    }
    cJSON_Delete(body);
    return rc;
}

static int apply_tables(struct store *store, const struct state_row *row, struct err *err)
{
    if (!row_kind_is_of_task(row->kind)) {
        int rc = update_program(store, row, err);
        return rc == 0 && row->kind == ROW_AMENDED ? amend_program(store, row, err) : rc;
    }
    if (!store->replaying && !state_row_is_legal(row)) {
        return err_set(err, ERR_CORRUPT, "%s: from %s to %s is not a legal move",
                       row_kind_name(row->kind), task_state_name(row->from),
                       task_state_name(row->after.state));
    }
    const bool of_attempt = row->kind == ROW_ATTEMPT_STARTED || row->kind == ROW_ATTEMPT_RUNNING ||
                            row->kind == ROW_ATTEMPT_ENDED || row->kind == ROW_PROGRESS;
    int rc = 0;
    if (store->replaying && row->apparatus != NULL &&
        (rc = apparatus_take_line(store, row, err)) != 0) {
        return rc;
    }
    if (row->kind == ROW_APPARATUS_AGAIN && (rc = apparatus_forget_result(store, row, err)) != 0) {
        return rc;
    }
    if (row->kind == ROW_RESULT_LOST && (rc = forget_result(store, row, err)) != 0) {
        return rc;
    }
    if ((rc = update_task(store, row, err)) != 0) {
        return rc;
    }
    if (of_attempt && (rc = write_attempt(store, row, err)) != 0) {
        return rc;
    }
    return row->has_result ? insert_result(store, row, err) : 0;
}

int apply_row(struct store *store, const struct state_row *row, struct err *err)
{
    assert(store != NULL && row != NULL && store->open_transaction);
    if (row->kind == ROW_SUBMITTED) {
        return store->replaying ? 0 : err_set(err, ERR_CORRUPT, "a program is submitted once");
    }
    int rc = apply_tables(store, row, err);
    if (rc == 0 && row_kind_is_journalled(row->kind) && !store->replaying) {
        rc = journal_row(store, row, err);
    }
    return rc;
}

int apply_line(struct store *store, uint32_t program, const struct journal_row *row,
               struct err *err)
{
    assert(store != NULL && row != NULL && store->replaying);
    struct journal_file *f = NULL;
    struct state_row parsed;
    int rc = line_to_row(row->line.json, program, &parsed, err);
    if (rc != 0 || (rc = journal_file_get(store, program, &f, err)) != 0 ||
        (rc = journal_file_adopt(store, f, row, parsed.time, err)) != 0) {
        return rc;
    }
    return apply_row(store, &parsed, err);
}

int store_apply(struct store *store, const struct state_row *rows, size_t n, struct err *err)
{
    assert(store->open_transaction);
    for (size_t i = 0; i < n; i++) {
        int rc = apply_row(store, &rows[i], err);
        if (rc != 0) {
            return err_wrap(err, "row %zu of %zu (%s)", i + 1, n, row_kind_name(rows[i].kind));
        }
    }
    return 0;
}

/* `after` holds stage numbers and commas only: it was written by store_program_create. */
static int settle_stage(struct store *store, uint32_t program, int64_t stage, const char *after,
                        struct err *err)
{
    struct strbuf sql = STRBUF_INIT;
    strbuf_addf(
        &sql,
        "UPDATE tasks SET state='ready' WHERE program=%u AND state='waiting' AND task %% (SELECT "
        "n_stages FROM programs WHERE no=%u) = %lld AND NOT EXISTS (SELECT 1 FROM tasks d JOIN "
        "stages s ON s.program=d.program AND s.stage IN (%s) WHERE d.program=%u AND d.task = "
        "tasks.task - %lld + s.stage AND d.state <> 'done')",
        program, program, (long long)stage, after, program, (long long)stage);
    int rc = sql_exec(store->db, sql.buf, err);
    strbuf_release(&sql);
    return rc;
}

int apply_settle(struct store *store, uint32_t program, struct err *err)
{
    assert(store != NULL);
    sqlite3_stmt *stmt = NULL;
    bool row = true;
    int rc = sql_prepare(
        store->db, "SELECT stage, after FROM stages WHERE program=?1 AND after<>'' ORDER BY stage",
        &stmt, err);
    if (rc == 0) {
        sql_bind_int(stmt, 1, program);
    }
    while (rc == 0 && row) {
        rc = sql_step(stmt, &row, err);
        if (rc == 0 && row) {
            rc = settle_stage(store, program, sql_col_int(stmt, 0), sql_col_text(stmt, 1), err);
        }
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}
