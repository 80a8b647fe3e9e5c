/*
 * Reads one file at a time into memory and cuts it into documents for the sink. The kind of a file
 * follows from its first bytes (a shard) or its name (.jsonl); everything else is text. n_read
 * counts bytes of files for progress, including separators and byte order marks, so that it ends at
 * source_bytes().
 */
#include "worker/data/source.h"

#include <sys/stat.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"

#define SOURCE_DEPTH_MAX 16

/* Trims line ends; an empty document is skipped. */
static int add_document(struct source_sink *sink, const char *text, size_t len, struct err *err)
{
    while (len > 0 && (text[0] == '\n' || text[0] == '\r')) {
        text++;
        len--;
    }
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    return len == 0 ? 0 : sink->document(sink, text, len, err);
}

/* The length of the line at text, without its end; *next is where the following one begins. */
static size_t line_length(const char *text, size_t len, size_t *next)
{
    const char *end = memchr(text, '\n', len);
    size_t n = end == NULL ? len : (size_t)(end - text);

    *next = end == NULL ? len : n + 1;
    if (n > 0 && text[n - 1] == '\r')
        n--;
    return n;
}

static bool is_separator(const char *text, size_t len)
{
    return len == sizeof(SOURCE_SEPARATOR) - 1 && memcmp(text, SOURCE_SEPARATOR, len) == 0;
}

static bool has_separator(const char *text, size_t len)
{
    size_t next;

    for (size_t at = 0; at < len; at += next)
        if (is_separator(text + at, line_length(text + at, len - at, &next)))
            return true;
    return false;
}

/* Documents between separator lines, or, without any, at the first blank line after every
 * SOURCE_CUT_BYTES. */
static int read_text(const struct strbuf *body, struct source_sink *sink, struct err *err)
{
    size_t start = 0, next;
    uint64_t before = sink->n_read;
    bool separated = has_separator(body->buf, body->len);

    if (!text_is_utf8(body->buf, body->len))
        return err_set(err, ERR_SYNTAX, "not UTF-8 text");
    for (size_t at = 0; at < body->len; at += next) {
        size_t n = line_length(body->buf + at, body->len - at, &next);
        bool cut =
            separated ? is_separator(body->buf + at, n) : n == 0 && at - start >= SOURCE_CUT_BYTES;
        if (!cut)
            continue;
        sink->n_read = before + at;
        int rc = add_document(sink, body->buf + start, at - start, err);
        if (rc < 0)
            return rc;
        start = at + next;
    }
    sink->n_read = before + body->len;
    return add_document(sink, body->buf + start, body->len - start, err);
}

/* One record; "text" is its document. */
static int read_jsonl_line(const char *line, size_t len, struct source_sink *sink, struct err *err)
{
    cJSON *obj = NULL;
    const char *text = NULL;

    int rc = json_parse(line, len, &obj, err);
    if (rc == 0 && (rc = json_get_string(obj, "text", &text, err)) == 0)
        rc = add_document(sink, text, strlen(text), err);
    else
        err->code = ERR_SYNTAX;
    cJSON_Delete(obj);
    return rc < 0 ? err->code : 0;
}

static int read_jsonl(const struct strbuf *body, struct source_sink *sink, struct err *err)
{
    size_t next, number = 1;
    uint64_t before = sink->n_read;

    for (size_t at = 0; at < body->len; at += next, number++) {
        size_t n = line_length(body->buf + at, body->len - at, &next);
        sink->n_read = before + at + next;
        if (n > 0 && read_jsonl_line(body->buf + at, n, sink, err) < 0)
            return err_wrap(err, "line %zu", number);
    }
    return 0;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* A shard goes to the sink by its path; text and JSON lines are read here. */
static int read_one(const char *path, struct source_sink *sink, struct err *err)
{
    struct strbuf body = STRBUF_INIT;

    int rc = file_read(path, SOURCE_FILE_MAX, &body, err);
    if (rc == 0 && body.len >= 8 && memcmp(body.buf, SHARD_MAGIC, 8) == 0) {
        sink->n_read += body.len;
        strbuf_release(&body);
        return sink->shard != NULL
                   ? sink->shard(sink, path, err)
                   : err_set(err, ERR_REFUSED, "%s: a shard, which holds no text", path);
    }
    if (rc == 0 && body.len >= 3 && memcmp(body.buf, "\xef\xbb\xbf", 3) == 0) {
        body.len -= 3; /* a byte order mark, with which some editors begin UTF-8 */
        memmove(body.buf, body.buf + 3, body.len + 1);
        sink->n_read += 3;
    }
    if (rc == 0)
        rc = ends_with(path, ".jsonl") ? read_jsonl(&body, sink, err) : read_text(&body, sink, err);
    strbuf_release(&body);
    return rc < 0 ? err_wrap(err, "%s", path) : 0;
}

static int read_path(const char *path, int depth, struct source_sink *sink, struct err *err);

static int read_folder(const char *path, int depth, struct source_sink *sink, struct err *err)
{
    struct name_list list = {0};

    if (depth >= SOURCE_DEPTH_MAX)
        return err_set(err, ERR_NOT_FOUND, "%s: folders nested over %d deep", path,
                       SOURCE_DEPTH_MAX);
    int rc = dir_list(path, &list, err);
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        char *inner = path_join(path, list.names[i]);
        rc = read_path(inner, depth + 1, sink, err);
        free(inner);
    }
    name_list_release(&list);
    return rc;
}

static int read_path(const char *path, int depth, struct source_sink *sink, struct err *err)
{
    switch (file_kind_at(path)) {
    case FILE_REGULAR: return read_one(path, sink, err);
    case FILE_FOLDER: return read_folder(path, depth, sink, err);
    case FILE_ABSENT: return err_set(err, ERR_NOT_FOUND, "%s: no such file or folder", path);
    case FILE_OTHER: break;
    }
    return err_set(err, ERR_NOT_FOUND, "%s: neither a file nor a folder", path);
}

int source_visit(const char *path, struct source_sink *sink, struct err *err)
{
    return read_path(path, 0, sink, err);
}

/* Documents go into a corpus as they come. */
struct corpus_sink {
    struct source_sink sink; /* first */
    const struct tokenizer *tok;
    struct corpus *corpus;
};

static int corpus_document(struct source_sink *sink, const char *text, size_t len, struct err *err)
{
    struct corpus_sink *s = (struct corpus_sink *)sink;

    if (s->sink.progress != NULL)
        progress_set(s->sink.progress, (double)s->sink.n_read);
    return corpus_add(s->corpus, s->tok, text, len, err);
}

static int corpus_shard(struct source_sink *sink, const char *path, struct err *err)
{
    struct corpus_sink *s = (struct corpus_sink *)sink;

    return shard_read(path, s->tok, s->corpus, err);
}

int source_read_watched(const char *path, const struct tokenizer *tok, struct progress *progress,
                        struct corpus *c, struct err *err)
{
    struct corpus_sink s = {
        .sink = {.document = corpus_document, .shard = corpus_shard, .progress = progress},
        .tok = tok,
        .corpus = c};

    return source_visit(path, &s.sink, err);
}

int source_read(const char *path, const struct tokenizer *tok, struct corpus *c, struct err *err)
{
    return source_read_watched(path, tok, NULL, c, err);
}

static int64_t bytes_at(const char *path, int depth)
{
    struct name_list list = {0};
    struct err ignored;
    struct stat st;
    int64_t sum = 0;

    if (stat(path, &st) != 0)
        return 0;
    if (S_ISREG(st.st_mode))
        return (int64_t)st.st_size;
    if (!S_ISDIR(st.st_mode) || depth >= SOURCE_DEPTH_MAX)
        return 0;
    (void)!dir_list(path, &list, &ignored);
    for (size_t i = 0; i < list.n; i++) {
        char *inner = path_join(path, list.names[i]);
        sum += bytes_at(inner, depth + 1);
        free(inner);
    }
    name_list_release(&list);
    return sum;
}

int64_t source_bytes(const char *path)
{
    return bytes_at(path, 0);
}
