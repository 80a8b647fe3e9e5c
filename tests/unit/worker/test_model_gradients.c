/* The whole model, dense and mixture, every parameter tensor, against central differences of the
 * training loss. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <math.h>

#include "base/xalloc.h"
#include "tests/unit/worker/gradcheck.h"
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

static void check_model(struct model_config cfg)
{
    static const uint32_t tokens[BATCH * LENGTH] = {1, 4, 2, 8, 5, 7, 0, 3, 3, 9, 10, 6};
    static const uint32_t targets[BATCH * LENGTH] = {4, 2, 8, 5, 7, 1, 3, 3, 9, 10, 6, 0};
    struct err err = {0};
    struct model_case k = {
        .batch = {.tokens = tokens, .targets = targets, .batch = BATCH, .length = LENGTH},
        .objective = {.balance = 0.5, .z = 0.2, .share = 0.75}};

    cfg.rope_theta = 10000.0;
    cfg.norm_eps = 1e-5;
    assert_int_equal(weights_init(&k.w, &cfg, &err), 0);
    assert_int_equal(run_create(&cfg, RUN_TRAIN, BATCH * LENGTH, &k.run, &err), 0);
    weights_randomise(&k.w, 42, 0.4);
    k.stats = stats_create(&cfg);
    k.scrap = zero_array(k.w.table.n_params);
    double *grad = zero_array(k.w.table.n_params);
    struct run_loss loss;
    run_gradient(k.run, &k.w, &k.batch, &k.objective, k.stats, grad, &loss);
    for (size_t i = 0; i < k.w.table.n; i++) {
        const struct tensor *t = &k.w.table.items[i];
        size_t size = tensor_size(t), stride = size / 60 + 1;
        gradcheck(t->name, k.w.params + t->offset, grad + t->offset, size, stride, model_loss, &k);
    }
    free(grad), free(k.scrap);
    stats_free(k.stats, cfg.layers);
    run_free(k.run);
    weights_release(&k.w);
}

static void test_dense(void **state)
{
    (void)state;
    check_model((struct model_config){.layers = 2,
                                      .width = 8,
                                      .heads = 2,
                                      .kv_heads = 2,
                                      .ffn = 12,
                                      .vocab = 11,
                                      .context = LENGTH,
                                      .tie_embeddings = true});
}

static void test_dense_untied_grouped(void **state)
{
    (void)state;
    check_model((struct model_config){.layers = 2,
                                      .width = 16,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .ffn = 10,
                                      .vocab = 11,
                                      .context = LENGTH});
}

static void test_mixture(void **state)
{
    (void)state;
    check_model((struct model_config){.layers = 2,
                                      .width = 8,
                                      .heads = 2,
                                      .kv_heads = 2,
                                      .vocab = 11,
                                      .context = LENGTH,
                                      .tie_embeddings = true,
                                      .experts = 4,
                                      .top_k = 2,
                                      .expert_ffn = 6,
                                      .renormalise = true});
}

static void test_mixture_shared_after_dense(void **state)
{
    (void)state;
    check_model((struct model_config){.layers = 3,
                                      .width = 8,
                                      .heads = 2,
                                      .kv_heads = 1,
                                      .ffn = 12,
                                      .vocab = 11,
                                      .context = LENGTH,
                                      .experts = 5,
                                      .top_k = 3,
                                      .expert_ffn = 4,
                                      .shared = 2,
                                      .dense_layers = 1,
                                      .renormalise = false});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_dense_untied_grouped),
        cmocka_unit_test(test_mixture),
        cmocka_unit_test(test_mixture_shared_after_dense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
