/* Finds line feeds, out of memory or out of a file that is read in blocks; replay parses each line
 * and extends the chain with it before the caller sees the row. */
#include "state/journal/cursor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/json/json.h"

#define BLOCK ((size_t)64 << 10)

void journal_cursor_init(struct journal_cursor *c, const char *text, size_t len)
{
    assert(c != NULL && (text != NULL || len == 0));
    *c = (struct journal_cursor){.text = text, .len = len, .fd = -1, .buf = STRBUF_INIT};
}

int journal_cursor_open(struct journal_cursor *c, const char *path, struct err *err)
{
    assert(c != NULL && path != NULL);
    journal_cursor_init(c, NULL, 0);
    c->path = path;
    c->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (c->fd < 0) {
        return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "%s: no such file", path)
                               : err_set_errno(err, errno, "open %s", path);
    }
    return 0;
}

void journal_cursor_release(struct journal_cursor *c)
{
    assert(c != NULL);
    if (c->fd >= 0) {
        (void)close(c->fd);
        c->fd = -1;
    }
    strbuf_release(&c->buf);
}

/* Moves the rest of buf to its front and reads a block behind it. *more is false at the end. */
static int fill(struct journal_cursor *c, bool *more, struct err *err)
{
    const size_t rest = c->len - c->at;
    *more = false;
    if (c->fd < 0) {
        return 0;
    }
    if (c->at > 0) {
        memmove(c->buf.buf, c->buf.buf + c->at, rest);
        c->buf.len = rest;
    }
    strbuf_reserve(&c->buf, BLOCK);
    ssize_t n = 0;
    do {
        n = read(c->fd, c->buf.buf + rest, BLOCK);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return err_set_errno(err, errno, "read %s", c->path);
    }
    c->buf.len = rest + (size_t)n;
    c->buf.buf[c->buf.len] = '\0';
    c->text = c->buf.buf;
    c->len = c->buf.len;
    c->at = 0;
    *more = n > 0;
    return 0;
}

int journal_cursor_next(struct journal_cursor *c, const char **text, size_t *len, struct err *err)
{
    assert(c != NULL && text != NULL && len != NULL);
    size_t searched = 0;
    bool more = true;
    *text = NULL;
    *len = 0;
    while (more) {
        const size_t rest = c->len - c->at;
        const char *from = rest > 0 ? c->text + c->at : "";
        const char *nl = memchr(from + searched, '\n', rest - searched);
        const size_t n = nl == NULL ? rest : (size_t)(nl - from);
        if (n > JOURNAL_LINE_MAX) {
            return err_set(err, ERR_RANGE, "a line of the journal is longer than %zu bytes",
                           JOURNAL_LINE_MAX);
        }
        if (nl != NULL) {
            *text = from;
            *len = n;
            c->at += n + 1;
            c->n_bytes += (int64_t)n + 1;
            return 0;
        }
        searched = rest;
        int rc = fill(c, &more, err);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

bool journal_cursor_is_torn(const struct journal_cursor *c)
{
    assert(c != NULL);
    return c->at < c->len;
}

/* A row whose place holds, or why not. */
static int extend(struct journal_chain *chain, struct journal_row *row, struct strbuf *scratch,
                  struct err *err)
{
    struct journal_link link;
    switch (journal_extend(chain, &row->line, &link, scratch, err)) {
    case JOURNAL_HOLDS: break;
    case JOURNAL_MEMBER: return err->code;
    case JOURNAL_NUMBER:
    case JOURNAL_HASH:
        return err_set(err, ERR_CORRUPT, "the chain does not hold at row %lld",
                       (long long)chain->n_rows + 1);
    }
    row->seq = link.seq;
    row->hash = link.hash;
    return 0;
}

int journal_replay(struct journal_cursor *from, struct journal_chain *chain, journal_row_fn *fn,
                   void *ctx, struct err *err)
{
    assert(from != NULL && chain != NULL && fn != NULL);
    struct strbuf scratch = STRBUF_INIT;
    struct journal_row row = {0};
    int rc = 0;
    for (;;) {
        cJSON *json = NULL;
        struct journal_chain next = *chain;
        rc = journal_cursor_next(from, &row.line.text, &row.line.len, err);
        if (rc != 0 || row.line.text == NULL) {
            break;
        }
        rc = json_parse(row.line.text, row.line.len, &json, err);
        if (rc == 0) {
            row.line.json = json;
            rc = extend(&next, &row, &scratch, err);
        }
        if (rc == 0) {
            rc = fn(ctx, &row, err);
        }
        cJSON_Delete(json);
        if (rc != 0) {
            break;
        }
        *chain = next;
    }
    strbuf_release(&scratch);
    return rc;
}
