/* The store's own state, and what its files offer each other. */
#ifndef STATE_STORE_INTERNAL_H
#define STATE_STORE_INTERNAL_H

#include <assert.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/xalloc.h"
#include "state/columns.h"
#include "state/journal/cursor.h"
#include "state/journal/line.h"
#include "state/store/heads.h"
#include "state/store/sql.h"
#include "state/store/store.h"

enum stmt {
    STMT_BEGIN,
    STMT_COMMIT,
    STMT_TASK_UPDATE,
    STMT_TASK_STATE,
    STMT_ATTEMPT_INSERT,
    STMT_ATTEMPT_UPDATE,
    STMT_RESULT_INSERT,
    STMT_RESULT_ACCEPTED,
    STMT_RESULT_DELETE,
    STMT_PROGRAM_UPDATE,
    STMT_PROGRAM_AMEND,
    STMT_PROGRAM_JOURNAL,
    STMT_JOURNAL_INSERT,
    STMT_TASK_NAMES,
    STMT_NR
};

/* The journal of one program: its file, and the lines that wait for store_commit. */
struct journal_file {
    uint32_t program;
    char *path;
    char *id; /* of the program */
    bool unverified;
    struct journal_chain committed; /* in table and file, before what is pending */
    int64_t bytes;                  /* of the file, likewise */
    struct journal_chain chain;     /* with what is pending */
    struct wall_time last_time;     /* of the last row, with what is pending */
    struct strbuf pending;
    bool appended; /* pending has been written to the file by the commit under way */
};

/* The calls that make a journal line durable; tests make each of them fail in turn. */
struct journal_io {
    int (*append)(int fd, const void *data, size_t len, struct err *err);
    int (*sync)(int fd);
    int (*truncate)(int fd, off_t len);
};

struct store {
    char *dir;
    char *local; /* the folder of database and locks: dir, or elsewhere (state/tenure/record.h) */
    sqlite3 *db;
    int lock_fd;
    int dir_fd;            /* of that folder, locked as well */
    store_guard_fn *guard; /* asked before every commit; or NULL */
    void *guard_ctx;
    bool reader;
    bool open_transaction;
    bool broken;    /* file and database may disagree: only reopening heals that */
    bool damaged;   /* SQLite said so of the database */
    bool replaying; /* rows come from journal.jsonl: their lines are not written again */
    bool detached;  /* a database in the making: no journal.jsonl is written */
    sqlite3_stmt *stmts[STMT_NR];
    struct journal_file *journals;
    size_t n_journals;
    size_t cap_journals;
    struct journal_io io;
    struct heads heads; /* as journal.heads has them; the owner's */
    int heads_fd;       /* -1: not kept */
    bool heads_failed;
    uint32_t failed_journal; /* of the last commit: store_failed_journal() */
};

/* connection.c: a store that is connected to the database STATE/<file>; nothing of it is healed. Of
 * a store that is closed with store_disconnect() no transaction is open. */
int store_connect(const char *dir, const char *file, enum store_mode mode, struct store **out,
                  struct err *err) MUST_CHECK;
void store_disconnect(struct store *store);
int store_stmt(struct store *store, enum stmt which, sqlite3_stmt **out,
               struct err *err) MUST_CHECK;
char *store_program_path(const struct store *store, const char *id, const char *name);

/* ERR_REFUSED when dir is on a file system whose locks and syncs cannot be relied on. */
int fs_check_local(const char *dir, struct err *err) MUST_CHECK;

/* journal_file.c: journal.jsonl beside the table. */
int journal_file_get(struct store *store, uint32_t program, struct journal_file **out,
                     struct err *err) MUST_CHECK;
/* They are read from the database again when needed. */
void journal_files_forget(struct store *store);
/* Adds one line to what is pending and to the table. `body` is the row without "seq" and "hash" and
 * is changed. */
int journal_file_add(struct store *store, uint32_t program, cJSON *body,
                     struct err *err) MUST_CHECK;
/* The same for a row that is in the file already and follows. */
int journal_file_adopt(struct store *store, struct journal_file *f, const struct journal_row *row,
                       struct wall_time time, struct err *err) MUST_CHECK;
/* Whether the files are as they were last written; nothing is changed. */
int journal_files_check(struct store *store, struct err *err) MUST_CHECK;
/* Appends and syncs what is pending. */
int journal_files_write(struct store *store, struct err *err) MUST_CHECK;
void journal_files_settle(struct store *store); /* committed: pending is the past */
/* Cuts the files back. */
int journal_files_undo(struct store *store, struct err *err) MUST_CHECK;

/* heal.c: compares file and table at open: adopts lines that were synced, appends what the file
 * lacks. */
int journal_heal(struct store *store, struct err *err) MUST_CHECK;

/* journal_check.c: rows 1 to n_rows of the table, their chain, and the file's lines where there is
 * a file. ERR_CORRUPT names the first that is wrong and what to do. */
int journal_check(struct store *store, uint32_t program, int64_t n_rows, const char *path,
                  struct err *err) MUST_CHECK;
/* The last row of table and file, and the one that was noted in journal.heads: the rest of the
 * comparison, once the rows hold. */
int journal_check_end(struct store *store, const struct journal_file *f,
                      struct err *err) MUST_CHECK;

/* create.c: the parts of store_program_create, within a transaction; sp->no is not used. */
int create_tables(struct store *store, const struct plan_program *p, const struct store_program *sp,
                  uint32_t *no, struct err *err) MUST_CHECK;
int create_first_row(struct store *store, const struct plan_program *p,
                     const struct store_program *sp, uint32_t no, struct err *err) MUST_CHECK;

/* apply.c */
int apply_row(struct store *store, const struct state_row *row, struct err *err) MUST_CHECK;
/* Replaying: a row of journal.jsonl that the table lacks. */
int apply_line(struct store *store, uint32_t program, const struct journal_row *row,
               struct err *err) MUST_CHECK;
/* Waiting tasks whose dependencies are done become ready: what is not journalled because it
 * follows. */
int apply_settle(struct store *store, uint32_t program, struct err *err) MUST_CHECK;

/* statements.c: SQL that follows from state/columns.h, and the other statements that are prepared
 * once. The caller's. */
char *statement_sql(enum stmt which);
/* "PREFIX name, PREFIX name, ...": the columns of a SELECT. */
char *statement_columns(const struct row_columns *columns, const char *prefix);
/* Columns of a table with their declarations, for CREATE TABLE. */
void statement_declare(struct strbuf *sql, const struct row_columns *columns);
/* Binds the members of `row` to the parameters from `at` on, in their columns' order. */
void statement_bind(sqlite3_stmt *stmt, int at, const struct row_columns *columns, const void *row);
/* Reads them from the result's columns from `at` on. ERR_CORRUPT: a name that this version does not
 * know. */
int statement_read(sqlite3_stmt *stmt, int at, const struct row_columns *columns, void *row,
                   struct err *err) MUST_CHECK;

/* The tables, and how an older database becomes one of today. For the files of state/ only. */

/* Brings the database to STORE_SCHEMA_VERSION in one transaction. A newer one is ERR_VERSION; so is
 * an older one when `writable` is false. */
int schema_migrate(sqlite3 *db, bool writable, struct err *err) MUST_CHECK;

#endif
