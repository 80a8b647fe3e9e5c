/* The statements that a store prepares once, with their parts that the tables of columns decide:
 * lists, parameters, values bound and read. */
#include "state/store/internal.h"

/* NULL: made of columns */
static const char *const SQL[STMT_NR] = {
    [STMT_BEGIN] = "BEGIN IMMEDIATE",
    [STMT_COMMIT] = "COMMIT",
    [STMT_TASK_STATE] = "SELECT state FROM tasks WHERE program=?1 AND task=?2",
    [STMT_RESULT_INSERT] =
        "INSERT INTO results(program, task, attempt, digest) VALUES(?1,?2,?3,?4)",
    [STMT_RESULT_ACCEPTED] = ("SELECT r.attempt, a.id, r.digest FROM results r JOIN attempts a"
                              " ON a.program=r.program AND a.task=r.task AND a.no=r.attempt"
                              " WHERE r.program=?1 AND r.task=?2"),
    [STMT_RESULT_DELETE] = "DELETE FROM results WHERE program=?1 AND task=?2",
    [STMT_PROGRAM_AMEND] = "UPDATE programs SET head=?2 WHERE no=?1",
    [STMT_PROGRAM_JOURNAL] =
        "UPDATE programs SET journal_rows=?2, journal_bytes=?3, journal_head=?4 WHERE no=?1",
    [STMT_JOURNAL_INSERT] = "INSERT INTO journal(program, seq, hash, line) VALUES(?1,?2,?3,?4)",
    [STMT_TASK_NAMES] =
        ("SELECT c.name, s.name, '' FROM programs p"
         " JOIN cells c ON c.program = p.no AND c.cell = ?2 / p.n_stages"
         " JOIN stages s ON s.program = p.no AND s.stage = ?2 % p.n_stages WHERE p.no = ?1"
         " UNION ALL SELECT '', stage, name FROM apparatus WHERE program = ?1 AND task = ?2"),
};

char *statement_columns(const struct row_columns *columns, const char *prefix)
{
    assert(columns != NULL && prefix != NULL);
    struct strbuf s = STRBUF_INIT;
    for (size_t i = 0; i < columns->n; i++) {
        strbuf_addf(&s, "%s%s\"%s\"", i == 0 ? "" : ", ", prefix, columns->items[i].name);
    }
    return strbuf_detach(&s);
}

void statement_declare(struct strbuf *sql, const struct row_columns *columns)
{
    assert(sql != NULL && columns != NULL);
    for (size_t i = 0; i < columns->n; i++) {
        const struct row_column *c = &columns->items[i];
        strbuf_addf(sql, "%s\"%s\" %s", i == 0 ? "" : ", ", c->name, c->declaration);
    }
}

/* UPDATE of all columns but keys, whose values are parameters from `first` on. */
static char *update_sql(const struct row_columns *columns, int first, const char *where)
{
    struct strbuf s = STRBUF_INIT;
    const char *comma = "";
    strbuf_addf(&s, "UPDATE %s SET ", columns->table);
    for (size_t i = 0; i < columns->n; i++) {
        const struct row_column *c = &columns->items[i];
        if ((c->flags & COLUMN_KEY) == 0) {
            strbuf_addf(&s, "%s\"%s\"=?%d", comma, c->name, first + (int)i);
            comma = ", ";
        }
    }
    strbuf_addf(&s, " WHERE %s", where);
    return strbuf_detach(&s);
}

/* INSERT of program, task and all columns. */
static char *insert_sql(const struct row_columns *columns)
{
    struct strbuf s = STRBUF_INIT;
    char *list = statement_columns(columns, "");
    strbuf_addf(&s, "INSERT INTO %s(program, task, %s) VALUES(?1,?2", columns->table, list);
    for (size_t i = 0; i < columns->n; i++) {
        strbuf_addf(&s, ",?%d", (int)i + 3);
    }
    strbuf_addc(&s, ')');
    free(list);
    return strbuf_detach(&s);
}

char *statement_sql(enum stmt which)
{
    assert(which < STMT_NR);
    if (which == STMT_TASK_UPDATE) {
        return update_sql(&TASK_COLUMNS, 4, "program=?1 AND task=?2 AND (?3 IS NULL OR state=?3)");
    }
    if (which == STMT_ATTEMPT_INSERT) {
        return insert_sql(&ATTEMPT_COLUMNS);
    }
    if (which == STMT_ATTEMPT_UPDATE) {
        return update_sql(&ATTEMPT_COLUMNS, 3,
                          "program=?1 AND task=?2 AND no=?3 AND id=?4 AND state<>'ended'");
    }
    return which == STMT_PROGRAM_UPDATE ? update_sql(&PROGRAM_COLUMNS, 2, "no=?1")
                                        : xstrdup(SQL[which]);
}

void statement_bind(sqlite3_stmt *stmt, int at, const struct row_columns *columns, const void *row)
{
    assert(stmt != NULL && columns != NULL && row != NULL);
    char hex[DIGEST_HEX_SIZE];
    for (size_t i = 0; i < columns->n; i++) {
        const struct row_column *c = &columns->items[i];
        if (column_is_int(c)) {
            sql_bind_int(stmt, at + (int)i, column_int(c, row));
        } else {
            sql_bind_text(stmt, at + (int)i, column_text(c, row, hex));
        }
    }
}

int statement_read(sqlite3_stmt *stmt, int at, const struct row_columns *columns, void *row,
                   struct err *err)
{
    assert(stmt != NULL && columns != NULL && row != NULL);
    for (size_t i = 0; i < columns->n; i++) {
        const struct row_column *c = &columns->items[i];
        const int from = at + (int)i;
        if (column_is_int(c)) {
            column_set_int(c, row, sql_col_int(stmt, from));
        } else if (!column_set_text(c, row, sql_col_text(stmt, from))) {
            return err_set(err, ERR_CORRUPT,
                           "the database holds a %s \"%s\" that this version does not know",
                           c->name, sql_col_text(stmt, from));
        }
    }
    return 0;
}
