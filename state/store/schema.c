#include "state/store/schema.h"

#include <stdio.h>

#include "base/xalloc.h"
#include "state/store/sql.h"
#include "state/store/store.h"

/* Index v holds what takes version v to v + 1. Names, not numbers, stand for states and causes: a
 * database outlives the order of our enums. */
static const char *const MIGRATIONS[STORE_SCHEMA_VERSION] = {
    "CREATE TABLE programs("
    " no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, root TEXT NOT NULL "
    "UNIQUE,"
    " head TEXT NOT NULL, submitted_ms INTEGER NOT NULL, n_cells INTEGER NOT NULL, n_stages "
    "INTEGER NOT NULL,"
    " paused INTEGER NOT NULL DEFAULT 0, unsealed INTEGER NOT NULL DEFAULT 0,"
    " unblinded INTEGER NOT NULL DEFAULT 0, records_open INTEGER NOT NULL DEFAULT 0,"
    " verdict INTEGER NOT NULL DEFAULT 0, reported INTEGER NOT NULL DEFAULT 0, outcome TEXT NOT "
    "NULL DEFAULT '',"
    " verdict_digest TEXT NOT NULL DEFAULT '', unverified INTEGER NOT NULL DEFAULT 0,"
    " journal_rows INTEGER NOT NULL DEFAULT 0, journal_bytes INTEGER NOT NULL DEFAULT 0,"
    " journal_head TEXT NOT NULL) STRICT;"
    "CREATE TABLE stages("
    " program INTEGER NOT NULL REFERENCES programs(no), stage INTEGER NOT NULL, name TEXT NOT NULL,"
    " after TEXT NOT NULL, sealed INTEGER NOT NULL, PRIMARY KEY(program, stage)) STRICT, WITHOUT "
    "ROWID;"
    "CREATE TABLE cells("
    " program INTEGER NOT NULL REFERENCES programs(no), cell INTEGER NOT NULL, name TEXT NOT NULL,"
    " PRIMARY KEY(program, cell)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE tasks("
    " program INTEGER NOT NULL REFERENCES programs(no), task INTEGER NOT NULL,"
    " state TEXT NOT NULL CHECK(state IN "
    "  ('waiting','ready','starting','running','done','blocked','never_run')),"
    " cause TEXT NOT NULL DEFAULT '', linked INTEGER NOT NULL DEFAULT 0, ending TEXT NOT NULL "
    "DEFAULT '',"
    " n_attempts INTEGER NOT NULL DEFAULT 0, spent INTEGER NOT NULL DEFAULT 0,"
    " crashes INTEGER NOT NULL DEFAULT 0, idle INTEGER NOT NULL DEFAULT 0,"
    " no_space INTEGER NOT NULL DEFAULT 0, best_done INTEGER NOT NULL DEFAULT -1,"
    " best_checkpoint INTEGER NOT NULL DEFAULT -1, not_before_ms INTEGER NOT NULL DEFAULT 0,"
    " PRIMARY KEY(program, task),"
    " CHECK((cause <> '') = (state IN ('blocked','never_run')))) STRICT, WITHOUT ROWID;"
    "CREATE TABLE attempts("
    " program INTEGER NOT NULL, task INTEGER NOT NULL, no INTEGER NOT NULL, id TEXT NOT NULL "
    "UNIQUE,"
    " state TEXT NOT NULL CHECK(state IN ('starting','running','ended')), cause TEXT NOT NULL,"
    " reason TEXT NOT NULL, code INTEGER NOT NULL, signal INTEGER NOT NULL, started_ms INTEGER NOT "
    "NULL,"
    " ended_ms INTEGER NOT NULL, section TEXT NOT NULL, done INTEGER NOT NULL, total INTEGER NOT "
    "NULL,"
    " checkpoint INTEGER NOT NULL, resumed_from INTEGER NOT NULL, malformed INTEGER NOT NULL,"
    " \"offset\" INTEGER NOT NULL, user_ms INTEGER NOT NULL, system_ms INTEGER NOT NULL,"
    " max_rss_bytes INTEGER NOT NULL, PRIMARY KEY(program, task, no),"
    " FOREIGN KEY(program, task) REFERENCES tasks(program, task)) STRICT, WITHOUT ROWID;"
    "CREATE UNIQUE INDEX attempts_live ON attempts(program, task) WHERE state <> 'ended';"
    "CREATE TABLE results("
    " program INTEGER NOT NULL, task INTEGER NOT NULL, attempt INTEGER NOT NULL, digest TEXT NOT "
    "NULL,"
    " sealed INTEGER NOT NULL, records INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(program, task),"
    " FOREIGN KEY(program, task) REFERENCES tasks(program, task)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE records("
    " program INTEGER NOT NULL, task INTEGER NOT NULL, fact INTEGER NOT NULL, name TEXT NOT NULL,"
    " value TEXT NOT NULL, PRIMARY KEY(program, task, fact, name),"
    " FOREIGN KEY(program, task) REFERENCES results(program, task)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE journal("
    " program INTEGER NOT NULL REFERENCES programs(no), seq INTEGER NOT NULL, hash TEXT NOT NULL,"
    " line TEXT NOT NULL, PRIMARY KEY(program, seq)) STRICT, WITHOUT ROWID;"
    "CREATE TRIGGER journal_appends BEFORE INSERT ON journal"
    " WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM journal WHERE program = NEW.program)"
    " BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;"
    "CREATE TRIGGER journal_keeps BEFORE UPDATE ON journal"
    " BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;"
    "CREATE TRIGGER journal_holds BEFORE DELETE ON journal"
    " BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;",
    "CREATE TABLE apparatus("
    " program INTEGER NOT NULL, task INTEGER NOT NULL, name TEXT NOT NULL, stage TEXT NOT NULL,"
    " declared INTEGER NOT NULL, PRIMARY KEY(program, task),"
    " FOREIGN KEY(program, task) REFERENCES tasks(program, task)) STRICT, WITHOUT ROWID;",
    "ALTER TABLE attempts ADD COLUMN ran_ms INTEGER NOT NULL DEFAULT -1;",
    "ALTER TABLE programs ADD COLUMN failures_accepted INTEGER NOT NULL DEFAULT 0;",
};

static int migrate_from(sqlite3 *db, int64_t version, struct err *err)
{
    int rc = sql_exec(db, "BEGIN IMMEDIATE", err);
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
