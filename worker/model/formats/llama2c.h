/*
 * llama2.c's checkpoints (karpathy/llama2.c, export.py version 0): seven int32 — dim, hidden_dim,
 * n_layers, n_heads, n_kv_heads, vocab_size, seq_len — and float32 tensors grouped by kind, all
 * little-endian. A negative vocab_size says that the head is a matrix of its own at the end. Two
 * tables of rotary factors before it are skipped.
 *
 * Its rotary pairs are neighbours (2i, 2i + 1); ours are halves (i, i + D/2): rows of q and k are
 * permuted on the way in, which changes no dot product.
 */
#ifndef WORKER_MODEL_FORMATS_LLAMA2C_H
#define WORKER_MODEL_FORMATS_LLAMA2C_H

#include "base/err.h"
#include "worker/model/weights.h"

/* The shape alone. ERR_NOT_FOUND; ERR_VERSION for a later version of the format; ERR_CORRUPT when
 * the header is impossible or the file has another length than it says. */
int llama2c_read_config(const char *path, struct model_config *cfg, struct err *err) MUST_CHECK;
/* Also ERR_CORRUPT for a number that is not finite, naming the tensor. On error nothing is to be
 * released. */
int llama2c_read_weights(const char *path, struct weights *w, struct err *err) MUST_CHECK;

#endif
