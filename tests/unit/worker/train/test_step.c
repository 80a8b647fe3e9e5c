/* Steps of the trainer against a second implementation, written from docs/arithmetic.md: the same
 * bits in every parameter, moment and choice bias, in both precisions and with threads;
 * then a score of the scoring engine. */
#include "base/rng.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/worker/shape.h"
#include "tests/unit/worker/train/second_step.h"
#include "worker/model/engine.h"
#include "worker/nn/threads.h"
#include "worker/train/trainer.h"

#define STEPS   3
#define CONTEXT 48 /* more than one tile of attention, and no multiple of its lanes */

/* Inner dimensions beyond a piece of 256: tokens of a pass (of an expert, too), ffn, the
 * vocabulary. */
static const struct step_case {
    const char *name;
    struct train_options opt;
} CASES[] = {
    {"dense, tied",
     {.model = SHAPE(2, 24, 4, 2, 300, CONTEXT, .ffn = 264, .tie_embeddings = true),
      .schedule = {.kind = SCHEDULE_COSINE, .warmup = 0.4, .floor = 0.1},
      .batch_tokens = 7 * CONTEXT,
      .micro_batch = 7,
      .weight_decay = 0.1,
      .clip = 0.01}},
    {"mixture, short passes",
     {.model = SHAPE(3, 24, 4, 4, 61, CONTEXT, .ffn = 40, .dense_layers = 1, .experts = 5,
                     .top_k = 2, .expert_ffn = 20, .shared = 1),
      .schedule = {.kind = SCHEDULE_WSD, .warmup = 0.3, .floor = 0.1, .decay = 0.4},
      .batch_tokens = 7 * CONTEXT,
      .micro_batch = 3,
      .weight_decay = 0.3,
      .clip = 1e6,
      .balance_loss = 0.1,
      .balance_anneal = 0.5,
      .router_z_loss = 0.01,
      .bias_update_rate = 0.01,
      .reset_dead_experts = 1}},
    {"mixture, experts of more tokens than a piece",
     {.model = SHAPE(1, 18, 3, 1, 2200, CONTEXT, .experts = 3, .top_k = 3, .expert_ffn = 17,
                     .renormalise = true, .tie_embeddings = true),
      .schedule = {.kind = SCHEDULE_CONSTANT},
      .batch_tokens = 6 * CONTEXT,
      .micro_batch = 6,
      .clip = 0}},
    {"mixture, noise and a capacity",
     {.model = SHAPE(2, 24, 2, 2, 61, CONTEXT, .experts = 5, .top_k = 2, .expert_ffn = 20,
                     .renormalise = true, .tie_embeddings = true),
      .schedule = {.kind = SCHEDULE_COSINE},
      .batch_tokens = 5 * CONTEXT,
      .micro_batch = 2,
      .clip = 1,
      .balance_loss = 0.01,
      .router_noise = 0.5,
      .capacity_factor = 0.8}},
    {"mixture, dead experts",
     {.model = SHAPE(2, 16, 2, 2, 61, CONTEXT, .experts = 48, .top_k = 1, .expert_ffn = 8,
                     .renormalise = true, .tie_embeddings = true),
      .schedule = {.kind = SCHEDULE_COSINE},
      .batch_tokens = 2 * CONTEXT,
      .micro_batch = 1,
      .reset_dead_experts = 1}},
    /* Muon's products of more than a piece; rows of logits that are not one after another. */
    {"dense, Muon",
     {.model = SHAPE(1, 8, 2, 1, 8200, CONTEXT, .ffn = 300, .tie_embeddings = true),
      .schedule = {.kind = SCHEDULE_COSINE, .floor = 0.1},
      .batch_tokens = 1 * CONTEXT,
      .micro_batch = 1,
      .weight_decay = 0.1,
      .clip = 0.01,
      .optimiser = OPTIMISER_MUON,
      .nesterov = true}},
    {"mixture, Muon without Nesterov's momentum, dead experts",
     {.model = SHAPE(3, 24, 4, 4, 61, CONTEXT, .ffn = 40, .dense_layers = 1, .experts = 48,
                     .top_k = 1, .expert_ffn = 20, .shared = 2),
      .schedule = {.kind = SCHEDULE_CONSTANT},
      .batch_tokens = 2 * CONTEXT,
      .micro_batch = 1,
      .weight_decay = 0.3,
      .optimiser = OPTIMISER_MUON,
      .reset_dead_experts = 1}},
    {"dense, gradient descent",
     {.model = SHAPE(2, 24, 4, 2, 61, CONTEXT, .ffn = 40, .tie_embeddings = true),
      .schedule = {.kind = SCHEDULE_CONSTANT},
      .batch_tokens = 2 * CONTEXT,
      .micro_batch = 1,
      .weight_decay = 0.1,
      .clip = 0.01,
      .optimiser = OPTIMISER_SGD}},
    {"mixture, gradient descent with Nesterov's momentum, dead experts",
     {.model = SHAPE(2, 16, 2, 2, 61, CONTEXT, .experts = 48, .top_k = 1, .expert_ffn = 8,
                     .renormalise = true, .tie_embeddings = true),
      .schedule = {.kind = SCHEDULE_CONSTANT},
      .batch_tokens = 2 * CONTEXT,
      .micro_batch = 1,
      .optimiser = OPTIMISER_SGD,
      .nesterov = true,
      .reset_dead_experts = 1}},
};

/* One source of random tokens, some of which never occur. */
static void make_data(struct train_data *data, const struct train_options *opt)
{
    struct train_source *src = &data->sources[0];
    struct rng rng;

    *data = (struct train_data){.n_sources = 1, .seed = opt->seed, .context = CONTEXT};
    src->name = "random";
    src->weight = 1;
    src->block_part = MIX_BLOCK;
    src->n_windows = 100;
    src->train.n = (src->n_windows + 1) * CONTEXT + 1;
    src->train.ids = xcalloc(src->train.n, sizeof(*src->train.ids));
    rng_seed(&rng, 3);
    for (size_t i = 0; i < src->train.n; i++)
        src->train.ids[i] = (uint32_t)rng_below(&rng, (uint64_t)opt->model.vocab - 5);
}

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static void same(const char *what, const float *got, const float *want, const struct second *s)
{
    for (size_t i = 0; i < s->table.n_params; i++)
        if (bits_of(got[i]) != bits_of(want[i])) {
            const struct tensor *t = tensor_holding(&s->table, i);
            CHECK_ROW("%s of %s, element %zu: %a, not %a", what, t->name, i - t->offset,
                      (double)got[i], (double)want[i]);
            fail();
        }
}

/* Second moments: those of the tensors that AdamW updates, one after another. */
static void same_second_moments(const struct optimiser *o, const struct second *s)
{
    const float *v = o->v;

    for (size_t i = 0; i < s->table.n && o->n_second > 0; i++) {
        const struct tensor *t = &s->table.items[i];
        if (s->opt->optimiser == OPTIMISER_MUON && t->layer >= 0 && t->decays &&
            t->role != TENSOR_ROUTER)
            continue;
        CHECK_ROW("second moment of %s", t->name);
        assert_memory_equal(v, s->v + t->offset, tensor_size(t) * sizeof(*v));
        v += tensor_size(t);
    }
    assert_int_equal(v - o->v, o->n_second);
}

/* One step of both; `at`: from 0. */
static void compare_step(struct trainer *t, struct second *s, int64_t at)
{
    size_t n = (size_t)(t->opt->batch_tokens / CONTEXT);
    size_t n_bias = weights_n_bias(&t->opt->model);
    uint32_t *tokens = xcalloc(n * CONTEXT, sizeof(*tokens));
    uint32_t *targets = xcalloc(n * CONTEXT, sizeof(*targets));
    struct err err = {0};
    double loss = 0;

    CHECK_ROW("step %lld", (long long)at);
    for (size_t i = 0; i < n; i++)
        train_data_sequence(t->data, (uint64_t)at * n + i, tokens + i * CONTEXT,
                            targets + i * CONTEXT);
    same("initial value", t->w.params, s->p, s);
    if (trainer_step(t, &loss, &err) < 0)
        fail_msg("%s", err.msg);
    double want = second_step(s, tokens, targets, at);
    same("first moment", t->optimiser.m, s->m, s);
    same_second_moments(&t->optimiser, s);
    same("parameter", t->w.params, s->p, s);
    assert_memory_equal(&loss, &want, sizeof(loss));
    assert_memory_equal(t->w.route_bias, s->bias, n_bias * sizeof(float));
    assert_int_equal(t->health.kills, s->resets);
    free(tokens);
    free(targets);
}

/* The engine over the weights as they are now. */
static void compare_scores(const struct trainer *t, struct second *s)
{
    uint32_t tokens[CONTEXT + 1], targets[CONTEXT];
    struct weights w;
    struct engine *engine = NULL;
    struct err err = {0};

    train_data_sequence(t->data, 1000, tokens, targets);
    tokens[CONTEXT] = targets[CONTEXT - 1];
    struct score_request request = {.tokens = tokens, .n = CONTEXT + 1, .first = CONTEXT / 2};
    if (weights_init(&w, &t->opt->model, &err) < 0)
        fail_msg("%s", err.msg);
    memcpy(w.params, t->w.params, w.table.n_params * sizeof(*w.params));
    if (t->opt->model.experts > 0)
        memcpy(w.route_bias, t->w.route_bias, weights_n_bias(&w.cfg) * sizeof(*w.route_bias));
    if (engine_create(&w, &engine, &err) < 0 || engine_score(engine, &request, 1, NULL, &err) < 0)
        fail_msg("%s", err.msg);
    double want = second_score(s, tokens, request.n, request.first);
    CHECK_ROW("score %a, not %a", request.sum, want);
    assert_memory_equal(&request.sum, &want, sizeof(want));
    engine_free(engine);
    weights_release(&w);
}

static void compare(const struct step_case *c, enum product_precision precision, int threads)
{
    struct train_options opt = c->opt;
    struct train_data data;
    struct trainer trainer;
    struct second second;
    struct err err = {0};

    opt.steps = STEPS;
    opt.seed = 0x123456789ABCDEF;
    opt.lr = 0.01;
    opt.beta1 = 0.9;
    opt.beta2 = 0.95;
    opt.eps = 1e-8;
    opt.momentum = 0.9;
    opt.adamw_lr = 0.02;
    opt.init_std = 0.3;
    opt.precision = precision;
    make_data(&data, &opt);
    if (nn_threads_start(threads, &err) < 0 || trainer_init(&trainer, &opt, &data, &err) < 0)
        fail_msg("%s", err.msg);
    second_init(&second, &opt);
    for (int64_t step = 0; step < STEPS; step++)
        compare_step(&trainer, &second, step);
    compare_scores(&trainer, &second);
    assert_true((second.resets > 0) == (strstr(c->name, "dead experts") != NULL));
    second_release(&second);
    trainer_release(&trainer);
    train_data_release(&data);
    nn_threads_stop();
}

static void compare_all(enum product_precision precision, int threads)
{
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s, %d threads", CASES[i].name, threads);
        compare(&CASES[i], precision, threads);
    }
}

static void test_float32(void **state)
{
    (void)state;
    compare_all(PRODUCT_FLOAT32, 1);
}

static void test_bfloat16(void **state)
{
    (void)state;
    compare_all(PRODUCT_BFLOAT16, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float32),
        cmocka_unit_test(test_bfloat16),
    };
#ifdef __x86_64__
    if (!__builtin_cpu_supports("fma")) {
        printf("skipped: this processor has no fused multiply-add\n");
        return 77;
    }
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
