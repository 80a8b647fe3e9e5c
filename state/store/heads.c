/*
 * STATE/journal.heads: the last row of every journal, apart from journal and database. A journal
 * that was cut is found out by it although the database was lost with the rows.
 *
 * One line of 512 bytes a program, overwritten in place after each commit and not synced: it may be
 * behind the journal, never ahead. "<hash of the row> <its number> <program> [UNVERIFIED]", then
 * spaces and a line feed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/log.h"
#include "state/store/heads.h"
#include "state/store/internal.h"

#define SLOT      512
#define HEADS_MAX ((size_t)SLOT * 1000000)
#define MARK      " UNVERIFIED"

/* "HEX ROWS ID", and perhaps " UNVERIFIED"; the ID has no blanks. */
static bool parse_slot(const char *slot, struct journal_head *out)
{
    char hex[DIGEST_HEX_SIZE];
    struct err ignored;
    char text[SLOT + 1];
    memcpy(text, slot, SLOT);
    text[SLOT] = '\0';
    if (strcspn(text, " ") != DIGEST_HEX_SIZE - 1) {
        return false;
    }
    memcpy(hex, text, DIGEST_HEX_SIZE - 1);
    hex[DIGEST_HEX_SIZE - 1] = '\0';
    char *end = NULL;
    errno = 0;
    long long rows = strtoll(text + DIGEST_HEX_SIZE, &end, 10);
    if (errno != 0 || rows < 1 || *end != ' ' || digest_from_hex(hex, &out->head, &ignored) != 0) {
        return false;
    }
    size_t len = strcspn(end + 1, " \n");
    if (len == 0 || len >= sizeof(out->id)) {
        return false;
    }
    memcpy(out->id, end + 1, len);
    out->id[len] = '\0';
    out->rows = rows;
    out->unverified = strstr(text, MARK) != NULL;
    return true;
}

static void format_slot(const struct journal_head *h, char slot[SLOT + 1])
{
    char hex[DIGEST_HEX_SIZE];
    digest_hex(&h->head, hex);
    int n = snprintf(slot, SLOT + 1, "%s %lld %s%s", hex, (long long)h->rows, h->id,
                     h->unverified ? MARK : "");
    size_t len = n < 0 ? 0 : (size_t)n < SLOT - 1 ? (size_t)n : SLOT - 1;
    memset(slot + len, ' ', SLOT - len);
    slot[SLOT - 1] = '\n';
}

int heads_read(const char *dir, struct heads *out, struct err *err)
{
    assert(dir != NULL && out != NULL);
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(dir, HEADS_FILE);
    *out = (struct heads){0};
    enum file_kind kind = FILE_ABSENT;
    int rc = file_look(path, &kind, err);
    if (rc == 0 && kind != FILE_ABSENT) {
        rc = file_read(path, HEADS_MAX, &text, err);
    }
    for (size_t at = 0; rc == 0 && at + SLOT <= text.len; at += SLOT) {
        ARRAY_GROW(out->items, out->n, out->cap);
        struct journal_head *h = &out->items[out->n];
        *h = (struct journal_head){0};
        if (!parse_slot(text.buf + at, h)) {
            *h = (struct journal_head){0}; /* its place stays taken */
        }
        out->n++;
    }
    strbuf_release(&text);
    free(path);
    return rc;
}

void heads_release(struct heads *h)
{
    assert(h != NULL);
    free(h->items);
    *h = (struct heads){0};
}

const struct journal_head *heads_find(const struct heads *h, const char *id)
{
    assert(h != NULL && id != NULL);
    for (size_t i = 0; i < h->n; i++) {
        if (strcmp(h->items[i].id, id) == 0) {
            return &h->items[i];
        }
    }
    return NULL;
}

static int open_file(struct store *store, struct err *err)
{
    char *path = path_join(store->dir, HEADS_FILE);
    store->heads_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = store->heads_fd < 0 ? err_set_errno(err, errno, "open %s", path) : 0;
    free(path);
    return rc;
}

int heads_open(struct store *store, struct err *err)
{
    assert(store != NULL);
    int rc = heads_read(store->dir, &store->heads, err);
    return rc == 0 ? open_file(store, err) : rc;
}

void heads_note(struct store *store, const char *id, int64_t rows, const struct digest *head,
                bool unverified)
{
    assert(store != NULL && id != NULL && head != NULL);
    struct heads *all = &store->heads;
    char slot[SLOT + 1];
    size_t i = 0;
    if (store->heads_fd < 0 || rows < 1) {
        return;
    }
    while (i < all->n && strcmp(all->items[i].id, id) != 0) {
        i++;
    }
    if (i == all->n) {
        ARRAY_GROW(all->items, all->n, all->cap);
        struct journal_head *fresh = &all->items[all->n++];
        *fresh = (struct journal_head){0};
        (void)snprintf(fresh->id, sizeof(fresh->id), "%s", id);
    }
    struct journal_head *h = &all->items[i];
    h->rows = rows;
    h->head = *head;
    h->unverified = h->unverified || unverified;
    format_slot(h, slot);
    if (pwrite(store->heads_fd, slot, SLOT, (off_t)i * SLOT) != SLOT && !store->heads_failed) {
        store->heads_failed = true;
        log_warn("state: " HEADS_FILE " cannot be written: %s", strerror(errno));
    }
}

void heads_close(struct store *store)
{
    assert(store != NULL);
    if (store->heads_fd >= 0) {
        (void)fdatasync(store->heads_fd);
        (void)close(store->heads_fd);
        store->heads_fd = -1;
    }
    heads_release(&store->heads);
}

/* Row `rows` of the table must be the one that was noted. */
int heads_compare(struct store *store, uint32_t program, const struct journal_head *h, bool *same,
                  struct err *err)
{
    assert(store != NULL && h != NULL && same != NULL);
    sqlite3_stmt *stmt = NULL;
    char hex[DIGEST_HEX_SIZE];
    bool row = false;
    int rc =
        sql_prepare(store->db, "SELECT hash FROM journal WHERE program=?1 AND seq=?2", &stmt, err);
    if (rc == 0) {
        sql_bind_int(stmt, 1, program);
        sql_bind_int(stmt, 2, h->rows);
        rc = sql_step(stmt, &row, err);
    }
    digest_hex(&h->head, hex);
    *same = rc == 0 && row && strcmp(sql_col_text(stmt, 0), hex) == 0;
    (void)sqlite3_finalize(stmt);
    return rc;
}
