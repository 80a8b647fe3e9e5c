/*
 * The safetensors files of a folder as one: model.safetensors, or those that
 * model.safetensors.index.json names. No tensor is in two files, and the index names exactly those
 * that the files hold.
 */
#ifndef WORKER_MODEL_FORMATS_SHARDS_H
#define WORKER_MODEL_FORMATS_SHARDS_H

#include "worker/model/formats/safetensors.h"

#define SHARDS_MAX 1024

/* A tensor and the file that holds it. */
struct shards_tensor {
    const struct safetensors_entry *entry;
    const struct safetensors *file;
};

struct shards {
    struct safetensors *files;
    size_t n;
    struct shards_tensor *tensors; /* of all files, sorted by name */
    size_t n_tensors;
    cJSON *index; /* NULL: one file */
};

/* ERR_NOT_FOUND without weights; ERR_CORRUPT as safetensors_open(), for a bad index, and for a
 * tensor in two files. On error nothing is to be closed. */
int shards_open(const char *folder, struct shards *s, struct err *err) MUST_CHECK;
void shards_close(struct shards *s);

/* NULL when there is none. */
const struct shards_tensor *shards_find(const struct shards *s, const char *name);

#endif
