/*
 * A finished model on disk: model.bin, the parameters in table order and then the choice biases,
 * float32, little-endian, without header; model.json, which says what they are (shape, tensors,
 * tokenizer, digest of model.bin).
 */
#ifndef WORKER_MODEL_STORE_H
#define WORKER_MODEL_STORE_H

#include "base/files/digest.h"
#include "base/layout/layout.h"
#include "worker/model/weights.h"

#define STORE_VERSION   1
#define MODEL_FOLDER    LAYOUT_MODEL
#define SNAPSHOT_FOLDER LAYOUT_SNAPSHOT
#define MODEL_FILE_JSON "model.json"
#define MODEL_FILE_BIN  LAYOUT_MODEL_BIN

/* What model.json says beside the shape. */
struct store_info {
    char *tokenizer_spec;
    struct digest tokenizer;
    struct digest weights; /* SHA-256 of model.bin */
    int64_t step;
};

void store_info_release(struct store_info *info);

/* "snapshot/0.2": where the model at a fraction of the horizon is, in an attempt's folder. The
 * caller's. */
char *store_snapshot_folder(double fraction);

/* Writes folder/model.bin and then folder/model.json, atomically each; fills info->weights. */
int store_save(const char *folder, const struct weights *w, struct store_info *info,
               struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND, ERR_CORRUPT (digest, size), ERR_VERSION. On error nothing is to be released. */
int store_load(const char *folder, struct weights *w, struct store_info *info,
               struct err *err) MUST_CHECK;

/* model.json alone. */
int store_load_info(const char *folder, struct model_config *cfg, struct store_info *info,
                    struct err *err) MUST_CHECK;

/* Reads exactly n floats into out, adding the bytes to the digest stream. */
int store_read_floats(int fd, float *out, size_t n, struct digest_stream *stream,
                      struct err *err) MUST_CHECK;

#endif
