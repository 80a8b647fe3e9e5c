/* Initial weights, the schedule, clipping, choice biases and experts that are reset. */
#include "tests/unit/worker/train/second_step.h"

#include <math.h>
#include <string.h>

#include "base/math/elementary.h"
#include "base/xalloc.h"
#include "tests/unit/worker/train/second_numbers.h"

static size_t experts_of(const struct second *s)
{
    return (size_t)s->opt->model.experts;
}

/* `round` 0: the initial values. Elements from .. to - 1 of tensor i. */
static void draw(struct second *s, size_t i, size_t from, size_t to, uint32_t round)
{
    const struct tensor *t = &s->table.items[i];
    double sd = s->opt->init_std;

    if (t->residual)
        sd /= sqrt(2.0 * s->opt->model.layers);
    for (size_t j = from; j < to; j++)
        s->p[t->offset + j] =
            t->ones ? 1
                    : (float)(sd * second_normal(s->opt->seed, round == 0 ? 1 : 2,
                                                 (uint32_t)i ^ round * 0x9E3779B9u, j));
}

void second_init(struct second *s, const struct train_options *opt)
{
    *s = (struct second){.opt = opt};
    tensor_table_init(&s->table, &opt->model);
    size_t n = s->table.n_params, n_bias = (size_t)opt->model.layers * experts_of(s) + 1;
    s->p = xcalloc(n, sizeof(float));
    s->g = xcalloc(n, sizeof(float));
    s->m = xcalloc(n, sizeof(float));
    s->v = xcalloc(n, sizeof(float));
    s->bias = xcalloc(n_bias, sizeof(float));
    s->counts = xcalloc(n_bias, sizeof(uint64_t));
    s->since = xcalloc(n_bias, sizeof(uint64_t));
    for (size_t i = 0; i < s->table.n; i++)
        draw(s, i, 0, tensor_size(&s->table.items[i]), 0);
}

void second_release(struct second *s)
{
    float *floats[] = {s->p, s->g, s->m, s->v, s->bias};

    for (size_t i = 0; i < ARRAY_LEN(floats); i++)
        free(floats[i]);
    free(s->counts);
    free(s->since);
    tensor_table_release(&s->table);
}

static double rate_factor(const struct schedule *c, double step, double steps)
{
    double warm = round(c->warmup * steps), falling = round(c->decay * steps);

    if (step < warm)
        return (step + 1) / warm;
    if (c->kind == SCHEDULE_COSINE && steps - 1 > warm) {
        double t = (step - warm) / ((steps - 1) - warm);
        return c->floor + ((1 - c->floor) * 0.5) * (1 + elementary_cos(3.141592653589793 * t));
    }
    if (c->kind == SCHEDULE_WSD && step >= steps - falling)
        return 1 - ((1 - c->floor) * (step - (steps - falling) + 1)) / falling;
    return 1;
}

static void update(struct second *s, int64_t step)
{
    const struct train_options *o = s->opt;
    double norm = sqrt(second_norm_squared(s->g, s->table.n_params));
    double clip = o->clip > 0 && norm > o->clip ? o->clip / norm : 1;

    second_update(s, rate_factor(&o->schedule, (double)step, (double)o->steps), (float)clip, step);
}

static void reset_expert(struct second *s, int layer, size_t e)
{
    static const enum tensor_role roles[] = {TENSOR_EXPERT_GATE_UP, TENSOR_EXPERT_DOWN};

    s->resets++;
    for (size_t r = 0; r < ARRAY_LEN(roles); r++) {
        const struct tensor *t = tensor_find(&s->table, roles[r], layer);
        size_t n = tensor_size(t) / experts_of(s);
        draw(s, (size_t)(t - s->table.items), e * n, (e + 1) * n, s->resets);
        memset(s->m + t->offset + e * n, 0, n * sizeof(float));
        memset(s->v + t->offset + e * n, 0, n * sizeof(float));
    }
}

static void after_update(struct second *s, int layer, bool look)
{
    size_t experts = experts_of(s);
    uint64_t *counts = s->counts + (size_t)layer * experts;
    uint64_t *since = s->since + (size_t)layer * experts, total = 0, all = 0;

    for (size_t e = 0; e < experts; e++) {
        total += counts[e];
        since[e] += counts[e];
        all += since[e];
    }
    for (size_t e = 0; e < experts; e++) {
        float *bias = &s->bias[(size_t)layer * experts + e], rate = (float)s->opt->bias_update_rate;
        if (counts[e] * experts < total)
            *bias += rate;
        if (counts[e] * experts > total)
            *bias -= rate;
    }
    for (size_t e = 0; look && e < experts; e++) {
        if ((double)since[e] * (double)experts < 0.01 * (double)all)
            reset_expert(s, layer, e);
        since[e] = 0;
    }
}

double second_step(struct second *s, const uint32_t *tokens, const uint32_t *targets, int64_t step)
{
    const struct train_options *o = s->opt;
    size_t context = (size_t)o->model.context, n = (size_t)o->batch_tokens / context;
    double last = (double)o->steps - 1, loss = 0, anneal = 1;

    if (o->steps > 1)
        anneal = 1 + ((o->balance_anneal - 1) * (double)step) / last;
    if (o->steps > 1 && step == o->steps - 1)
        anneal = o->balance_anneal;
    memset(s->g, 0, s->table.n_params * sizeof(float));
    memset(s->counts, 0, (size_t)o->model.layers * experts_of(s) * sizeof(*s->counts));
    for (size_t at = 0; at < n; at += (size_t)o->micro_batch) {
        struct second_pass pass = {.tokens = tokens + at * context,
                                   .targets = targets + at * context,
                                   .batch = n - at,
                                   .first_token = ((uint64_t)step * n + at) * context,
                                   .balance = o->balance_loss * anneal,
                                   .z = o->router_z_loss};
        if (pass.batch > (size_t)o->micro_batch)
            pass.batch = (size_t)o->micro_batch;
        pass.share = (double)pass.batch / (double)n;
        loss += pass.share * second_gradient(s, &pass);
    }
    update(s, step);
    for (int layer = o->model.dense_layers; layer < o->model.layers && experts_of(s) > 0; layer++)
        after_update(s, layer,
                     o->reset_dead_experts > 0 && (step + 1) % o->reset_dead_experts == 0);
    return loss;
}
