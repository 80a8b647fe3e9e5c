/* The kernels whose rows do not depend on one another: products to the bit against the chain that
 * worker/nn/product/tile.h promises, attention and the sum of exponentials against plain ones in
 * double. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/nn/logsum.h"
#include "worker/nn/product/tile.h"
#include "worker/nn/rowwise/attend.h"
#include "worker/nn/rowwise/packed.h"

static uint64_t state_of_draw = 3;

static real draw(void)
{
    state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
    return (real)((double)(int32_t)(state_of_draw >> 32) * 0x1p-31);
}

static real *draw_many(size_t n)
{
    real *x = xcalloc(n, sizeof(*x));

    for (size_t i = 0; i < n; i++)
        x[i] = draw();
    return x;
}

/* c + a_0 b_0 + a_1 b_1 + ..., each step rounded. */
static real chain(real c, const real *a, const real *b, size_t step, size_t k)
{
    for (size_t i = 0; i < k; i++) {
        c = sizeof(real) == sizeof(double) ? (real)fma((double)a[i], (double)b[i * step], (double)c)
                                           : (real)fmaf((float)a[i], (float)b[i * step], (float)c);
    }
    return c;
}

/* What tile_multiply() makes of an element that is c. */
static real after(enum tile_chain how, real c, const real *a, const real *b, size_t step, size_t k)
{
    if (how == TILE_ADDED)
        return c + chain(0, a, b, step, k);
    return chain(how == TILE_NEW ? 0 : c, a, b, step, k);
}

/* Chains of 256 positions each, added to c in order. */
static real chains(real c, const real *a, const real *b, size_t k)
{
    for (size_t i = 0; i < k; i += 256)
        c += chain(0, a + i, b + i, 1, k - i < 256 ? k - i : 256);
    return c;
}

static void test_tile(void **state)
{
    const size_t ks[] = {1, 7, 64}, cols[] = {16, 32, 48, 64, 80, 128};

    (void)state;
    real *a = draw_many(20 * 70), *b = draw_many(70 * 130), *c = draw_many(20 * 140),
         *was = draw_many(20 * 140);
    for (size_t rows = 0; rows <= 15; rows++)
        for (size_t i = 0; i < ARRAY_LEN(ks); i++)
            for (size_t j = 0; j < ARRAY_LEN(cols); j++)
                for (enum tile_chain how = 0; how <= TILE_ADDED; how++) {
                    memcpy(c, was, 20 * 140 * sizeof(*c));
                    tile_multiply(c, 140, how, tile_plain(a, 70), (struct tile_panel){b, 130}, rows,
                                  cols[j], ks[i]);
                    for (size_t r = 0; r < 20; r++)
                        for (size_t v = 0; v < 140; v++) {
                            real want = was[r * 140 + v];
                            if (r < rows && v < cols[j])
                                want = after(how, want, a + r * 70, b + v, 130, ks[i]);
                            if (want != c[r * 140 + v])
                                fail_msg("%zu rows, %zu columns, k %zu: row %zu, column %zu", rows,
                                         cols[j], ks[i], r, v);
                        }
                }
    free(a);
    free(b);
    free(c);
    free(was);
}

static void test_packed(void **state)
{
    const size_t shapes[][2] = {{1, 1},   {5, 3},    {16, 8},   {63, 300},
                                {64, 64}, {65, 257}, {100, 96}, {200, 513}};
    const size_t counts[] = {1, 6, 7, 8, 97, 200};

    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(shapes); s++) {
        CHECK_ROW("shapes[%zu]", s);
        size_t out = shapes[s][0], in = shapes[s][1], ldy = out + 3;
        real *w = draw_many(out * in), *packed = draw_many(out * in),
             *scratch = draw_many(PACKED_COLS * in);
        real *x = draw_many(200 * in), *y = draw_many(200 * ldy), *was = draw_many(200 * ldy);
        memcpy(packed, w, out * in * sizeof(*w));
        packed_make(packed, scratch, out, in);
        for (size_t r = 0; r < out; r++) {
            packed_row(scratch, packed, r, out, in);
            assert_memory_equal(scratch, w + r * in, in * sizeof(*w));
        }
        for (size_t i = 0; i < 2 * ARRAY_LEN(counts); i++) {
            size_t n = counts[i / 2];
            bool add = i % 2 == 1;
            memcpy(y, was, 200 * ldy * sizeof(*y));
            packed_product(y, ldy, add, x, packed, n, in, out);
            for (size_t r = 0; r < 200; r++)
                for (size_t v = 0; v < ldy; v++) {
                    real want = was[r * ldy + v];
                    if (r < n && v < out)
                        want = chains(add ? want : 0, x + r * in, w + v * in, in);
                    if (want != y[r * ldy + v])
                        fail_msg("(%zu, %zu): %zu rows: row %zu, column %zu", out, in, n, r, v);
                }
        }
        if (out > PACKED_COLS) {
            packed_product(y, ldy, false, x, packed + PACKED_COLS * in, 1, in, out - PACKED_COLS);
            assert_true(y[0] == chains(0, x, w + PACKED_COLS * in, in));
        }
        free(w);
        free(packed);
        free(scratch);
        free(x);
        free(y);
        free(was);
    }
}

/* --- attention --- */

static const struct attend_dims DIMS[] = {
    {.heads = 2, .groups = 2, .dim = 16, .context = 64},
    {.heads = 6, .groups = 2, .dim = 10, .context = 200},
    {.heads = 4, .groups = 1, .dim = 34, .context = 330},
    {.heads = 1, .groups = 1, .dim = 64, .context = 700},
};

/* One row of one head, plainly; rows of qkv are at positions 0 .. */
static void attend_plainly(double *out, const real *qkv, size_t i, size_t head,
                           const struct attend_dims *dims)
{
    size_t d = dims->dim, ld = (dims->heads + 2 * dims->groups) * d,
           group = head / (dims->heads / dims->groups);
    const real *q = qkv + i * ld + head * d;
    double sum = 0, s[700];

    memset(out, 0, d * sizeof(*out));
    for (size_t j = 0; j <= i; j++) {
        const real *k = qkv + j * ld + (dims->heads + group) * d;
        s[j] = 0;
        for (size_t t = 0; t < d; t++)
            s[j] += (double)q[t] * (double)k[t];
        s[j] = exp(s[j] / sqrt((double)d));
        sum += s[j];
    }
    for (size_t j = 0; j <= i; j++)
        for (size_t t = 0; t < d; t++)
            out[t] +=
                s[j] / sum * (double)qkv[j * ld + (dims->heads + dims->groups + group) * d + t];
}

static void check_rows(const real *out, const real *qkv, size_t n, const struct attend_dims *dims)
{
    double want[64];

    for (size_t i = 0; i < n; i++)
        for (size_t h = 0; h < dims->heads; h++) {
            attend_plainly(want, qkv, i, h, dims);
            for (size_t t = 0; t < dims->dim; t++)
                assert_true(fabs(want[t] - (double)out[(i * dims->heads + h) * dims->dim + t]) <
                            1e-5);
        }
}

/* In one go, and in pieces with what is not yet there set to NaN: the same bits. */
static void test_attend(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(DIMS); k++) {
        CHECK_ROW("DIMS[%zu]", k);
        const struct attend_dims *dims = &DIMS[k];
        size_t n = dims->context, ld = (dims->heads + 2 * dims->groups) * dims->dim,
               width = dims->heads * dims->dim;
        real *qkv = draw_many(n * ld), *whole = draw_many(n * width),
             *pieces = draw_many(n * width);
        real *scratch = draw_many(attend_scratch(dims)),
             *cache = xcalloc(attend_cache(dims), sizeof(real));
        attend_store(cache, qkv, n, 0, dims);
        attend_forward(whole, qkv, n, 0, cache, scratch, dims);
        check_rows(whole, qkv, n, dims);
        for (size_t i = 0; i < attend_cache(dims); i++)
            cache[i] = (real)NAN;
        for (size_t at = 0, size = 1; at < n; at += size, size = size % 70 * 2 + 1) {
            size = n - at < size ? n - at : size;
            attend_store(cache, qkv + at * ld, size, at, dims);
            attend_forward(pieces + at * width, qkv + at * ld, size, at, cache, scratch, dims);
        }
        assert_memory_equal(pieces, whole, n * width * sizeof(*whole));
        free(qkv);
        free(whole);
        free(pieces);
        free(scratch);
        free(cache);
    }
}

static void test_attend_copy(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(DIMS); k++) {
        CHECK_ROW("DIMS[%zu]", k);
        struct attend_dims dims = DIMS[k], small = DIMS[k];
        size_t n = 50, ld = (dims.heads + 2 * dims.groups) * dims.dim,
               width = dims.heads * dims.dim;
        real *qkv = draw_many(n * ld), *want = draw_many(width), *got = draw_many(width);
        real *scratch = draw_many(attend_scratch(&dims)),
             *from = xcalloc(attend_cache(&dims), sizeof(real));
        small.context = n;
        real *to = xcalloc(attend_cache(&small), sizeof(real));
        attend_store(from, qkv, n, 0, &dims);
        attend_copy(to, n, from, n, &dims);
        attend_forward(want, qkv + (n - 1) * ld, 1, n - 1, from, scratch, &dims);
        attend_forward(got, qkv + (n - 1) * ld, 1, n - 1, to, scratch, &small);
        assert_memory_equal(got, want, width * sizeof(*got));
        free(qkv);
        free(want);
        free(got);
        free(scratch);
        free(from);
        free(to);
    }
}

/* --- sums of exponentials --- */

static void test_logsum(void **state)
{
    enum { N = 5000 };
    const size_t pieces[] = {1, 17, 2048, N};
    real *x = draw_many(N);

    (void)state;
    for (size_t i = 0; i < N; i++)
        x[i] *= 40;
    x[1234] = x[4321] = 60;
    double sum = 0;
    for (size_t i = 0; i < N; i++)
        sum += exp((double)x[i] - 60);
    for (size_t p = 0; p < ARRAY_LEN(pieces); p++) {
        CHECK_ROW("pieces[%zu]", p);
        struct logsum s;
        logsum_init(&s);
        for (size_t at = 0; at < N; at += pieces[p])
            logsum_add(&s, x + at, N - at < pieces[p] ? N - at : pieces[p], at);
        assert_int_equal(s.top, 1234);
        assert_true(s.max == 60);
        assert_true(fabs(logsum_value(&s) - 60 - log(sum)) < 1e-6);
    }
    const real bad[] = {(real)NAN, (real)INFINITY, (real)-INFINITY};
    for (size_t b = 0; b < ARRAY_LEN(bad); b++)
        for (size_t at = 0; at < N; at += 611) {
            struct logsum s;
            real was = x[at];
            x[at] = bad[b];
            logsum_init(&s);
            logsum_add(&s, x, 3000, 0);
            logsum_add(&s, x + 3000, N - 3000, 3000);
            assert_true(isnan(logsum_value(&s)));
            x[at] = was;
        }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tile),   cmocka_unit_test(test_packed),
        cmocka_unit_test(test_attend), cmocka_unit_test(test_attend_copy),
        cmocka_unit_test(test_logsum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
