/* A transaction over the database and the journals' files. After an error only a rollback is legal;
 * one that cannot cut a file back leaves the store broken until it is opened again. */
#include "base/log.h"
#include "state/store/internal.h"

/* After an error: a row that is rejected is SQLITE_CONSTRAINT, or no error of SQLite's at all. */
static void note_damage(struct store *store)
{
    int code = sqlite3_errcode(store->db) & 0xff;
    store->damaged = store->damaged || code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
}

static int run_stmt(struct store *store, enum stmt which, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_stmt(store, which, &stmt, err);
    return rc == 0 ? sql_run(stmt, NULL, err) : rc;
}

int store_begin(struct store *store, struct err *err)
{
    assert(!store->reader && !store->open_transaction);
    if (store->broken) {
        return err_set(err, ERR_CORRUPT,
                       "database and journal may disagree after an error: start preregd again");
    }
    if (store->damaged) {
        return err_set(err, ERR_CORRUPT,
                       "the database is damaged: stop preregd; `preregctl rebuild` makes it again "
                       "from the programs' folders");
    }
    store->failed_journal = 0;
    int rc = run_stmt(store, STMT_BEGIN, err);
    store->open_transaction = rc == 0;
    if (rc != 0) {
        note_damage(store);
    }
    return rc;
}

void store_set_guard(struct store *store, store_guard_fn *guard, void *ctx)
{
    assert(store != NULL && !store->reader);
    store->guard = guard;
    store->guard_ctx = ctx;
}

bool store_is_damaged(const struct store *store)
{
    assert(store != NULL);
    return store->damaged || store->broken;
}

uint32_t store_failed_journal(const struct store *store)
{
    assert(store != NULL);
    return store->failed_journal;
}

void store_rollback(struct store *store)
{
    assert(store != NULL);
    struct err err = {0};
    if (!store->open_transaction) {
        return;
    }
    store->open_transaction = false;
    note_damage(store);
    (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    if (journal_files_undo(store, &err) != 0) {
        log_error("state: %s", err.msg);
        store->broken = true;
    }
    journal_files_forget(store);
}

int store_check_files(struct store *store, struct err *err)
{
    assert(store->open_transaction);
    return journal_files_check(store, err);
}

/* Invariant 2: the lines are on disk before the change is. */
int store_commit(struct store *store, struct err *err)
{
    assert(store->open_transaction);
    int rc = store->guard == NULL ? 0 : store->guard(store->guard_ctx, err);
    if (rc != 0 || (rc = journal_files_write(store, err)) != 0 ||
        (rc = run_stmt(store, STMT_COMMIT, err)) != 0) {
        store_rollback(store);
        return rc;
    }
    store->open_transaction = false;
    journal_files_settle(store);
    return 0;
}
