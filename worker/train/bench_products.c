/*
 * What the products of a training step reach by themselves: per linear layer the forward product
 * and the two gradients, by the products that the step uses. Each is run twice and the second run
 * is timed, with operands in the caches. Sums over the shapes' medians give seconds of an ideal
 * step; attention's products are left out, since their share is small and their shapes vary.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "worker/model/weights.h"
#include "worker/train/bench.h"

#define SHAPES_MAX 32
/* Tokens of one product with the head. The trainer's own pieces (worker/model/run.c) may be
 * smaller. */
#define HEAD_ROWS 1024

/* One layer y (n, out) = x (n, in) W^T: three products, `count` times a step. */
struct shape {
    size_t n, in, out;
    double count;
    enum pass_part part;
    enum product_precision precision;
    double seconds[3][BENCH_ROUNDS_MAX];
};

struct bench_products {
    struct shape shapes[SHAPES_MAX];
    size_t n_shapes;
    size_t rounds;
    real *a, *b, *c;
    clockid_t clock;
    enum product_precision precision;
};

static void add(struct bench_products *c, size_t n, size_t in, size_t out, double count)
{
    if (n == 0 || in == 0 || out == 0 || count <= 0.0)
        return;
    c->shapes[c->n_shapes++] = (struct shape){
        .n = n, .in = in, .out = out, .count = count, .part = PASS_BODY, .precision = c->precision};
}

static void add_shapes(struct bench_products *c, const struct model_config *cfg, size_t n)
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
    c->shapes[c->n_shapes - 1].part = PASS_HEAD;
    if (moe <= 0.0)
        return;
    /* Experts have different loads; all are given the mean one. */
    size_t rows = (n * (size_t)cfg->top_k + e - 1) / e;
    double experts = moe * (double)n * cfg->top_k / (double)rows;
    add(c, rows, width, 2 * fe, experts);
    add(c, rows, fe, width, experts);
    add(c, n, width, e, moe);
    c->shapes[c->n_shapes - 1].precision = PRODUCT_FLOAT32; /* the router's */
    add(c, n, width, 2 * shared, moe);
    add(c, n, shared, width, moe);
}

int bench_products_create(const struct model_config *cfg, enum product_precision precision,
                          size_t n_tokens, clockid_t clock, struct bench_products **out,
                          struct err *err)
{
    struct bench_products *c = xcalloc(1, sizeof(*c));
    size_t x = 0, w = 0, y = 0;

    *out = NULL;
    c->clock = clock;
    c->precision = precision;
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
        bench_products_free(c);
        return err_set(err, ERR_OTHER, "no memory for the matrices of a step");
    }
    *out = c;
    return 0;
}

void bench_products_free(struct bench_products *c)
{
    if (c == NULL)
        return;
    free(c->a);
    free(c->b);
    free(c->c);
    free(c);
}

/* which: 0 forward, 1 the input's gradient, 2 the weight's. */
static void multiply(struct bench_products *c, const struct shape *s, int which)
{
    if (which == 0)
        product(s->precision, c->c, s->out, false, operand_plain(c->a, s->in),
                operand_turned(c->b, s->in), s->n, s->out, s->in);
    else if (which == 1)
        product(s->precision, c->a, s->in, false, operand_plain(c->c, s->out),
                operand_plain(c->b, s->in), s->n, s->in, s->out);
    else
        product(s->precision, c->b, s->in, false, operand_turned(c->c, s->out),
                operand_plain(c->a, s->in), s->out, s->in, s->n);
}

void bench_products_round(struct bench_products *c)
{
    if (c->rounds == BENCH_ROUNDS_MAX)
        return;
    for (size_t i = 0; i < c->n_shapes; i++) {
        struct shape *s = &c->shapes[i];
        for (int which = 0; which < 3; which++) {
            multiply(c, s, which); /* its operands come into the caches */
            int64_t begin = pass_clock_now_ns(c->clock);
            multiply(c, s, which);
            s->seconds[which][c->rounds] = (double)(pass_clock_now_ns(c->clock) - begin) * 1e-9;
        }
    }
    c->rounds++;
}

void bench_products_count(const struct bench_products *c, struct bench_part out[PASS_NR])
{
    for (size_t i = 0; i < c->n_shapes; i++) {
        const struct shape *s = &c->shapes[i];
        double n = (double)s->n, in = (double)s->in, rows = (double)s->out;
        out[s->part].operations += 3.0 * s->count * 2.0 * n * in * rows;
        /* the weight's gradient is added to what is there */
        out[s->part].bytes +=
            s->count * sizeof(real) * (3.0 * (n * in + in * rows + n * rows) + in * rows);
    }
}

static double operations(const struct bench_products *c)
{
    struct bench_part parts[PASS_NR] = {0};

    bench_products_count(c, parts);
    return parts[PASS_BODY].operations + parts[PASS_HEAD].operations;
}

double bench_products_rate(const struct bench_products *c)
{
    double seconds = 0.0;

    for (size_t i = 0; i < c->n_shapes; i++) {
        const struct shape *s = &c->shapes[i];
        for (int which = 0; which < 3; which++) {
            double times[BENCH_ROUNDS_MAX];
            for (size_t r = 0; r < c->rounds; r++)
                times[r] = s->seconds[which][r];
            seconds += s->count * bench_spread_of(times, c->rounds).median;
        }
    }
    return operations(c) / seconds;
}
