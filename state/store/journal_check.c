/*
 * The whole journal, line by line: journal.jsonl against the database's copy, and the chain of
 * hashes over both. It says which line differs, and which of the two can be trusted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "state/store/internal.h"

struct checking {
    const char *path;
    bool has_file;
    struct journal_cursor file;
    struct digest head;
    struct strbuf scratch;
};

static int differs(const struct checking *k, int64_t seq, struct err *err)
{
    return err_set(
        err, ERR_CORRUPT,
        "%s:%lld: this line is not the one in the database, whose chain holds so far; `mv "
        "journal.jsonl journal.jsonl.differs` keeps the history: the next start writes it anew",
        k->path, (long long)seq);
}

static int check_row(struct checking *k, int64_t seq, const char *hash, const char *line,
                     struct err *err)
{
    size_t len = strlen(line);
    if (!journal_follows(&k->head, line, len, hash, &k->scratch)) {
        return err_set(err, ERR_CORRUPT,
                       "row %lld of the database's journal does not follow from the row before: "
                       "`preregctl rebuild` makes the database again from %s",
                       (long long)seq, k->path);
    }
    int rc = digest_from_hex(hash, &k->head, err);
    if (rc != 0 || !k->has_file) {
        return rc;
    }
    const char *text = NULL;
    size_t n = 0;
    rc = journal_cursor_next(&k->file, &text, &n, err);
    if (rc != 0 && rc != ERR_RANGE) {
        return rc;
    }
    bool same = text != NULL && n == len && memcmp(text, line, len) == 0;
    return same ? 0 : differs(k, seq, err);
}

static int check_rows(struct store *store, uint32_t program, int64_t n_rows, struct checking *k,
                      struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = true;
    int64_t expected = 1;
    int rc = sql_prepare(store->db,
                         "SELECT seq, hash, line FROM journal WHERE program=?1 AND seq<=?2 ORDER "
                         "BY seq",
                         &stmt, err);
    if (rc == 0) {
        sql_bind_int(stmt, 1, program);
        sql_bind_int(stmt, 2, n_rows);
    }
    while (rc == 0 && row) {
        rc = sql_step(stmt, &row, err);
        if (rc == 0 && row) {
            rc = sql_col_int(stmt, 0) == expected
                     ? check_row(k, expected, sql_col_text(stmt, 1), sql_col_text(stmt, 2), err)
                     : err_set(err, ERR_CORRUPT, "the database lacks row %lld of %s",
                               (long long)expected, k->path);
            expected++;
        }
    }
    (void)sqlite3_finalize(stmt);
    if (rc == 0 && expected <= n_rows) {
        rc = err_set(err, ERR_CORRUPT, "the database lacks row %lld of %s", (long long)expected,
                     k->path);
    }
    return rc;
}

int journal_check(struct store *store, uint32_t program, int64_t n_rows, const char *path,
                  struct err *err)
{
    assert(store != NULL && path != NULL);
    struct checking k = {.path = path, .scratch = STRBUF_INIT};
    int rc = journal_cursor_open(&k.file, path, err);
    if (rc != 0 && rc != ERR_NOT_FOUND) {
        return rc;
    }
    k.has_file = rc == 0;
    rc = check_rows(store, program, n_rows, &k, err);
    journal_cursor_release(&k.file);
    strbuf_release(&k.scratch);
    return rc;
}

static int check_head(struct store *store, const struct journal_file *f, struct err *err)
{
    struct heads heads;
    bool same = true;
    int rc = heads_read(store->dir, &heads, err);
    const struct journal_head *h = rc == 0 ? heads_find(&heads, f->id) : NULL;
    rc = h == NULL ? rc : heads_compare(store, f->program, h, &same, err);
    if (rc == 0 && h != NULL && (!same || h->unverified)) {
        rc = err_set(err, ERR_CORRUPT,
                     HEADS_FILE " has row %lld of %s, which its journal of %lld rows does not have",
                     (long long)h->rows, f->id, (long long)f->committed.n_rows);
    }
    heads_release(&heads);
    return rc;
}

/* The rows have been compared with the file where there is one: it must be there, and end with
 * them. A row is written to the file before the database has it: one that goes on is neither
 * verified nor unverified. */
static int check_end_of_file(const struct journal_file *f, struct err *err)
{
    struct stat st;
    if (lstat(f->path, &st) != 0) {
        return errno == ENOENT && f->committed.n_rows > 0
                   ? err_set(err, ERR_CORRUPT,
                             "%s: no such file; the next start writes it from the database",
                             f->path)
               : errno == ENOENT ? 0
                                 : err_set_errno(err, errno, "stat %s", f->path);
    }
    if (st.st_size == f->bytes) {
        return 0;
    }
    return st.st_size < f->bytes
               ? err_set(err, ERR_CORRUPT, "%s ends before row %lld, the last of the database",
                         f->path, (long long)f->committed.n_rows)
               : err_set(
                     err, ERR_BUSY,
                     "%s goes on after row %lld, the last of the database, as a crash leaves it, "
                     "or a process that still writes: the next start adopts or refuses what "
                     "follows",
                     f->path, (long long)f->committed.n_rows);
}

int journal_check_end(struct store *store, const struct journal_file *f, struct err *err)
{
    assert(store != NULL && f != NULL);
    int rc = check_end_of_file(f, err);
    return rc != 0 ? rc : check_head(store, f, err);
}
