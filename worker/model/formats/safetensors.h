/*
 * safetensors files: a u64 length, a JSON header of that many bytes, then the tensors' bytes (all
 * little-endian). Reading converts F64, F16 and BF16 to float32; other types may be in the file but
 * cannot be read. Writing knows F32.
 *
 * A file is accepted only when its header accounts for every byte: each tensor's length follows
 * from its shape and type, and sorted by offset they cover the data without hole or overlap. An
 * open reader owns its descriptor, the parsed header and the entries; names point into the header.
 */
#ifndef WORKER_MODEL_FORMATS_SAFETENSORS_H
#define WORKER_MODEL_FORMATS_SAFETENSORS_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define SAFETENSORS_DIMS_MAX 8

struct safetensors_entry {
    const char *name;
    const char *dtype;
    int n_dims;
    int64_t shape[SAFETENSORS_DIMS_MAX];
    int64_t n;     /* elements */
    int64_t begin; /* bytes, from the start of the data */
    int64_t end;
};

struct safetensors {
    int fd;
    cJSON *header;
    struct safetensors_entry *entries; /* sorted by name */
    size_t n;
    int64_t data_at; /* where the data begin in the file */
};

/* ERR_NOT_FOUND, ERR_CORRUPT (all that a header can get wrong). On error nothing is to be closed.
 */
int safetensors_open(const char *path, struct safetensors *st, struct err *err) MUST_CHECK;
void safetensors_close(struct safetensors *st);

/* NULL when the file has none of that name. */
const struct safetensors_entry *safetensors_find(const struct safetensors *st, const char *name);
/* The whole tensor as float32: out has entry->n elements. ERR_REFUSED for a type that is not
 * floating point; messages name the tensor. */
int safetensors_read(const struct safetensors *st, const struct safetensors_entry *entry,
                     float *out, struct err *err) MUST_CHECK;

/* A tensor to be written: (rows, cols), or (rows) when cols is 0. */
struct safetensors_item {
    const char *name;
    int64_t rows;
    int64_t cols;
    const float *data;
};

/* Creates path, synced; items in the given order. After an error the caller removes the file. */
int safetensors_write(const char *path, const struct safetensors_item *items, size_t n,
                      struct err *err) MUST_CHECK;

#endif
