/*
 * Builds the table in the order in which the parameters are stored: embedding, blocks, final norm,
 * head. push() is the only place that assigns offsets, so tensors are contiguous by construction;
 * the assertion at the end ties the table to the counts of config.c.
 *
 * The order of push() calls is part of the format of model.bin and of checkpoints.
 */
#include "worker/model/tensors.h"

#include <assert.h>

#include "base/xalloc.h"

/* Per role: the name (printf of the layer for those in blocks), and how it is initialised and
 * regularised. */
static const struct role_info {
    const char *name;
    bool decays;
    bool ones;
    bool residual;
} ROLES[TENSOR_ROLE_NR] = {
    [TENSOR_EMBED] = {"model.embed_tokens.weight", true, false, false},
    [TENSOR_NORM_ATTENTION] = {"input_layernorm.weight", false, true, false},
    [TENSOR_Q] = {"self_attn.q_proj.weight", true, false, false},
    [TENSOR_K] = {"self_attn.k_proj.weight", true, false, false},
    [TENSOR_V] = {"self_attn.v_proj.weight", true, false, false},
    [TENSOR_O] = {"self_attn.o_proj.weight", true, false, true},
    [TENSOR_NORM_FFN] = {"post_attention_layernorm.weight", false, true, false},
    [TENSOR_GATE] = {"mlp.gate_proj.weight", true, false, false},
    [TENSOR_UP] = {"mlp.up_proj.weight", true, false, false},
    [TENSOR_DOWN] = {"mlp.down_proj.weight", true, false, true},
    [TENSOR_ROUTER] = {"block_sparse_moe.gate.weight", true, false, false},
    [TENSOR_EXPERT_GATE_UP] = {"block_sparse_moe.experts.gate_up", true, false, false},
    [TENSOR_EXPERT_DOWN] = {"block_sparse_moe.experts.down", true, false, true},
    [TENSOR_SHARED_GATE] = {"block_sparse_moe.shared.gate", true, false, false},
    [TENSOR_SHARED_UP] = {"block_sparse_moe.shared.up", true, false, false},
    [TENSOR_SHARED_DOWN] = {"block_sparse_moe.shared.down", true, false, true},
    [TENSOR_NORM_FINAL] = {"model.norm.weight", false, true, false},
    [TENSOR_HEAD] = {"lm_head.weight", true, false, false},
};

/* Appends a tensor and enters it into the index. */
static void push(struct tensor_table *table, enum tensor_role role, int layer, int64_t rows,
                 int64_t cols)
{
    const struct role_info *info = &ROLES[role];
    struct tensor *t = &table->items[table->n];

    assert(rows > 0 && cols > 0);
    *t = (struct tensor){.role = role,
                         .layer = layer,
                         .offset = table->n_params,
                         .rows = (size_t)rows,
                         .cols = (size_t)cols,
                         .decays = info->decays,
                         .ones = info->ones,
                         .residual = info->residual};
    if (layer < 0)
        (void)snprintf(t->name, sizeof(t->name), "%s", info->name);
    else
        (void)snprintf(t->name, sizeof(t->name), "model.layers.%d.%s", layer, info->name);
    table->n_params += tensor_size(t);
    table->n++;
    table->index[(size_t)(layer + 1) * TENSOR_ROLE_NR + role] = table->n;
}

static void push_mixture(struct tensor_table *table, const struct model_config *cfg, int layer)
{
    int64_t c = cfg->width, e = cfg->experts, f = cfg->expert_ffn;
    int64_t shared = f * cfg->shared;

    push(table, TENSOR_ROUTER, layer, e, c);
    push(table, TENSOR_EXPERT_GATE_UP, layer, e * 2 * f, c);
    push(table, TENSOR_EXPERT_DOWN, layer, e * c, f);
    if (shared == 0)
        return;
    push(table, TENSOR_SHARED_GATE, layer, shared, c);
    push(table, TENSOR_SHARED_UP, layer, shared, c);
    push(table, TENSOR_SHARED_DOWN, layer, c, shared);
}

static void push_block(struct tensor_table *table, const struct model_config *cfg, int layer)
{
    int64_t c = cfg->width, kv = c / cfg->heads * cfg->kv_heads;

    push(table, TENSOR_NORM_ATTENTION, layer, c, 1);
    push(table, TENSOR_Q, layer, c, c);
    push(table, TENSOR_K, layer, kv, c);
    push(table, TENSOR_V, layer, kv, c);
    push(table, TENSOR_O, layer, c, c);
    push(table, TENSOR_NORM_FFN, layer, c, 1);
    if (model_config_is_moe(cfg, layer)) {
        push_mixture(table, cfg, layer);
        return;
    }
    push(table, TENSOR_GATE, layer, cfg->ffn, c);
    push(table, TENSOR_UP, layer, cfg->ffn, c);
    push(table, TENSOR_DOWN, layer, c, cfg->ffn);
}

void tensor_table_init(struct tensor_table *table, const struct model_config *cfg)
{
    size_t rows = (size_t)cfg->layers + 1;

    *table = (struct tensor_table){.layers = cfg->layers};
    table->items = xcalloc(rows * TENSOR_ROLE_NR, sizeof(*table->items));
    table->index = xcalloc(rows * TENSOR_ROLE_NR, sizeof(*table->index));
    push(table, TENSOR_EMBED, -1, cfg->vocab, cfg->width);
    for (int layer = 0; layer < cfg->layers; layer++)
        push_block(table, cfg, layer);
    push(table, TENSOR_NORM_FINAL, -1, cfg->width, 1);
    if (!cfg->tie_embeddings)
        push(table, TENSOR_HEAD, -1, cfg->vocab, cfg->width);
    assert((int64_t)table->n_params == model_config_total(cfg));
}

void tensor_table_release(struct tensor_table *table)
{
    free(table->items);
    free(table->index);
    *table = (struct tensor_table){0};
}

const struct tensor *tensor_find(const struct tensor_table *table, enum tensor_role role, int layer)
{
    size_t at = table->index[(size_t)(layer + 1) * TENSOR_ROLE_NR + role];

    return at == 0 ? NULL : &table->items[at - 1];
}

/* Bisection over the offsets, which rise. */
const struct tensor *tensor_holding(const struct tensor_table *table, size_t i)
{
    size_t low = 0, high = table->n;

    assert(i < table->n_params);
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (table->items[mid].offset <= i)
            low = mid;
        else
            high = mid;
    }
    return &table->items[low];
}
