#include "worker/eval/task_def.h"

#include "base/text.h"
#include "base/xalloc.h"

#define CHOICES    (1u << FORM_CHOICES)
#define SCHEMA     (1u << FORM_SCHEMA)
#define HELLASWAG  (1u << FORM_HELLASWAG)
#define WINOGRANDE (1u << FORM_WINOGRANDE)
#define QUESTION   (1u << FORM_QUESTION)
#define MMLU       (1u << FORM_MMLU)

#define BOTH     {METRIC_ACC, METRIC_ACC_NORM}, 2
#define ACC_ONLY {METRIC_ACC, METRIC_NR}, 1
#define EXACT    {METRIC_STRICT, METRIC_FLEXIBLE}, 2

#define ANSWER "\nAnswer:"

static const struct task_def defs[] = {
    {"choices", CHOICES, BOTH, NULL, false, 0, "test"},
    {"schema", SCHEMA, ACC_ONLY, NULL, false, 0, "test"},
    {"mmlu", MMLU, ACC_ONLY, NULL, false, 0, "test"},
    {"hellaswag", HELLASWAG | CHOICES, BOTH, NULL, true, 0, "val"},
    {"winogrande", WINOGRANDE | SCHEMA, ACC_ONLY, NULL, true, 0, "dev"},
    {"gsm8k", QUESTION, EXACT, NULL, false, 5, "test"},
    {"arc_easy", CHOICES, BOTH, ANSWER, false, 0, "test"},
    {"arc_challenge", CHOICES, BOTH, ANSWER, false, 0, "test"},
    {"piqa", CHOICES, BOTH, ANSWER, true, 0, "val"},
    {"boolq", CHOICES, ACC_ONLY, ANSWER, true, 0, "val"},
    {"openbookqa", CHOICES, BOTH, "", false, 0, "test"},
    {"copa", CHOICES, ACC_ONLY, "", true, 0, "val"},
};

const struct task_def *task_def_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(defs); i++)
        if (strcmp(defs[i].name, name) == 0)
            return &defs[i];
    return NULL;
}

const char *task_def_nearest(const char *name)
{
    const char *names[ARRAY_LEN(defs)];
    for (size_t i = 0; i < ARRAY_LEN(defs); i++)
        names[i] = defs[i].name;
    return text_nearest(name, names, ARRAY_LEN(names));
}

const char *metric_name(enum metric_kind kind)
{
    static const char *const names[METRIC_NR] = {
        [METRIC_ACC] = "acc",
        [METRIC_ACC_NORM] = "acc_norm",
        [METRIC_STRICT] = "exact_match:strict",
        [METRIC_FLEXIBLE] = "exact_match:flexible",
    };
    return names[kind];
}

const char *item_form_text(enum item_form form)
{
    static const char *const texts[FORM_NR] = {
        [FORM_CHOICES] = "query, choices, gold",
        [FORM_SCHEMA] = "context_options, continuation, gold",
        [FORM_HELLASWAG] = "activity_label, ctx_a, ctx_b, endings, label",
        [FORM_WINOGRANDE] = "sentence, option1, option2, answer",
        [FORM_QUESTION] = "question, answer",
        [FORM_MMLU] = "a folder with <split>/<subject>_<split>.csv",
    };
    return texts[form];
}
