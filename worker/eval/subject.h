/*
 * What an evaluation scores: the model, an input or data of the task, and the tokenizer that goes
 * with it. That is the one params.tokenizer names, else the one that lies with the model, else what
 * the model says; and it must be the one the model was trained with, where that is known.
 */
#ifndef WORKER_EVAL_SUBJECT_H
#define WORKER_EVAL_SUBJECT_H

#include "worker/data/tokenizer.h"
#include "worker/eval/options.h"
#include "worker/model/model.h"

/* ERR_USAGE: more memory than the task may use, a longer context than the model's, no tokenizer;
 * else as model_open() and tokenizer_open(). On error, too, what is not NULL is the caller's. */
int subject_open(const struct task *task, const struct eval_options *o, struct model **model,
                 struct tokenizer **tok, struct err *err) MUST_CHECK;
/* Whether the model's tokenizer takes spaces away before punctuation when it decodes: as the
 * parameter says, else as tokenizer_config.json beside the tokenizer or the model, whose silence
 * means yes; a model in another form has none and keeps them. */
int subject_tidies_spaces(const struct task *task, const struct eval_options *o, bool *tidies,
                          struct err *err) MUST_CHECK;
/* For --describe: the same faults of a model that is data, without reading its weights. An input
 * is not there yet. */
void subject_check(const struct task *task, const struct eval_options *o,
                   struct param_faults *faults);

#endif
