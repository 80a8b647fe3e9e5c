/*
 * Everything in a receipt is opened relative to the folder's descriptor with O_NOFOLLOW, so that no
 * link and no renamed folder can lead out of it. Sizes are checked in the listing and again while
 * reading, because a file may grow in between. Trees are parsed after nodes_check() only.
 */
#include "ctl/receipt/files.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/json/json_pull.h"
#include "base/xalloc.h"

#define CHUNK_BYTES ((size_t)256 << 10)

/* Orders files by the bytes of their names, as SHA256SUMS is. */
static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct receipt_file *)a)->name, ((const struct receipt_file *)b)->name);
}

/* An error of the operating system as a fault. */
static int unreadable(struct err *err, const char *name, int errnum)
{
    (void)err_set_errno(err, errnum, "read %.100s", name);
    return mismatch_code(err);
}

/* Adds a file to the listing, if a receipt may have it and there is room. */
static int take_file(struct receipt_files *files, const char *name, int64_t bytes, struct err *err)
{
    err_at(err, name, 0);
    const char *why = layout_refuses(name);
    if (why != NULL) {
        return err_set(err, ERR_LOCK, "%s", why);
    }
    if (bytes > layout_bytes_max(name)) {
        return err_set(err, ERR_LOCK, "has %lld bytes; %lld are read at most", (long long)bytes,
                       (long long)layout_bytes_max(name));
    }
    files->bytes += bytes;
    if (files->n == RECEIPT_FILES_MAX || files->bytes > RECEIPT_BYTES_MAX) {
        return err_set(err, ERR_LOCK, "too many files, or too many bytes, for a receipt");
    }
    ARRAY_GROW(files->items, files->n, files->cap);
    files->items[files->n++] = (struct receipt_file){.name = xstrdup(name), .bytes = bytes};
    return 0;
}

static int list_folder(struct receipt_files *files, int fd, const char *prefix, struct err *err);

/* One entry: a file, a folder at the top (which is listed in turn), or a fault. */
static int list_entry(struct receipt_files *files, int fd, const char *prefix, const char *entry,
                      struct err *err)
{
    struct stat st;
    char *name = xasprintf("%s%s", prefix, entry);
    int rc = 0;
    err_at(err, name, 0);
    if (fstatat(fd, entry, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        rc = unreadable(err, name, errno);
    } else if (S_ISREG(st.st_mode)) {
        rc = take_file(files, name, st.st_size, err);
    } else if (S_ISDIR(st.st_mode) && prefix[0] == '\0') {
        char *inner = xasprintf("%s/", name);
        int sub = openat(fd, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        rc = sub < 0 ? unreadable(err, name, errno) : list_folder(files, sub, inner, err);
        free(inner);
    } else {
        rc = err_set(err, ERR_LOCK,
                     S_ISLNK(st.st_mode)   ? "is a link: a receipt holds files"
                     : S_ISDIR(st.st_mode) ? "a receipt has no folder at this depth"
                                           : "is not a file, but a device, pipe or socket");
    }
    free(name);
    return rc;
}

/* Lists one folder; closes fd. */
static int list_folder(struct receipt_files *files, int fd, const char *prefix, struct err *err)
{
    DIR *dir = fdopendir(fd);
    int rc = 0;
    if (dir == NULL) {
        rc = unreadable(err, prefix, errno);
        (void)close(fd);
        return rc;
    }
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(dir);
        if (e == NULL) {
            rc = errno != 0 ? unreadable(err, prefix, errno) : 0;
            break;
        }
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        rc = list_entry(files, dirfd(dir), prefix, e->d_name, err);
        if (rc != 0) {
            break;
        }
    }
    (void)closedir(dir);
    return rc;
}

int files_open(struct receipt_files *files, const char *folder, struct err *err)
{
    *files = (struct receipt_files){.folder = xstrdup(folder)};
    files->fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    err_at(err, "", 0);
    if (files->fd < 0) {
        return unreadable(err, folder, errno);
    }
    /* fdopendir() takes its descriptor, and ours is needed later */
    int fd = fcntl(files->fd, F_DUPFD_CLOEXEC, 0);
    int rc = fd < 0 ? unreadable(err, folder, errno) : list_folder(files, fd, "", err);
    if (files->n > 0) {
        qsort(files->items, files->n, sizeof(*files->items), by_name);
    }
    if (rc == 0) {
        err_at(err, "", 0);
    }
    return rc;
}

void files_release(struct receipt_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        free(files->items[i].name);
    }
    free(files->items);
    free(files->folder);
    if (files->fd >= 0) {
        (void)close(files->fd);
    }
    *files = (struct receipt_files){.fd = -1};
}

struct receipt_file *files_find(const struct receipt_files *files, const char *name)
{
    size_t low = 0;
    size_t high = files->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(files->items[mid].name, name);
        if (order == 0) {
            return &files->items[mid];
        }
        low = order < 0 ? mid + 1 : low;
        high = order < 0 ? high : mid;
    }
    return NULL;
}

bool files_have(const struct receipt_files *files, const char *name)
{
    return files_find(files, name) != NULL;
}

char *files_path(const struct receipt_files *files, const char *name)
{
    return path_join(files->folder, name);
}

int files_open_one(const struct receipt_files *files, const char *name)
{
    static const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const char *slash = strchr(name, '/'); /* there is one at most: layout_refuses() */
    if (slash == NULL) {
        return openat(files->fd, name, flags);
    }
    char folder[RECEIPT_NAME_MAX + 1];
    (void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - name), name);
    int sub = openat(files->fd, folder, flags | O_DIRECTORY);
    if (sub < 0) {
        return -1;
    }
    int fd = openat(sub, slash + 1, flags);
    const int errnum = errno;
    (void)close(sub);
    errno = errnum;
    return fd;
}

/* Opens a file of the listing; -1 after a fault. */
static int open_file(const struct receipt_files *files, const char *name, struct err *err)
{
    struct stat st;
    err_at(err, name, 0);
    if (!files_have(files, name)) {
        (void)err_set(err, ERR_LOCK, "is missing");
        return -1;
    }
    int fd = files_open_one(files, name);
    if (fd < 0 || fstat(fd, &st) != 0) {
        (void)unreadable(err, name, errno);
    } else if (!S_ISREG(st.st_mode) || st.st_size > layout_bytes_max(name)) {
        (void)err_set(err, ERR_LOCK, "was changed while the receipt was read");
    } else {
        return fd;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return -1;
}

/* Appends up to a chunk; *ended at the end of the file. */
static int read_chunk(int fd, struct strbuf *out, bool *ended)
{
    ssize_t n;
    strbuf_reserve(out, CHUNK_BYTES);
    do {
        n = read(fd, out->buf + out->len, CHUNK_BYTES);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return -1;
    }
    out->len += (size_t)n;
    out->buf[out->len] = '\0';
    *ended = n == 0;
    return 0;
}

/* Reads the whole file, up to its limit, even if it grew since it was listed. */
int files_read(const struct receipt_files *files, const char *name, struct strbuf *out,
               struct err *err)
{
    bool ended = false;
    int fd = open_file(files, name, err);
    if (fd < 0) {
        return err->code;
    }
    int rc = 0;
    const struct receipt_file *file = files_find(files, name);
    assert(file != NULL); /* open_file() opens nothing else */
    strbuf_reserve(out, (size_t)file->bytes + CHUNK_BYTES);
    while (rc == 0 && !ended) {
        if (read_chunk(fd, out, &ended) != 0) {
            rc = unreadable(err, name, errno);
        } else if ((int64_t)out->len > layout_bytes_max(name)) {
            rc = err_set(err, ERR_LOCK, "was changed while the receipt was read");
        }
    }
    (void)close(fd);
    return rc;
}

int files_read_json(const struct receipt_files *files, const char *name, cJSON **out,
                    struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    *out = NULL;
    int rc = files_read(files, name, &text, err);
    if (rc == 0 && (nodes_check(text.buf, text.len, err) != 0 ||
                    json_parse(text.buf, text.len, out, err) != 0)) {
        rc = mismatch_code(err);
    }
    strbuf_release(&text);
    return rc;
}

int tree_parse(const char *text, size_t len, bool lax, struct arena *arena, cJSON **out,
               struct err *err)
{
    struct json_pull p;
    enum json_token token = JSON_END;
    *out = NULL;
    int rc = nodes_check(text, len, err);
    if (rc != 0) {
        return rc;
    }
    json_pull_init(&p, text, len, lax);
    if ((rc = json_pull_next(&p, &token, err)) != 0 ||
        (rc = json_pull_value(&p, token, arena, out, err)) != 0) {
        goto out;
    }
    rc = json_pull_next(&p, &token, err); /* that nothing comes after it */
out:
    json_pull_release(&p);
    return rc;
}

int files_read_tree(const struct receipt_files *files, const char *name, struct arena *arena,
                    cJSON **out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    *out = NULL;
    int rc = files_read(files, name, &text, err);
    if (rc == 0 && tree_parse(text.buf, text.len, false, arena, out, err) != 0) {
        rc = mismatch_code(err);
    }
    strbuf_release(&text);
    return rc;
}

/* Hashes in chunks: a file may be larger than memory. */
int files_digest(const struct receipt_files *files, struct receipt_file *file, struct err *err)
{
    struct digest_stream s;
    struct strbuf chunk = STRBUF_INIT;
    bool ended = false;
    int fd = open_file(files, file->name, err);
    if (fd < 0) {
        return err->code;
    }
    int rc = 0;
    digest_start(&s);
    while (rc == 0 && !ended) {
        strbuf_clear(&chunk);
        rc = read_chunk(fd, &chunk, &ended) != 0 ? unreadable(err, file->name, errno) : 0;
        digest_add(&s, chunk.buf, chunk.len);
    }
    file->digest = digest_finish(&s);
    strbuf_release(&chunk);
    (void)close(fd);
    return rc;
}

/* ---- lines ---- */

int lines_open(struct receipt_lines *l, const struct receipt_files *files, const char *name,
               size_t line_max, struct err *err)
{
    *l = (struct receipt_lines){.fd = -1, .line_max = line_max, .buf = STRBUF_INIT};
    (void)snprintf(l->name, sizeof(l->name), "%s", name);
    l->fd = open_file(files, name, err);
    return l->fd < 0 ? err->code : 0;
}

/* Returns lines out of one buffer: what was returned is dropped only when more must be read, and
 * the search for a newline continues where it stopped. */
int lines_next(struct receipt_lines *l, const char **text, size_t *len, struct err *err)
{
    size_t looked = l->from;
    *text = NULL;
    for (;;) {
        /* a whole line is in the buffer */
        char *nl = memchr(l->buf.buf + looked, '\n', l->buf.len - looked);
        if (nl != NULL) {
            *text = l->buf.buf + l->from;
            *len = (size_t)(nl - *text);
            *nl = '\0';
            l->from += *len + 1;
            err_at(err, l->name, ++l->line);
            return 0;
        }
        /* make room: move the incomplete line to the front */
        if (l->from > 0) {
            memmove(l->buf.buf, l->buf.buf + l->from, l->buf.len - l->from);
            l->buf.len -= l->from;
            l->from = 0;
        }
        looked = l->buf.len;
        err_at(err, l->name, l->line + 1);
        if (l->ended) {
            return l->buf.len == 0
                       ? 0
                       : err_set(err, ERR_LOCK, "the last line is torn: it has no newline");
        }
        if (l->buf.len > l->line_max) {
            return err_set(err, ERR_LOCK, "a line of more than %zu bytes", l->line_max);
        }
        if (read_chunk(l->fd, &l->buf, &l->ended) != 0) {
            return unreadable(err, l->name, errno);
        }
    }
}

void lines_release(struct receipt_lines *l)
{
    if (l->fd >= 0) {
        (void)close(l->fd);
    }
    strbuf_release(&l->buf);
    l->fd = -1;
}
