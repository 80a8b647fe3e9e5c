/*
 * Folders as transformers reads and writes them: config.json beside model.safetensors (or shards
 * with model.safetensors.index.json), Llama or Mixtral.
 *
 * A part is one tensor of theirs: a contiguous range of our parameters. The parts of a shape cover
 * its parameters exactly; a folder must have all of them, of the right shapes and finite, and no
 * other tensor but the rotary tables of old files and the head of a tied model.
 */
#ifndef WORKER_MODEL_FORMATS_HF_H
#define WORKER_MODEL_FORMATS_HF_H

#include "worker/model/formats/hf_config.h"
#include "worker/model/weights.h"

#define HF_FILE_WEIGHTS   "model.safetensors"
#define HF_FILE_INDEX     "model.safetensors.index.json"
#define HF_FILE_TOKENIZER "tokenizer.json"

/* The shape alone. */
int hf_read_config(const char *folder, struct model_config *cfg, struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND, ERR_CORRUPT, ERR_REFUSED; each names the file or tensor. On error nothing is to be
 * released. */
int hf_read_weights(const char *folder, struct weights *w, struct err *err) MUST_CHECK;

/* model.safetensors at path. ERR_REFUSED when the model is not of either architecture, also for a
 * choice bias that is not zero, naming the layer. */
int hf_write_weights(const char *path, const struct weights *w, struct err *err) MUST_CHECK;
/* What hf_write_weights() would refuse. */
int hf_check_weights(const struct weights *w, struct err *err) MUST_CHECK;

#endif
