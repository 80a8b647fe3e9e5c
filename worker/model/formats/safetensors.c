/*
 * The header is JSON from a stranger: every number in it is checked before it is used, products
 * with overflow checks, and the entries must tile the data exactly. Only then are offsets trusted.
 * Numbers are read with pread(2) into the caller's array, converted in chunks unless they are F32
 * already.
 *
 * The file is opened without blocking, so that a FIFO in its place is an error and not a wait.
 */
#include "worker/model/formats/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/model/formats/half.h"

#define HEADER_MAX    (100 << 20) /* the format's own limit */
#define METADATA_KEY  "__metadata__"
#define LENGTH_BYTES  8
#define ALIGN         8
#define CHUNK_NUMBERS 65536

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files hold little-endian numbers");

enum float_type { TYPE_F64, TYPE_F32, TYPE_F16, TYPE_BF16 };

/* Every type of the format, with its size; `code` of those that hold floating-point numbers. */
static const struct dtype {
    const char *name;
    int bytes;
    int code; /* -1: not floating point, or too narrow to be weights */
} DTYPES[] = {
    {"F64", 8, TYPE_F64}, {"F32", 4, TYPE_F32}, {"F16", 2, TYPE_F16}, {"BF16", 2, TYPE_BF16},
    {"I64", 8, -1},       {"U64", 8, -1},       {"I32", 4, -1},       {"U32", 4, -1},
    {"I16", 2, -1},       {"U16", 2, -1},       {"I8", 1, -1},        {"U8", 1, -1},
    {"BOOL", 1, -1},      {"F8_E4M3", 1, -1},   {"F8_E5M2", 1, -1},
};

static const struct dtype *find_dtype(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(DTYPES); i++)
        if (strcmp(DTYPES[i].name, name) == 0)
            return &DTYPES[i];
    return NULL;
}

static int read_at(int fd, void *out, size_t n, int64_t at, struct err *err)
{
    char *to = out;

    while (n > 0) {
        ssize_t got = pread(fd, to, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set_errno(err, errno, "read");
        if (got == 0)
            return err_set(err, ERR_CORRUPT, "%zu bytes short", n);
        to += got;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

/* A whole number in 0 .. 2^53 - 1, or -1. */
static int64_t whole(const cJSON *v)
{
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0.0) || v->valuedouble > (double)JSON_INT_MAX ||
        v->valuedouble != (double)(int64_t)v->valuedouble)
        return -1;
    return (int64_t)v->valuedouble;
}

static int read_shape(const cJSON *list, struct safetensors_entry *e, struct err *err)
{
    const cJSON *v;

    e->n = 1;
    cJSON_ArrayForEach(v, list)
    {
        int64_t dim = whole(v);
        if (dim < 0 || e->n_dims == SAFETENSORS_DIMS_MAX)
            return err_set(err, ERR_CORRUPT, "bad shape");
        if (__builtin_mul_overflow(e->n, dim, &e->n) || e->n > JSON_INT_MAX)
            return err_set(err, ERR_CORRUPT, "shape overflows");
        e->shape[e->n_dims++] = dim;
    }
    return 0;
}

static int read_entry(const cJSON *obj, struct safetensors_entry *e, struct err *err)
{
    const cJSON *shape = NULL, *offsets = NULL;
    int64_t n_bytes = 0;
    int rc;

    if ((rc = json_get_string(obj, "dtype", &e->dtype, err)) < 0 ||
        (rc = json_get_array(obj, "shape", &shape, err)) < 0 ||
        (rc = json_get_array(obj, "data_offsets", &offsets, err)) < 0 ||
        (rc = read_shape(shape, e, err)) < 0)
        return rc;
    const struct dtype *type = find_dtype(e->dtype);
    if (type == NULL)
        return err_set(err, ERR_CORRUPT, "dtype \"%.20s\" is not known", e->dtype);
    if (cJSON_GetArraySize(offsets) != 2)
        return err_set(err, ERR_CORRUPT, "data_offsets: expected two");
    e->begin = whole(offsets->child);
    e->end = whole(offsets->child->next);
    if (e->begin < 0 || e->end < e->begin)
        return err_set(err, ERR_CORRUPT, "bad data_offsets");
    if (__builtin_mul_overflow(e->n, type->bytes, &n_bytes) || n_bytes != e->end - e->begin)
        return err_set(err, ERR_CORRUPT, "%lld bytes of data for %lld numbers of %s",
                       (long long)(e->end - e->begin), (long long)e->n, e->dtype);
    return 0;
}

static int by_offset(const void *a, const void *b)
{
    const struct safetensors_entry *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static int by_name(const void *a, const void *b)
{
    const struct safetensors_entry *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* Leaves the entries sorted by name. */
static int check_cover(struct safetensors *st, int64_t data_bytes, struct err *err)
{
    int64_t at = 0;

    qsort(st->entries, st->n, sizeof(*st->entries), by_offset);
    for (size_t i = 0; i < st->n; i++) {
        const struct safetensors_entry *e = &st->entries[i];
        if (e->begin != at)
            return err_set(err, ERR_CORRUPT, "tensor %.80s: data begin at %lld, %s %lld", e->name,
                           (long long)e->begin, e->begin < at ? "overlapping" : "a hole from",
                           (long long)at);
        at = e->end;
    }
    if (at != data_bytes)
        return err_set(err, ERR_CORRUPT, "the header names %lld bytes of data, the file has %lld",
                       (long long)at, (long long)data_bytes);
    qsort(st->entries, st->n, sizeof(*st->entries), by_name);
    return 0;
}

static int read_entries(struct safetensors *st, struct err *err)
{
    const cJSON *v;
    size_t cap = 0;

    if (!cJSON_IsObject(st->header))
        return err_set(err, ERR_CORRUPT, "the header is not an object");
    cJSON_ArrayForEach(v, st->header)
    {
        struct safetensors_entry e = {.name = v->string};
        if (strcmp(e.name, METADATA_KEY) == 0)
            continue;
        if (!cJSON_IsObject(v))
            return err_set(err, ERR_CORRUPT, "tensor %.80s: expected an object", e.name);
        if (read_entry(v, &e, err) < 0)
            return err_wrap(err, "tensor %.80s", e.name);
        ARRAY_GROW(st->entries, st->n, cap);
        st->entries[st->n++] = e;
    }
    return 0;
}

static int read_header(struct safetensors *st, struct err *err)
{
    struct stat info;
    uint64_t length = 0;

    if (fstat(st->fd, &info) != 0)
        return err_set_errno(err, errno, "stat");
    if (!S_ISREG(info.st_mode) || info.st_size < LENGTH_BYTES)
        return err_set(err, ERR_CORRUPT, "not a safetensors file");
    int rc = read_at(st->fd, &length, sizeof(length), 0, err);
    if (rc < 0)
        return rc;
    if (length > HEADER_MAX || (int64_t)length > info.st_size - LENGTH_BYTES)
        return err_set(err, ERR_CORRUPT, "a header of %llu bytes", (unsigned long long)length);
    char *text = xmalloc((size_t)length + 1);
    rc = read_at(st->fd, text, (size_t)length, LENGTH_BYTES, err);
    if (rc == 0)
        rc = json_parse(text, (size_t)length, &st->header, err);
    free(text);
    st->data_at = LENGTH_BYTES + (int64_t)length;
    if (rc == 0)
        rc = read_entries(st, err);
    return rc == 0 ? check_cover(st, info.st_size - st->data_at, err) : rc;
}

int safetensors_open(const char *path, struct safetensors *st, struct err *err)
{
    *st = (struct safetensors){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (st->fd < 0)
        return err_set_errno(err, errno, "%s", path);
    int rc = read_header(st, err);
    if (rc == 0)
        return 0;
    if (rc != ERR_IO)
        err->code = ERR_CORRUPT;
    safetensors_close(st);
    return err_wrap(err, "%s", path);
}

void safetensors_close(struct safetensors *st)
{
    if (st->fd >= 0)
        (void)close(st->fd);
    cJSON_Delete(st->header);
    free(st->entries);
    *st = (struct safetensors){.fd = -1};
}

const struct safetensors_entry *safetensors_find(const struct safetensors *st, const char *name)
{
    struct safetensors_entry key = {.name = name};

    /* bsearch() of no elements must not see a null pointer. */
    return st->n == 0 ? NULL : bsearch(&key, st->entries, st->n, sizeof(*st->entries), by_name);
}

/* n numbers of a type, packed, as float32. */
static void convert(float *out, const char *raw, size_t n, int code)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half = 0;
        double wide = 0.0;
        if (code == TYPE_F64) {
            memcpy(&wide, raw + i * sizeof(wide), sizeof(wide));
            out[i] = (float)wide;
            continue;
        }
        memcpy(&half, raw + i * sizeof(half), sizeof(half));
        out[i] = code == TYPE_F16 ? half_from_f16(half) : half_from_bf16(half);
    }
}

/* F32 is read in place; other types go through a buffer of CHUNK_NUMBERS. */
static int read_numbers(const struct safetensors *st, const struct safetensors_entry *entry,
                        float *out, struct err *err)
{
    const struct dtype *type = find_dtype(entry->dtype);
    int64_t at = st->data_at + entry->begin;
    size_t left = (size_t)entry->n;
    int rc = 0;

    if (type == NULL || type->code < 0)
        return err_set(err, ERR_REFUSED, "dtype %.20s cannot be read as weights", entry->dtype);
    if (type->code == TYPE_F32)
        return read_at(st->fd, out, left * sizeof(*out), at, err);
    char *raw = xmalloc(CHUNK_NUMBERS * (size_t)type->bytes);
    while (rc == 0 && left > 0) {
        size_t n = left < CHUNK_NUMBERS ? left : CHUNK_NUMBERS;
        rc = read_at(st->fd, raw, n * (size_t)type->bytes, at, err);
        if (rc == 0)
            convert(out, raw, n, type->code);
        out += n;
        at += (int64_t)n * type->bytes;
        left -= n;
    }
    free(raw);
    return rc;
}

int safetensors_read(const struct safetensors *st, const struct safetensors_entry *entry,
                     float *out, struct err *err)
{
    int rc = read_numbers(st, entry, out, err);

    return rc < 0 ? err_wrap(err, "tensor %.80s", entry->name) : 0;
}

static int64_t item_numbers(const struct safetensors_item *item)
{
    return item->rows * (item->cols == 0 ? 1 : item->cols);
}

/* The header with its length in front, padded with blanks so that the data begin at a multiple of
 * 8. */
static int make_header(const struct safetensors_item *items, size_t n, struct strbuf *out,
                       struct err *err)
{
    cJSON *obj = json_object(), *meta = json_object();
    struct strbuf text = STRBUF_INIT;
    int64_t at = 0;

    json_put_string(meta, "format", "pt");
    json_put(obj, METADATA_KEY, meta);
    for (size_t i = 0; i < n; i++) {
        cJSON *entry = json_object(), *shape = json_array(), *offsets = json_array();
        int64_t n_bytes = item_numbers(&items[i]) * (int64_t)sizeof(float);
        json_push_number(shape, (double)items[i].rows);
        if (items[i].cols > 0)
            json_push_number(shape, (double)items[i].cols);
        json_push_number(offsets, (double)at);
        json_push_number(offsets, (double)(at + n_bytes));
        at += n_bytes;
        json_put_string(entry, "dtype", "F32");
        json_put(entry, "shape", shape);
        json_put(entry, "data_offsets", offsets);
        json_put(obj, items[i].name, entry);
    }
    int rc = json_line(obj, &text, err);
    while (text.len % ALIGN != 0)
        strbuf_addc(&text, ' ');
    uint64_t length = text.len;
    strbuf_add(out, &length, sizeof(length));
    strbuf_add(out, text.buf, text.len);
    cJSON_Delete(obj);
    strbuf_release(&text);
    return rc;
}

static int write_body(int fd, const struct safetensors_item *items, size_t n, struct err *err)
{
    struct strbuf header = STRBUF_INIT;

    int rc = make_header(items, n, &header, err);
    if (rc == 0)
        rc = file_write_all(fd, header.buf, header.len, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc =
            file_write_all(fd, items[i].data, (size_t)item_numbers(&items[i]) * sizeof(float), err);
    if (rc == 0 && fsync(fd) != 0)
        rc = err_set_errno(err, errno, "fsync");
    strbuf_release(&header);
    return rc;
}

int safetensors_write(const char *path, const struct safetensors_item *items, size_t n,
                      struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_set_errno(err, errno, "%s", path);
    int rc = write_body(fd, items, n, err);
    if (close(fd) != 0 && rc == 0)
        rc = err_set_errno(err, errno, "close");
    return rc < 0 ? err_wrap(err, "%s", path) : 0;
}
