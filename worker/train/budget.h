/*
 * The data budget of a run: how many training tokens each source has, how many of them the run
 * draws, and so how often it passes over them.
 *
 * Before data are read, tokens are counted from the headers of shards and from the size of text in
 * bytes; of text under a trained vocabulary samples of a few files are tokenised, and the rest is
 * taken to be like them (source_estimate()). After data are read they are counted.
 */
#ifndef WORKER_TRAIN_BUDGET_H
#define WORKER_TRAIN_BUDGET_H

#include "worker/train/data.h"

struct source_budget {
    double available; /* training tokens; NaN: its files cannot be read */
    double drawn;     /* by the whole run */
};

struct data_budget {
    struct source_budget sources[MIX_MAX]; /* as in the options' mix */
    size_t n;
};

/* Estimated before anything is loaded; tok is the tokenizer of the options, NULL where it is not
 * there, which leaves text unknown. */
void budget_of_files(const struct worker_task *task, const struct train_options *opt,
                     const struct tokenizer *tok, struct data_budget *out);
/* Counted, of a run of `tokens`. */
void budget_of_data(const struct train_data *data, double tokens, struct data_budget *out);

/* How often the run passes over a source; NaN where it is not known. */
double budget_source_passes(const struct source_budget *s);
/* The most over all sources; NaN where one of them is not known. */
double budget_passes(const struct data_budget *b);
/* Different tokens that the run sees: of each source what it draws or what there is, whichever is
 * less. */
double budget_unique_tokens(const struct data_budget *b);

/* Hands over every fact of the budget by name: "data_tokens:SOURCE", "passes:SOURCE", "passes",
 * "unique_tokens", of a mixture of experts "unique_tokens_per_expert" (each expert's share of
 * them). What is not known is left out. */
void budget_facts(const struct data_budget *b, const struct train_options *opt,
                  void (*fact)(void *ctx, const char *name, double value), void *ctx);

#endif
