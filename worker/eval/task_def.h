/*
 * The tasks prereg-eval knows: how an item is asked, scored and reported. Follows
 * lm-evaluation-harness v0.4.3 (docs/evaluation.md says where and why not).
 */
#ifndef WORKER_EVAL_TASK_DEF_H
#define WORKER_EVAL_TASK_DEF_H

#include <stdbool.h>
#include <stddef.h>

/* What one line of a JSONL file may look like; a folder of CSV files is MMLU's. */
enum item_form {
    FORM_CHOICES,    /* query, choices[], gold */
    FORM_SCHEMA,     /* context_options[], continuation, gold */
    FORM_HELLASWAG,  /* activity_label, ctx_a, ctx_b, endings[4], label */
    FORM_WINOGRANDE, /* sentence with _, option1, option2, answer "1" or "2" */
    FORM_QUESTION,   /* question, answer (worked, ends in "#### 42") */
    FORM_MMLU,       /* question, A, B, C, D, letter; CSV */
    FORM_NR,
};

enum metric_kind {
    METRIC_ACC,
    METRIC_ACC_NORM,
    METRIC_STRICT,
    METRIC_FLEXIBLE,
    METRIC_NR,
};

#define METRICS_OF_A_TASK 2

struct task_def {
    const char *name;
    unsigned forms; /* bits 1 << enum item_form */
    enum metric_kind metrics[METRICS_OF_A_TASK];
    size_t n_metrics;
    /* Follows a CORE-form query, whose trailing white space goes first; NULL: the query stays as it
     * is. */
    const char *query_end;
    bool draws_one_more; /* the few-shot sampler draws one too many and drops it */
    int default_shots;
    const char *default_split;
};

/* NULL when unknown. */
const struct task_def *task_def_find(const char *name);
/* The nearest known name, or NULL. */
const char *task_def_nearest(const char *name);
const char *metric_name(enum metric_kind kind);
const char *item_form_text(enum item_form form); /* its keys, for messages */

static inline bool task_def_generates(const struct task_def *def)
{
    return (def->forms & 1u << FORM_QUESTION) != 0;
}

#endif
