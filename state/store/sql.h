/* SQLite's calls as this project makes them: prepared once, results checked, its errors translated
 * at this boundary with their text kept. For the files of state/ only. */
#ifndef STATE_STORE_SQL_H
#define STATE_STORE_SQL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* SQLITE_FULL -> ERR_NO_SPACE; CORRUPT, NOTADB -> ERR_CORRUPT and "preregctl rebuild"; else ERR_IO.
 */
int sql_error(sqlite3 *db, int rc, struct err *err, const char *what);

/* Statements without parameters and results, several at once. */
int sql_exec(sqlite3 *db, const char *sql, struct err *err) MUST_CHECK;
/* Adds has(text, part), which is 1 if the text contains the part, else 0. A start goes through
 * every line of every journal with it. */
int sql_add_functions(sqlite3 *db, struct err *err) MUST_CHECK;
/* The first column of the first row; *out is left alone when none matches. */
int sql_int(sqlite3 *db, const char *sql, int64_t *out, struct err *err) MUST_CHECK;

/* The caller finalizes it with sqlite3_finalize. */
int sql_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out, struct err *err) MUST_CHECK;

/* *row tells whether there is one. At the end and on error the statement is reset. */
int sql_step(sqlite3_stmt *stmt, bool *row, struct err *err) MUST_CHECK;
/* For statements that return no rows; *n_changed may be NULL. */
int sql_run(sqlite3_stmt *stmt, int *n_changed, struct err *err) MUST_CHECK;

/* Binding cannot fail but for want of memory or by a slip of ours; both abort. The text is copied.
 */
void sql_bind_int(sqlite3_stmt *stmt, int at, int64_t v);
void sql_bind_text(sqlite3_stmt *stmt, int at, const char *text); /* NULL: null */
void sql_bind_bytes(sqlite3_stmt *stmt, int at, const char *text, size_t len);

/* Columns. Text is never NULL (a null reads as "") and lives until the next step. */
int64_t sql_col_int(sqlite3_stmt *stmt, int at);
const char *sql_col_text(sqlite3_stmt *stmt, int at);

#endif
