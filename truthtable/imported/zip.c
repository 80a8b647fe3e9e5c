/*
 * The directory is read here, since libarchive 3.6 knows no Zstandard in a zip and hides where an
 * entry lies. What an entry holds is unpacked by libarchive's filters: a Zstandard entry is a
 * stream of its own, and a deflated one becomes a gzip stream by ten bytes before and eight behind.
 */
#include "truthtable/imported/zip.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"

#define METHOD_STORED  0
#define METHOD_DEFLATE 8
#define METHOD_ZSTD    93

#define END_BYTES       22 /* of the record that ends a zip */
#define END_COMMENT_MAX 65535
#define END64_BYTES     56
#define LOCATOR_BYTES   20
#define HEADER_BYTES    46 /* of an entry in the directory */
#define LOCAL_BYTES     30 /* of an entry where it lies */
#define FLAG_ENCRYPTED  1U
#define EXTRA_ZIP64     1U
#define BLOCK_BYTES     ((size_t)64 << 10)

/* ---- numbers, little endian ---- */

static uint64_t number_at(const char *at, size_t n)
{
    uint64_t v = 0;
    while (n-- > 0) {
        v = v << 8 | (unsigned char)at[n];
    }
    return v;
}

static int damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_SYNTAX, "damaged zip file: %s", what);
}

/* Exactly n bytes from the offset. */
static int read_at(const struct zip *z, void *out, size_t n, int64_t offset, struct err *err)
{
    char *at = out;
    while (n > 0) {
        const ssize_t got = pread(z->fd, at, n, (off_t)offset);
        if (got < 0 && errno != EINTR) {
            return err_set_errno(err, errno, "read");
        }
        if (got == 0) {
            return damaged(err, "it ends early");
        }
        at += got > 0 ? got : 0;
        offset += got > 0 ? got : 0;
        n -= got > 0 ? (size_t)got : 0;
    }
    return 0;
}

/* ---- the directory ---- */

/* Where the directory is, and how much of it. */
struct zip_end {
    uint64_t offset;
    uint64_t bytes;
    uint64_t n;
    int64_t end; /* of all that may belong to it */
};

/* What ZIP64 has in place of numbers that are too large for the older record, unless they are just
 * the largest that it holds. */
static int find_end64(const struct zip *z, struct zip_end *at, struct err *err)
{
    char locator[LOCATOR_BYTES];
    char end[END64_BYTES];
    int64_t offset = at->end - LOCATOR_BYTES;
    int rc = offset < 0 ? damaged(err, "its ZIP64 record is missing")
                        : read_at(z, locator, sizeof(locator), offset, err);
    if (rc != 0) {
        return rc;
    }
    const uint64_t from = number_at(locator + 8, 8);
    if (memcmp(locator, "PK\6\7", 4) != 0 && at->bytes != UINT32_MAX && at->offset != UINT32_MAX) {
        return 0;
    }
    if (memcmp(locator, "PK\6\7", 4) != 0 || from > (uint64_t)offset ||
        (uint64_t)offset - from < END64_BYTES) {
        return damaged(err, "its ZIP64 record is missing");
    }
    rc = read_at(z, end, sizeof(end), (int64_t)from, err);
    if (rc == 0 && memcmp(end, "PK\6\6", 4) != 0) {
        rc = damaged(err, "its ZIP64 record is missing");
    }
    *at = (struct zip_end){.n = number_at(end + 32, 8),
                           .bytes = number_at(end + 40, 8),
                           .offset = number_at(end + 48, 8),
                           .end = (int64_t)from};
    return rc;
}

/* The record that ends the file, before a comment of up to 64 KiB. */
static int find_end(const struct zip *z, struct zip_end *at, struct err *err)
{
    static char tail[END_BYTES + END_COMMENT_MAX];
    const size_t n = z->size < (int64_t)sizeof(tail) ? (size_t)z->size : sizeof(tail);
    int rc = read_at(z, tail, n, z->size - (int64_t)n, err);
    const char *end = NULL;
    for (size_t i = n < END_BYTES ? 0 : n - END_BYTES + 1; rc == 0 && end == NULL && i-- > 0;) {
        if (memcmp(tail + i, "PK\5\6", 4) == 0 &&
            number_at(tail + i + 20, 2) == n - i - END_BYTES) {
            end = tail + i;
        }
    }
    if (rc != 0 || end == NULL) {
        return rc != 0 ? rc : damaged(err, "it has no directory; it was not written to its end");
    }
    *at = (struct zip_end){.n = number_at(end + 10, 2),
                           .bytes = number_at(end + 12, 4),
                           .offset = number_at(end + 16, 4),
                           .end = z->size - (int64_t)n + (end - tail)};
    return at->n == UINT16_MAX || at->bytes == UINT32_MAX || at->offset == UINT32_MAX
               ? find_end64(z, at, err)
               : 0;
}

/* Sizes and place of an entry, which ZIP64 has in an extra field, in this order. */
static int take_extra(const char *extra, size_t n, uint64_t values[3], struct err *err)
{
    while (n >= 4) {
        const size_t len = (size_t)number_at(extra + 2, 2);
        if (len > n - 4) {
            break;
        }
        size_t at = 0;
        for (size_t i = 0; i < 3 && number_at(extra, 2) == EXTRA_ZIP64; i++) {
            if (values[i] == UINT32_MAX && len - at >= 8) {
                values[i] = number_at(extra + 4 + at, 8);
                at += 8;
            }
        }
        extra += 4 + len;
        n -= 4 + len;
    }
    return values[0] > INT64_MAX || values[1] > INT64_MAX || values[2] > INT64_MAX
               ? damaged(err, "a size beyond all bounds")
               : 0;
}

/* One entry of the directory; *used: its bytes. The name gets its end where the next field was. */
static int take_entry(struct zip *z, char *at, size_t left, size_t *used, struct err *err)
{
    struct zip_entry *e = &z->entries[z->n];
    if (left < HEADER_BYTES || memcmp(at, "PK\1\2", 4) != 0) {
        return damaged(err, "its directory is not whole");
    }
    const size_t n_name = (size_t)number_at(at + 28, 2);
    const size_t n_extra = (size_t)number_at(at + 30, 2);
    *used = HEADER_BYTES + n_name + n_extra + (size_t)number_at(at + 32, 2);
    if (*used > left) {
        return damaged(err, "its directory is not whole");
    }
    uint64_t values[3] = {number_at(at + 24, 4), number_at(at + 20, 4), number_at(at + 42, 4)};
    int rc = take_extra(at + HEADER_BYTES + n_name, n_extra, values, err);
    if (rc != 0) {
        return rc;
    }
    *e = (struct zip_entry){.bytes = (int64_t)values[0],
                            .packed = (int64_t)values[1],
                            .offset = (int64_t)values[2],
                            .crc = (uint32_t)number_at(at + 16, 4),
                            .method = (unsigned)number_at(at + 10, 2)};
    if ((number_at(at + 8, 2) & FLAG_ENCRYPTED) != 0) {
        return err_set(err, ERR_REFUSED, "an encrypted zip file");
    }
    /* one byte to the front, over fields that were read */
    memmove(at + HEADER_BYTES - 1, at + HEADER_BYTES, n_name);
    at[HEADER_BYTES - 1 + n_name] = '\0';
    e->name = at + HEADER_BYTES - 1;
    z->n++;
    return 0;
}

/* By name, and entries of one name in the directory's order. */
static int by_name(const void *a, const void *b)
{
    const struct zip_entry *x = a;
    const struct zip_entry *y = b;
    const int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->name > y->name) - (x->name < y->name);
}

static void keep_last(struct zip *z)
{
    size_t n = 0;
    if (z->n > 1) {
        qsort(z->entries, z->n, sizeof(*z->entries), by_name);
    }
    for (size_t i = 0; i < z->n; i++) {
        if (i + 1 == z->n || strcmp(z->entries[i].name, z->entries[i + 1].name) != 0) {
            z->entries[n++] = z->entries[i];
        }
    }
    z->n = n;
}

static int read_directory(struct zip *z, const struct zip_end *at, struct err *err)
{
    if (at->bytes > (uint64_t)at->end || at->offset > (uint64_t)at->end - at->bytes ||
        at->n > at->bytes / HEADER_BYTES) {
        return damaged(err, "its directory lies outside of it");
    }
    if (at->bytes > (uint64_t)ZIP_DIRECTORY_MAX || at->n > ZIP_ENTRIES_MAX) {
        return err_set(err, ERR_RANGE,
                       "a zip file of more than %zu entries, or %lld bytes of names",
                       ZIP_ENTRIES_MAX, (long long)ZIP_DIRECTORY_MAX);
    }
    z->directory = (int64_t)at->offset;
    z->entries = xcalloc((size_t)at->n + 1, sizeof(*z->entries));
    strbuf_reserve(&z->text, (size_t)at->bytes);
    int rc = read_at(z, z->text.buf, (size_t)at->bytes, z->directory, err);
    size_t done = 0;
    while (rc == 0 && z->n < at->n) {
        size_t used = 0;
        rc = take_entry(z, z->text.buf + done, (size_t)at->bytes - done, &used, err);
        done += used;
    }
    if (rc == 0) {
        keep_last(z);
    }
    return rc;
}

int zip_open(struct zip *z, int fd, struct err *err)
{
    struct stat st;
    struct zip_end at = {0};
    *z = (struct zip){.fd = fd, .text = STRBUF_INIT};
    if (fstat(fd, &st) != 0) {
        return err_set_errno(err, errno, "stat");
    }
    z->size = st.st_size;
    if (z->size > ZIP_BYTES_MAX) {
        return err_set(err, ERR_RANGE, "is larger than %lld bytes", (long long)ZIP_BYTES_MAX);
    }
    int rc = find_end(z, &at, err);
    return rc == 0 ? read_directory(z, &at, err) : rc;
}

void zip_release(struct zip *z)
{
    free(z->entries);
    strbuf_release(&z->text);
    *z = (struct zip){.fd = -1, .text = STRBUF_INIT};
}

static int compare_name(const void *name, const void *entry)
{
    const struct zip_entry *e = entry;
    return strcmp(name, e->name);
}

const struct zip_entry *zip_find(const struct zip *z, const char *name)
{
    return z->n == 0 ? NULL : bsearch(name, z->entries, z->n, sizeof(*z->entries), compare_name);
}

/* ---- an entry ---- */

/* What libarchive reads: the packed bytes, of a deflated entry between a gzip header and trailer,
 * which it does not check. */
struct feed {
    const struct zip *z;
    int64_t offset;
    int64_t left;
    bool head;
    bool tail;
    struct err *err;
    char block[BLOCK_BYTES];
};

static la_ssize_t on_read(struct archive *a, void *ctx, const void **block)
{
    static const char head[10] = {'\x1f', '\x8b', 8, 0, 0, 0, 0, 0, 0, '\xff'};
    static const char tail[8];
    struct feed *f = ctx;
    (void)a;
    if (f->head) {
        f->head = false;
        *block = head;
        return sizeof(head);
    }
    if (f->left == 0 && f->tail) {
        f->tail = false;
        *block = tail;
        return sizeof(tail);
    }
    const size_t n = f->left < (int64_t)sizeof(f->block) ? (size_t)f->left : sizeof(f->block);
    if (n > 0 && read_at(f->z, f->block, n, f->offset, f->err) != 0) {
        return -1;
    }
    f->offset += (int64_t)n;
    f->left -= (int64_t)n;
    *block = f->block;
    return (la_ssize_t)n;
}

/* CRC-32 as zip has it (reflected, 0xedb88320), by a table. */
static uint32_t crc32_of(const char *data, size_t len)
{
    uint32_t table[256];
    uint32_t crc = 0xffffffffU;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int k = 0; k < 8; k++) {
            table[i] = table[i] >> 1 ^ ((table[i] & 1) != 0 ? 0xedb88320U : 0);
        }
    }
    for (size_t i = 0; i < len; i++) {
        crc = crc >> 8 ^ table[(crc ^ (unsigned char)data[i]) & 0xff];
    }
    return ~crc;
}

/* Unpacks until the end, or until there is more than the directory states. */
static int unpack(struct archive *a, const struct zip_entry *e, struct strbuf *out, struct err *err)
{
    struct archive_entry *header = NULL;
    static char block[BLOCK_BYTES];
    la_ssize_t n = archive_read_next_header(a, &header) == ARCHIVE_OK ? 1 : -1;
    while (n > 0 && (int64_t)out->len <= e->bytes) {
        n = archive_read_data(a, block, sizeof(block));
        strbuf_add(out, block, n > 0 ? (size_t)n : 0);
    }
    if (n > 0) {
        return err_set(err, ERR_SYNTAX, "holds more than the %lld bytes that the zip file states",
                       (long long)e->bytes);
    }
    const char *said = n < 0 ? archive_error_string(a) : NULL;
    return n == 0           ? 0
           : err->code != 0 ? err->code
                            : err_set(err, ERR_SYNTAX, "cannot be unpacked: %s",
                                      said != NULL ? said : "no reason given");
}

static int unpack_all(struct feed *f, const struct zip_entry *e, struct strbuf *out,
                      struct err *err)
{
    struct archive *a = archive_read_new();
    int rc = a == NULL ? err_set(err, ERR_OTHER, "no memory to unpack a zip file") : 0;
    f->head = f->tail = e->method == METHOD_DEFLATE;
    if (rc == 0 &&
        ((e->method == METHOD_DEFLATE && archive_read_support_filter_gzip(a) != ARCHIVE_OK) ||
         (e->method == METHOD_ZSTD && archive_read_support_filter_zstd(a) != ARCHIVE_OK) ||
         archive_read_support_format_raw(a) != ARCHIVE_OK ||
         archive_read_open(a, f, NULL, on_read, NULL) != ARCHIVE_OK)) {
        const char *said = archive_error_string(a);
        rc = f->err->code != 0 ? f->err->code
                               : err_set(err, ERR_SYNTAX, "cannot be unpacked: %s",
                                         said != NULL ? said : "no reason given");
    }
    rc = rc == 0 ? unpack(a, e, out, err) : rc;
    (void)archive_read_free(a);
    return rc;
}

/* Where its bytes begin: behind a header that has lengths of its own. */
static int find_bytes(const struct zip *z, const struct zip_entry *e, int64_t *offset,
                      struct err *err)
{
    char local[LOCAL_BYTES];
    int rc = e->offset > z->directory - LOCAL_BYTES
                 ? damaged(err, "an entry lies outside of it")
                 : read_at(z, local, sizeof(local), e->offset, err);
    if (rc != 0) {
        return rc;
    }
    *offset = e->offset + LOCAL_BYTES + (int64_t)number_at(local + 26, 2) +
              (int64_t)number_at(local + 28, 2);
    if (memcmp(local, "PK\3\4", 4) != 0 || *offset > z->directory ||
        e->packed > z->directory - *offset) {
        return damaged(err, "an entry lies outside of it");
    }
    return 0;
}

int zip_read(const struct zip *z, const struct zip_entry *e, int64_t max, struct strbuf *out,
             struct err *err)
{
    static struct feed feed;
    int64_t offset = 0;
    strbuf_clear(out);
    err_clear(err);
    int rc = find_bytes(z, e, &offset, err);
    if (rc == 0 && e->bytes > max) {
        rc = err_set(err, ERR_RANGE, "has %lld bytes unpacked, %lld are read at most",
                     (long long)e->bytes, (long long)max);
    } else if (rc == 0 && e->method != METHOD_STORED && e->method != METHOD_DEFLATE &&
               e->method != METHOD_ZSTD) {
        rc = err_set(err, ERR_REFUSED, "is packed by method %u of zip, read are 0, 8 and 93",
                     e->method);
    }
    feed.z = z;
    feed.offset = offset;
    feed.left = e->packed;
    feed.err = err;
    if (rc == 0 && e->bytes > 0) {
        rc = unpack_all(&feed, e, out, err);
    }
    if (rc == 0 && ((int64_t)out->len != e->bytes || crc32_of(out->buf, out->len) != e->crc)) {
        rc = err_set(err, ERR_SYNTAX, "is damaged: its checksum does not hold");
    }
    return rc == 0 ? 0 : err_wrap(err, "entry %.100s", e->name);
}
