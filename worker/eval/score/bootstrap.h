/*
 * The standard error of a perplexity as lm-evaluation-harness estimates it: the spread of the same
 * perplexity over resampled items. Chunk i of 1,000 replicates draws from Python's Random(i), so
 * the value is one number, on any machine.
 */
#ifndef WORKER_EVAL_SCORE_BOOTSTRAP_H
#define WORKER_EVAL_SCORE_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define BOOTSTRAP_ITERS     100000 /* what the harness does unless told otherwise */
#define BOOTSTRAP_ITERS_MAX 1000000

/* Costs n x iters draws, some 8 ns each. *se is the sample standard deviation of exp(-mean) over
 * the replicates; NaN under two of them or without items. ERR_BUSY as soon as asked() says so
 * (NULL: never). */
int bootstrap_perplexity_se(const double *xs, size_t n, size_t iters, bool (*asked)(void),
                            double *se, struct err *err) MUST_CHECK;

#endif
