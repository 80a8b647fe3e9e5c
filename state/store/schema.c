/* Makes the tables of a new database, of the columns that state/columns.h lists, and takes an older
 * one to them step by step, in one transaction. */

#include <stdio.h>

#include "state/store/internal.h"

/* States and causes are stored as names, not numbers: a database outlives the order of our enums.
 */
static const char PROGRAMS[] =
    "CREATE TABLE programs("
    " no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL,"
    " root TEXT NOT NULL UNIQUE, head TEXT NOT NULL, submitted_ms INTEGER NOT NULL,"
    " n_cells INTEGER NOT NULL, n_stages INTEGER NOT NULL,"
    " unverified INTEGER NOT NULL DEFAULT 0, journal_rows INTEGER NOT NULL DEFAULT 0,"
    " journal_bytes INTEGER NOT NULL DEFAULT 0, journal_head TEXT NOT NULL, ";
static const char TASKS[] =
    ") STRICT;"
    "CREATE TABLE tasks("
    " program INTEGER NOT NULL REFERENCES programs(no), task INTEGER NOT NULL, ";
static const char ATTEMPTS[] =
    ", PRIMARY KEY(program, task),"
    " CHECK((cause <> '') = (state IN ('blocked','never_run')))) STRICT, WITHOUT ROWID;"
    "CREATE TABLE attempts( program INTEGER NOT NULL, task INTEGER NOT NULL, ";
static const char OTHERS[] =
    ", PRIMARY KEY(program, task, no),"
    " FOREIGN KEY(program, task) REFERENCES tasks(program, task)) STRICT, WITHOUT ROWID;"
    "CREATE UNIQUE INDEX attempts_live ON attempts(program, task) WHERE state <> 'ended';"
    "CREATE TABLE stages("
    " program INTEGER NOT NULL REFERENCES programs(no), stage INTEGER NOT NULL, name TEXT NOT NULL,"
    " after TEXT NOT NULL, PRIMARY KEY(program, stage)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE cells("
    " program INTEGER NOT NULL REFERENCES programs(no), cell INTEGER NOT NULL, name TEXT NOT NULL,"
    " PRIMARY KEY(program, cell)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE results("
    " program INTEGER NOT NULL, task INTEGER NOT NULL, attempt INTEGER NOT NULL,"
    " digest TEXT NOT NULL, PRIMARY KEY(program, task),"
    " FOREIGN KEY(program, task) REFERENCES tasks(program, task)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE journal("
    " program INTEGER NOT NULL REFERENCES programs(no), seq INTEGER NOT NULL, hash TEXT NOT NULL,"
    " line TEXT NOT NULL, PRIMARY KEY(program, seq)) STRICT, WITHOUT ROWID;"
    "CREATE TRIGGER journal_appends BEFORE INSERT ON journal"
    " WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM journal WHERE program = NEW.program)"
    " BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;"
    "CREATE TRIGGER journal_keeps BEFORE UPDATE ON journal"
    " BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;"
    "CREATE TRIGGER journal_holds BEFORE DELETE ON journal"
    " BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;"
    "CREATE TABLE apparatus("
    " program INTEGER NOT NULL, task INTEGER NOT NULL, name TEXT NOT NULL, stage TEXT NOT NULL,"
    " declared INTEGER NOT NULL, PRIMARY KEY(program, task),"
    " FOREIGN KEY(program, task) REFERENCES tasks(program, task)) STRICT, WITHOUT ROWID;";

static int create(sqlite3 *db, struct err *err)
{
    struct strbuf sql = STRBUF_INIT;
    strbuf_adds(&sql, PROGRAMS);
    statement_declare(&sql, &PROGRAM_COLUMNS);
    strbuf_adds(&sql, TASKS);
    statement_declare(&sql, &TASK_COLUMNS);
    strbuf_adds(&sql, ATTEMPTS);
    statement_declare(&sql, &ATTEMPT_COLUMNS);
    strbuf_adds(&sql, OTHERS);
    int rc = sql_exec(db, sql.buf, err);
    strbuf_release(&sql);
    return rc;
}

/* Index v holds what takes version v to v + 1. Version 0 is a new database. The text of an earlier
 * version is never changed: test_schema compares a migrated database with a new one. */
static const char *const MIGRATIONS[STORE_SCHEMA_VERSION] = {
    NULL,
    "CREATE TABLE apparatus("
    " program INTEGER NOT NULL, task INTEGER NOT NULL, name TEXT NOT NULL, stage TEXT NOT NULL,"
    " declared INTEGER NOT NULL, PRIMARY KEY(program, task),"
    " FOREIGN KEY(program, task) REFERENCES tasks(program, task)) STRICT, WITHOUT ROWID;",
    "ALTER TABLE attempts ADD COLUMN ran_ms INTEGER NOT NULL DEFAULT -1;",
    "ALTER TABLE programs ADD COLUMN failures_accepted INTEGER NOT NULL DEFAULT 0;",
    /* Metrics and facts were copied here and never read: they are in the cells' folders. */
    "DROP TABLE records; ALTER TABLE results DROP COLUMN records;"
    "ALTER TABLE results DROP COLUMN sealed; ALTER TABLE stages DROP COLUMN sealed;"
    "ALTER TABLE programs DROP COLUMN records_open;",
    "ALTER TABLE attempts ADD COLUMN executor TEXT NOT NULL DEFAULT 'local';"
    "ALTER TABLE attempts ADD COLUMN threads INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE attempts ADD COLUMN memory_bytes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE attempts ADD COLUMN gpu_thousandths INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE attempts ADD COLUMN gpu_memory_bytes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE attempts ADD COLUMN gpus TEXT NOT NULL DEFAULT '';",
    "ALTER TABLE programs ADD COLUMN removed INTEGER NOT NULL DEFAULT 0;",
};

static int migrate_from(sqlite3 *db, int64_t version, struct err *err)
{
    int rc = sql_exec(db, "BEGIN IMMEDIATE", err);
    if (rc == 0 && version == 0) {
        rc = create(db, err);
        version = STORE_SCHEMA_VERSION;
    }
    for (int64_t v = version; rc == 0 && v < STORE_SCHEMA_VERSION; v++) {
        rc = sql_exec(db, MIGRATIONS[v], err);
    }
    if (rc == 0) {
        char pragma[64];
        (void)snprintf(pragma, sizeof(pragma), "PRAGMA user_version=%d", STORE_SCHEMA_VERSION);
        rc = sql_exec(db, pragma, err);
    }
    if (rc == 0) {
        return sql_exec(db, "COMMIT", err);
    }
    (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return err_wrap(err, "prepare the database");
}

int schema_migrate(sqlite3 *db, bool writable, struct err *err)
{
    assert(db != NULL);
    int64_t version = -1;
    int rc = sql_int(db, "PRAGMA user_version", &version, err);
    if (rc != 0) {
        return rc;
    }
    if (version > STORE_SCHEMA_VERSION || version < 0) {
        return err_set(err, ERR_VERSION,
                       "the state folder was written by another version of preregd (its schema is "
                       "%lld, this one "
                       "knows %d): use that version, or another state folder",
                       (long long)version, STORE_SCHEMA_VERSION);
    }
    if (version == STORE_SCHEMA_VERSION) {
        return 0;
    }
    if (!writable) {
        return err_set(err, ERR_VERSION,
                       "the state folder is of an older schema: start `preregd serve` once");
    }
    return migrate_from(db, version, err);
}
