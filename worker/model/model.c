/*
 * Glue between import.h (find and read weights in any form) and engine.h (compute). A smaller
 * context is set in the weights' own configuration before the engine is created: no parameter
 * depends on it, and the engine sizes its buffers by it.
 */
#include "worker/model/model.h"

#include "base/xalloc.h"
#include "worker/model/engine.h"
#include "worker/model/formats/import.h"
#include "worker/nn/cpu.h"
#include "worker/nn/product/product.h"

struct model {
    struct import_source source;
    struct weights weights;
    struct store_info info;
    struct engine *engine;
};

/* 0 keeps the model's own context; a larger one is refused. */
static int cut_context(struct model_config *cfg, int context, struct err *err)
{
    if (context > cfg->context)
        return err_set(err, ERR_USAGE, "a context of %d tokens: the model takes %d", context,
                       cfg->context);
    if (context > 0)
        cfg->context = context;
    return 0;
}

int model_open_within(const char *folder, int context, struct model **out, struct err *err)
{
    struct model *m = xcalloc(1, sizeof(*m));
    struct model_config *cfg = &m->weights.cfg;

    *out = NULL;
    int rc = import_find(folder, &m->source, err);
    if (rc < 0 || (rc = import_weights(&m->source, &m->weights, &m->info, err)) < 0 ||
        (rc = cut_context(cfg, context, err)) < 0 ||
        (rc = engine_create(&m->weights, &m->engine, err)) < 0) {
        model_free(m);
        return rc;
    }
    *out = m;
    return 0;
}

int model_open(const char *folder, struct model **out, struct err *err)
{
    return model_open_within(folder, 0, out, err);
}

double model_bytes(const struct model_config *cfg, bool generates)
{
    /* The weights are packed in place, so they count once. */
    return sizeof(real) * (double)model_config_total(cfg) + engine_bytes(cfg) +
           (generates ? engine_slots_bytes(cfg) : 0.0);
}

int model_check_memory(const char *folder, int context, bool generates, int64_t allowed,
                       struct err *err)
{
    struct import_source source;
    struct model_config cfg;
    const double mib = 0x1p20;

    int rc = import_find(folder, &source, err);
    if (rc < 0)
        return rc;
    rc = import_config(&source, &cfg, err);
    import_source_release(&source);
    if (rc == 0)
        rc = cut_context(&cfg, context, err);
    if (rc < 0 || allowed <= 0)
        return rc;
    const double needed = model_bytes(&cfg, generates);
    if (needed <= (double)allowed)
        return 0;
    return err_set(err, ERR_USAGE,
                   "memory_bytes: the model needs at least %.1f MiB (%lld parameters, a context of "
                   "%d tokens), the task may use %.1f MiB",
                   needed / mib, (long long)model_config_total(&cfg), cfg.context,
                   (double)allowed / mib);
}

void model_free(struct model *m)
{
    if (m == NULL)
        return;
    engine_free(m->engine);
    weights_release(&m->weights);
    store_info_release(&m->info);
    import_source_release(&m->source);
    free(m);
}

const struct model_config *model_shape(const struct model *m)
{
    return &m->weights.cfg;
}

struct digest model_digest(const struct model *m)
{
    return m->info.weights;
}

bool model_has_file(const struct model *m)
{
    return m->source.form == IMPORT_PREREGD;
}

const char *model_tokenizer_spec(const struct model *m)
{
    return m->info.tokenizer_spec;
}

const char *model_tokenizer_file(const struct model *m)
{
    return m->source.tokenizer;
}

struct digest model_tokenizer_digest(const struct model *m)
{
    return m->info.tokenizer;
}

int model_score_all(struct model *m, struct score_request *r, size_t n, bool (*asked)(void),
                    struct err *err)
{
    return engine_score(m->engine, r, n, asked, err);
}

int model_generate_all(struct model *m, struct score_generation *g, size_t n,
                       const struct score_stop *stop, struct err *err)
{
    return engine_generate(m->engine, g, n, stop, err);
}

int model_logits(struct model *m, const uint32_t *tokens, size_t n, float *logits, struct err *err)
{
    return engine_logits(m->engine, tokens, n, logits, err);
}

int model_measure_rates(struct model *m, struct score_rates *rates, struct err *err)
{
    return engine_measure(m->engine, rates, err);
}

int model_shape_rates(const struct model_config *cfg, struct score_rates *rates, struct err *err)
{
    struct weights weights = {0};
    struct engine *engine = NULL;

    int rc = weights_init(&weights, cfg, err);
    if (rc == 0)
        rc = engine_create(&weights, &engine, err);
    if (rc == 0)
        rc = engine_measure(engine, rates, err);
    engine_free(engine);
    weights_release(&weights);
    return rc;
}

double model_shape_bytes(const struct model_config *cfg)
{
    /* Packing takes a copy of one matrix, which is no more than all of them. */
    return 2.0 * sizeof(real) * (double)model_config_total(cfg) + engine_bytes(cfg) +
           engine_slots_bytes(cfg);
}

double model_shape_flops(const struct model_config *cfg)
{
    return engine_measure_tokens() * (2.0 * (double)model_config_active(cfg) +
                                      4.0 * cfg->layers * cfg->width * (double)cfg->context);
}

const char *model_kernels_text(void)
{
    static const char *const texts[] = {[NN_CPU_BASELINE] = "none, kernels baseline",
                                        [NN_CPU_AVX2] = "none, kernels avx2",
                                        [NN_CPU_AVX512] = "none, kernels avx512",
                                        [NN_CPU_NEON] = "none, kernels neon"};

    return texts[nn_cpu()];
}

struct worker_environment model_environment(int threads)
{
    return (struct worker_environment){.threads = threads,
                                       .blas = model_kernels_text(),
                                       .arithmetic = product_contract(),
                                       .instructions = nn_cpu_text(nn_cpu())};
}
