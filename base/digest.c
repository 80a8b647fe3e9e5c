#include "base/digest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "base/xalloc.h"

#define FOLDER_DEPTH_MAX 64

void digest_start(struct digest_stream *s)
{
    (void)crypto_hash_sha256_init(&s->state);
}

void digest_add(struct digest_stream *s, const void *data, size_t len)
{
    (void)crypto_hash_sha256_update(&s->state, data, len);
}

struct digest digest_finish(struct digest_stream *s)
{
    struct digest d;
    (void)crypto_hash_sha256_final(&s->state, d.bytes);
    return d;
}

struct digest digest_bytes(const void *data, size_t len)
{
    struct digest d;
    (void)crypto_hash_sha256(d.bytes, data, len);
    return d;
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool digest_is_zero(const struct digest *d)
{
    static const struct digest zero;
    return digest_equal(d, &zero);
}

void digest_hex(const struct digest *d, char hex[DIGEST_HEX_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof(d->bytes); i++) {
        hex[2 * i] = digits[d->bytes[i] >> 4];
        hex[2 * i + 1] = digits[d->bytes[i] & 15U];
    }
    hex[64] = '\0';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int digest_from_hex(const char *hex, struct digest *out, struct err *err)
{
    if (strlen(hex) != 64) {
        return err_set(err, ERR_SYNTAX, "not a SHA-256: %zu characters instead of 64", strlen(hex));
    }
    for (size_t i = 0; i < 32; i++) {
        int hi = hex_value(hex[2 * i]);
        int lo = hex_value(hex[2 * i + 1]);
        if (hi < 0 || lo < 0) {
            return err_set(err, ERR_SYNTAX,
                           "not a SHA-256: character %zu is not a lower-case hex digit", 2 * i + 1);
        }
        out->bytes[i] = (unsigned char)(hi * 16 + lo);
    }
    return 0;
}

int digest_file(const char *path, struct digest *out, int64_t *n_bytes, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return err_set_errno(err, errno, "open %s", path);
    }
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        (void)close(fd);
        return err_set(err, ERR_INVALID, "%s is not a regular file", path);
    }
    const size_t chunk_bytes = (size_t)256 * 1024;
    unsigned char *chunk = xmalloc(chunk_bytes);
    struct digest_stream s;
    digest_start(&s);
    int64_t total = 0;
    ssize_t n;
    while ((n = read(fd, chunk, chunk_bytes)) != 0) {
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            break;
        }
        digest_add(&s, chunk, (size_t)n);
        total += n;
    }
    int rc = n < 0 ? err_set_errno(err, errno, "read %s", path) : 0;
    free(chunk);
    (void)close(fd);
    if (rc == 0) {
        *out = digest_finish(&s);
        if (n_bytes != NULL) {
            *n_bytes = total;
        }
    }
    return rc;
}

struct folder_walk {
    char **files; /* paths relative to the root */
    size_t n_files;
    size_t cap;
};

static int walk(struct folder_walk *w, const char *root, const char *rel, int depth,
                struct err *err);

static int walk_entry(struct folder_walk *w, const char *root, const char *rel, int depth,
                      struct err *err)
{
    char *path = path_join(root, rel);
    struct stat st;
    int rc = 0;
    if (lstat(path, &st) != 0) {
        rc = err_set_errno(err, errno, "stat %s", path);
    } else if (S_ISDIR(st.st_mode)) {
        rc = walk(w, root, rel, depth + 1, err);
    } else if (S_ISREG(st.st_mode) && strchr(rel, '\n') == NULL) {
        ARRAY_GROW(w->files, w->n_files, w->cap);
        w->files[w->n_files++] = xstrdup(rel);
    } else {
        rc = err_set(err, ERR_INVALID,
                     "%s is a link or special file: only plain files can be pinned", path);
    }
    free(path);
    return rc;
}

static int walk(struct folder_walk *w, const char *root, const char *rel, int depth,
                struct err *err)
{
    if (depth > FOLDER_DEPTH_MAX) {
        return err_set(err, ERR_RANGE, "%s: folders nested deeper than %d", root, FOLDER_DEPTH_MAX);
    }
    char *path = rel[0] == '\0' ? xstrdup(root) : path_join(root, rel);
    struct name_list names;
    int rc = dir_list(path, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        char *sub = rel[0] == '\0' ? xstrdup(names.names[i]) : path_join(rel, names.names[i]);
        rc = walk_entry(w, root, sub, depth, err);
        free(sub);
    }
    name_list_release(&names);
    free(path);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int digest_folder(const char *path, struct digest *out, struct err *err)
{
    struct folder_walk w = {0};
    struct digest_stream s;
    int rc = walk(&w, path, "", 0, err);
    if (rc == 0 && w.n_files > 1) {
        qsort(w.files, w.n_files, sizeof(*w.files), by_name);
    }
    digest_start(&s);
    for (size_t i = 0; rc == 0 && i < w.n_files; i++) {
        char *full = path_join(path, w.files[i]);
        struct digest d;
        char hex[DIGEST_HEX_SIZE];
        rc = digest_file(full, &d, NULL, err);
        if (rc == 0) {
            digest_hex(&d, hex);
            digest_add(&s, hex, 64);
            digest_add(&s, "  ", 2);
            digest_add(&s, w.files[i], strlen(w.files[i]));
            digest_add(&s, "\n", 1);
        }
        free(full);
    }
    if (rc == 0) {
        *out = digest_finish(&s);
    }
    for (size_t i = 0; i < w.n_files; i++) {
        free(w.files[i]);
    }
    free(w.files);
    return rc;
}

int digest_path(const char *path, struct digest *out, struct err *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return err_set_errno(err, errno, "stat %s", path);
    }
    return S_ISDIR(st.st_mode) ? digest_folder(path, out, err) : digest_file(path, out, NULL, err);
}
