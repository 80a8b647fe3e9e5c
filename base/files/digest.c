/*
 * SHA-256 of bytes, files and folders. A folder is walked first; then as many threads as the
 * machine has cores hash its files, and the digest is that of the sorted list of names and
 * digests.
 */
#include "base/files/digest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "base/xalloc.h"

#define FOLDER_DEPTH_MAX 64
#define THREADS_FROM     ((int64_t)64 << 20) /* bytes: less is hashed by the caller alone */
#define THREADS_MAX      16

static _Thread_local _Atomic int64_t *meter;

void digest_meter(_Atomic int64_t *bytes)
{
    meter = bytes;
}

void digest_start(struct digest_stream *s)
{
    sha256_init(&s->state);
}

void digest_add(struct digest_stream *s, const void *data, size_t len)
{
    sha256_update(&s->state, len, data);
}

struct digest digest_finish(struct digest_stream *s)
{
    struct digest d;
    sha256_digest(&s->state, sizeof(d.bytes), d.bytes);
    return d;
}

struct digest digest_bytes(const void *data, size_t len)
{
    struct digest_stream s;
    digest_start(&s);
    digest_add(&s, data, len);
    return digest_finish(&s);
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
        if (meter != NULL) {
            (void)atomic_fetch_add(meter, n);
        }
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
    int64_t bytes;
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
        w->bytes += (int64_t)st.st_size;
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

/* ---- the files of a folder, by as many threads as the machine has cores ---- */

struct file_hashing {
    const char *root;
    const struct folder_walk *files;
    struct digest *digests;
    atomic_size_t next;
    _Atomic int64_t *meter;
    pthread_mutex_t mutex;
    int rc; /* of the first file that failed */
    struct err err;
};

static void *hash_files(void *argument)
{
    struct file_hashing *h = argument;
    _Atomic int64_t *before = meter;
    meter = h->meter;
    for (size_t i; (i = atomic_fetch_add(&h->next, 1)) < h->files->n_files;) {
        struct err err;
        char *full = path_join(h->root, h->files->files[i]);
        int rc = digest_file(full, &h->digests[i], NULL, &err);
        free(full);
        if (rc != 0) {
            (void)pthread_mutex_lock(&h->mutex);
            if (h->rc == 0) {
                h->rc = rc;
                h->err = err;
            }
            (void)pthread_mutex_unlock(&h->mutex);
            atomic_store(&h->next, h->files->n_files);
        }
    }
    meter = before;
    return NULL;
}

static size_t n_threads(const struct folder_walk *w)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (size_t)cores;
    n = n > w->n_files ? w->n_files : n;
    return w->bytes < THREADS_FROM ? 1 : n;
}

/* The caller is one of them, so that it gets on where no thread can be had. */
static int hash_all(struct file_hashing *h, struct err *err)
{
    pthread_t threads[THREADS_MAX];
    size_t wanted = n_threads(h->files);
    size_t n = 0;
    (void)pthread_mutex_init(&h->mutex, NULL);
    while (n + 1 < wanted && thread_start(&threads[n], hash_files, h) == 0) {
        n++;
    }
    (void)hash_files(h);
    for (size_t i = 0; i < n; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)pthread_mutex_destroy(&h->mutex);
    if (h->rc != 0) {
        *err = h->err;
    }
    return h->rc;
}

static struct digest digest_of_lines(const struct folder_walk *w, const struct digest *digests)
{
    struct digest_stream s;
    digest_start(&s);
    for (size_t i = 0; i < w->n_files; i++) {
        char hex[DIGEST_HEX_SIZE];
        digest_hex(&digests[i], hex);
        digest_add(&s, hex, 64);
        digest_add(&s, "  ", 2);
        digest_add(&s, w->files[i], strlen(w->files[i]));
        digest_add(&s, "\n", 1);
    }
    return digest_finish(&s);
}

static void walk_release(struct folder_walk *w)
{
    for (size_t i = 0; i < w->n_files; i++) {
        free(w->files[i]);
    }
    free(w->files);
}

int digest_folder(const char *path, struct digest *out, struct err *err)
{
    struct folder_walk w = {0};
    int rc = walk(&w, path, "", 0, err);
    if (rc == 0 && w.n_files > 1) {
        qsort(w.files, w.n_files, sizeof(*w.files), by_name);
    }
    if (rc == 0) {
        struct file_hashing h = {.root = path, .files = &w, .meter = meter};
        h.digests = xcalloc(w.n_files + 1, sizeof(*h.digests));
        rc = hash_all(&h, err);
        if (rc == 0) {
            *out = digest_of_lines(&w, h.digests);
        }
        free(h.digests);
    }
    walk_release(&w);
    return rc;
}

int64_t digest_bytes_at(const char *path)
{
    struct stat st;
    struct err ignored;
    if (stat(path, &st) != 0) {
        return 0;
    }
    if (!S_ISDIR(st.st_mode)) {
        return (int64_t)st.st_size;
    }
    struct folder_walk w = {0};
    int64_t bytes = walk(&w, path, "", 0, &ignored) == 0 ? w.bytes : 0;
    walk_release(&w);
    return bytes;
}

int digest_path(const char *path, struct digest *out, struct err *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return err_set_errno(err, errno, "stat %s", path);
    }
    return S_ISDIR(st.st_mode) ? digest_folder(path, out, err) : digest_file(path, out, NULL, err);
}
