/*
 * Reads one file at a time into memory and cuts it into documents for the sink. The kind of a file
 * follows from its first bytes (a shard) or its name (.jsonl); everything else is text. n_read
 * counts bytes of files for progress, including separators and byte order marks, so that it ends at
 * source_bytes().
 */
#include "worker/data/source.h"

#include <errno.h>
#include <stdio.h>
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

/* The documents of a file's text, or of its beginning. */
static int read_documents(const char *path, struct strbuf *body, struct source_sink *sink,
                          struct err *err)
{
    if (body->len >= 3 && memcmp(body->buf, "\xef\xbb\xbf", 3) == 0) {
        body->len -= 3; /* a byte order mark, with which some editors begin UTF-8 */
        memmove(body->buf, body->buf + 3, body->len + 1);
        sink->n_read += 3;
    }
    return ends_with(path, ".jsonl") ? read_jsonl(body, sink, err) : read_text(body, sink, err);
}

/* A shard goes to the sink by its path; text and JSON lines are read here. */
static int read_one(void *ctx, const char *path, int64_t size, struct err *err)
{
    struct source_sink *sink = ctx;
    struct strbuf body = STRBUF_INIT;

    (void)size;

    int rc = file_read(path, SOURCE_FILE_MAX, &body, err);
    if (rc == 0 && body.len >= 8 && memcmp(body.buf, SHARD_MAGIC, 8) == 0) {
        sink->n_read += body.len;
        strbuf_release(&body);
        return sink->shard != NULL
                   ? sink->shard(sink, path, err)
                   : err_set(err, ERR_REFUSED, "%s: a shard, which holds no text", path);
    }
    if (rc == 0)
        rc = read_documents(path, &body, sink, err);
    strbuf_release(&body);
    return rc < 0 ? err_wrap(err, "%s", path) : 0;
}

/* What source_each_file() calls for each file. */
struct file_visit {
    int (*file)(void *ctx, const char *path, int64_t size, struct err *err);
    void *ctx;
};

static int visit_path(const char *path, int depth, const struct file_visit *v, struct err *err);

static int visit_folder(const char *path, int depth, const struct file_visit *v, struct err *err)
{
    struct name_list list = {0};

    if (depth >= SOURCE_DEPTH_MAX)
        return err_set(err, ERR_NOT_FOUND, "%s: folders nested over %d deep", path,
                       SOURCE_DEPTH_MAX);
    int rc = dir_list(path, &list, err);
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        char *inner = path_join(path, list.names[i]);
        rc = visit_path(inner, depth + 1, v, err);
        free(inner);
    }
    name_list_release(&list);
    return rc;
}

static int visit_path(const char *path, int depth, const struct file_visit *v, struct err *err)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return err_set(err, ERR_NOT_FOUND, "%s: no such file or folder", path);
    if (S_ISREG(st.st_mode))
        return v->file(v->ctx, path, (int64_t)st.st_size, err);
    if (S_ISDIR(st.st_mode))
        return visit_folder(path, depth, v, err);
    return err_set(err, ERR_NOT_FOUND, "%s: neither a file nor a folder", path);
}

int source_each_file(const char *path,
                     int (*file)(void *ctx, const char *path, int64_t size, struct err *err),
                     void *ctx, struct err *err)
{
    const struct file_visit v = {file, ctx};

    return visit_path(path, 0, &v, err);
}

int source_visit(const char *path, struct source_sink *sink, struct err *err)
{
    return source_each_file(path, read_one, sink, err);
}

/* The first n_bytes of a file, or as many as make whole lines. */
static int read_beginning(const char *path, size_t n_bytes, struct strbuf *body, struct err *err)
{
    FILE *f = fopen(path, "re");

    if (f == NULL)
        return err_set_errno(err, errno, "open");
    strbuf_reserve(body, n_bytes);
    const size_t n = fread(body->buf, 1, n_bytes, f);
    const bool failed = ferror(f) != 0;
    (void)fclose(f);
    if (failed)
        return err_set(err, ERR_IO, "cannot be read");
    body->len = n;
    while (n == n_bytes && body->len > 0 && body->buf[body->len - 1] != '\n')
        body->len--;
    body->buf[body->len] = '\0';
    return 0;
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

static int add_bytes(void *ctx, const char *path, int64_t size, struct err *err)
{
    int64_t *sum = ctx;

    (void)path;
    (void)err;
    *sum += size;
    return 0;
}

int64_t source_bytes(const char *path)
{
    struct err ignored;
    int64_t sum = 0;

    return source_each_file(path, add_bytes, &sum, &ignored) < 0 ? 0 : sum;
}

/* What is known of a source's tokens while its files are visited. */
struct estimate {
    struct source_sink sink; /* first; of one file's sample */
    const struct tokenizer *tok;
    int left; /* files that may be sampled yet */
    double n_tokens;
    double sampled_tokens;
    double sampled_bytes;
    double other_bytes; /* of files that were not sampled */
};

static int estimate_document(struct source_sink *sink, const char *text, size_t len,
                             struct err *err)
{
    struct estimate *e = (struct estimate *)sink;
    struct token_list ids = {0};

    int rc = e->tok == NULL ? 0 : tokenizer_encode(e->tok, text, len, &ids, err);
    e->sampled_tokens += (double)ids.n + 1.0; /* end-of-text */
    token_list_release(&ids);
    return rc;
}

static int estimate_file(void *ctx, const char *path, int64_t size, struct err *err)
{
    struct estimate *e = ctx;
    struct strbuf body = STRBUF_INIT;
    const double before = e->sampled_tokens;
    double shard = 0.0;

    if (shard_count(path, &shard)) {
        e->n_tokens += shard;
        return 0;
    }
    if (e->left == 0) {
        e->other_bytes += (double)size;
        return 0;
    }
    int rc = read_beginning(path, SOURCE_SAMPLE_BYTES, &body, err);
    const double n = (double)body.len;
    if (rc == 0)
        rc = read_documents(path, &body, &e->sink, err);
    strbuf_release(&body);
    if (rc < 0)
        return err_wrap(err, "%s", path);
    if (n > 0.0) {
        e->left--;
        e->sampled_bytes += n;
        e->n_tokens += (e->sampled_tokens - before) * ((double)size / n);
    } else {
        e->other_bytes += (double)size;
    }
    return 0;
}

int source_estimate(const char *path, const struct tokenizer *tok, double *n_tokens,
                    struct err *err)
{
    struct estimate e = {
        .sink = {.document = estimate_document}, .tok = tok, .left = SOURCE_SAMPLES};

    int rc = source_each_file(path, estimate_file, &e, err);
    if (rc == 0 && e.other_bytes > 0.0)
        e.n_tokens += e.other_bytes * (e.sampled_tokens / e.sampled_bytes); /* NaN: 0 / 0 */
    *n_tokens = e.n_tokens;
    return rc;
}

static int check_file(void *ctx, const char *path, int64_t size, struct err *err)
{
    (void)size;
    return shard_check_tokenizer(path, ctx, err);
}

int source_check_tokenizer(const char *path, const struct tokenizer *tok, struct err *err)
{
    union {
        const struct tokenizer *in;
        void *out;
    } ctx = {.in = tok};

    return source_each_file(path, check_file, ctx.out, err);
}
