/* Names of kinds, metrics, styles and samplers, as a task's description writes them. */
#include "worker/eval/task/spec.h"

#include "base/text.h"
#include "base/xalloc.h"
#include "worker/eval/task/spec_private.h"

static const char *const kind_names[TASK_KIND_NR] = {
    [TASK_CHOICE] = "choice",   [TASK_CONTEXT] = "context",   [TASK_LIKELIHOOD] = "likelihood",
    [TASK_ROLLING] = "rolling", [TASK_GENERATE] = "generate",
};

static const char *const sampler_names[SAMPLER_NR] = {
    [SAMPLER_RANDOM] = "random",
    [SAMPLER_FIRST] = "first",
    [SAMPLER_DCLM] = "dclm",
};

static const char *const style_names[TASK_STYLE_NR] = {
    [STYLE_HARNESS] = "harness",
    [STYLE_DCLM] = "dclm",
};

static const char *const metric_names[METRIC_NR] = {
    [METRIC_ACC] = "acc",
    [METRIC_ACC_NORM] = "acc_norm",
    [METRIC_EXACT_MATCH] = "exact_match",
    [METRIC_PERPLEXITY] = "perplexity",
    [METRIC_WORD_PERPLEXITY] = "word_perplexity",
    [METRIC_BYTE_PERPLEXITY] = "byte_perplexity",
    [METRIC_BITS_PER_BYTE] = "bits_per_byte",
};

/* Which kinds of task a metric can be computed for: bits 1 << enum task_kind. */
static const unsigned metric_kinds[METRIC_NR] = {
    [METRIC_ACC] = 1u << TASK_CHOICE | 1u << TASK_CONTEXT | 1u << TASK_LIKELIHOOD,
    [METRIC_ACC_NORM] = 1u << TASK_CHOICE,
    [METRIC_EXACT_MATCH] = 1u << TASK_GENERATE,
    [METRIC_PERPLEXITY] = 1u << TASK_LIKELIHOOD,
    [METRIC_WORD_PERPLEXITY] = 1u << TASK_ROLLING,
    [METRIC_BYTE_PERPLEXITY] = 1u << TASK_ROLLING,
    [METRIC_BITS_PER_BYTE] = 1u << TASK_ROLLING,
};

const char *metric_kind_name(enum metric_kind kind)
{
    return metric_names[kind];
}

const char *const *spec_kind_names(void)
{
    return kind_names;
}

const char *const *spec_metric_names(void)
{
    return metric_names;
}

bool spec_metric_suits(enum metric_kind metric, enum task_kind kind)
{
    return (metric_kinds[metric] & 1u << kind) != 0;
}

const char *const *spec_sampler_names(void)
{
    return sampler_names;
}

const char *const *spec_style_names(void)
{
    return style_names;
}

const char *task_kind_name(enum task_kind kind)
{
    return kind_names[kind];
}
