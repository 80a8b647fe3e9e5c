/* Attention to the bit against docs/arithmetic.md: chains of fmaf over the keys and queries that a
 * row meets, sums in 16 lanes; and the search for the largest number of a row. */
#include <math.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/nn/attention.h"
#include "worker/nn/vec.h"

#define TOKENS_MAX 160
#define DIM_MAX    64

static uint64_t state_of_draw = 5;

static real draw(void)
{
    state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
    return (real)((double)(int32_t)(state_of_draw >> 32) * 0x1p-30);
}

static real *draw_many(size_t n)
{
    real *x = xcalloc(n, sizeof(*x));

    for (size_t i = 0; i < n; i++)
        x[i] = draw();
    return x;
}

static real lanes_sum(const real *terms, size_t n)
{
    real acc[NN_LANES] = {0};

    for (size_t i = 0; i < n; i++)
        acc[i % NN_LANES] += terms[i];
    return nn_lanes_sum(acc);
}

/* One head's arrays in a sequence, rows ld apart (out and dout: width apart). */
struct head {
    const real *q, *k, *v, *dout;
    size_t ld, width, tokens, d;
    real scale;
};

/* Weights of query i and the logarithm of their sum; the scores in s. */
static real weigh(const struct head *h, size_t i, real *p)
{
    real max = (real)-INFINITY;

    for (size_t j = 0; j <= i; j++) {
        p[j] = 0;
        for (size_t c = 0; c < h->d; c++)
            p[j] = fmaf(h->q[i * h->ld + c] * h->scale, h->k[j * h->ld + c], p[j]);
        max = p[j] > max ? p[j] : max;
    }
    for (size_t j = 0; j <= i; j++)
        p[j] = nn_exp(p[j] - max);
    real sum = lanes_sum(p, i + 1), factor = 1 / sum;
    for (size_t j = 0; j <= i; j++)
        p[j] *= factor;
    return max + nn_log(sum);
}

static void forward(const struct head *h, real *out, real *lse, size_t lse_step)
{
    real p[TOKENS_MAX];

    for (size_t i = 0; i < h->tokens; i++) {
        lse[i * lse_step] = weigh(h, i, p);
        for (size_t c = 0; c < h->d; c++) {
            real sum = 0;
            for (size_t j = 0; j <= i; j++)
                sum = fmaf(p[j], h->v[j * h->ld + c], sum);
            out[i * h->width + c] = sum;
        }
    }
}

/* Row i of p and of ds. */
static void weigh_back(const struct head *h, size_t i, const real *out, real lse, real *p, real *ds)
{
    real terms[DIM_MAX];

    for (size_t c = 0; c < h->d; c++)
        terms[c] = h->dout[i * h->width + c] * out[i * h->width + c];
    real delta = lanes_sum(terms, h->d);
    for (size_t j = 0; j <= i; j++) {
        real s = 0, dp = 0;
        for (size_t c = 0; c < h->d; c++) {
            s = fmaf(h->q[i * h->ld + c] * h->scale, h->k[j * h->ld + c], s);
            dp = fmaf(h->dout[i * h->width + c], h->v[j * h->ld + c], dp);
        }
        p[j] = nn_exp(s - lse);
        ds[j] = p[j] * (dp - delta);
    }
}

/* dq of the head; dk and dv continue what is there. */
static void backward(const struct head *h, const real *out, const real *lse, size_t lse_step,
                     real *dq, real *dk, real *dv)
{
    real p[TOKENS_MAX], ds[TOKENS_MAX];

    for (size_t i = 0; i < h->tokens; i++) {
        weigh_back(h, i, out, lse[i * lse_step], p, ds);
        for (size_t c = 0; c < h->d; c++) {
            real sum = 0;
            for (size_t j = 0; j <= i; j++) {
                real *k = dk + j * h->ld + c, *v = dv + j * h->ld + c;
                sum = fmaf(ds[j], h->k[j * h->ld + c], sum);
                *v = fmaf(p[j], h->dout[i * h->width + c], *v);
                *k = fmaf(ds[j], h->q[i * h->ld + c] * h->scale, *k);
            }
            dq[i * h->ld + c] = sum * h->scale;
        }
    }
}

/* All heads of all sequences; want_dqkv begins at zero. */
static void plain(const struct attention_dims *dims, const real *qkv, const real *dout, real *out,
                  real *lse, real *dqkv)
{
    size_t d = dims->dim, ld = (dims->heads + 2 * dims->groups) * d, width = dims->heads * d;

    for (size_t b = 0; b < dims->batch; b++)
        for (size_t head = 0; head < dims->heads; head++) {
            size_t group = head / (dims->heads / dims->groups), row = b * dims->tokens;
            size_t k = row * ld + (dims->heads + group) * d, v = k + dims->groups * d;
            size_t q = row * ld + head * d, o = row * width + head * d;
            struct head h = {.q = qkv + q,
                             .k = qkv + k,
                             .v = qkv + v,
                             .dout = dout + o,
                             .ld = ld,
                             .width = width,
                             .tokens = dims->tokens,
                             .d = d,
                             .scale = (real)(1.0 / sqrt((double)d))};
            real *at = lse + row * dims->heads + head;
            forward(&h, out + o, at, dims->heads);
            backward(&h, out + o, at, dims->heads, dqkv + q, dqkv + k, dqkv + v);
        }
}

static void test_bits(void **state)
{
    /* whole tiles and not, a group of several heads, D of whole vectors and not, one token */
    const struct attention_dims table[] = {
        {1, 150, 2, 2, 64}, {2, 77, 4, 2, 24}, {1, 160, 3, 1, 16}, {3, 31, 2, 1, 5},
        {1, 64, 2, 2, 32},  {2, 1, 2, 2, 8},   {1, 100, 6, 2, 48},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const struct attention_dims *dims = &table[i];
        CHECK_ROW("T %zu, H %zu, G %zu, D %zu", dims->tokens, dims->heads, dims->groups, dims->dim);
        size_t rows = dims->batch * dims->tokens, n_out = rows * dims->heads * dims->dim;
        size_t packed = rows * (dims->heads + 2 * dims->groups) * dims->dim;
        real *qkv = draw_many(packed), *dout = draw_many(n_out), *got = draw_many(n_out);
        real *dqkv = draw_many(packed), *want_dqkv = xcalloc(packed, sizeof(real));
        real *out = xcalloc(n_out, sizeof(real)), *lse = xcalloc(rows * dims->heads, sizeof(real));
        real *got_lse = draw_many(rows * dims->heads),
             *scratch = draw_many(attention_scratch(dims));
        plain(dims, qkv, dout, out, lse, want_dqkv);
        attention_forward(got, got_lse, qkv, scratch, dims);
        attention_backward(dqkv, dout, got, got_lse, qkv, scratch, dims);
        assert_memory_equal(got, out, n_out * sizeof(real));
        assert_memory_equal(got_lse, lse, rows * dims->heads * sizeof(real));
        assert_memory_equal(dqkv, want_dqkv, packed * sizeof(real));
        attention_backward(qkv, dout, got, got_lse, qkv, scratch, dims); /* in place */
        assert_memory_equal(qkv, want_dqkv, packed * sizeof(real));
        free(qkv), free(dout), free(got), free(dqkv), free(want_dqkv), free(out), free(lse);
        free(got_lse), free(scratch);
    }
}

static void test_max(void **state)
{
    (void)state;
    for (size_t n = 1; n < 70; n++)
        for (int shift = 0; shift < 3; shift++) {
            real *x = draw_many(n), want;
            for (size_t i = 0; i < n; i++)
                x[i] += (real)(4 * (1 - shift)); /* positive, mixed, negative */
            want = x[0];
            for (size_t i = 1; i < n; i++)
                want = x[i] > want ? x[i] : want;
            assert_true(nn_max(x, n) == want);
            free(x);
        }
    const real ends[] = {(real)-INFINITY, (real)INFINITY};
    assert_true(nn_max(ends, 1) == ends[0]);
    assert_true(nn_max(ends, 2) == ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_max),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
