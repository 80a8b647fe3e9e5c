/*
 * A results file of lm-evaluation-harness 0.4.3, of one evaluation of ours: the same keys in the
 * same order, the values of result.json, and null where the harness would name something that was
 * not there (transformers, git, seeds of other generators).
 *
 * Nothing in it depends on when or where the attempt ran, so the files of a resumed run and of an
 * undisturbed one are the same.
 */
#ifndef WORKER_EVAL_HARNESS_HARNESS_RESULTS_H
#define WORKER_EVAL_HARNESS_HARNESS_RESULTS_H

#include <stdint.h>

#include "base/json/pyjson.h"
#include "worker/eval/harness/harness_tree.h"

/* What the file says of the model; copied from an earlier file when that is exported. */
struct harness_model {
    const char *sha256;
    const char *environment; /* engine, version of the arithmetic */
    const char *end_text;    /* as the tokenizer spells it; NULL: it does not */
    int64_t end_id;
    int64_t parameters;
    int64_t max_length;
};

/* Borrows everything. */
struct harness_results {
    const struct harness_tree *tree;
    const struct benchmark *bench;
    const struct eval_options *options;
    const cJSON *metrics; /* of result.json */
    const struct harness_model *model;
    struct digest data;              /* what was read */
    struct digest fewshot_data;      /* zero: none of its own */
    char (*hashes)[DIGEST_HEX_SIZE]; /* one a row, of its samples; NULL: none were written */
    int64_t bootstrap;               /* replicates of a perplexity's standard error */
    double date;                     /* of the epoch; NaN: not said */
};

/* NULL when every metric that the file would hold has a value; else the name of one that has not.
 */
const char *harness_results_missing(const struct harness_results *r);
/* Appends the whole file, which has no final line feed; nothing may be missing. */
void harness_results_add(const struct harness_results *r, struct strbuf *out);
/* The configuration of a task (not of a group): what the harness would have read from its YAML. */
void harness_config_add(const struct harness_results *r, const struct harness_row *row,
                        struct pyjson *w);
/* Examples and generated tokens that the run used for a task: the parameter, else the task's
 * own. */
int harness_shots(const struct harness_results *r, const struct harness_row *row);
int harness_max_tokens(const struct eval_options *o, const struct task_spec *spec);

/* "prereg-0123456789ab": used in place of a model's path, and as its file name. */
void harness_model_name(const struct harness_model *model, struct strbuf *out);

#endif
