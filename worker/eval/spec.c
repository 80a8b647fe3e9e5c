/*
 * Names of the enums, which metrics a kind of task may have, and the shipped descriptions. The
 * latter are compiled into the program (embed_tasks.cmake) and parsed when they are asked for, by
 * the same code as a user's file.
 */
#include "worker/eval/spec.h"

#include "base/text.h"
#include "base/xalloc.h"
#include "worker/eval/spec_private.h"

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

const char *task_kind_name(enum task_kind kind)
{
    return kind_names[kind];
}

const char *sampler_kind_name(enum sampler_kind kind)
{
    return sampler_names[kind];
}

const char *metric_kind_name(enum metric_kind kind)
{
    return metric_names[kind];
}

const char *const *spec_kind_names(void)
{
    return kind_names;
}

const char *const *spec_sampler_names(void)
{
    return sampler_names;
}

const char *const *spec_style_names(void)
{
    return style_names;
}

const char *const *spec_metric_names(void)
{
    return metric_names;
}

bool spec_metric_suits(enum metric_kind metric, enum task_kind kind)
{
    return (metric_kinds[metric] & 1u << kind) != 0;
}

void task_spec_free(struct task_spec *spec)
{
    if (spec == NULL)
        return;
    for (size_t i = 0; i < spec->n_members; i++)
        task_spec_free(spec->members[i]);
    arena_release(&spec->arena);
    free(spec);
}

size_t task_builtin_count(void)
{
    return n_builtin_tasks;
}

const char *task_builtin_name(size_t i)
{
    return builtin_tasks[i].name;
}

const char *task_builtin_text(size_t i)
{
    return (const char *)builtin_tasks[i].text;
}

int task_builtin_read(const char *name, struct task_spec **out, struct err *err)
{
    const char *names[SPEC_BUILTIN_MAX];
    *out = NULL;
    for (size_t i = 0; i < n_builtin_tasks; i++) {
        if (strcmp(builtin_tasks[i].name, name) == 0)
            return task_spec_parse(task_builtin_text(i), strlen(task_builtin_text(i)), name, out,
                                   err);
        names[i] = builtin_tasks[i].name;
    }
    const char *nearest = text_nearest(name, names, n_builtin_tasks);
    if (nearest != NULL)
        return err_set(err, ERR_USAGE, "'%.64s' is not known; did you mean '%s'?", name, nearest);
    return err_set(err, ERR_USAGE, "'%.64s' is not known; prereg-eval tasks lists what is", name);
}
