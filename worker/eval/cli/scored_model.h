/*
 * What an evaluation scores: the model, an input or data of the task, and the tokenizer that goes
 * with it. That is the one params.tokenizer names, else the one beside the model, else the one that
 * the model names; and it must be the one the model was trained with, where that is known.
 */
#ifndef WORKER_EVAL_CLI_SCORED_MODEL_H
#define WORKER_EVAL_CLI_SCORED_MODEL_H

#include "worker/data/tokenizer/tokenizer.h"
#include "worker/eval/score/options.h"
#include "worker/model/model.h"

/* ERR_USAGE: more memory than the task may use, a longer context than the model's, no tokenizer;
 * else as model_open() and tokenizer_open(). On error, too, what is not NULL is the caller's. */
int scored_model_open(const struct worker_task *task, const struct eval_options *o,
                      struct model **model, struct tokenizer **tok, struct err *err) MUST_CHECK;
/* Whether the model's tokenizer takes spaces away before punctuation when it decodes: as the
 * parameter says, else as tokenizer_config.json beside the tokenizer or the model, whose silence
 * means yes; a model in another form has none and keeps them. */
int scored_model_tidies_spaces(const struct worker_task *task, const struct eval_options *o,
                               bool *tidies, struct err *err) MUST_CHECK;
/* What is known of a model before its weights are read. */
struct scored_model_look {
    struct tokenizer *tok; /* the caller's; NULL: it is an input, and what makes it is not known */
    size_t context;        /* tokens that a request may have */
    struct model_config cfg;
};

/* For --describe: the same faults of a model that is data, without reading its weights; and the
 * shape of one that is an input, by the parameters of the training that makes it. */
void scored_model_check(const struct worker_task *task, const struct eval_options *o,
                        struct scored_model_look *look, struct param_faults *faults);

#endif
