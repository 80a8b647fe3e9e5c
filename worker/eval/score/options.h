/*
 * The parameters of an evaluation stage (docs/evaluation.md), read strictly from task.json.
 */
#ifndef WORKER_EVAL_SCORE_OPTIONS_H
#define WORKER_EVAL_SCORE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "worker/eval/score/viability.h"
#include "worker/eval/task/harness_version.h"
#include "worker/eval/task/spec.h"
#include "worker/report/params.h"
#include "worker/report/task.h"

/* Whether decoding takes spaces away before punctuation. */
enum option_spaces {
    SPACES_AS_TOKENIZER, /* what the model's tokenizer_config.json says */
    SPACES_KEPT,
    SPACES_TIDIED,
};

struct eval_options {
    struct task_spec *spec; /* NULL when the task is unknown: a fault then says so */
    const struct harness_rules *rules;
    enum baseline_version baselines; /* of tasks of style dclm */
    int shots;                       /* -1: each task's own */
    struct task_data data;
    struct task_data more_data;    /* of a suite: where members' files are that are not in `data` */
    struct task_data fewshot_data; /* name NULL: examples come from `data` */
    struct task_data second_key;   /* name NULL: none */
    struct task_data task_file;    /* name NULL: a shipped task */
    const char *split;
    const char *fewshot_split;
    int64_t limit;        /* how many items of each group, from the first; 0: all */
    int64_t subset_count; /* how many items are drawn by subset_seed; 0: all */
    int64_t subset_seed;
    int description_newlines; /* 0: as the harness's version has it */
    int context;              /* tokens that a request may have; 0: as many as the model takes */
    int max_tokens;           /* of a generation; 0: the task's own */
    int bootstrap;            /* iterations; 0: no standard error of perplexities */
    bool add_bos;             /* the prefix token precedes every text */
    enum option_spaces spaces;
    bool samples; /* the harness's samples files are written too */
    struct viability_rules viability;
    const char *model;           /* the input that holds the model, or NULL */
    double at;                   /* of its training's horizon: a snapshot; 0: its last model */
    struct task_data model_data; /* name NULL: the model is an input */
    struct task_data tokenizer;  /* name NULL: the model says which */
};

void eval_options_release(struct eval_options *o);
/* Faults go to `faults`; what is not at fault is filled in. Strings live as long as the task. */
void eval_options_read(const struct worker_task *task, struct eval_options *o,
                       struct param_faults *faults);

#endif
