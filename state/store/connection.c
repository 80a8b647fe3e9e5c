/* A connection to the database of a state folder: the lock of its owner, SQLite's settings, the
 * statements that are prepared once. Nothing here knows what a row means. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/shared_dir.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "state/store/internal.h"
#include "state/tenure/record.h"

#define BUSY_MS       5000
#define LOCK_TRIES    100 /* two seconds in all */
#define LOCK_PAUSE_MS 20

/* Network file systems are recognised by the magic number of statfs(2): their locks and syncs do
 * not hold what invariant 2 needs. */
int fs_check_local(const char *dir, struct err *err)
{
    assert(dir != NULL);
    const char *name = shared_network_name(dir, err);
    if (name == NULL) {
        return err->code;
    }
    return err_set(err, ERR_REFUSED,
                   "the folder %s is on %s, whose locks and syncs cannot be relied on: set "
                   "PREREGD_STATE to a local disk ([run] work may be a shared one), or start "
                   "`preregd serve --database FOLDER`, FOLDER on a local disk",
                   dir, name);
}

int store_stmt(struct store *store, enum stmt which, sqlite3_stmt **out, struct err *err)
{
    assert(store != NULL && out != NULL);
    if (store->stmts[which] == NULL) {
        char *sql = statement_sql(which);
        int rc = sql_prepare(store->db, sql, &store->stmts[which], err);
        free(sql);
        if (rc != 0) {
            return rc;
        }
    }
    *out = store->stmts[which];
    return 0;
}

char *store_program_path(const struct store *store, const char *id, const char *name)
{
    assert(store != NULL && id != NULL && name != NULL);
    return xasprintf("%s/" LAYOUT_PROGRAMS "/%s/%s", store->dir, id, name);
}

static int sync_fd(int fd)
{
    return fdatasync(fd);
}

static struct store *store_new(const char *dir, enum store_mode mode)
{
    struct store *store = xcalloc(1, sizeof(*store));
    store->dir = xstrdup(dir);
    store->local = tenure_local_folder(dir);
    store->lock_fd = -1;
    store->heads_fd = -1;
    store->dir_fd = -1;
    store->reader = mode == STORE_READER;
    store->io = (struct journal_io){file_write_all, sync_fd, ftruncate};
    return store;
}

/* state.lock holds the number of the process that has it: for messages alone. */
static void note_owner(int fd)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n) {
        log_debug("state: state.lock cannot be written");
    }
}

static int refuse_second(const char *dir, const char *lock, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    long pid = file_read(lock, 64, &text, &ignored) == 0 ? strtol(text.buf, NULL, 10) : 0;
    strbuf_release(&text);
    return pid > 0 ? err_set(err, ERR_BUSY,
                             "another preregd (process %ld) serves the state folder %s", pid, dir)
                   : err_set(err, ERR_BUSY, "another preregd serves the state folder %s", dir);
}

/* The folder itself is locked, too: state.lock may be deleted, and another made in its place. */
static int lock_folder(struct store *store, struct err *err)
{
    store->dir_fd = open(store->local, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store->dir_fd < 0) {
        return err_set_errno(err, errno, "open folder %s", store->local);
    }
    for (int i = 0; flock(store->dir_fd, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK) {
            return err_set_errno(err, errno, "lock %s", store->local);
        }
        if (i == LOCK_TRIES) {
            return err_set(err, ERR_BUSY,
                           "another preregd serves the state folder %s, whose state.lock was "
                           "deleted: stop it first",
                           store->dir);
        }
        clock_sleep_ms(LOCK_PAUSE_MS);
    }
    return 0;
}

/* A daemon that was just told to stop, or a child of one that was killed between fork and exec, may
 * hold it for a moment yet. */
static int take_lock(struct store *store, struct err *err)
{
    char *path = path_join(store->local, LAYOUT_STATE_LOCK);
    int rc = lock_try(path, false, &store->lock_fd, err);
    for (int i = 0; rc == 0 && store->lock_fd < 0 && i < LOCK_TRIES; i++) {
        clock_sleep_ms(LOCK_PAUSE_MS);
        rc = lock_try(path, false, &store->lock_fd, err);
    }
    if (rc == 0 && store->lock_fd < 0) {
        rc = refuse_second(store->dir, path, err);
    }
    free(path);
    if (rc == 0) {
        rc = lock_folder(store, err);
    }
    if (rc == 0) {
        note_owner(store->lock_fd);
    }
    return rc;
}

/* Durability (invariant 2): WAL with every commit synced, and constraints that SQLite itself keeps.
 */
static int set_pragmas(struct store *store, struct err *err)
{
    (void)sqlite3_extended_result_codes(store->db, 1);
    (void)sqlite3_busy_timeout(store->db, BUSY_MS);
    if (store->reader) {
        return sql_exec(store->db, "PRAGMA query_only=1", err);
    }
    return sql_exec(store->db,
                    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=1;"
                    "PRAGMA trusted_schema=0; PRAGMA cell_size_check=1",
                    err);
}

/* For a reader. The database of a shared state folder is on the host that served it last. */
static int no_database(const struct store *store, struct err *err)
{
    struct tenure last;
    struct err ignored;
    bool found = false;
    if (tenure_read(store->dir, &last, &found, &ignored) == 0 && found) {
        return err_set(
            err, ERR_NOT_FOUND,
            "the database of %.100s is on host %.80s: ask there, or start `preregd serve "
            "--database FOLDER` here once that one has stopped",
            store->dir, last.host);
    }
    return err_set(err, ERR_NOT_FOUND, "there is no state at %s", store->dir);
}

static int open_database(struct store *store, const char *file, struct err *err)
{
    char *real = realpath(store->local, NULL); /* SQLite refuses a link anywhere in the path */
    char *path = path_join(real != NULL ? real : store->local, file);
    free(real);
    int flags = store->reader ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int rc = 0;
    if (store->reader && file_kind_at(path) != FILE_REGULAR) {
        rc = no_database(store, err);
    } else {
        mode_t mask = umask(0077);
        int opened = sqlite3_open_v2(path, &store->db, flags | SQLITE_OPEN_NOFOLLOW, NULL);
        (void)umask(mask);
        if (opened != SQLITE_OK) {
            rc = sql_error(store->db, opened, err, "open the database");
        }
    }
    free(path);
    if (rc == 0) {
        rc = set_pragmas(store, err);
    }
    if (rc == 0) {
        rc = sql_add_functions(store->db, err);
    }
    if (rc == 0) {
        rc = schema_migrate(store->db, !store->reader, err);
    }
    return rc;
}

/* Every page is read before any is trusted: a torn one must not pass for an empty queue. */
static int check_whole(struct store *store, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    int rc = sql_prepare(store->db, "PRAGMA quick_check(1)", &stmt, err);
    if (rc == 0) {
        rc = sql_step(stmt, &row, err);
    }
    if (rc == 0 && (!row || strcmp(sql_col_text(stmt, 0), "ok") != 0)) {
        rc = err_set(err, ERR_CORRUPT,
                     "the database is damaged (%.80s); `preregctl rebuild` makes it again from the "
                     "programs' folders",
                     row ? sql_col_text(stmt, 0) : "no answer");
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* The owner's folder: made, private, on a local disk, and locked. */
static int prepare_folder(struct store *store, struct err *err)
{
    int rc = 0;
    if ((rc = dir_make_durable(store->dir, 0700, err)) != 0 ||
        (rc = dir_check_private(store->dir, err)) != 0) {
        return rc;
    }
    if (strcmp(store->dir, store->local) != 0 && (rc = dir_check_private(store->local, err)) != 0) {
        return rc;
    }
    rc = fs_check_local(store->local, err);
    return rc != 0 ? rc : take_lock(store, err);
}

int store_connect(const char *dir, const char *file, enum store_mode mode, struct store **out,
                  struct err *err)
{
    assert(dir != NULL && file != NULL && out != NULL);
    struct store *store = store_new(dir, mode);
    int rc = mode == STORE_OWNER ? prepare_folder(store, err) : 0;
    if (rc == 0) {
        rc = open_database(store, file, err);
    }
    if (rc == 0 && mode == STORE_OWNER) {
        rc = check_whole(store, err);
    }
    if (rc != 0) {
        store_disconnect(store);
        *out = NULL;
        return err_wrap(err, "state folder");
    }
    *out = store;
    return 0;
}

void store_disconnect(struct store *store)
{
    assert(!store->open_transaction);
    for (size_t i = 0; i < STMT_NR; i++) {
        (void)sqlite3_finalize(store->stmts[i]);
    }
    (void)sqlite3_close(store->db);
    if (store->lock_fd >= 0) {
        (void)close(store->lock_fd);
    }
    if (store->dir_fd >= 0) {
        (void)close(store->dir_fd);
    }
    free(store->local);
    free(store->dir);
    free(store);
}
