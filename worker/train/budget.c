/*
 * Before the split of a source is known, held-out documents are subtracted by val_fraction (0 with
 * a validation text). A source that cannot be inspected is not known; reading it will report why.
 */
#include "worker/train/budget.h"

#include <math.h>

#include "worker/data/source.h"

#define FACT_NAME_SIZE 128

/* Tokens of all files at a path, held-out ones too. */
static double tokens_at(const char *path, const struct tokenizer *tok)
{
    struct err ignored;
    double n = (double)NAN;

    if (tok == NULL || source_estimate(path, tok, &n, &ignored) < 0)
        return (double)NAN;
    return n;
}

void budget_of_files(const struct worker_task *task, const struct train_options *opt,
                     const struct tokenizer *tok, struct data_budget *out)
{
    double tokens = (double)train_options_end(opt) * (double)opt->batch_tokens;

    *out = (struct data_budget){.n = opt->n_mix};
    for (size_t i = 0; i < out->n; i++) {
        struct source_budget *s = &out->sources[i];
        struct task_data entry;
        struct err ignored;
        s->drawn = tokens * opt->mix[i].weight;
        s->available = task_find_data(task, opt->mix[i].name, &entry, &ignored) == 0
                           ? floor(tokens_at(entry.path, tok) * (1.0 - opt->val_fraction) + 0.5)
                           : (double)NAN;
    }
}

void budget_of_data(const struct train_data *data, double tokens, struct data_budget *out)
{
    *out = (struct data_budget){.n = data->n_sources};
    for (size_t i = 0; i < out->n; i++) {
        out->sources[i].available = (double)data->sources[i].train.n;
        out->sources[i].drawn = tokens * data->sources[i].weight;
    }
}

double budget_source_passes(const struct source_budget *s)
{
    return s->available > 0.0 ? s->drawn / s->available : (double)NAN;
}

double budget_passes(const struct data_budget *b)
{
    double most = 0.0;

    for (size_t i = 0; i < b->n; i++) {
        double passes = budget_source_passes(&b->sources[i]);
        if (isnan(passes))
            return passes;
        most = fmax(most, passes);
    }
    return most;
}

double budget_unique_tokens(const struct data_budget *b)
{
    double sum = 0.0;

    for (size_t i = 0; i < b->n; i++) {
        if (isnan(b->sources[i].available))
            return (double)NAN;
        sum += fmin(b->sources[i].available, b->sources[i].drawn);
    }
    return floor(sum + 0.5);
}

/* Leaves out what is not known. */
static void say(void (*fact)(void *ctx, const char *name, double value), void *ctx,
                const char *name, double value)
{
    if (isfinite(value))
        fact(ctx, name, value);
}

void budget_facts(const struct data_budget *b, const struct train_options *opt,
                  void (*fact)(void *ctx, const char *name, double value), void *ctx)
{
    const struct model_config *cfg = &opt->model;
    double unique = budget_unique_tokens(b);
    char name[FACT_NAME_SIZE];

    for (size_t i = 0; i < b->n; i++) {
        (void)snprintf(name, sizeof(name), "data_tokens:%s", opt->mix[i].name);
        say(fact, ctx, name, b->sources[i].available);
        (void)snprintf(name, sizeof(name), "passes:%s", opt->mix[i].name);
        say(fact, ctx, name, budget_source_passes(&b->sources[i]));
    }
    say(fact, ctx, "passes", budget_passes(b));
    say(fact, ctx, "unique_tokens", unique);
    if (cfg->experts > 0)
        say(fact, ctx, "unique_tokens_per_expert", floor(unique * cfg->top_k / cfg->experts + 0.5));
}
