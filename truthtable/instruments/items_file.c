/*
 * A streaming reader of items.jsonl: pieces of any size in, one callback per line out. Memory is
 * bounded by the longest line, and the file is hashed in the same pass, so the digest is that of
 * the bytes that were read. Lines are parsed leniently, because Python writes NaN. Opened without
 * blocking: a FIFO in place of the file is refused instead of waited for.
 */
#include "truthtable/instruments/items_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"

#define PIECE_BYTES ((size_t)1 << 16)

/* metric and cluster are names of members; the caller keeps them. */
void items_stream_init(struct items_stream *s, const char *metric, const char *cluster,
                       items_take *take, void *ctx)
{
    *s = (struct items_stream){.metric = metric, .cluster = cluster, .take = take, .ctx = ctx};
    strbuf_init(&s->line);
}

void items_stream_release(struct items_stream *s)
{
    strbuf_release(&s->line);
}

/* The name of a cluster; an absent one, null, a list or an object names none. */
static int read_cluster(const cJSON *v, struct items_line *out, struct err *err)
{
    char number[JSON_NUMBER_MAX];
    const char *text = NULL;
    if (cJSON_IsString(v)) {
        text = v->valuestring;
    } else if (cJSON_IsNumber(v) && isfinite(v->valuedouble)) {
        json_number_text(v->valuedouble, number);
        text = number;
    } else if (cJSON_IsBool(v)) {
        text = cJSON_IsTrue(v) ? "true" : "false";
    }
    if (text == NULL) {
        return 0;
    }
    if (strlen(text) > ITEMS_CLUSTER_MAX) {
        return err_set(err, ERR_RANGE, "a cluster's name has more than %zu bytes",
                       ITEMS_CLUSTER_MAX);
    }
    out->has_cluster = true;
    memcpy(out->cluster, text, strlen(text) + 1);
    return 0;
}

/* Truth values count as 1 and 0; NaN and text are errors, null means no value. */
static int read_value(const cJSON *v, const char *metric, struct items_line *out, struct err *err)
{
    if (v == NULL || cJSON_IsNull(v)) {
        return 0;
    }
    if (cJSON_IsBool(v)) {
        out->value = cJSON_IsTrue(v) ? 1 : 0;
    } else if (cJSON_IsNumber(v) && isfinite(v->valuedouble)) {
        out->value = v->valuedouble;
    } else {
        return err_set(err, ERR_SYNTAX, "\"%.64s\" is neither a number nor a truth value", metric);
    }
    out->has_value = true;
    return 0;
}

/* The members of one line that are used. *header: an object without "item", allowed as the first
 * line only. */
static int read_line(const struct items_stream *s, const cJSON *o, bool *header,
                     struct items_line *out, struct err *err)
{
    *header = false;
    *out = (struct items_line){0};
    if (!cJSON_IsObject(o)) {
        return err_set(err, ERR_SYNTAX, "not an object");
    }
    /* n_lines has counted this line already. */
    if (json_member(o, "item") == NULL && s->n_lines == 1) {
        *header = true;
        return 0;
    }
    int rc = json_get_int(o, "item", 0, JSON_INT_MAX, &out->item, err);
    if (rc != 0 ||
        (s->cluster != NULL && (rc = read_cluster(json_member(o, s->cluster), out, err)) != 0)) {
        return rc;
    }
    return json_member(o, "fault") == NULL
               ? read_value(json_member(o, s->metric), s->metric, out, err)
               : 0;
}

/* Parses the collected line and hands it on. */
static int take_line(struct items_stream *s, struct err *err)
{
    struct items_line line;
    cJSON *o = NULL;
    bool header = false;
    s->n_lines++;
    int rc = json_parse_lax(s->line.buf, s->line.len, &o, err);
    if (rc == 0 && (rc = read_line(s, o, &header, &line, err)) == 0 && !header) {
        rc = s->take(s->ctx, &line, err);
        if (rc == 0 && s->take_tree != NULL) {
            rc = s->take_tree(s->ctx, o, err);
        }
    }
    cJSON_Delete(o);
    strbuf_clear(&s->line);
    return rc == 0 ? 0 : err_wrap(err, "line %zu", s->n_lines);
}

/* Collects a line across pieces; its length is checked before it grows. */
int items_stream_add(struct items_stream *s, const char *data, size_t len, struct err *err)
{
    while (len > 0) {
        const char *end = memchr(data, '\n', len);
        size_t part = end == NULL ? len : (size_t)(end - data);
        if (part > ITEMS_LINE_MAX - s->line.len) {
            return err_set(err, ERR_RANGE, "line %zu is longer than %zu bytes", s->n_lines + 1,
                           ITEMS_LINE_MAX);
        }
        strbuf_add(&s->line, data, part);
        if (end == NULL) {
            return 0;
        }
        int rc = take_line(s, err);
        if (rc != 0) {
            return rc;
        }
        data = end + 1;
        len -= part + 1;
    }
    return 0;
}

/* The last line must end with a line feed, or the file was cut. */
int items_stream_end(const struct items_stream *s, struct err *err)
{
    return s->line.len == 0 ? 0 : err_set(err, ERR_SYNTAX, "line %zu is cut short", s->n_lines + 1);
}

/* Reads, hashes and splits in one loop. */
static int read_pieces(struct items_stream *s, int fd, struct digest *digest, struct err *err)
{
    struct digest_stream hash;
    char *piece = xmalloc(PIECE_BYTES);
    int rc = 0;
    ssize_t got = 1;
    digest_start(&hash);
    while (rc == 0 && got > 0) {
        got = read(fd, piece, PIECE_BYTES);
        if (got < 0 && errno == EINTR) {
            got = 1;
        } else if (got < 0) {
            rc = err_set_errno(err, errno, "read");
        } else {
            digest_add(&hash, piece, (size_t)got);
            rc = items_stream_add(s, piece, (size_t)got, err);
        }
    }
    free(piece);
    *digest = digest_finish(&hash);
    return rc != 0 ? rc : items_stream_end(s, err);
}

/* Errors name the file without its folder: they reach reports. */
int items_file_read(struct items_stream *s, const char *path, struct digest *digest,
                    struct err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return err_set_errno(err, errno, "%s", path_name(path));
    }
    int rc = fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
                 ? read_pieces(s, fd, digest, err)
                 : err_set(err, ERR_INVALID, "not a regular file");
    (void)close(fd);
    return rc == 0 ? 0 : err_wrap(err, "%s", path_name(path));
}

int items_of_result(const cJSON *result, const char **name, struct digest *digest, struct err *err)
{
    const cJSON *said = json_member(result, "items");
    const cJSON *a = NULL;
    const char *hex = NULL;
    if (!cJSON_IsString(said)) {
        return err_set(err, ERR_NOT_FOUND, "the result names no items");
    }
    *name = said->valuestring;
    /* A result could name a file anywhere. */
    if (said->valuestring[0] == '.' || strchr(said->valuestring, '/') != NULL) {
        return err_set(err, ERR_INVALID, "the items lie outside of the attempt");
    }
    cJSON_ArrayForEach(a, json_member(result, "artifacts"))
    {
        const cJSON *p = json_member(a, "path");
        const cJSON *h = json_member(a, "sha256");
        if (cJSON_IsString(p) && cJSON_IsString(h) && strcmp(p->valuestring, *name) == 0) {
            hex = h->valuestring;
        }
    }
    return hex == NULL ? err_set(err, ERR_NOT_FOUND, "the result has no digest of its items")
                       : digest_from_hex(hex, digest, err);
}
