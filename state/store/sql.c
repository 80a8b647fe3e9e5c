/* SQLite's result codes become errors of ours here and nowhere else. */
#include "state/store/sql.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int sql_error(sqlite3 *db, int rc, struct err *err, const char *what)
{
    assert(what != NULL);
    const char *text = db != NULL ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
    switch (rc & 0xff) {
    case SQLITE_FULL: return err_set(err, ERR_NO_SPACE, "%s: %s", what, text);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return err_set(
            err, ERR_CORRUPT,
            "%s: %s; `preregctl rebuild` makes the database again from the programs' folders", what,
            text);
    case SQLITE_BUSY: return err_set(err, ERR_BUSY, "%s: %s", what, text);
    case SQLITE_CONSTRAINT: return err_set(err, ERR_CORRUPT, "%s: %s", what, text);
    default: return err_set(err, ERR_IO, "%s: %s", what, text);
    }
}

int sql_exec(sqlite3 *db, const char *sql, struct err *err)
{
    assert(db != NULL && sql != NULL);
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : sql_error(db, rc, err, "database");
}

/* has(text, part): as instr(text, part) > 0, which compares byte by byte. */
static void has_text(sqlite3_context *ctx, int n, sqlite3_value **args)
{
    assert(n == 2);
    const void *text = sqlite3_value_text(args[0]);
    const void *part = sqlite3_value_text(args[1]);
    sqlite3_result_int(ctx, text != NULL && part != NULL &&
                                memmem(text, (size_t)sqlite3_value_bytes(args[0]), part,
                                       (size_t)sqlite3_value_bytes(args[1])) != NULL);
}

int sql_add_functions(sqlite3 *db, struct err *err)
{
    assert(db != NULL);
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    int rc = sqlite3_create_function_v2(db, "has", 2, flags, NULL, has_text, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : sql_error(db, rc, err, "database");
}

int sql_int(sqlite3 *db, const char *sql, int64_t *out, struct err *err)
{
    assert(db != NULL && sql != NULL && out != NULL);
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    int rc = sql_prepare(db, sql, &stmt, err);
    if (rc == 0) {
        rc = sql_step(stmt, &row, err);
    }
    if (rc == 0 && row) {
        *out = sql_col_int(stmt, 0);
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

int sql_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out, struct err *err)
{
    assert(db != NULL && sql != NULL && out != NULL);
    int rc = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
    return rc == SQLITE_OK ? 0 : sql_error(db, rc, err, "database");
}

int sql_step(sqlite3_stmt *stmt, bool *row, struct err *err)
{
    assert(stmt != NULL && row != NULL);
    int rc = sqlite3_step(stmt);
    *row = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW) {
        return 0;
    }
    int failed = 0;
    if (rc != SQLITE_DONE) {
        failed = sql_error(sqlite3_db_handle(stmt), rc, err, "database");
    }
    (void)sqlite3_reset(stmt);
    return failed;
}

int sql_run(sqlite3_stmt *stmt, int *n_changed, struct err *err)
{
    assert(stmt != NULL);
    bool row = false;
    int rc = sql_step(stmt, &row, err);
    assert(rc != 0 || !row);
    if (n_changed != NULL) {
        *n_changed = sqlite3_changes(sqlite3_db_handle(stmt));
    }
    return rc;
}

static void must(int rc)
{
    assert(rc != SQLITE_MISUSE && rc != SQLITE_RANGE);
    if (rc != SQLITE_OK) {
        abort();
    }
}

void sql_bind_int(sqlite3_stmt *stmt, int at, int64_t v)
{
    assert(stmt != NULL);
    must(sqlite3_bind_int64(stmt, at, v));
}

void sql_bind_text(sqlite3_stmt *stmt, int at, const char *text)
{
    assert(stmt != NULL);
    must(text == NULL ? sqlite3_bind_null(stmt, at)
                      : sqlite3_bind_text(stmt, at, text, -1, SQLITE_TRANSIENT));
}

void sql_bind_bytes(sqlite3_stmt *stmt, int at, const char *text, size_t len)
{
    assert(stmt != NULL && text != NULL);
    must(sqlite3_bind_text64(stmt, at, text, len, SQLITE_TRANSIENT, SQLITE_UTF8));
}

int64_t sql_col_int(sqlite3_stmt *stmt, int at)
{
    assert(stmt != NULL);
    return sqlite3_column_int64(stmt, at);
}

const char *sql_col_text(sqlite3_stmt *stmt, int at)
{
    assert(stmt != NULL);
    const unsigned char *text = sqlite3_column_text(stmt, at);
    return text == NULL ? "" : (const char *)text;
}
