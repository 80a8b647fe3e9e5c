/* `prereg-data sample`: some documents of a source, or the sequences that a model is trained on, as
 * text. */
#ifndef WORKER_DATA_SAMPLE_H
#define WORKER_DATA_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "worker/data/tokenizer/tokenizer.h"

struct sample_options {
    uint64_t seed;
    uint64_t from;   /* position in the keyed order */
    uint64_t n;      /* how many */
    uint64_t length; /* 0: documents; else tokens of a training sequence */
    double holdout;  /* share of the documents that is held out */
    bool ids;        /* the ids instead of their text */
};

/* Documents come in a keyed order of the seed; sequences in the very order in which a run with this
 * seed and this source alone sees them. ERR_RANGE when the source is too short for one. */
int sample_print(const char *path, const struct tokenizer *tok, const struct sample_options *opt,
                 FILE *out, struct err *err) MUST_CHECK;

#endif
