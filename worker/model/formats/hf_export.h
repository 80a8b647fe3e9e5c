/*
 * A model as a folder that transformers loads offline: config.json, generation_config.json,
 * model.safetensors and, unless left out, tokenizer.json with tokenizer_config.json.
 *
 * The folder appears whole or not at all: it is written under another name beside its place,
 * synced, and renamed. An existing folder is replaced only with `force`, and only when it holds
 * such a model and no file that an export does not write.
 */
#ifndef WORKER_MODEL_FORMATS_HF_EXPORT_H
#define WORKER_MODEL_FORMATS_HF_EXPORT_H

#include <stdbool.h>

#include "base/err.h"

struct hf_export {
    const char *model;     /* anything import_find() knows */
    const char *out;       /* the folder to make */
    const char *tokenizer; /* tokenizer.json of a model whose tokenizer is elsewhere; NULL */
    bool no_tokenizer;     /* weights and config alone */
    bool force;            /* replace an earlier export */
};

/* ERR_REFUSED when the model is neither a Llama nor a Mixtral, or its tokenizer has no such form;
 * ERR_USAGE when the folder is there or the tokenizer is not given; ERR_NOT_FOUND, ERR_CORRUPT. */
int hf_export(const struct hf_export *job, struct err *err) MUST_CHECK;

#endif
