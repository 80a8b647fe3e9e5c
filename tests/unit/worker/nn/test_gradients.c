/* Every layer of worker/nn against central differences; each loss is a fixed random weighting of
 * the output. */
#include <math.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/worker/gradcheck.h"
#include "worker/nn/adamw.h"
#include "worker/nn/attention.h"
#include "worker/nn/crossent.h"
#include "worker/nn/embedding.h"
#include "worker/nn/linear.h"
#include "worker/nn/moe.h"
#include "worker/nn/rmsnorm.h"
#include "worker/nn/rope.h"
#include "worker/nn/router.h"
#include "worker/nn/swiglu.h"

static double weighted(const double *y, const double *r, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += y[i] * r[i];
    return sum;
}

/* One case: up to three inputs, an output and its weighting; run() fills y from the inputs. */
struct layer_case {
    double *x, *w, *y, *r, *extra;
    size_t n, c, o;
};

static double linear_loss(void *ctx)
{
    struct layer_case *k = ctx;

    linear_forward(k->y, false, k->x, k->w,
                   &(struct linear_dims){k->n, k->c, k->o, PRODUCT_FLOAT32});
    return weighted(k->y, k->r, k->n * k->o);
}

static void test_linear(void **state)
{
    (void)state;
    struct layer_case k = {.n = 5, .c = 7, .o = 3};
    k.x = random_array(k.n * k.c, 1, 1.0);
    k.w = random_array(k.o * k.c, 2, 1.0);
    k.y = zero_array(k.n * k.o);
    k.r = random_array(k.n * k.o, 3, 1.0);
    double *dx = zero_array(k.n * k.c), *dw = zero_array(k.o * k.c);
    linear_backward_input(dx, false, k.r, k.w,
                          &(struct linear_dims){k.n, k.c, k.o, PRODUCT_FLOAT32});
    linear_backward_weight(dw, k.r, k.x, &(struct linear_dims){k.n, k.c, k.o, PRODUCT_FLOAT32});
    gradcheck("linear x", k.x, dx, k.n * k.c, 1, linear_loss, &k);
    gradcheck("linear w", k.w, dw, k.o * k.c, 1, linear_loss, &k);
    free(k.x), free(k.w), free(k.y), free(k.r), free(dx), free(dw);
}

static double rmsnorm_loss(void *ctx)
{
    struct layer_case *k = ctx;

    rmsnorm_forward(k->y, k->extra, k->x, k->w, 1e-5, k->n, k->c);
    return weighted(k->y, k->r, k->n * k->c);
}

static void test_rmsnorm(void **state)
{
    (void)state;
    struct layer_case k = {.n = 4, .c = 37}; /* longer than the lanes, with a rest */
    size_t size = k.n * k.c;
    k.x = random_array(size, 4, 1.0);
    k.w = random_array(k.c, 5, 1.0);
    k.y = zero_array(size);
    k.r = random_array(size, 6, 1.0);
    k.extra = zero_array(k.n);
    double *dx = zero_array(size), *dw = zero_array(k.c);
    (void)rmsnorm_loss(&k);
    rmsnorm_backward(dx, dw, k.r, k.x, k.w, k.extra, k.n, k.c);
    gradcheck("rmsnorm x", k.x, dx, size, 1, rmsnorm_loss, &k);
    gradcheck("rmsnorm w", k.w, dw, k.c, 1, rmsnorm_loss, &k);
    free(k.x), free(k.w), free(k.y), free(k.r), free(k.extra), free(dx), free(dw);
}

static double swiglu_loss(void *ctx)
{
    struct layer_case *k = ctx;

    swiglu_forward(k->y, k->x, k->n, k->c);
    return weighted(k->y, k->r, k->n * k->c);
}

static void test_swiglu(void **state)
{
    (void)state;
    struct layer_case k = {.n = 3, .c = 19};
    k.x = random_array(k.n * 2 * k.c, 7, 3.0);
    k.y = zero_array(k.n * k.c);
    k.r = random_array(k.n * k.c, 8, 1.0);
    double *dx = xcalloc(k.n * 2 * k.c, sizeof(double));
    memcpy(dx, k.x, k.n * 2 * k.c * sizeof(double));
    swiglu_backward(dx, k.r, k.n, k.c);
    gradcheck("swiglu", k.x, dx, k.n * 2 * k.c, 1, swiglu_loss, &k);
    free(k.x), free(k.y), free(k.r), free(dx);
}

static double rope_loss(void *ctx)
{
    struct layer_case *k = ctx;
    size_t n = k->n * 24;

    memcpy(k->y, k->x, n * sizeof(double));
    rope_forward(k->y, k->extra, k->n, 5, 2, 8, 24);
    return weighted(k->y, k->r, n);
}

static void test_rope(void **state)
{
    (void)state;
    struct layer_case k = {.n = 10}; /* two sequences of 5; two of three heads of 8 are rotated */
    size_t size = k.n * 24;
    k.x = random_array(size, 9, 1.0);
    k.y = zero_array(size);
    k.r = random_array(size, 10, 1.0);
    k.extra = zero_array((size_t)5 * 8);
    rope_table(k.extra, 10000.0, 5, 8);
    double *dx = xcalloc(size, sizeof(double));
    memcpy(dx, k.r, size * sizeof(double));
    rope_backward(dx, k.extra, k.n, 5, 2, 8, 24);
    gradcheck("rope", k.x, dx, size, 1, rope_loss, &k);
    free(k.x), free(k.y), free(k.r), free(k.extra), free(dx);
}

struct attention_case {
    struct attention_dims dims;
    double *qkv, *out, *lse, *scratch, *r;
    size_t n_out;
};

static double attention_loss(void *ctx)
{
    struct attention_case *k = ctx;

    attention_forward(k->out, k->lse, k->qkv, k->scratch, &k->dims);
    return weighted(k->out, k->r, k->n_out);
}

static void check_attention(const char *what, struct attention_dims dims, size_t stride)
{
    struct attention_case k = {.dims = dims};
    size_t rows = dims.batch * dims.tokens;
    size_t packed = rows * (dims.heads + 2 * dims.groups) * dims.dim;

    k.n_out = rows * dims.heads * dims.dim;
    k.qkv = random_array(packed, 11, 1.5);
    k.out = zero_array(k.n_out);
    k.lse = zero_array(rows * dims.heads);
    k.scratch = zero_array(attention_scratch(&dims));
    k.r = random_array(k.n_out, 12, 1.0);
    double *dqkv = random_array(packed, 13, 1.0); /* what was there before must not matter */
    (void)attention_loss(&k);
    attention_backward(dqkv, k.r, k.out, k.lse, k.qkv, k.scratch, &dims);
    gradcheck(what, k.qkv, dqkv, packed, stride, attention_loss, &k);
    (void)attention_loss(&k); /* the differences moved qkv */
    attention_backward(dqkv, k.r, k.out, k.lse, k.qkv, k.scratch, &dims);
    attention_backward(k.qkv, k.r, k.out, k.lse, k.qkv, k.scratch, &dims);
    assert_memory_equal(k.qkv, dqkv, packed * sizeof(double));
    free(k.qkv), free(k.out), free(k.lse), free(k.scratch), free(k.r), free(dqkv);
}

static void test_attention(void **state)
{
    (void)state;
    check_attention("attention", (struct attention_dims){2, 7, 2, 2, 4}, 1);
    check_attention("attention, grouped", (struct attention_dims){1, 6, 4, 2, 2}, 1);
    check_attention("attention, tiles and a rest",
                    (struct attention_dims){1, 2 * ATTENTION_TILE + 5, 2, 1, 4}, 17);
}

static void test_attention_is_causal(void **state)
{
    (void)state;
    struct attention_dims dims = {1, ATTENTION_TILE + 9, 1, 1, 4};
    size_t packed = dims.tokens * 12, n_out = dims.tokens * 4, at = 20;
    double *qkv = random_array(packed, 14, 1.0), *out = zero_array(n_out);
    double *after = zero_array(n_out), *lse = zero_array(dims.tokens);
    double *scratch = zero_array(attention_scratch(&dims));

    attention_forward(out, lse, qkv, scratch, &dims);
    for (size_t i = at * 12; i < packed; i++)
        qkv[i] += 1.0;
    attention_forward(after, lse, qkv, scratch, &dims);
    assert_memory_equal(out, after, at * 4 * sizeof(double));
    assert_true(fabs(out[at * 4] - after[at * 4]) > 1e-3);
    free(qkv), free(out), free(after), free(lse), free(scratch);
}

/* out of one query, the textbook way. */
static void plain_attention(double *out, const double *qkv, const struct attention_dims *dims,
                            size_t head, size_t i)
{
    size_t d = dims->dim, ld = (dims->heads + 2 * dims->groups) * d;
    size_t group = head / (dims->heads / dims->groups);
    const double *q = qkv + i * ld + head * d, *k = qkv + (dims->heads + group) * d;
    const double *v = k + dims->groups * d;
    double *p = zero_array(i + 1), sum = 0.0;

    for (size_t j = 0; j <= i; j++) {
        for (size_t c = 0; c < d; c++)
            p[j] += q[c] * k[j * ld + c];
        p[j] = exp(p[j] / sqrt((double)d));
        sum += p[j];
    }
    memset(out, 0, d * sizeof(*out));
    for (size_t j = 0; j <= i; j++)
        for (size_t c = 0; c < d; c++)
            out[c] += p[j] / sum * v[j * ld + c];
    free(p);
}

static void test_attention_long(void **state)
{
    (void)state;
    struct attention_dims dims = {1, 4096, 2, 1, 4};
    size_t packed = dims.tokens * 16, n_out = dims.tokens * 8;
    double *qkv = random_array(packed, 19, 1.5), *out = zero_array(n_out), worst = 0.0;
    double *lse = zero_array(dims.tokens * 2), *scratch = zero_array(attention_scratch(&dims));

    attention_forward(out, lse, qkv, scratch, &dims);
    for (size_t i = 0; i < dims.tokens; i++)
        for (size_t head = 0; head < 2; head++) {
            double want[4];
            plain_attention(want, qkv, &dims, head, i);
            for (size_t c = 0; c < 4; c++)
                worst = fmax(worst, fabs(want[c] - out[i * 8 + head * 4 + c]));
        }
    print_message("  4096 tokens: worst difference %.2e\n", worst);
    assert_true(worst < 1e-12);
    free(qkv), free(out), free(lse), free(scratch);
    check_attention("attention, 4096 tokens", dims, 4096 * 4 - 5);
}

static void test_embedding(void **state)
{
    (void)state;
    static const uint32_t ids[] = {3, 0, 3};
    double w[8] = {0, 1, 2, 3, 4, 5, 6, 7}, x[6], dw[8] = {0};
    const double dx[6] = {1, 2, 10, 20, 100, 200};

    embedding_forward(x, w, ids, 3, 2);
    assert_true(x[0] == 6 && x[1] == 7 && x[2] == 0 && x[3] == 1 && x[4] == 6 && x[5] == 7);
    embedding_backward(dw, dx, ids, 3, 2);
    assert_true(dw[6] == 101 && dw[7] == 202 && dw[0] == 10 && dw[1] == 20 && dw[2] == 0);
}

struct crossent_case {
    double *logits;
    uint32_t targets[3];
    struct crossent_dims dims;
};

static double crossent_loss(void *ctx)
{
    struct crossent_case *k = ctx;
    double loss[3];

    crossent_forward(loss, NULL, k->logits, k->targets, &k->dims);
    return 0.25 * (loss[0] + loss[1] + loss[2]);
}

static void test_crossent(void **state)
{
    (void)state;
    struct crossent_case k = {.targets = {0, 36, 5}, .dims = {.n = 3, .v = 37, .ld = 40}};
    size_t all = k.dims.n * k.dims.ld;
    double loss[3], top[3];
    k.logits = random_array(all, 15, 4.0);
    double *grad = xcalloc(all, sizeof(double));
    memcpy(grad, k.logits, all * sizeof(double));
    crossent_forward_backward(loss, grad, 0.25, k.targets, &k.dims);
    for (size_t i = 0; i < all; i++)
        if (i % k.dims.ld >= k.dims.v) {
            assert_true(grad[i] == k.logits[i]);
            grad[i] = 0; /* the loss does not read it */
        }
    gradcheck("cross-entropy", k.logits, grad, all, 1, crossent_loss, &k);
    crossent_forward(loss, top, k.logits, k.targets, &k.dims);
    for (size_t i = 0; i < k.dims.v; i++)
        assert_true(k.logits[i] <= top[0]);
    free(k.logits), free(grad);
}

struct router_case {
    struct router_dims dims;
    struct router_weights weights;
    double *logits, *p, *lse, *w, *r;
    uint32_t *chosen, *counts;
    struct router_stats stats;
};

static double router_loss(void *ctx)
{
    struct router_case *k = ctx;
    size_t n = k->dims.n, e = k->dims.experts;

    memcpy(k->p, k->logits, n * e * sizeof(double));
    router_forward(k->p, k->lse, k->chosen, k->w, k->counts, NULL, &k->stats, &k->dims);
    return weighted(k->w, k->r, n * k->dims.top_k) + k->weights.balance * k->stats.balance +
           k->weights.z * k->stats.z;
}

static void check_router(const char *what, bool renormalise, double balance, double z)
{
    struct router_case k = {.dims = {.n = 9, .experts = 5, .top_k = 2, .renormalise = renormalise},
                            .weights = {.balance = balance, .z = z}};
    size_t size = k.dims.n * k.dims.experts, top = k.dims.n * k.dims.top_k;
    k.logits = random_array(size, 16, 2.0);
    k.p = zero_array(size);
    k.lse = zero_array(k.dims.n);
    k.w = zero_array(top);
    k.r = random_array(top, 17, 1.0);
    k.chosen = xcalloc(top, sizeof(uint32_t));
    k.counts = xcalloc(k.dims.experts, sizeof(uint32_t));
    k.stats.counts = xcalloc(k.dims.experts, sizeof(uint64_t));
    k.stats.p_sum = zero_array(k.dims.experts);
    double *dr = random_array(size, 18, 1.0);
    (void)router_loss(&k);
    router_backward(dr, k.r, k.p, k.lse, k.chosen, k.w, k.counts, &k.weights, &k.dims);
    gradcheck(what, k.logits, dr, size, 1, router_loss, &k);
    free(k.logits), free(k.p), free(k.lse), free(k.w), free(k.r), free(k.chosen), free(k.counts);
    free(k.stats.counts), free(k.stats.p_sum), free(dr);
}

static void test_router(void **state)
{
    (void)state;
    check_router("router, renormalised", true, 0.0, 0.0);
    check_router("router, plain weights", false, 0.0, 0.0);
    check_router("balance loss", true, 0.7, 0.0);
    check_router("z-loss", true, 0.0, 0.3);
}

static void test_router_choice(void **state)
{
    (void)state;
    struct router_dims dims = {.n = 2, .experts = 4, .top_k = 2, .renormalise = true};
    double p[8] = {1, 3, 3, 1, 0, 0, 0, 0}, lse[2], w[4];
    const double bias[4] = {0, 0, 0, 5};
    uint32_t chosen[4], counts[4];

    router_forward(p, lse, chosen, w, counts, NULL, NULL, &dims);
    assert_int_equal(chosen[0], 1); /* ties go to the lower index */
    assert_int_equal(chosen[1], 2);
    assert_int_equal(chosen[2], 0);
    assert_int_equal(chosen[3], 1);
    assert_int_equal(counts[1], 2);
    assert_true(fabs(w[0] - 0.5) < 1e-15 && fabs(lse[1] - log(4.0)) < 1e-15);
    double again[8] = {1, 3, 3, 1, 0, 0, 0, 0};
    router_forward(again, lse, chosen, w, counts, bias, NULL, &dims);
    assert_int_equal(chosen[0], 3);           /* the bias counts for the choice ... */
    assert_memory_equal(p, again, sizeof(p)); /* ... and for nothing else */
    assert_true(w[0] < w[1]);
}

struct moe_case {
    struct moe_dims dims;
    struct moe_plan plan;
    struct moe_kept kept;
    double *x, *w, *wgu, *wd, *base, *y, *r;
};

static double moe_loss(void *ctx)
{
    struct moe_case *k = ctx;

    moe_forward(&k->kept, &k->plan, k->x, k->wgu, k->wd, &k->dims);
    moe_combine(k->y, k->base, &k->kept, &k->plan, k->w, &k->dims);
    return weighted(k->y, k->r, k->dims.n * k->dims.width);
}

static void moe_case_init(struct moe_case *k)
{
    size_t n = k->dims.n, c = k->dims.width, f = k->dims.ffn, top = n * k->dims.top_k;
    /* expert 2 gets nothing */
    static const uint32_t chosen[] = {0, 1, 3, 0, 0, 3, 1, 0, 3, 1};
    static const uint32_t counts[] = {4, 3, 0, 3};

    k->plan.place = xcalloc(top, sizeof(uint32_t));
    k->plan.first = xcalloc(k->dims.experts + 1, sizeof(uint32_t));
    k->plan.source = xcalloc(top, sizeof(uint32_t));
    moe_plan_make(&k->plan, chosen, counts, &k->dims);
    k->x = random_array(n * c, 19, 1.0);
    k->w = random_array(top, 20, 1.0);
    k->wgu = random_array(k->dims.experts * 2 * f * c, 21, 1.0);
    k->wd = random_array(k->dims.experts * c * f, 22, 1.0);
    k->base = random_array(n * c, 24, 1.0);
    k->y = zero_array(n * c);
    k->r = random_array(n * c, 23, 1.0);
    k->kept = (struct moe_kept){zero_array(n * c), zero_array(top * 2 * f), zero_array(n * f),
                                zero_array(top * c)};
}

static void moe_case_release(struct moe_case *k)
{
    free(k->plan.place), free(k->plan.first), free(k->plan.source);
    free(k->x), free(k->w), free(k->wgu), free(k->wd), free(k->base), free(k->y);
    free(k->r), free(k->kept.xg), free(k->kept.gu), free(k->kept.h), free(k->kept.yg);
}

static void test_moe(void **state)
{
    (void)state;
    struct moe_case k = {.dims = {.n = 5, .width = 6, .experts = 4, .top_k = 2, .ffn = 3}};
    moe_case_init(&k);
    size_t n = k.dims.n, c = k.dims.width, f = k.dims.ffn, top = n * k.dims.top_k;
    size_t n_gu = k.dims.experts * 2 * f * c, n_d = k.dims.experts * c * f;
    struct moe_gradient g = {zero_array(n * c), zero_array(top), zero_array(n_gu), zero_array(n_d)};
    (void)moe_loss(&k);
    moe_combine(k.kept.xg, k.base, &k.kept, &k.plan, k.w, &k.dims);
    assert_memory_equal(k.kept.xg, k.y, n * c * sizeof(double));
    memset(k.kept.xg, 0xff, n * c * sizeof(double)); /* another layer's by now */
    memset(k.kept.h, 0xff, n * f * sizeof(double));
    moe_backward(&g, k.r, &k.kept, &k.plan, k.x, k.w, k.wgu, k.wd, &k.dims);
    gradcheck("mixture x", k.x, g.dx, n * c, 1, moe_loss, &k);
    gradcheck("mixture weights", k.w, g.dw, top, 1, moe_loss, &k);
    gradcheck("mixture gate and up", k.wgu, g.dwgu, n_gu, 1, moe_loss, &k);
    gradcheck("mixture down", k.wd, g.dwd, n_d, 1, moe_loss, &k);
    free(g.dx), free(g.dw), free(g.dwgu), free(g.dwd);
    moe_case_release(&k);
}

/* The textbook form, step by step, against the fused pass. */
static void test_adamw(void **state)
{
    (void)state;
    double p[3] = {1.0, -2.0, 0.5}, q[3] = {1.0, -2.0, 0.5};
    double m[3] = {0}, v[3] = {0}, mm[3] = {0}, vv[3] = {0};
    const double g[3] = {0.3, -4.0, 0.0};

    for (int t = 1; t <= 5; t++) {
        struct adamw opt = {.lr = 0.01 * t,
                            .beta1 = 0.9,
                            .beta2 = 0.95,
                            .eps = 1e-8,
                            .decay = 0.1,
                            .clip = 0.5,
                            .t = t};
        double used[3];
        memcpy(used, g, sizeof(used));
        adamw_update(p, m, v, used, 3, &opt);
        for (int i = 0; i < 3; i++) {
            assert_true(used[i] == 0.0);
            double gi = g[i] * 0.5;
            mm[i] = 0.9 * mm[i] + 0.1 * gi;
            vv[i] = 0.95 * vv[i] + 0.05 * gi * gi;
            double mh = mm[i] / (1.0 - pow(0.9, t)), vh = vv[i] / (1.0 - pow(0.95, t));
            q[i] -= 0.01 * t * (mh / (sqrt(vh) + 1e-8) + 0.1 * q[i]);
            assert_true(fabs(p[i] - q[i]) < 1e-14);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),         cmocka_unit_test(test_rmsnorm),
        cmocka_unit_test(test_swiglu),         cmocka_unit_test(test_rope),
        cmocka_unit_test(test_attention),      cmocka_unit_test(test_attention_is_causal),
        cmocka_unit_test(test_attention_long), cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_crossent),       cmocka_unit_test(test_router),
        cmocka_unit_test(test_router_choice),  cmocka_unit_test(test_moe),
        cmocka_unit_test(test_adamw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
