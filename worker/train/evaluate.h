/*
 * Validation loss on the held-out documents, or on a validation text as if it were the only source
 * (train_data_validated()): per source the mean over windows of `context` tokens, at most
 * val_tokens of them spread evenly; whole, the sources' means weighted by the mix. A source's
 * standard error is that of its windows' means; the whole's is sqrt(sum of (weight x se)^2).
 */
#ifndef WORKER_TRAIN_EVALUATE_H
#define WORKER_TRAIN_EVALUATE_H

#include "worker/train/trainer.h"

/* ERR_BUSY when asked to stop on the way: nothing is recorded then. */
int evaluate_run(struct trainer *t, struct train_evaluation *out, struct err *err) MUST_CHECK;

/* Bits per byte: loss / ln 2 x tokens / bytes, both of the held-out documents. */
double evaluate_bits_per_byte(const struct train_source *src, double loss);

#endif
