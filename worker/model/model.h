/*
 * A finished model for evaluation, export and the commands of prereg-train: open the folder that a
 * training task left, then score tokens.
 *
 * It may also be a folder of transformers or a checkpoint of llama2.c
 * (worker/model/formats/import.h).
 *
 * Opening verifies model.bin against its digest. A model owns its weights and one engine, so one
 * caller at a time. The calls that compute something are in worker/model/score.h.
 */
#ifndef WORKER_MODEL_MODEL_H
#define WORKER_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/files/digest.h"
#include "worker/data/tokenizer/tokenizer.h"
#include "worker/model/config.h"
#include "worker/report/environment.h"

struct model;

/* folder: what task.json's inputs name (an attempt's folder, or the folder whose result.json links
 * into it), or anything that import_find() knows. ERR_NOT_FOUND, ERR_CORRUPT, ERR_VERSION,
 * ERR_REFUSED. */
int model_open(const char *folder, struct model **out, struct err *err) MUST_CHECK;
/* The same for sequences of up to `context` tokens, with memory for no more; 0: of what the model
 * takes. ERR_USAGE when that is less. */
int model_open_within(const char *folder, int context, struct model **out,
                      struct err *err) MUST_CHECK;
void model_free(struct model *m);
/* What a model takes that is opened with the context of cfg: parameters, engine and, where it
 * generates, the slots of model_generate_all(). */
double model_bytes(const struct model_config *cfg, bool generates);
/* ERR_USAGE, with both amounts, when the model at folder takes more than `allowed` bytes opened
 * with this context (0: no limit), with the slots of model_generate_all() where it `generates`;
 * nothing of its size is allocated to find out. Otherwise as model_open_within() fails on the
 * shape. */
int model_check_memory(const char *folder, int context, bool generates, int64_t allowed,
                       struct err *err) MUST_CHECK;

const struct model_config *model_shape(const struct model *m);
/* SHA-256 of model.bin, or of what model.bin would hold: what an evaluation's cache and items are
 * keyed by. */
struct digest model_digest(const struct model *m);
/* Whether that is the digest of a file: the model.bin that a training task left. */
bool model_has_file(const struct model *m);
/* "bytes", or the name of the task's data that held the tokenizer, or "" when the model names none;
 * the tokenizer's file next to the model, or NULL; and the tokenizer's digest, zero when it is not
 * known. */
const char *model_tokenizer_spec(const struct model *m);
const char *model_tokenizer_file(const struct model *m);
struct digest model_tokenizer_digest(const struct model *m);

/* What computes the answers: "none, kernels avx512". The answers' bits do not depend on it. */
const char *model_kernels_text(void);
/* The same for events and fact sheet, with that as `blas`. */
struct worker_environment model_environment(int threads);

#endif
