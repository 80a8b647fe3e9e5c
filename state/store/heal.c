/* journal.jsonl against the table, at every opening by an owner. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "state/store/internal.h"
#include "state/store/submission.h"

static int broken(struct store *store, const struct journal_file *f, struct err *err)
{
    int rc = journal_check(store, f->program, f->committed.n_rows, f->path, err);
    return rc != 0 ? rc
                   : err_set(err, ERR_CORRUPT,
                             "%s goes on otherwise than the database after row %lld: keep both, "
                             "and let `preregctl rebuild` decide",
                             f->path, (long long)f->committed.n_rows);
}

static int add_line(void *ctx, int64_t seq, const char *line, struct err *err)
{
    (void)seq;
    (void)err;
    strbuf_adds(ctx, line);
    strbuf_addc(ctx, '\n');
    return 0;
}

/* The table's lines from `from_seq`, each with its newline, appended to out. */
static int table_lines(struct store *store, const struct journal_file *f, int64_t from_seq,
                       struct strbuf *out, struct err *err)
{
    return store_journal(store, f->program, from_seq, add_line, out, err);
}

/* The file lost its end: what is there must be the table's beginning, the rest is written again. */
static int write_again(struct store *store, const struct journal_file *f, const struct strbuf *have,
                       struct err *err)
{
    struct strbuf all = STRBUF_INIT;
    int rc = table_lines(store, f, 1, &all, err);
    if (rc == 0 && (have->len > all.len || memcmp(all.buf, have->buf, have->len) != 0)) {
        rc = broken(store, f, err);
    }
    if (rc == 0) {
        log_warn("state: %s was shorter than the database's journal and is written again", f->path);
        rc = file_write_atomic(f->path, all.buf, all.len, 0600, err);
    }
    strbuf_release(&all);
    return rc;
}

/* The file's bytes from an offset to its end. */
static int read_tail(const char *path, int64_t from, struct strbuf *out, struct err *err)
{
    char block[65536];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0) {
        n = pread(fd, block, sizeof(block), (off_t)(from + (int64_t)out->len));
        if (n > 0) {
            strbuf_add(out, block, (size_t)n);
        }
        if (out->len > LAYOUT_JOURNAL_MAX) {
            (void)close(fd);
            return err_set(err, ERR_RANGE, "%s is too long", path);
        }
    }
    int rc = n < 0 ? err_set_errno(err, errno, "read %s", path) : 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc;
}

struct taking {
    struct store *store;
    uint32_t program;
};

static int take_row(void *ctx, const struct journal_row *row, struct err *err)
{
    const struct taking *t = ctx;
    return apply_line(t->store, t->program, row, err);
}

/* Whole lines of `text` are taken; *n_taken is where the torn rest begins. */
static int take_lines(struct store *store, const struct journal_file *f, const struct strbuf *text,
                      size_t *n_taken, struct err *err)
{
    struct taking t = {store, f->program};
    struct journal_chain chain = f->chain;
    struct journal_cursor cursor;
    journal_cursor_init(&cursor, text->buf, text->len);
    int rc = journal_replay(&cursor, &chain, take_row, &t, err);
    *n_taken = (size_t)cursor.n_bytes;
    journal_cursor_release(&cursor);
    return rc;
}

static int cut(const char *path, size_t len, struct err *err)
{
    log_warn("state: %s ended in a torn line, which never took effect and is cut", path);
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    int rc = 0;
    if (fd < 0 || ftruncate(fd, (off_t)len) != 0 || fdatasync(fd) != 0) {
        rc = err_set_errno(err, errno, "cut %s", path);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc;
}

static int take_over(struct store *store, struct journal_file *f, const struct strbuf *text,
                     struct err *err)
{
    size_t n_taken = 0;
    uint32_t program = f->program;
    int64_t bytes = f->bytes;
    char *path = xstrdup(f->path);
    int heads_fd = store->heads_fd;
    int rc = store_begin(store, err);
    store->heads_fd =
        -1; /* check_history compares the noted head first, and then notes the new one */
    store->replaying = true;
    if (rc == 0) {
        rc = take_lines(store, f, text, &n_taken, err);
    }
    if (rc == 0) {
        rc = apply_settle(store, program, err);
    }
    if (rc == 0) {
        rc = store_commit(store, err);
    } else {
        store_rollback(store);
    }
    store->replaying = false;
    store->heads_fd = heads_fd;
    if (rc != 0) {
        rc = err_wrap(err, "adopt %s", path);
    } else if (n_taken < text->len) {
        rc = cut(path, (size_t)bytes + n_taken, err);
    }
    free(path);
    return rc;
}

static int heal_longer(struct store *store, struct journal_file *f, struct err *err)
{
    struct strbuf last = STRBUF_INIT;
    struct strbuf tail = STRBUF_INIT;
    int rc = table_lines(store, f, f->committed.n_rows, &last, err);
    if (rc != 0) {
        goto out;
    }
    if ((int64_t)last.len > f->bytes) {
        rc = broken(store, f, err);
        goto out;
    }
    if ((rc = read_tail(f->path, f->bytes - (int64_t)last.len, &tail, err)) != 0) {
        goto out;
    }
    /* The table's last line must end where the file did when the two last agreed. */
    if (tail.len < last.len || memcmp(tail.buf, last.buf, last.len) != 0) {
        rc = broken(store, f, err);
        goto out;
    }
    if (tail.len > last.len) {
        struct strbuf fresh = STRBUF_INIT;
        strbuf_add(&fresh, tail.buf + last.len, tail.len - last.len);
        rc = take_over(store, f, &fresh, err);
        strbuf_release(&fresh);
    }
out:
    strbuf_release(&last);
    strbuf_release(&tail);
    return rc;
}

static int heal_file(struct store *store, struct journal_file *f, struct err *err)
{
    struct stat st;
    int rc = file_lstat(f->path, &st, err);
    bool there = rc == 0;
    if (rc != 0 && rc != ERR_NOT_FOUND) {
        return rc; /* a file that cannot be read is not overwritten */
    }
    if (there && st.st_size >= f->bytes) {
        return heal_longer(store, f, err);
    }
    struct strbuf file = STRBUF_INIT;
    rc = there ? file_read(f->path, LAYOUT_JOURNAL_MAX, &file, err) : 0;
    if (rc == 0) {
        rc = write_again(store, f, &file, err);
    }
    strbuf_release(&file);
    return rc;
}

static int numbers_of_all(struct store *store, uint32_t **out, size_t *n, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    size_t cap = 0;
    bool row = true;
    int rc = sql_prepare(store->db, "SELECT no FROM programs ORDER BY no", &stmt, err);
    while (rc == 0 && row) {
        rc = sql_step(stmt, &row, err);
        if (rc == 0 && row) {
            ARRAY_GROW(*out, *n, cap);
            (*out)[(*n)++] = (uint32_t)sql_col_int(stmt, 0);
        }
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* S1, in the rows: a task that is starting or running has one attempt without an end, and no other
 * task has one. */
static int check_attempts(struct store *store, struct err *err)
{
    int64_t n = 0;
    int rc = sql_int(
        store->db,
        "SELECT (SELECT count(*) FROM tasks t WHERE state IN ('starting','running') AND NOT EXISTS"
        " (SELECT 1 FROM attempts a WHERE a.program=t.program AND a.task=t.task AND "
        "a.state<>'ended'))"
        " + (SELECT count(*) FROM attempts a JOIN tasks t ON t.program=a.program AND t.task=a.task"
        " WHERE a.state<>'ended' AND t.state NOT IN ('starting','running'))",
        &n, err);
    if (rc == 0 && n > 0) {
        rc = err_set(
            err, ERR_CORRUPT,
            "%lld tasks and their attempts disagree; `preregctl rebuild` makes the database again",
            (long long)n);
    }
    return rc;
}

/* What the head that was noted apart says of a journal that is whole in itself. */
static int compare_head(struct store *store, const struct journal_file *f, struct err *err)
{
    const struct journal_head *h = heads_find(&store->heads, f->id);
    bool same = true;
    char sql[80];
    int rc = h == NULL ? 0 : heads_compare(store, f->program, h, &same, err);
    bool unverified = h != NULL && (!same || h->unverified);
    if (rc == 0 && unverified && !f->unverified) {
        log_error("state: UNVERIFIED HISTORY: " HEADS_FILE
                  " has row %lld of %s, which its journal of %lld rows does not have",
                  (long long)h->rows, f->id, (long long)f->committed.n_rows);
        (void)snprintf(sql, sizeof(sql), "UPDATE programs SET unverified=1 WHERE no=%u",
                       f->program);
        rc = sql_exec(store->db, sql, err);
    }
    if (rc == 0) {
        heads_note(store, f->id, f->committed.n_rows, &f->committed.head,
                   unverified || f->unverified);
    }
    return rc;
}

/* After healing: the whole chain, and its head against the one that was noted. */
static int check_history(struct store *store, uint32_t program, struct err *err)
{
    struct journal_file *f = NULL;
    int rc = journal_file_get(store, program, &f, err);
    if (rc == 0 && f->committed.n_rows <= STORE_CHECKED_ROWS) {
        rc = journal_check(store, program, f->committed.n_rows, f->path, err);
    }
    if (rc == 0) {
        rc = compare_head(store, f, err);
    }
    journal_files_forget(store);
    return rc;
}

int journal_heal(struct store *store, struct err *err)
{
    assert(store != NULL && !store->reader); /* healing writes */
    uint32_t *numbers = NULL;
    size_t n = 0;
    int rc = numbers_of_all(store, &numbers, &n, err);
    if (rc == 0) {
        rc = submission_clear(store, n > 0, err);
    }
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct journal_file *f = NULL;
        rc = journal_file_get(store, numbers[i], &f, err);
        if (rc == 0) {
            rc = heal_file(store, f, err);
        }
        journal_files_forget(store);
        if (rc == 0) {
            rc = check_history(store, numbers[i], err);
        }
    }
    free(numbers);
    return rc == 0 ? check_attempts(store, err) : rc;
}
