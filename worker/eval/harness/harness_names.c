/*
 * Tables from our enums to the harness's words. All accuracies aggregate by mean and are better
 * when higher, all perplexities and bits per byte are better when lower, which
 * harness_higher_is_better() derives from the aggregation.
 */
#include "worker/eval/harness/harness_names.h"

#include <string.h>

#define MAX_TOKENS_DEFAULT 256

const enum metric_kind harness_metric_order[METRIC_NR] = {
    METRIC_PERPLEXITY,      METRIC_ACC,           METRIC_ACC_NORM,   METRIC_WORD_PERPLEXITY,
    METRIC_BYTE_PERPLEXITY, METRIC_BITS_PER_BYTE, METRIC_EXACT_MATCH};

const char *harness_filter_name(const struct task_metric *m)
{
    return m->filter == NULL ? "none" : m->filter->name;
}

const char *harness_aggregation(enum metric_kind kind)
{
    static const char *const names[METRIC_NR] = {
        [METRIC_ACC] = "mean",
        [METRIC_ACC_NORM] = "mean",
        [METRIC_EXACT_MATCH] = "mean",
        [METRIC_PERPLEXITY] = "perplexity",
        [METRIC_WORD_PERPLEXITY] = "weighted_perplexity",
        [METRIC_BYTE_PERPLEXITY] = "weighted_perplexity",
        [METRIC_BITS_PER_BYTE] = "bits_per_byte",
    };
    return names[kind];
}

bool harness_higher_is_better(enum metric_kind kind)
{
    return strcmp(harness_aggregation(kind), "mean") == 0;
}

const char *harness_output_type(enum task_kind kind)
{
    static const char *const names[TASK_KIND_NR] = {
        [TASK_CHOICE] = "multiple_choice",   [TASK_CONTEXT] = "multiple_choice",
        [TASK_LIKELIHOOD] = "loglikelihood", [TASK_ROLLING] = "loglikelihood_rolling",
        [TASK_GENERATE] = "generate_until",
    };
    return names[kind];
}

void harness_add_generation(const struct task_spec *spec, int max_tokens, struct pyjson *w)
{
    pyjson_open(w, '{');
    pyjson_key(w, "until");
    pyjson_open(w, '[');
    for (size_t i = 0; i < spec->n_until; i++)
        pyjson_string(w, spec->until[i]);
    pyjson_close(w, ']');
    pyjson_key(w, "do_sample");
    pyjson_bool(w, false);
    pyjson_key(w, "temperature");
    pyjson_float(w, 0.0);
    if (max_tokens != MAX_TOKENS_DEFAULT) {
        pyjson_key(w, "max_gen_toks");
        pyjson_int(w, max_tokens);
    }
    pyjson_close(w, '}');
}

/* A version like 1.0 becomes the number 1.0. */
void harness_add_version(struct pyjson *w, const char *version)
{
    struct err err = {0};
    if (version[strspn(version, "0123456789.")] != '\0' ||
        pyjson_text(w, version, strlen(version), &err) != 0)
        pyjson_string(w, version);
}
