/*
 * The hash chain: lines of journal.jsonl and their twins in the table. The file is written and
 * synced first, so after a crash it may be ahead of the table by whole lines (they took effect:
 * taken over), end in a torn line (it never took effect: cut), or lack lines (a file system that
 * lost them: written again from the table).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "state/store/internal.h"

static int load_chain(struct store *store, struct chain *c, struct err *err)
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
        sql_bind_int(stmt, 1, c->program);
        rc = sql_step(stmt, &row, err);
    }
    if (rc == 0 && !row) {
        rc = err_set(err, ERR_NOT_FOUND, "there is no program %u", c->program);
    }
    if (rc == 0) {
        c->path = store_program_path(store, sql_col_text(stmt, 0), "journal.jsonl");
        c->id = xstrdup(sql_col_text(stmt, 0));
        c->unverified = sql_col_int(stmt, 4) != 0;
        c->rows = sql_col_int(stmt, 1);
        c->bytes = sql_col_int(stmt, 2);
        rc = digest_from_hex(sql_col_text(stmt, 3), &c->head, err);
        c->new_rows = c->rows;
        c->new_head = c->head;
        c->new_time = line_time(sql_col_text(stmt, 5));
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

int chain_get(struct store *store, uint32_t program, struct chain **out, struct err *err)
{
    for (size_t i = 0; i < store->n_chains; i++) {
        if (store->chains[i].program == program) {
            *out = &store->chains[i];
            return 0;
        }
    }
    struct chain c = {.program = program, .pending = STRBUF_INIT};
    int rc = load_chain(store, &c, err);
    if (rc != 0) {
        free(c.path);
        free(c.id);
        return rc;
    }
    ARRAY_GROW(store->chains, store->n_chains, store->cap_chains);
    store->chains[store->n_chains] = c;
    *out = &store->chains[store->n_chains++];
    return 0;
}

void chain_forget_all(struct store *store)
{
    for (size_t i = 0; i < store->n_chains; i++) {
        free(store->chains[i].path);
        free(store->chains[i].id);
        strbuf_release(&store->chains[i].pending);
    }
    store->n_chains = 0;
}

static int insert_line(struct store *store, struct chain *c, const char *line, int64_t n_bytes,
                       struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    char hex[DIGEST_HEX_SIZE];
    digest_hex(&c->new_head, hex);
    int rc = store_stmt(store, STMT_JOURNAL_INSERT, &stmt, err);
    if (rc != 0) {
        return rc;
    }
    sql_bind_int(stmt, 1, c->program);
    sql_bind_int(stmt, 2, c->new_rows);
    sql_bind_text(stmt, 3, hex);
    sql_bind_text(stmt, 4, line);
    rc = sql_run(stmt, NULL, err);
    if (rc == 0) {
        rc = store_stmt(store, STMT_PROGRAM_JOURNAL, &stmt, err);
    }
    if (rc != 0) {
        return rc;
    }
    sql_bind_int(stmt, 1, c->program);
    sql_bind_int(stmt, 2, c->new_rows);
    sql_bind_int(stmt, 3, n_bytes);
    sql_bind_text(stmt, 4, hex);
    return sql_run(stmt, NULL, err);
}

int chain_add(struct store *store, uint32_t program, cJSON *body, struct err *err)
{
    struct chain *c = NULL;
    struct digest hash;
    char hex[DIGEST_HEX_SIZE];
    int rc = chain_get(store, program, &c, err);
    if (rc != 0) {
        return rc;
    }
    json_put_int(body, "seq", c->new_rows + 1);
    rc = line_lift_time(body, &c->new_time, err);
    rc = rc != 0 ? rc : line_hash(&c->new_head, body, &hash, err);
    if (rc != 0) {
        return rc;
    }
    digest_hex(&hash, hex);
    json_put_string(body, "hash", hex);
    struct strbuf line = STRBUF_INIT;
    rc = json_canonical(body, &line, err);
    if (rc == 0) {
        c->new_rows++;
        c->new_head = hash;
        strbuf_add(&c->pending, line.buf, line.len);
        strbuf_addc(&c->pending, '\n');
        rc = insert_line(store, c, line.buf, c->bytes + (int64_t)c->pending.len, err);
    }
    strbuf_release(&line);
    return rc;
}

static int check_size(const struct chain *c, int64_t size, struct err *err)
{
    return size == c->bytes
               ? 0
               : err_set(err, ERR_CORRUPT,
                         "%s has %lld bytes where %lld were written: something else writes to it",
                         c->path, (long long)size, (long long)c->bytes);
}

int chain_check_files(struct store *store, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < store->n_chains; i++) {
        const struct chain *c = &store->chains[i];
        struct stat st = {0};
        if (c->pending.len == 0) {
            continue;
        }
        bool is_new = lstat(c->path, &st) != 0 && errno == ENOENT && c->bytes == 0;
        rc = st.st_nlink > 0 || is_new ? check_size(c, st.st_size, err)
                                       : err_set_errno(err, errno, "%s", c->path);
    }
    return rc == 0 ? 0 : err_wrap(err, "journal");
}

/* Whether a call that failed so says something about this file, not about the machine. */
static bool is_of_file(int errnum)
{
    return errnum != ENOSPC && errnum != EDQUOT && errnum != EMFILE && errnum != ENFILE &&
           errnum != ENOMEM;
}

static int append_pending(struct store *store, struct chain *c, struct err *err)
{
    struct stat st;
    int fd = open(c->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int why = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        store->failed_journal = is_of_file(why) ? c->program : 0;
        return err_set_errno(err, why, "open %s", c->path);
    }
    int rc = check_size(c, st.st_size, err);
    if (rc == 0) {
        c->appended = true;
        rc = store->io.append(fd, c->pending.buf, c->pending.len, err);
    }
    if (rc == 0 && store->io.sync(fd) != 0) {
        rc = err_set_errno(err, errno, "sync %s", c->path);
    }
    (void)close(fd);
    store->failed_journal = rc == ERR_IO ? c->program : 0;
    if (rc == 0 && c->bytes == 0) { /* a new file: its name must last as well */
        char *folder = path_folder(c->path);
        rc = dir_sync(folder, err);
        free(folder);
    }
    return rc;
}

int chain_write_all(struct store *store, struct err *err)
{
    for (size_t i = 0; i < store->n_chains; i++) {
        struct chain *c = &store->chains[i];
        if (c->pending.len > 0 && !store->replaying && !store->detached) {
            int rc = append_pending(store, c, err);
            if (rc != 0) {
                return err_wrap(err, "journal");
            }
        }
    }
    return 0;
}

void chain_settle_all(struct store *store)
{
    for (size_t i = 0; i < store->n_chains; i++) {
        struct chain *c = &store->chains[i];
        if (c->new_rows != c->rows) {
            heads_note(store, c->id, c->new_rows, &c->new_head, c->unverified);
        }
        c->rows = c->new_rows;
        c->head = c->new_head;
        c->bytes += (int64_t)c->pending.len;
        c->appended = false;
        strbuf_clear(&c->pending);
    }
}

int chain_undo_all(struct store *store, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < store->n_chains; i++) {
        struct chain *c = &store->chains[i];
        if (!c->appended) {
            continue;
        }
        int fd = open(c->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 && errno == ENOENT) {
            c->appended = false; /* its folder was removed meanwhile, and the lines with it */
            continue;
        }
        if (fd < 0 || store->io.truncate(fd, (off_t)c->bytes) != 0 || store->io.sync(fd) != 0) {
            rc = err_set_errno(err, errno, "cut %s back", c->path);
        }
        if (fd >= 0) {
            (void)close(fd);
        }
        c->appended = false;
    }
    return rc;
}

/* A line that stands in the file after the table's last one. */
int chain_take(struct store *store, struct chain *c, const char *line, size_t len, struct err *err)
{
    cJSON *json = NULL;
    struct digest hash;
    struct state_row row;
    char hex[DIGEST_HEX_SIZE];
    const char *said = NULL;
    int64_t seq = 0;
    int rc = json_parse(line, len, &json, err);
    if (rc == 0) {
        rc = json_get_string(json, "hash", &said, err);
    }
    if (rc == 0) {
        rc = json_get_int(json, "seq", 1, JSON_INT_MAX, &seq, err);
    }
    if (rc == 0) {
        rc = line_hash(&c->new_head, json, &hash, err);
    }
    if (rc == 0) {
        digest_hex(&hash, hex);
        if (strcmp(hex, said) != 0 || seq != c->new_rows + 1) {
            rc = err_set(err, ERR_CORRUPT, "the chain does not hold at row %lld",
                         (long long)c->new_rows + 1);
        }
    }
    if (rc == 0) {
        rc = line_to_row(json, c->program, &row, err);
    }
    if (rc == 0) {
        c->new_rows++;
        c->new_head = hash;
        c->new_time = row.time;
        strbuf_add(&c->pending, line, len);
        strbuf_addc(&c->pending, '\n');
        char *text = xstrndup(line, len);
        rc = insert_line(store, c, text, c->bytes + (int64_t)c->pending.len, err);
        free(text);
    }
    if (rc == 0) {
        rc = apply_row(store, &row, err);
    }
    cJSON_Delete(json);
    return rc;
}
