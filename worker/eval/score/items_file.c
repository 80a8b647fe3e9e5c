/*
 * Appends to items.jsonl and keeps its running digest in items.sums, so that bytes which a crash or
 * a disk changed are found before they become part of a result. The sums are written after the
 * items: when the process dies between the two, the last batch has no sum and is asked again, which
 * costs time and nothing else.
 */
#include "worker/eval/score/items_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/text.h"

#define SUM_LINE_MAX 96 /* "BYTES SHA256" */

/* The first line's end, or NULL when it is not whole. */
static const char *line_end(const char *at, const char *end)
{
    return memchr(at, '\n', (size_t)(end - at));
}

/* One line of items.sums: "BYTES SHA256". */
static bool read_sum(const char *line, size_t len, int64_t *n_bytes, struct digest *digest)
{
    struct err ignored;
    char text[SUM_LINE_MAX];
    if (len >= sizeof(text))
        return false;
    memcpy(text, line, len);
    text[len] = '\0';
    char *blank = strchr(text, ' ');
    if (blank == NULL)
        return false;
    *blank = '\0';
    return text_to_int(text, 1, (int64_t)LAYOUT_ITEMS_MAX, n_bytes, &ignored) == 0 &&
           digest_from_hex(blank + 1, digest, &ignored) == 0;
}

/* The digest that covers the previous one and the new bytes. */
static struct digest next_sum(const struct digest *last, const char *bytes, size_t len)
{
    struct digest_stream stream;
    digest_start(&stream);
    digest_add(&stream, last->bytes, sizeof(last->bytes));
    digest_add(&stream, bytes, len);
    return digest_finish(&stream);
}

/* How many bytes of the text are as they were written, to the last place of items.sums that holds;
 * *changed: a place that the text reaches does not hold. */
static size_t bytes_that_hold(const struct strbuf *sums, const struct strbuf *text, bool *changed)
{
    const char *end = sums->buf + sums->len;
    const char *stop = NULL;
    struct digest sum = {0};
    size_t held = 0;
    *changed = false;
    for (const char *at = sums->buf; (stop = line_end(at, end)) != NULL; at = stop + 1) {
        int64_t n_bytes = 0;
        struct digest wanted;
        if (!read_sum(at, (size_t)(stop - at), &n_bytes, &wanted) || (size_t)n_bytes <= held ||
            (size_t)n_bytes > text->len)
            break;
        sum = next_sum(&sum, text->buf + held, (size_t)n_bytes - held);
        *changed = !digest_equal(&sum, &wanted);
        if (*changed)
            break;
        held = (size_t)n_bytes;
    }
    return held;
}

/* `held` bytes of the text are as they were written. */
static enum items_found take_lines(const struct strbuf *text, size_t held, const char *header,
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
    const char *last = text->buf + (held > (size_t)(stop + 1 - at) ? held : 0);
    for (at = stop + 1; at < last && (stop = line_end(at, last)) != NULL; at = stop + 1) {
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
    struct strbuf sums = STRBUF_INIT;
    char *path = path_join(folder, LAYOUT_ITEMS);
    char *sums_path = path_join(folder, ITEMS_SUMS_NAME);
    enum items_found found = ITEMS_NONE;
    bool changed = false;
    *n_taken = 0;
    if (file_read(path, LAYOUT_ITEMS_MAX, &text, &err) == 0) {
        (void)!file_read(sums_path, LAYOUT_ITEMS_MAX, &sums, &err); /* without it nothing holds */
        const size_t held = bytes_that_hold(&sums, &text, &changed);
        found = take_lines(&text, held, header, reader, taken, n_taken, other_header);
    }
    strbuf_release(&sums);
    strbuf_release(&text);
    free(sums_path);
    free(path);
    return found == ITEMS_SAME && changed ? ITEMS_CHANGED : found;
}

/* Work under another header is not overwritten: by hand, one folder serves many runs. */
static int set_other_aside(const char *header, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored = {0};
    const size_t len = strlen(header);
    int rc = 0;
    if (file_read(LAYOUT_ITEMS, LAYOUT_ITEMS_MAX, &text, &ignored) == 0 && text.len > 0 &&
        (text.len <= len || memcmp(text.buf, header, len) != 0 || text.buf[len] != '\n') &&
        rename(LAYOUT_ITEMS, ITEMS_FILE_ASIDE) != 0)
        rc = err_set_errno(err, errno, "%s", ITEMS_FILE_ASIDE);
    strbuf_release(&text);
    return rc;
}

/* Counts bytes that are written, and appends their line of items.sums. */
static void add_sum(struct items_file *f, const struct strbuf *bytes, struct strbuf *out)
{
    char hex[DIGEST_HEX_SIZE];
    f->n_bytes += (int64_t)bytes->len;
    f->sum = next_sum(&f->sum, bytes->buf, bytes->len);
    digest_hex(&f->sum, hex);
    strbuf_addf(out, "%lld %s\n", (long long)f->n_bytes, hex);
}

/* Opens one of the two files for appending, written as a whole first. */
static int start_file(const char *name, const struct strbuf *text, int *fd, struct err *err)
{
    int rc = file_write_atomic(name, text->buf, text->len, 0644, err);
    *fd = rc != 0 ? -1 : open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
    return rc == 0 && *fd < 0 ? err_set_errno(err, errno, "%s", name) : rc;
}

int items_file_create(struct items_file *f, const char *header, const struct strbuf *taken,
                      struct err *err)
{
    *f = (struct items_file){.fd = -1, .sums_fd = -1};
    int aside = set_other_aside(header, err);
    if (aside != 0)
        return aside;
    struct strbuf text = STRBUF_INIT;
    struct strbuf sums = STRBUF_INIT;
    strbuf_addf(&text, "%s\n", header);
    strbuf_add(&text, taken->buf, taken->len);
    add_sum(f, &text, &sums);
    /* Whole or not at all: the next attempt believes the newest file, so it must never hold less
     * than the one it was taken from. Sums without items say nothing. */
    int rc = start_file(ITEMS_SUMS_NAME, &sums, &f->sums_fd, err);
    if (rc == 0)
        rc = start_file(LAYOUT_ITEMS, &text, &f->fd, err);
    strbuf_release(&text);
    strbuf_release(&sums);
    return rc;
}

/* Items first, then their sum. */
int items_file_append(struct items_file *f, const struct strbuf *lines, struct err *err)
{
    int rc = file_write_all(f->fd, lines->buf, lines->len, err);
    if (rc == 0) {
        struct strbuf sum = STRBUF_INIT;
        add_sum(f, lines, &sum);
        rc = file_write_all(f->sums_fd, sum.buf, sum.len, err);
        strbuf_release(&sum);
        return rc == 0 ? 0 : err_wrap(err, "%s", ITEMS_SUMS_NAME);
    }
    /* A half-written line would be dropped by the next attempt anyway; when even this fails, that
     * is what happens. */
    (void)!ftruncate(f->fd, f->n_bytes);
    return err_wrap(err, "%s", LAYOUT_ITEMS);
}

int items_file_sync(struct items_file *f, struct err *err)
{
    if (fsync(f->fd) != 0)
        return err_set_errno(err, errno, "sync %s", LAYOUT_ITEMS);
    if (fsync(f->sums_fd) != 0)
        return err_set_errno(err, errno, "sync %s", ITEMS_SUMS_NAME);
    return 0;
}

void items_file_close(struct items_file *f)
{
    if (f->fd >= 0)
        (void)close(f->fd);
    if (f->sums_fd >= 0)
        (void)close(f->sums_fd);
    f->fd = -1;
    f->sums_fd = -1;
}
