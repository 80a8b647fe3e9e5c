/*
 * Weights from wherever they are: the folder a training task left (ours), a folder of transformers
 * (Llama or Mixtral), or a checkpoint of llama2.c.
 *
 * The form is recognised by the files at the path: model.json (in it, in its folder model/, or
 * beside what its result.json links to) is ours; config.json is transformers'; a file, or the only
 * *.bin of a folder that is not called tok*.bin, is llama2.c's. The digest of imported weights is
 * that of the same numbers in our order, so a model keeps its name through export and import.
 */
#ifndef WORKER_MODEL_FORMATS_IMPORT_H
#define WORKER_MODEL_FORMATS_IMPORT_H

#include "base/err.h"
#include "worker/model/store.h"

enum import_form { IMPORT_PREREGD, IMPORT_HF, IMPORT_LLAMA2C, IMPORT_FORM_NR };

struct import_source {
    enum import_form form;
    char *path;      /* the folder, or llama2.c's file */
    char *tokenizer; /* the tokenizer's file next to the model; NULL: none, or "bytes" */
};

/* ERR_NOT_FOUND when none of the three is there. On error nothing is to be released. */
int import_find(const char *path, struct import_source *src, struct err *err) MUST_CHECK;
void import_source_release(struct import_source *src);

/* Shape and tokenizer, without reading weights: info->weights is zero but of ours. On error nothing
 * is to be released. */
int import_info(const struct import_source *src, struct model_config *cfg, struct store_info *info,
                struct err *err) MUST_CHECK;
/* The shape alone. */
int import_config(const struct import_source *src, struct model_config *cfg,
                  struct err *err) MUST_CHECK;
/* info->tokenizer_spec is "" and its digest zero where the form names none. Imported numbers are
 * finite; ours are as they were saved. On error nothing is to be released. */
int import_weights(const struct import_source *src, struct weights *w, struct store_info *info,
                   struct err *err) MUST_CHECK;

/* ERR_CORRUPT naming the first tensor that holds a number that is not finite. */
int import_check_finite(const struct weights *w, struct err *err) MUST_CHECK;

#endif
