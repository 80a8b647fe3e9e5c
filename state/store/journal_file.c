/*
 * Lines of journal.jsonl and their twins in the table. The file is written and
 * synced first, so after a crash it may be ahead of the table by whole lines (they took effect:
 * adopted), end in a torn line (it never took effect: cut), or lack lines (a file system that
 * lost them: written again from the table).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "state/store/internal.h"

static int load_file(struct store *store, struct journal_file *f, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    int rc = sql_prepare(
        store->db,
        "SELECT id, journal_rows, journal_bytes, journal_head, unverified, coalesce((SELECT line"
        " FROM journal WHERE program=?1 AND seq=journal_rows), '') FROM programs"
        " WHERE no=?1",
        &stmt, err);
    if (rc == 0) {
        sql_bind_int(stmt, 1, f->program);
        rc = sql_step(stmt, &row, err);
    }
    if (rc == 0 && !row) {
        rc = err_set(err, ERR_NOT_FOUND, "there is no program %u", f->program);
    }
    if (rc == 0) {
        f->path = store_program_path(store, sql_col_text(stmt, 0), LAYOUT_JOURNAL);
        f->id = xstrdup(sql_col_text(stmt, 0));
        f->unverified = sql_col_int(stmt, 4) != 0;
        f->committed.n_rows = sql_col_int(stmt, 1);
        f->bytes = sql_col_int(stmt, 2);
        rc = digest_from_hex(sql_col_text(stmt, 3), &f->committed.head, err);
        f->chain = f->committed;
        const char *last = sql_col_text(stmt, 5);
        f->last_time = line_time(last, strlen(last));
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

int journal_file_get(struct store *store, uint32_t program, struct journal_file **out,
                     struct err *err)
{
    assert(store != NULL && out != NULL);
    for (size_t i = 0; i < store->n_journals; i++) {
        if (store->journals[i].program == program) {
            *out = &store->journals[i];
            return 0;
        }
    }
    struct journal_file f = {.program = program, .pending = STRBUF_INIT};
    int rc = load_file(store, &f, err);
    if (rc != 0) {
        free(f.path);
        free(f.id);
        return rc;
    }
    ARRAY_GROW(store->journals, store->n_journals, store->cap_journals);
    store->journals[store->n_journals] = f;
    *out = &store->journals[store->n_journals++];
    return 0;
}

void journal_files_forget(struct store *store)
{
    assert(store != NULL);
    for (size_t i = 0; i < store->n_journals; i++) {
        free(store->journals[i].path);
        free(store->journals[i].id);
        strbuf_release(&store->journals[i].pending);
    }
    store->n_journals = 0;
}

/* The last line of what is pending, into the table. */
static int insert_line(struct store *store, struct journal_file *f, const char *line, size_t len,
                       struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    char hex[DIGEST_HEX_SIZE];
    digest_hex(&f->chain.head, hex);
    int rc = store_stmt(store, STMT_JOURNAL_INSERT, &stmt, err);
    if (rc != 0) {
        return rc;
    }
    sql_bind_int(stmt, 1, f->program);
    sql_bind_int(stmt, 2, f->chain.n_rows);
    sql_bind_text(stmt, 3, hex);
    sql_bind_bytes(stmt, 4, line, len);
    rc = sql_run(stmt, NULL, err);
    if (rc == 0) {
        rc = store_stmt(store, STMT_PROGRAM_JOURNAL, &stmt, err);
    }
    if (rc != 0) {
        return rc;
    }
    sql_bind_int(stmt, 1, f->program);
    sql_bind_int(stmt, 2, f->chain.n_rows);
    sql_bind_int(stmt, 3, f->bytes + (int64_t)f->pending.len);
    sql_bind_text(stmt, 4, hex);
    return sql_run(stmt, NULL, err);
}

int journal_file_add(struct store *store, uint32_t program, cJSON *body, struct err *err)
{
    assert(store != NULL && body != NULL);
    assert(store->open_transaction && !store->replaying);
    struct journal_file *f = NULL;
    int rc = journal_file_get(store, program, &f, err);
    if (rc != 0 || (rc = line_lift_time(body, &f->last_time, err)) != 0) {
        return rc;
    }
    const size_t from = f->pending.len;
    rc = journal_seal(&f->chain, body, &f->pending, err);
    if (rc != 0) {
        return rc;
    }
    const size_t len = f->pending.len - from;
    strbuf_addc(&f->pending, '\n');
    return insert_line(store, f, f->pending.buf + from, len, err);
}

int journal_file_adopt(struct store *store, struct journal_file *f, const struct journal_row *row,
                       struct wall_time time, struct err *err)
{
    assert(store->replaying && row->seq == f->chain.n_rows + 1);
    f->chain = (struct journal_chain){row->seq, row->hash};
    f->last_time = time;
    strbuf_add(&f->pending, row->line.text, row->line.len);
    strbuf_addc(&f->pending, '\n');
    return insert_line(store, f, row->line.text, row->line.len, err);
}

static int check_size(const struct journal_file *f, int64_t size, struct err *err)
{
    return size == f->bytes
               ? 0
               : err_set(err, ERR_CORRUPT,
                         "%s has %lld bytes where %lld were written: something else writes to it",
                         f->path, (long long)size, (long long)f->bytes);
}

int journal_files_check(struct store *store, struct err *err)
{
    assert(store != NULL);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < store->n_journals; i++) {
        const struct journal_file *f = &store->journals[i];
        struct stat st = {0};
        if (f->pending.len == 0) {
            continue;
        }
        bool is_new = lstat(f->path, &st) != 0 && errno == ENOENT && f->bytes == 0;
        rc = st.st_nlink > 0 || is_new ? check_size(f, st.st_size, err)
                                       : err_set_errno(err, errno, "%s", f->path);
    }
    return rc == 0 ? 0 : err_wrap(err, "journal");
}

/* Whether a call that failed so says something about this file, not about the machine. */
static bool is_of_file(int errnum)
{
    return errnum != ENOSPC && errnum != EDQUOT && errnum != EMFILE && errnum != ENFILE &&
           errnum != ENOMEM;
}

static int append_pending(struct store *store, struct journal_file *f, struct err *err)
{
    struct stat st;
    int fd = open(f->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int why = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        store->failed_journal = is_of_file(why) ? f->program : 0;
        return err_set_errno(err, why, "open %s", f->path);
    }
    int rc = check_size(f, st.st_size, err);
    if (rc == 0) {
        f->appended = true;
        rc = store->io.append(fd, f->pending.buf, f->pending.len, err);
    }
    if (rc == 0 && store->io.sync(fd) != 0) {
        rc = err_set_errno(err, errno, "sync %s", f->path);
    }
    (void)close(fd);
    store->failed_journal = rc == ERR_IO ? f->program : 0;
    if (rc == 0 && f->bytes == 0) { /* a new file: its name must last as well */
        char *folder = path_folder(f->path);
        rc = dir_sync(folder, err);
        free(folder);
    }
    return rc;
}

int journal_files_write(struct store *store, struct err *err)
{
    assert(store != NULL && store->open_transaction);
    for (size_t i = 0; i < store->n_journals; i++) {
        struct journal_file *f = &store->journals[i];
        if (f->pending.len > 0 && !store->replaying && !store->detached) {
            int rc = append_pending(store, f, err);
            if (rc != 0) {
                return err_wrap(err, "journal");
            }
        }
    }
    return 0;
}

void journal_files_settle(struct store *store)
{
    assert(store != NULL && !store->open_transaction);
    for (size_t i = 0; i < store->n_journals; i++) {
        struct journal_file *f = &store->journals[i];
        if (f->chain.n_rows != f->committed.n_rows) {
            heads_note(store, f->id, f->chain.n_rows, &f->chain.head, f->unverified);
        }
        f->committed = f->chain;
        f->bytes += (int64_t)f->pending.len;
        f->appended = false;
        strbuf_clear(&f->pending);
    }
}

int journal_files_undo(struct store *store, struct err *err)
{
    assert(store != NULL);
    int rc = 0;
    for (size_t i = 0; i < store->n_journals; i++) {
        struct journal_file *f = &store->journals[i];
        if (!f->appended) {
            continue;
        }
        int fd = open(f->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 && errno == ENOENT) {
            f->appended = false; /* its folder was removed meanwhile, and the lines with it */
            continue;
        }
        if (fd < 0 || store->io.truncate(fd, (off_t)f->bytes) != 0 || store->io.sync(fd) != 0) {
            rc = err_set_errno(err, errno, "cut %s back", f->path);
        }
        if (fd >= 0) {
            (void)close(fd);
        }
        f->appended = false;
    }
    return rc;
}
