/*
 * The ceiling is what OpenBLAS reaches on exactly the shapes of a training step: per linear layer
 * the forward product and the two gradients. Each is run twice and the second run is timed, with
 * operands in the caches. Sums over the shapes' medians give seconds of an ideal step; attention's
 * products are left out, since their share is small and their shapes vary.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "worker/model/weights.h"
#include "worker/nn/gemm.h"
#include "worker/train/bench.h"

#define SHAPES_MAX 32
#define ROUNDS_MAX 64
/* Tokens of one product with the head. The trainer's own pieces (worker/model/run.c) may be
 * smaller: that is its choice, and no excuse before the ceiling. */
#define HEAD_ROWS 1024

/* One layer y (n, out) = x (n, in) W^T: three products, `count` times a step. */
struct shape {
    size_t n, in, out;
    double count;
    double seconds[3][ROUNDS_MAX];
};

struct bench_ceiling {
    struct shape shapes[SHAPES_MAX];
    size_t n_shapes;
    size_t rounds;
    real *a, *b, *c;
    clockid_t clock;
};

static void add(struct bench_ceiling *c, size_t n, size_t in, size_t out, double count)
{
    if (n == 0 || in == 0 || out == 0 || count <= 0.0)
        return;
    c->shapes[c->n_shapes++] = (struct shape){.n = n, .in = in, .out = out, .count = count};
}

static void add_shapes(struct bench_ceiling *c, const struct model_config *cfg, size_t n)
{
    size_t width = (size_t)cfg->width, e = (size_t)cfg->experts, fe = (size_t)cfg->expert_ffn;
    size_t packed = model_config_qkv(cfg);
    size_t head = n < HEAD_ROWS ? n : HEAD_ROWS, shared = (size_t)cfg->shared * fe;
    double layers = cfg->layers, moe = model_config_moe_layers(cfg), dense = layers - moe;

    add(c, n, width, packed, layers);
    add(c, n, width, width, layers);
    add(c, n, width, 2 * (size_t)cfg->ffn, dense);
    add(c, n, (size_t)cfg->ffn, width, dense);
    add(c, head, width, (size_t)cfg->vocab, (double)n / (double)head);
    if (moe <= 0.0)
        return;
    /* Experts have different loads; all are given the mean one. */
    size_t rows = (n * (size_t)cfg->top_k + e - 1) / e;
    double experts = moe * (double)n * cfg->top_k / (double)rows;
    add(c, rows, width, 2 * fe, experts);
    add(c, rows, fe, width, experts);
    add(c, n, width, e, moe);
    add(c, n, width, 2 * shared, moe);
    add(c, n, shared, width, moe);
}

int bench_ceiling_create(const struct model_config *cfg, size_t n_tokens, clockid_t clock,
                         struct bench_ceiling **out, struct err *err)
{
    struct bench_ceiling *c = xcalloc(1, sizeof(*c));
    size_t x = 0, w = 0, y = 0;

    *out = NULL;
    c->clock = clock;
    add_shapes(c, cfg, n_tokens);
    for (size_t i = 0; i < c->n_shapes; i++) {
        const struct shape *s = &c->shapes[i];
        x = s->n * s->in > x ? s->n * s->in : x;
        w = s->in * s->out > w ? s->in * s->out : w;
        y = s->n * s->out > y ? s->n * s->out : y;
    }
    c->a = real_alloc(x);
    c->b = real_alloc(w);
    c->c = real_alloc(y);
    if (c->a == NULL || c->b == NULL || c->c == NULL) {
        bench_ceiling_free(c);
        return err_set(err, ERR_OTHER, "no memory for the matrices of the ceiling");
    }
    *out = c;
    return 0;
}

void bench_ceiling_free(struct bench_ceiling *c)
{
    if (c == NULL)
        return;
    free(c->a);
    free(c->b);
    free(c->c);
    free(c);
}

/* which: 0 forward, 1 the input's gradient, 2 the weight's. */
static void sgemm(struct bench_ceiling *c, const struct shape *s, int which)
{
    if (which == 0)
        gemm(c->c, s->out, false, operand_plain(c->a, s->in), operand_turned(c->b, s->in), s->n,
             s->out, s->in);
    else if (which == 1)
        gemm(c->a, s->in, false, operand_plain(c->c, s->out), operand_plain(c->b, s->in), s->n,
             s->in, s->out);
    else
        gemm(c->b, s->in, false, operand_turned(c->c, s->out), operand_plain(c->a, s->in), s->out,
             s->in, s->n);
}

void bench_ceiling_round(struct bench_ceiling *c)
{
    if (c->rounds == ROUNDS_MAX)
        return;
    for (size_t i = 0; i < c->n_shapes; i++) {
        struct shape *s = &c->shapes[i];
        for (int which = 0; which < 3; which++) {
            sgemm(c, s, which); /* its operands come into the caches */
            int64_t begin = pass_clock_now_ns(c->clock);
            sgemm(c, s, which);
            s->seconds[which][c->rounds] = (double)(pass_clock_now_ns(c->clock) - begin) * 1e-9;
        }
    }
    c->rounds++;
}

double bench_ceiling_flops(const struct bench_ceiling *c)
{
    double flops = 0.0;

    for (size_t i = 0; i < c->n_shapes; i++) {
        const struct shape *s = &c->shapes[i];
        flops += 3.0 * s->count * 2.0 * (double)s->n * (double)s->in * (double)s->out;
    }
    return flops;
}

double bench_ceiling_rate(const struct bench_ceiling *c)
{
    double seconds = 0.0;

    for (size_t i = 0; i < c->n_shapes; i++) {
        const struct shape *s = &c->shapes[i];
        for (int which = 0; which < 3; which++) {
            double times[ROUNDS_MAX];
            for (size_t r = 0; r < c->rounds; r++)
                times[r] = s->seconds[which][r];
            seconds += s->count * bench_spread_of(times, c->rounds).median;
        }
    }
    return bench_ceiling_flops(c) / seconds;
}
