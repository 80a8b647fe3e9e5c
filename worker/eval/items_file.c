#include "worker/eval/items_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* The first line's end, or NULL when it is not whole. */
static const char *line_end(const char *at, const char *end)
{
    return memchr(at, '\n', (size_t)(end - at));
}

static enum items_found take_lines(const struct strbuf *text, const char *header,
                                   const struct items_reader *reader, struct strbuf *taken,
                                   size_t *n_taken, struct strbuf *other_header)
{
    const char *at = text->buf;
    const char *end = text->buf + text->len;
    const char *stop = line_end(at, end);
    if (stop == NULL)
        return ITEMS_NONE;
    if ((size_t)(stop - at) != strlen(header) || memcmp(at, header, strlen(header)) != 0) {
        strbuf_clear(other_header);
        strbuf_add(other_header, at, (size_t)(stop - at));
        return ITEMS_OTHER;
    }
    for (at = stop + 1; (stop = line_end(at, end)) != NULL; at = stop + 1) {
        if (!reader->believe(reader->self, *n_taken, at, (size_t)(stop - at)))
            break;
        strbuf_add(taken, at, (size_t)(stop - at) + 1);
        (*n_taken)++;
    }
    return ITEMS_SAME;
}

enum items_found items_file_take(const char *folder, const char *header,
                                 const struct items_reader *reader, struct strbuf *taken,
                                 size_t *n_taken, struct strbuf *other_header)
{
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(folder, ITEMS_FILE_NAME);
    enum items_found found = ITEMS_NONE;
    *n_taken = 0;
    if (file_read(path, ITEMS_FILE_MAX, &text, &err) == 0)
        found = take_lines(&text, header, reader, taken, n_taken, other_header);
    strbuf_release(&text);
    free(path);
    return found;
}

/* Work under another header is not overwritten: by hand, one folder serves many runs. */
static int set_other_aside(const char *header, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored = {0};
    const size_t len = strlen(header);
    int rc = 0;
    if (file_read(ITEMS_FILE_NAME, ITEMS_FILE_MAX, &text, &ignored) == 0 && text.len > 0 &&
        (text.len <= len || memcmp(text.buf, header, len) != 0 || text.buf[len] != '\n') &&
        rename(ITEMS_FILE_NAME, ITEMS_FILE_ASIDE) != 0)
        rc = err_set_errno(err, errno, "%s", ITEMS_FILE_ASIDE);
    strbuf_release(&text);
    return rc;
}

int items_file_create(struct items_file *f, const char *header, const struct strbuf *taken,
                      struct err *err)
{
    f->fd = -1;
    int aside = set_other_aside(header, err);
    if (aside != 0)
        return aside;
    struct strbuf text = STRBUF_INIT;
    strbuf_addf(&text, "%s\n", header);
    strbuf_add(&text, taken->buf, taken->len);
    /* Whole or not at all: the next attempt believes the newest file, so it must never hold less
     * than the one it was taken from. */
    int rc = file_write_atomic(ITEMS_FILE_NAME, text.buf, text.len, 0644, err);
    f->n_bytes = (int64_t)text.len;
    strbuf_release(&text);
    f->fd = rc != 0 ? -1 : open(ITEMS_FILE_NAME, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (rc == 0 && f->fd < 0)
        rc = err_set_errno(err, errno, "%s", ITEMS_FILE_NAME);
    return rc;
}

int items_file_append(struct items_file *f, const struct strbuf *lines, struct err *err)
{
    int rc = file_write_all(f->fd, lines->buf, lines->len, err);
    if (rc == 0) {
        f->n_bytes += (int64_t)lines->len;
        return 0;
    }
    /* A half-written line would be dropped by the next attempt anyway; when even this fails, that
     * is what happens. */
    (void)!ftruncate(f->fd, f->n_bytes);
    return err_wrap(err, "%s", ITEMS_FILE_NAME);
}

int items_file_sync(struct items_file *f, struct err *err)
{
    if (fsync(f->fd) != 0)
        return err_set_errno(err, errno, "sync %s", ITEMS_FILE_NAME);
    return 0;
}

void items_file_close(struct items_file *f)
{
    if (f->fd >= 0)
        (void)close(f->fd);
    f->fd = -1;
}
