#include "tests/unit/worker/model/reference.h"

#include "base/xalloc.h"
#include "tests/unit/worker/shape.h"
#include "worker/model/run.h"
#include "worker/nn/adamw.h"

#define BATCH  3
#define LENGTH 80 /* more than one attention tile */
#define STRIDE 7

static struct model_config config(int mixture)
{
    struct model_config cfg = SHAPE(2, 48, 4, 2, 61, LENGTH, .ffn = 40, .tie_embeddings = true);
    if (mixture) {
        cfg.dense_layers = 1;
        cfg.experts = 4;
        cfg.top_k = 4; /* all chosen: a near tie must not send the two types different ways */
        cfg.shared = 1;
        cfg.expert_ffn = 24;
        cfg.renormalise = true;
        cfg.tie_embeddings = false;
    }
    return cfg;
}

static struct router_stats *stats_create(const struct model_config *cfg)
{
    struct router_stats *stats = xcalloc((size_t)cfg->layers, sizeof(*stats));

    for (int i = 0; i < cfg->layers; i++) {
        stats[i].counts = xcalloc((size_t)cfg->experts + 1, sizeof(uint64_t));
        stats[i].p_sum = xcalloc((size_t)cfg->experts + 1, sizeof(double));
    }
    return stats;
}

double *reference_numbers(int mixture, unsigned long *n)
{
    struct model_config cfg = config(mixture);
    struct run_objective objective = {.balance = 0.1, .z = 0.01, .share = 1.0};
    struct router_stats *stats = stats_create(&cfg);
    uint32_t tokens[BATCH * LENGTH], targets[BATCH * LENGTH];
    struct run_batch batch = {
        .tokens = tokens, .targets = targets, .batch = BATCH, .length = LENGTH};
    struct weights w;
    struct run *run = NULL;
    struct err err;
    struct run_loss loss;

    if (weights_init(&w, &cfg, &err) < 0 ||
        run_create(&cfg, RUN_TRAIN, (size_t)BATCH * LENGTH, &run, &err) < 0)
        abort();
    for (uint32_t i = 0; i < BATCH * LENGTH; i++) {
        tokens[i] = i * i % 61;
        targets[i] = (i * i + 7 * i + 3) % 61;
    }
    size_t n_params = w.table.n_params;
    real *grad = real_alloc(n_params), *last = real_alloc(n_params), *m = real_alloc(n_params),
         *v = real_alloc(n_params);
    weights_randomise(&w, 11, 0.15);
    double *out = xcalloc(2 * n_params + 3, sizeof(*out));
    *n = 0;
    for (int t = 1; t <= 3; t++) {
        struct adamw opt = {.lr = 1e-3,
                            .beta1 = 0.9,
                            .beta2 = 0.95,
                            .eps = 1e-4,
                            .decay = 0.1,
                            .clip = 1.0,
                            .t = t};
        run_gradient(run, &w, &batch, &objective, stats, grad, &loss);
        out[(*n)++] = loss.cross_entropy;
        memcpy(last, grad, n_params * sizeof(*grad));
        adamw_update(w.params, m, v, grad, n_params, &opt);
    }
    for (size_t i = 0; i < n_params; i += STRIDE) {
        out[(*n)++] = (double)last[i];
        out[(*n)++] = (double)w.params[i];
    }
    for (int i = 0; i < cfg.layers; i++) {
        free(stats[i].counts);
        free(stats[i].p_sum);
    }
    free(stats), free(grad), free(last), free(m), free(v);
    run_free(run);
    weights_release(&w);
    return out;
}
