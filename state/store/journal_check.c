/*
 * The whole journal, line by line: journal.jsonl against the database's copy, and the chain of
 * hashes over both. It says which line differs, and which of the two can be trusted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "state/store/internal.h"

static const char HASH_KEY[] = "\"hash\":\"";

#define KEY_LEN (sizeof(HASH_KEY) - 1)
#define HEX_LEN ((size_t)(DIGEST_HEX_SIZE - 1))

/* A line is canonical JSON, so what its hash is of is its text without that member. *rest begins
 * behind it. */
static bool find_hash(const char *line, size_t len, size_t *from, size_t *rest)
{
    const char *at = memmem(line, len, HASH_KEY, KEY_LEN);
    if (at == NULL || (size_t)(line + len - at) < KEY_LEN + HEX_LEN + 2 || at == line) {
        return false;
    }
    *from = (size_t)(at - line);
    *rest = *from + KEY_LEN + HEX_LEN + 1;
    if (line[*from - 1] == ',') {
        (*from)--;
    } else if (line[*rest] == ',') {
        (*rest)++;
    }
    return true;
}

/* As line_hash, at a tenth of its cost. */
static bool follows_as_text(const struct digest *prev, const char *line, size_t len,
                            const char *hash, struct strbuf *text)
{
    char hex[DIGEST_HEX_SIZE];
    size_t from = 0;
    size_t rest = 0;
    if (!find_hash(line, len, &from, &rest)) {
        return false;
    }
    strbuf_clear(text);
    digest_hex(prev, hex);
    strbuf_adds(text, hex);
    strbuf_add(text, line, from);
    strbuf_add(text, line + rest, len - rest);
    struct digest d = digest_bytes(text->buf, text->len);
    digest_hex(&d, hex);
    return strcmp(hex, hash) == 0;
}

static bool follows(const struct digest *prev, const char *line, size_t len, const char *hash,
                    struct strbuf *text)
{
    cJSON *json = NULL;
    const char *said = NULL;
    struct digest d;
    struct err ignored;
    char hex[DIGEST_HEX_SIZE] = "";
    if (memmem(line, len, hash, strlen(hash)) != NULL &&
        follows_as_text(prev, line, len, hash, text)) {
        return true;
    }
    bool same = json_parse(line, len, &json, &ignored) == 0 &&
                json_get_string(json, "hash", &said, &ignored) == 0 && strcmp(said, hash) == 0 &&
                line_hash(prev, json, &d, &ignored) == 0;
    if (same) {
        digest_hex(&d, hex);
    }
    cJSON_Delete(json);
    return same && strcmp(hex, hash) == 0;
}

struct checking {
    const char *path;
    FILE *file;
    char *line; /* of the file, as getline has it */
    size_t cap;
    struct digest head;
    struct strbuf text;
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
    if (!follows(&k->head, line, len, hash, &k->text)) {
        return err_set(err, ERR_CORRUPT,
                       "row %lld of the database's journal does not follow from the row before: "
                       "`preregctl rebuild` makes the database again from %s",
                       (long long)seq, k->path);
    }
    int rc = digest_from_hex(hash, &k->head, err);
    if (rc != 0 || k->file == NULL) {
        return rc;
    }
    ssize_t n = getline(&k->line, &k->cap, k->file);
    if (n < 0 && ferror(k->file) != 0) {
        return err_set_errno(err, errno, "read %s", k->path);
    }
    bool same = n == (ssize_t)len + 1 && memcmp(k->line, line, len) == 0 && k->line[len] == '\n';
    return same ? 0 : differs(k, seq, err);
}

static int check_rows(struct store *store, uint32_t program, int64_t n_rows, struct checking *k,
                      struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = true;
    int64_t expected = 1;
    int rc = sql_prepare(store->db,
                         "SELECT seq, hash, line FROM journal WHERE program=?1 AND seq<=?2 "
                         "ORDER BY seq",
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
    struct checking k = {.path = path, .text = STRBUF_INIT};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        k.file = fdopen(fd, "r");
    } else if (errno != ENOENT) {
        return err_set_errno(err, errno, "open %s", path);
    }
    int rc = check_rows(store, program, n_rows, &k, err);
    if (k.file != NULL) {
        (void)fclose(k.file);
    }
    free(k.line);
    strbuf_release(&k.text);
    return rc;
}

int store_check_journal(const char *state_dir, uint32_t program, int64_t n_rows, struct err *err)
{
    struct store *store = NULL;
    struct chain *c = NULL;
    int rc = store_open(state_dir, STORE_READER, &store, err);
    if (rc == 0) {
        rc = chain_get(store, program, &c, err);
    }
    if (rc == 0) {
        rc = journal_check(store, program, n_rows, c->path, err);
    }
    store_close(store);
    return rc;
}

static int check_head(struct store *store, const struct chain *c, struct err *err)
{
    struct heads heads;
    bool same = true;
    int rc = heads_read(store->dir, &heads, err);
    const struct journal_head *h = rc == 0 ? heads_find(&heads, c->id) : NULL;
    rc = h == NULL ? rc : heads_compare(store, c->program, h, &same, err);
    if (rc == 0 && h != NULL && (!same || h->unverified)) {
        rc = err_set(err, ERR_CORRUPT,
                     HEADS_FILE " has row %lld of %s, which its journal of %lld rows does not have",
                     (long long)h->rows, c->id, (long long)c->rows);
    }
    heads_release(&heads);
    return rc;
}

/* The rows have been compared with the file where there is one: it must be there, and end with
 * them. A row is written to the file before the database has it: one that goes on is neither
 * verified nor unverified. */
static int check_end(const struct chain *c, struct err *err)
{
    struct stat st;
    if (lstat(c->path, &st) != 0) {
        return errno == ENOENT && c->rows > 0
                   ? err_set(err, ERR_CORRUPT,
                             "%s: no such file; the next start writes it from the database",
                             c->path)
               : errno == ENOENT ? 0
                                 : err_set_errno(err, errno, "stat %s", c->path);
    }
    if (st.st_size == c->bytes) {
        return 0;
    }
    return st.st_size < c->bytes
               ? err_set(err, ERR_CORRUPT, "%s ends before row %lld, the last of the database",
                         c->path, (long long)c->rows)
               : err_set(err, ERR_BUSY,
                         "%s goes on after row %lld, the last of the database, as a crash leaves "
                         "it or whoever writes to it: the next start adopts or refuses what "
                         "follows",
                         c->path, (long long)c->rows);
}

int store_check_history(const char *state_dir, uint32_t program, struct err *err)
{
    struct store *store = NULL;
    struct chain *c = NULL;
    int rc = store_open(state_dir, STORE_READER, &store, err);
    rc = rc == 0 ? chain_get(store, program, &c, err) : rc;
    rc = rc == 0 ? journal_check(store, program, c->rows, c->path, err) : rc;
    rc = rc == 0 ? check_end(c, err) : rc;
    rc = rc == 0 ? check_head(store, c, err) : rc;
    store_close(store);
    return rc;
}
