/*
 * Reads, checks and counts shapes. The three ways in (parameters, model.json, an imported file) all
 * end in model_config_check(). Counts are closed formulas over the shape; tensors.c builds the same
 * sum from the tensors themselves and asserts that both agree.
 *
 * rope_theta and norm_eps have no parameter: the worker trains with its defaults, and model.json
 * leaves them out.
 */
#include "worker/model/config.h"

#include "base/json/json.h"
#include "worker/data/tokenizer/tokenizer.h"
#include "worker/nn/router.h"

/* What a model may have; with the longest pass (worker/train/options.c) no size of a buffer
 * overflows size_t, and no leading dimension BLAS's int. */
#define PARAMS_MAX ((int64_t)1 << 38)
/* What a smaller shape for trials keeps. */
#define LAYERS_LEAST  2
#define EXPERTS_LEAST 8
#define VOCAB_LEAST   4096
#define SHARED_MAX    (1 << 24) /* columns of all shared experts together */

static int get_dim(struct params *p, const char *key, int min, int fallback)
{
    return (int)params_int(p, key, min, MODEL_DIM_MAX, fallback);
}

/* Limits of products that the limits of single numbers leave open. */
static void check_size(struct params *p, const struct model_config *cfg)
{
    int64_t total = model_config_total(cfg);

    if ((int64_t)cfg->shared * cfg->expert_ffn > SHARED_MAX)
        params_fault(p, "shared", "%d experts of %d columns are over %d", cfg->shared,
                     cfg->expert_ffn, SHARED_MAX);
    if (total > PARAMS_MAX)
        params_fault(p, "layers", "%lld parameters; at most %lld", (long long)total,
                     (long long)PARAMS_MAX);
}

void model_config_read(struct params *p, bool ffn_solved, struct model_config *cfg)
{
    *cfg = (struct model_config){.rope_theta = 10000.0, .norm_eps = 1e-5};
    params_require(p, "layers");
    params_require(p, "width");
    params_require(p, "heads");
    params_require(p, "context");
    cfg->layers = (int)params_int(p, "layers", 1, MODEL_LAYERS_MAX, 1);
    cfg->width = (int)params_int(p, "width", 1, MODEL_WIDTH_MAX, 64);
    cfg->heads = get_dim(p, "heads", 1, 1);
    cfg->kv_heads = get_dim(p, "kv_heads", 1, cfg->heads);
    cfg->context = get_dim(p, "context", 1, 64);
    cfg->vocab = get_dim(p, "vocab", 1, (int)TOKENIZER_BYTES_VOCAB);
    cfg->tie_embeddings = params_bool(p, "tie_embeddings", true);
    cfg->experts = (int)params_int(p, "experts", 0, ROUTER_EXPERTS_MAX, 0);
    if (cfg->experts > 0) {
        if (!ffn_solved)
            params_require(p, "expert_ffn");
        params_require(p, "top_k");
    }
    cfg->top_k = (int)params_int(p, "top_k", cfg->experts > 0 ? 1 : 0, ROUTER_EXPERTS_MAX, 0);
    cfg->expert_ffn = get_dim(p, "expert_ffn", cfg->experts > 0 ? 1 : 0, 0);
    cfg->shared = (int)params_int(p, "shared", 0, ROUTER_EXPERTS_MAX, 0);
    cfg->dense_layers = get_dim(p, "dense_layers", 0, 0);
    cfg->renormalise = params_bool(p, "renormalise", true);
    if ((cfg->experts == 0 && !ffn_solved) || cfg->dense_layers > 0)
        params_require(p, "ffn");
    cfg->ffn = get_dim(p, "ffn", 0, 0);
}

void model_config_check(struct params *p, const struct model_config *cfg)
{
    if (cfg->width % cfg->heads != 0)
        params_fault(p, "heads", "%d does not divide width %d", cfg->heads, cfg->width);
    else if (cfg->width / cfg->heads % 2 != 0)
        params_fault(p, "heads", "width / heads is %d; rotary positions need it even",
                     cfg->width / cfg->heads);
    if (cfg->heads % cfg->kv_heads != 0)
        params_fault(p, "kv_heads", "%d does not divide heads %d", cfg->kv_heads, cfg->heads);
    check_size(p, cfg);
    if (cfg->experts == 0) {
        if (cfg->top_k != 0 || cfg->expert_ffn != 0 || cfg->shared != 0 || cfg->dense_layers != 0)
            params_fault(p, "experts",
                         "is required with top_k, expert_ffn, shared or dense_layers");
        if (cfg->ffn < 1)
            params_fault(p, "ffn", "must be at least 1");
        return;
    }
    if (cfg->top_k > cfg->experts)
        params_fault(p, "top_k", "%d of %d experts", cfg->top_k, cfg->experts);
    if (cfg->dense_layers >= cfg->layers)
        params_fault(p, "dense_layers", "%d of %d layers leaves no mixture", cfg->dense_layers,
                     cfg->layers);
    if (cfg->dense_layers > 0 && cfg->ffn < 1)
        params_fault(p, "ffn", "must be at least 1");
    if (cfg->expert_ffn < 1)
        params_fault(p, "expert_ffn", "must be at least 1");
}

int model_config_validate(const struct model_config *cfg, struct err *err)
{
    struct param_faults faults = {0};
    struct params p;

    params_init(&p, NULL, &faults);
    model_config_check(&p, cfg);
    int rc = 0;
    if (faults.n > 0)
        rc = err_set(err, ERR_CORRUPT, "%s: %s", faults.items[0].key, faults.items[0].why);
    param_faults_release(&faults);
    return rc;
}

bool model_config_is_moe(const struct model_config *cfg, int layer)
{
    return cfg->experts > 0 && layer >= cfg->dense_layers;
}

int model_config_moe_layers(const struct model_config *cfg)
{
    return cfg->experts > 0 ? cfg->layers - cfg->dense_layers : 0;
}

size_t model_config_dense_ffn(const struct model_config *cfg, int layer)
{
    return model_config_is_moe(cfg, layer) ? (size_t)cfg->shared * (size_t)cfg->expert_ffn
                                           : (size_t)cfg->ffn;
}

size_t model_config_qkv(const struct model_config *cfg)
{
    return (size_t)(cfg->heads + 2 * cfg->kv_heads) * (size_t)(cfg->width / cfg->heads);
}

/* Per block two norms, four attention matrices and the feed-forward part; `expert` is one expert's
 * three matrices. */
int64_t model_config_total(const struct model_config *cfg)
{
    int64_t c = cfg->width, kv = c / cfg->heads * cfg->kv_heads;
    int64_t moe = model_config_moe_layers(cfg), dense = cfg->layers - moe;
    int64_t embed = (int64_t)cfg->vocab * c;
    int64_t every = 2 * c + 2 * c * c + 2 * kv * c;
    int64_t expert = 3 * c * (int64_t)cfg->expert_ffn;

    return (cfg->tie_embeddings ? 1 : 2) * embed + c + cfg->layers * every +
           dense * 3 * c * cfg->ffn +
           moe * (cfg->experts * c + (cfg->experts + cfg->shared) * expert);
}

int64_t model_config_active(const struct model_config *cfg)
{
    int64_t idle = cfg->experts - cfg->top_k;

    return model_config_total(cfg) -
           model_config_moe_layers(cfg) * idle * 3 * cfg->width * cfg->expert_ffn;
}

int64_t model_config_active_ffn(const struct model_config *cfg)
{
    if (cfg->experts == 0)
        return cfg->ffn;
    return (int64_t)(cfg->top_k + cfg->shared) * cfg->expert_ffn;
}

double model_config_flops_per_token(const struct model_config *cfg)
{
    int64_t active = model_config_active(cfg);

    /* A tied embedding is multiplied once, as the head; an untied one is only looked up. */
    if (!cfg->tie_embeddings)
        active -= (int64_t)cfg->vocab * cfg->width;
    return 6.0 * (double)active +
           12.0 * cfg->layers * (double)cfg->width * (double)cfg->context / 2.0;
}

void model_config_shrink(struct model_config *cfg, int64_t most)
{
    while (cfg->layers > LAYERS_LEAST && cfg->layers > cfg->dense_layers + 1 &&
           model_config_total(cfg) > most)
        cfg->layers--;
    while (cfg->experts / 2 >= cfg->top_k && cfg->experts / 2 >= EXPERTS_LEAST &&
           model_config_total(cfg) > most)
        cfg->experts /= 2;
    while (cfg->vocab / 2 >= VOCAB_LEAST && model_config_total(cfg) > most)
        cfg->vocab /= 2;
}

void model_config_name(const struct model_config *cfg, struct strbuf *out)
{
    strbuf_addf(out, "%d x %d, %d of %d heads, vocabulary %d%s, context %d, ffn %d", cfg->layers,
                cfg->width, cfg->kv_heads, cfg->heads, cfg->vocab,
                cfg->tie_embeddings ? "" : " twice", cfg->context, cfg->ffn);
    if (cfg->experts > 0)
        strbuf_addf(out, ", %d of %d and %d experts of %d after %d", cfg->top_k, cfg->experts,
                    cfg->shared, cfg->expert_ffn, cfg->dense_layers);
}

void model_config_put(const struct model_config *cfg, cJSON *obj)
{
    json_put_int(obj, "layers", cfg->layers);
    json_put_int(obj, "width", cfg->width);
    json_put_int(obj, "heads", cfg->heads);
    json_put_int(obj, "kv_heads", cfg->kv_heads);
    json_put_int(obj, "ffn", cfg->ffn);
    json_put_int(obj, "vocab", cfg->vocab);
    json_put_int(obj, "context", cfg->context);
    json_put_bool(obj, "tie_embeddings", cfg->tie_embeddings);
    json_put_int(obj, "experts", cfg->experts);
    json_put_int(obj, "top_k", cfg->top_k);
    json_put_int(obj, "expert_ffn", cfg->expert_ffn);
    json_put_int(obj, "shared", cfg->shared);
    json_put_int(obj, "dense_layers", cfg->dense_layers);
    json_put_bool(obj, "renormalise", cfg->renormalise);
}

int model_config_get(const cJSON *obj, struct model_config *cfg, struct err *err)
{
    struct param_faults faults = {0};
    struct params p;

    params_init(&p, obj, &faults);
    model_config_read(&p, false, cfg);
    model_config_check(&p, cfg);
    int rc = param_faults_result(&faults, err);
    param_faults_release(&faults);
    return rc;
}
