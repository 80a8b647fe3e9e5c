/*
 * Maps members of config.json to struct model_config and back. Members that do not change the
 * computed function are ignored; those that do (biases, another activation, scaled positions, a
 * sliding window, quantisation) are refused by name. Defaults of absent members are those of
 * transformers' LlamaConfig and MixtralConfig, because files leave out what equals them.
 */
#include "worker/model/formats/hf_config.h"

#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/nn/router.h"

int hf_config_check(const struct model_config *cfg, struct err *err)
{
    struct strbuf why = STRBUF_INIT;

    if (cfg->experts > 0 && cfg->dense_layers > 0)
        strbuf_addf(&why, "%sdense_layers = %d: every block of Mixtral is a mixture",
                    why.len == 0 ? "" : "; ", cfg->dense_layers);
    if (cfg->experts > 0 && cfg->shared > 0)
        strbuf_addf(&why, "%sshared = %d: Mixtral has no shared experts", why.len == 0 ? "" : "; ",
                    cfg->shared);
    if (cfg->experts > 0 && !cfg->renormalise)
        strbuf_addf(&why, "%srenormalise = false: Mixtral makes the weights sum to 1",
                    why.len == 0 ? "" : "; ");
    int rc = why.len == 0 ? 0 : err_set(err, ERR_REFUSED, "%s", why.buf);
    strbuf_release(&why);
    return rc;
}

static void put_names(const struct model_config *cfg, cJSON *obj)
{
    cJSON *list = json_array();

    json_push_string(list, cfg->experts > 0 ? "MixtralForCausalLM" : "LlamaForCausalLM");
    json_put(obj, "architectures", list);
    json_put_string(obj, "model_type", cfg->experts > 0 ? "mixtral" : "llama");
}

void hf_config_put(const struct model_config *cfg, int64_t end_of_text, cJSON *obj)
{
    put_names(cfg, obj);
    json_put_bool(obj, "attention_bias", false);
    json_put_number(obj, "attention_dropout", 0.0);
    if (end_of_text >= 0) {
        json_put_int(obj, "bos_token_id", end_of_text);
        json_put_int(obj, "eos_token_id", end_of_text);
    } else {
        json_put_null(obj, "bos_token_id");
        json_put_null(obj, "eos_token_id");
    }
    json_put_string(obj, "hidden_act", "silu");
    json_put_int(obj, "hidden_size", cfg->width);
    json_put_int(obj, "intermediate_size", cfg->experts > 0 ? cfg->expert_ffn : cfg->ffn);
    json_put_int(obj, "max_position_embeddings", cfg->context);
    if (cfg->experts > 0) {
        json_put_int(obj, "num_experts_per_tok", cfg->top_k);
        json_put_int(obj, "num_local_experts", cfg->experts);
        json_put_bool(obj, "output_router_logits", false);
        json_put_null(obj, "sliding_window");
    } else {
        json_put_bool(obj, "mlp_bias", false);
    }
    json_put_int(obj, "num_attention_heads", cfg->heads);
    json_put_int(obj, "num_hidden_layers", cfg->layers);
    json_put_int(obj, "num_key_value_heads", cfg->kv_heads);
    json_put_number(obj, "rms_norm_eps", cfg->norm_eps);
    json_put_null(obj, "rope_scaling");
    json_put_number(obj, "rope_theta", cfg->rope_theta);
    json_put_bool(obj, "tie_word_embeddings", cfg->tie_embeddings);
    json_put_string(obj, "torch_dtype", "float32");
    json_put_bool(obj, "use_cache", true);
    json_put_int(obj, "vocab_size", cfg->vocab);
}

/* fallback 0: the member is required. */
static int get_dim(const cJSON *obj, const char *key, int64_t max, int fallback, int *out,
                   struct err *err)
{
    int64_t v = fallback;
    int rc;

    if (fallback == 0)
        rc = json_get_int(obj, key, 1, max, &v, err);
    else
        rc = json_opt_int(obj, key, 1, max, &v, err);
    *out = (int)v;
    return rc;
}

/* Newer files keep theta in an object that also names the kind of rotation. */
static int get_rope(const cJSON *obj, struct model_config *cfg, struct err *err)
{
    const cJSON *rope = json_member(obj, "rope_parameters");
    const cJSON *scaling = json_member(obj, "rope_scaling");
    const char *kind = "default";

    if (scaling != NULL && !cJSON_IsNull(scaling))
        return err_set(err, ERR_REFUSED, "rope_scaling: positions here are not scaled");
    int rc = json_opt_number(obj, "rope_theta", &cfg->rope_theta, err);
    if (rc == 0 && rope != NULL && cJSON_IsObject(rope)) {
        rc = json_opt_number(rope, "rope_theta", &cfg->rope_theta, err);
        if (rc == 0)
            rc = json_opt_string(rope, "rope_type", &kind, err);
    }
    if (rc == 0 && strcmp(kind, "default") != 0)
        return err_set(err, ERR_REFUSED, "rope_type \"%.40s\": positions here are not scaled",
                       kind);
    if (rc == 0 && !(cfg->rope_theta >= 1.0))
        return err_set(err, ERR_CORRUPT, "rope_theta: must be at least 1");
    return rc;
}

/* Refuses members that would change the function that the weights define. */
static int check_features(const cJSON *obj, const struct model_config *cfg, struct err *err)
{
    static const char *const must_be_false[] = {"attention_bias", "mlp_bias"};
    const char *act = "silu";
    int64_t head_dim = cfg->width / cfg->heads, window = cfg->context;
    int rc;

    for (size_t i = 0; i < ARRAY_LEN(must_be_false); i++) {
        bool on = false;
        if ((rc = json_opt_bool(obj, must_be_false[i], &on, err)) < 0)
            return rc;
        if (on)
            return err_set(err, ERR_REFUSED, "%s: the model has no biases", must_be_false[i]);
    }
    if ((rc = json_opt_string(obj, "hidden_act", &act, err)) < 0 ||
        (rc = json_opt_int(obj, "head_dim", 1, MODEL_DIM_MAX, &head_dim, err)) < 0 ||
        (rc = json_opt_int(obj, "sliding_window", 1, JSON_INT_MAX, &window, err)) < 0)
        return rc;
    if (strcmp(act, "silu") != 0)
        return err_set(err, ERR_REFUSED, "hidden_act \"%.40s\": only silu", act);
    if (head_dim * cfg->heads != cfg->width)
        return err_set(err, ERR_REFUSED, "head_dim %lld is not hidden_size / heads",
                       (long long)head_dim);
    if (cfg->experts > 0 && window < cfg->context)
        return err_set(err, ERR_REFUSED,
                       "sliding_window %lld is shorter than max_position_embeddings %d",
                       (long long)window, cfg->context);
    if (json_member(obj, "quantization_config") != NULL)
        return err_set(err, ERR_REFUSED, "quantization_config: only plain numbers are read");
    return 0;
}

/* Absent members get transformers' defaults of the architecture. */
static int get_members(const cJSON *obj, bool moe, struct model_config *cfg, struct err *err)
{
    /* null says as many as heads; absent it does so of Llama, while Mixtral's default is 8. */
    const cJSON *kv = json_member(obj, "num_key_value_heads");
    int ffn = 0, rc;

    if ((rc = get_dim(obj, "hidden_size", MODEL_WIDTH_MAX, 0, &cfg->width, err)) < 0 ||
        (rc = get_dim(obj, "intermediate_size", MODEL_DIM_MAX, 0, &ffn, err)) < 0 ||
        (rc = get_dim(obj, "num_hidden_layers", MODEL_LAYERS_MAX, 0, &cfg->layers, err)) < 0 ||
        (rc = get_dim(obj, "num_attention_heads", MODEL_DIM_MAX, 0, &cfg->heads, err)) < 0 ||
        (rc = get_dim(obj, "vocab_size", MODEL_DIM_MAX, 0, &cfg->vocab, err)) < 0 ||
        (rc = get_dim(obj, "num_key_value_heads", MODEL_DIM_MAX, moe && kv == NULL ? 8 : cfg->heads,
                      &cfg->kv_heads, err)) < 0 ||
        (rc = get_dim(obj, "max_position_embeddings", MODEL_DIM_MAX, moe ? 131072 : 2048,
                      &cfg->context, err)) < 0 ||
        (rc = json_opt_number(obj, "rms_norm_eps", &cfg->norm_eps, err)) < 0 ||
        (rc = json_opt_bool(obj, "tie_word_embeddings", &cfg->tie_embeddings, err)) < 0 ||
        (rc = get_rope(obj, cfg, err)) < 0)
        return rc;
    if (!(cfg->norm_eps >= 0.0))
        return err_set(err, ERR_CORRUPT, "rms_norm_eps: must not be under 0");
    if (!moe) {
        cfg->ffn = ffn;
        return 0;
    }
    cfg->expert_ffn = ffn;
    if ((rc = get_dim(obj, "num_local_experts", ROUTER_EXPERTS_MAX, 8, &cfg->experts, err)) < 0)
        return rc;
    return get_dim(obj, "num_experts_per_tok", ROUTER_EXPERTS_MAX, 2, &cfg->top_k, err);
}

int hf_config_get(const cJSON *obj, struct model_config *cfg, struct err *err)
{
    const char *type = NULL;

    int rc = json_get_string(obj, "model_type", &type, err);
    if (rc < 0)
        return err->code = ERR_CORRUPT;
    bool moe = strcmp(type, "mixtral") == 0;
    if (!moe && strcmp(type, "llama") != 0)
        return err_set(err, ERR_REFUSED, "model_type \"%.40s\": only llama and mixtral are read",
                       type);
    *cfg = (struct model_config){
        .renormalise = true, .rope_theta = moe ? 1e6 : 1e4, .norm_eps = moe ? 1e-5 : 1e-6};
    if (get_members(obj, moe, cfg, err) < 0)
        return err->code == ERR_REFUSED ? ERR_REFUSED : (err->code = ERR_CORRUPT);
    rc = model_config_validate(cfg, err);
    if (rc < 0)
        return rc;
    rc = check_features(obj, cfg, err);
    return rc < 0 && rc != ERR_REFUSED ? (err->code = ERR_CORRUPT) : rc;
}
