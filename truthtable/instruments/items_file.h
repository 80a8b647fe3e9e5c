/*
 * items.jsonl, read as it comes: a line an item (docs/evaluation.md, "items.jsonl"), any worker's.
 * The first line may be a header: an object without "item". Every other line has a whole "item";
 * one with a "fault", without the metric, or with null for it has no value. Memory is bounded by
 * the longest line; numbers of items are the caller's to bound.
 */
#ifndef TRUTHTABLE_INSTRUMENTS_ITEMS_FILE_H
#define TRUTHTABLE_INSTRUMENTS_ITEMS_FILE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/files/digest.h"
#include "base/strbuf.h"

#define ITEMS_LINE_MAX    ((size_t)8 << 20)
#define ITEMS_CLUSTER_MAX ((size_t)256) /* bytes of a cluster's name */

struct items_line {
    int64_t item;
    bool has_value;
    double value;
    bool has_cluster;
    char cluster[ITEMS_CLUSTER_MAX + 1]; /* a text, or a number or truth value as in JSON */
};

/* An error ends the reading. */
typedef int items_take(void *ctx, const struct items_line *line, struct err *err);
/* The same line as it is in the file, after the take. */
typedef int items_take_tree(void *ctx, const cJSON *line, struct err *err);

struct items_stream {
    const char *metric;
    const char *cluster; /* NULL: none is asked for */
    items_take *take;
    items_take_tree *take_tree; /* NULL after init: nothing else is asked for */
    void *ctx;
    struct strbuf line; /* without its end, so far */
    size_t n_lines;
};

void items_stream_init(struct items_stream *s, const char *metric, const char *cluster,
                       items_take *take, void *ctx);
void items_stream_release(struct items_stream *s);
/* Any pieces of the file, in order. Messages say the line. */
int items_stream_add(struct items_stream *s, const char *data, size_t len,
                     struct err *err) MUST_CHECK;
/* After the last: a line without its end is an error. */
int items_stream_end(const struct items_stream *s, struct err *err) MUST_CHECK;

/* What a result names as its items: the name of a file of its attempt's folder (borrowed), and the
 * digest that its artifacts have of it. ERR_NOT_FOUND: it names none; ERR_INVALID: it names a file
 * elsewhere. */
int items_of_result(const cJSON *result, const char **name, struct digest *digest,
                    struct err *err) MUST_CHECK;

/* A whole file, with the digest of its bytes. Messages begin with the file's name, without its
 * folder. */
int items_file_read(struct items_stream *s, const char *path, struct digest *digest,
                    struct err *err) MUST_CHECK;

#endif
