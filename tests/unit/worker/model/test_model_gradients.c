/* The whole model, dense and mixture, every parameter tensor, against central differences of the
 * training loss. */
#include <math.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/worker/gradcheck.h"
#include "tests/unit/worker/shape.h"
#include "worker/model/run.h"

#define BATCH  2
#define LENGTH 6

struct model_case {
    struct weights w;
    struct run *run;
    struct run_batch batch;
    struct run_objective objective;
    struct router_stats *stats;
    double *scrap; /* gradients that nobody reads */
};

static double model_loss(void *ctx)
{
    struct model_case *k = ctx;
    struct run_loss loss;

    run_gradient(k->run, &k->w, &k->batch, &k->objective, k->stats, k->scrap, &loss);
    return k->objective.share *
           (loss.cross_entropy + k->objective.balance * loss.balance + k->objective.z * loss.z);
}

static struct router_stats *stats_create(const struct model_config *cfg)
{
    struct router_stats *stats = xcalloc((size_t)cfg->layers, sizeof(*stats));

    for (int i = 0; i < cfg->layers && cfg->experts > 0; i++) {
        stats[i].counts = xcalloc((size_t)cfg->experts, sizeof(uint64_t));
        stats[i].p_sum = xcalloc((size_t)cfg->experts, sizeof(double));
    }
    return stats;
}

static void stats_free(struct router_stats *stats, int layers)
{
    for (int i = 0; i < layers; i++) {
        free(stats[i].counts);
        free(stats[i].p_sum);
    }
    free(stats);
}

/* Experts that got no token: their gradients must be exactly zero. Returns how many there were. */
static size_t check_empty_experts(const struct model_case *k, const double *grad)
{
    size_t n_empty = 0, n_experts = (size_t)k->w.cfg.experts;

    for (int layer = k->w.cfg.dense_layers; layer < k->w.cfg.layers && n_experts > 0; layer++) {
        const struct tensor *t = tensor_find(&k->w.table, TENSOR_EXPERT_DOWN, layer);
        size_t size = tensor_size(t) / n_experts;
        for (size_t e = 0; e < n_experts; e++) {
            if (k->stats[layer].counts[e] > 0)
                continue;
            n_empty++;
            for (size_t i = 0; i < size; i++)
                assert_true(grad[t->offset + e * size + i] == 0.0);
        }
    }
    return n_empty;
}

/* A pass that is all of a step keeps activations in the gradient, and takes less memory: what was
 * there before and what was kept there must not show, nor what a pass without gradients leaves. */
static void check_whole(const struct model_case *k, const double *grad)
{
    size_t size = k->w.table.n_params * sizeof(double);
    double *lent = xmalloc(size);
    struct err err = {0};
    struct run *run = NULL;
    struct run_loss loss;

    assert_true(run_bytes(&k->w.cfg, RUN_TRAIN_WHOLE, BATCH * LENGTH) <
                run_bytes(&k->w.cfg, RUN_TRAIN, BATCH * LENGTH));
    assert_int_equal(run_create(&k->w.cfg, RUN_TRAIN_WHOLE, BATCH * LENGTH, &run, &err), 0);
    memset(lent, 0xff, size);
    run_lend(run, lent);
    for (int again = 0; again < 2; again++) {
        run_forward(run, &k->w, &k->batch, NULL);
        run_gradient(run, &k->w, &k->batch, &k->objective, k->stats, lent, &loss);
        assert_memory_equal(lent, grad, size);
    }
    free(lent);
    run_free(run);
}

/* Returns the number of experts without a token. */
static size_t check_model_with(struct model_config cfg, struct run_objective objective)
{
    static const uint32_t tokens[BATCH * LENGTH] = {1, 4, 2, 8, 5, 7, 0, 3, 3, 9, 10, 6};
    static const uint32_t targets[BATCH * LENGTH] = {4, 2, 8, 5, 7, 1, 3, 3, 9, 10, 6, 0};
    struct err err = {0};
    struct model_case k = {
        .batch = {.tokens = tokens, .targets = targets, .batch = BATCH, .length = LENGTH},
        .objective = objective};

    assert_int_equal(weights_init(&k.w, &cfg, &err), 0);
    assert_int_equal(run_create(&cfg, RUN_TRAIN, BATCH * LENGTH, &k.run, &err), 0);
    weights_randomise(&k.w, 42, 0.4);
    k.stats = stats_create(&cfg);
    k.scrap = zero_array(k.w.table.n_params);
    double *grad = zero_array(k.w.table.n_params);
    struct run_loss loss;
    run_gradient(k.run, &k.w, &k.batch, &k.objective, k.stats, grad, &loss);
    size_t n_empty = check_empty_experts(&k, grad);
    for (int layer = cfg.dense_layers; layer < cfg.layers && objective.capacity_factor > 0.0;
         layer++)
        assert_true(k.stats[layer].dropped > 0);
    check_whole(&k, grad);
    for (size_t i = 0; i < k.w.table.n; i++) {
        const struct tensor *t = &k.w.table.items[i];
        size_t size = tensor_size(t), stride = size / 60 + 1;
        gradcheck(t->name, k.w.params + t->offset, grad + t->offset, size, stride, model_loss, &k);
    }
    free(grad), free(k.scrap);
    stats_free(k.stats, cfg.layers);
    run_free(k.run);
    weights_release(&k.w);
    return n_empty;
}

static void check_model(struct model_config cfg)
{
    (void)check_model_with(cfg, (struct run_objective){.balance = 0.5, .z = 0.2, .share = 0.75});
}

static void test_dense(void **state)
{
    (void)state;
    check_model(
        (struct model_config)SHAPE(2, 8, 2, 2, 11, LENGTH, .ffn = 12, .tie_embeddings = true));
}

static void test_dense_untied_grouped(void **state)
{
    (void)state;
    check_model((struct model_config)SHAPE(2, 16, 4, 2, 11, LENGTH, .ffn = 10));
}

static void test_mixture(void **state)
{
    (void)state;
    check_model((struct model_config)SHAPE(2, 8, 2, 2, 11, LENGTH, .tie_embeddings = true,
                                           .experts = 4, .top_k = 2, .expert_ffn = 6,
                                           .renormalise = true));
}

static void test_mixture_shared_after_dense(void **state)
{
    (void)state;
    check_model((struct model_config)SHAPE(3, 8, 2, 1, 11, LENGTH, .ffn = 12, .experts = 5,
                                           .top_k = 3, .expert_ffn = 4, .shared = 2,
                                           .dense_layers = 1, .renormalise = false));
}

/* With noise, and with experts that drop what is over their capacity. */
static void test_mixture_noisy_and_limited(void **state)
{
    (void)state;
    struct run_objective objective = {.balance = 0.5,
                                      .z = 0.2,
                                      .share = 0.75,
                                      .noise = {.sigma = 0.5, .seed = 3, .first_token = 1000},
                                      .capacity_factor = 0.6};

    (void)check_model_with(
        (struct model_config)SHAPE(2, 8, 2, 2, 11, LENGTH, .tie_embeddings = true, .experts = 4,
                                   .top_k = 2, .expert_ffn = 6, .renormalise = true),
        objective);
    (void)check_model_with((struct model_config)SHAPE(2, 8, 2, 2, 11, LENGTH, .experts = 3,
                                                      .top_k = 2, .expert_ffn = 6, .shared = 1),
                           objective);
}

/* Logits are the largest buffer here, so the layer's are moved to their place. */
static void test_one_expert(void **state)
{
    (void)state;
    check_model((struct model_config)SHAPE(1, 8, 2, 2, 97, LENGTH, .tie_embeddings = true,
                                           .experts = 1, .top_k = 1, .expert_ffn = 6));
}

static void test_all_experts_chosen(void **state)
{
    (void)state;
    check_model((struct model_config)SHAPE(2, 8, 2, 2, 11, LENGTH, .tie_embeddings = true,
                                           .experts = 5, .top_k = 5, .expert_ffn = 4,
                                           .renormalise = true));
}

/* 84 assignments to 256 experts: most get none. */
static void test_256_experts(void **state)
{
    (void)state;
    /* The larger the z-loss, the rougher its differences. */
    size_t n_empty = check_model_with(
        (struct model_config)SHAPE(2, 8, 2, 1, 11, LENGTH, .experts = 256, .top_k = 7,
                                   .expert_ffn = 2, .shared = 1, .renormalise = true),
        (struct run_objective){.balance = 0.5, .z = 0.01, .share = 0.75});
    assert_true(n_empty >= 2 * (256 - 84));
}

/* The first tokens' losses do not depend on how many follow: 4096, or none. */
static void test_context_of_4096(void **state)
{
    (void)state;
    enum { LONG = 4096, SHORT = 70 };
    struct model_config cfg = SHAPE(2, 8, 2, 1, 11, LONG, .ffn = 12, .tie_embeddings = true);
    struct run_batch batch = {.batch = 1, .length = LONG};
    struct err err = {0};
    struct weights w;
    struct run *run = NULL;
    uint32_t *tokens = xcalloc(LONG + 1, sizeof(*tokens));
    double *whole = zero_array(LONG), *part = zero_array(SHORT), mean = 0.0;

    for (uint32_t i = 0; i <= LONG; i++)
        tokens[i] = (i * i + 3 * i) % 11;
    batch.tokens = tokens;
    batch.targets = tokens + 1;
    assert_int_equal(weights_init(&w, &cfg, &err), 0);
    assert_int_equal(run_create(&cfg, RUN_INFER, LONG, &run, &err), 0);
    weights_randomise(&w, 7, 0.4);
    run_forward(run, &w, &batch, NULL);
    run_token_losses(run, &w, &batch, whole);
    batch.length = SHORT;
    run_forward(run, &w, &batch, NULL);
    run_token_losses(run, &w, &batch, part);
    for (size_t i = 0; i < SHORT; i++)
        assert_true(fabs(whole[i] - part[i]) < 1e-12);
    for (size_t i = 0; i < LONG; i++)
        mean += whole[i] / LONG;
    assert_true(mean > 0.5 && mean < 20.0);
    free(tokens), free(whole), free(part);
    run_free(run);
    weights_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_dense_untied_grouped),
        cmocka_unit_test(test_mixture),
        cmocka_unit_test(test_mixture_shared_after_dense),
        cmocka_unit_test(test_mixture_noisy_and_limited),
        cmocka_unit_test(test_one_expert),
        cmocka_unit_test(test_all_experts_chosen),
        cmocka_unit_test(test_256_experts),
        cmocka_unit_test(test_context_of_4096),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
