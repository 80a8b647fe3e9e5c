/*
 * Counts what the parts of a step must compute and move. Bytes are those of operands and results
 * that a part reads and writes once, from wherever they are: a small model's are in a cache, and
 * can come faster than memory allows. An e^x counts as the 16 operations of nn_exp().
 */
#include "worker/train/bench.h"

#define EXP 16.0

static void count(struct bench_part *part, double operations, double numbers)
{
    part->operations += operations;
    part->bytes += numbers * sizeof(real);
}

/* x and y, forward; dy, x and dx twice, backward. The residual sum's copy is in it. */
static void count_norm(struct bench_part *part, double n)
{
    count(part, 14.0 * n, 8.0 * n);
}

/* rows of 2 f gates and ups: out of them h, and from dh and them both gradients. */
static void count_swiglu(struct bench_part *part, double rows, double f)
{
    count(part, rows * f * (2.0 * EXP + 14.0), rows * f * 8.0);
}

/* A token's row goes to `top` experts and its gradient comes back, each way in three passes. */
static void count_routing(struct bench_part *part, double n, double top, double width,
                          double experts)
{
    count(part, n * top * 6.0 * width + n * experts * (EXP + 4.0), n * top * 13.0 * width);
}

void bench_parts_count(const struct model_config *cfg, size_t n_tokens,
                       struct bench_part out[PASS_NR])
{
    double n = (double)n_tokens, width = cfg->width, layers = cfg->layers;
    double moe = model_config_moe_layers(cfg), dim = width / cfg->heads;
    double packed = (double)model_config_qkv(cfg), params = (double)model_config_total(cfg);
    double products = 12.0 * layers * width * (double)cfg->context / 2.0;
    struct bench_part *elements = &out[PASS_ELEMENTS];

    count(&out[PASS_ATTENTION], n * products, n * layers * (3.0 * packed + 3.0 * width));
    count_norm(elements, n * width * (2.0 * layers + 1.0));
    count(elements, 0.0, 5.0 * n * width); /* embedding */
    /* rotation of queries and keys, there and back */
    count(elements, n * layers * 6.0 * dim * (cfg->heads + cfg->kv_heads),
          n * layers * 4.0 * dim * (cfg->heads + cfg->kv_heads));
    count_swiglu(elements, n * (layers - moe), cfg->ffn);
    count_swiglu(elements, n * moe, (double)(cfg->shared + cfg->top_k) * cfg->expert_ffn);
    if (moe > 0.0)
        count_routing(&out[PASS_ROUTING], n * moe, cfg->top_k, width, cfg->experts);
    count(&out[PASS_LOSS], n * cfg->vocab * (EXP + 4.0), n * cfg->vocab * 2.0);
    /* the norm reads g; AdamW reads and writes g, p, m and v */
    count(&out[PASS_OPTIMISER], 16.0 * params, 9.0 * params);
    /* a token is read and written as one and as the target of the one before it */
    count(&out[PASS_REST], 0.0, 4.0 * n);
}

double bench_part_bound(const struct bench_part *part, const struct bench_result *r)
{
    double compute = part->operations / r->peak, move = part->bytes / r->bandwidth;

    return compute > move ? compute : move;
}

bool bench_part_is_memory_bound(const struct bench_part *part, const struct bench_result *r)
{
    return part->bytes / r->bandwidth > part->operations / r->peak;
}
