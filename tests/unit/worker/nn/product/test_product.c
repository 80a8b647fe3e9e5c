/* Products to the bit against the chains that worker/nn/product/tile.h promises: every way of
 * turning operands, shapes around the cuts, rows apart, and 1 to 7 threads. CMake runs it for each
 * instruction set. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/sparse.h"
#include "worker/nn/product/bfloat16.h"
#include "worker/nn/product/product.h"
#include "worker/nn/threads.h"

#define APART 3 /* between the end of a row and the next one */

static uint64_t state_of_draw = 11;

static real draw(void)
{
    state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
    return (real)((double)(int32_t)(state_of_draw >> 32) * 0x1p-31);
}

static enum product_precision precision; /* of the test under way */

struct block {
    real *at;
    size_t rows, cols, ld;
};

static struct block draw_block(size_t rows, size_t cols)
{
    struct block b = {.rows = rows, .cols = cols, .ld = cols + APART};

    b.at = xcalloc(rows * b.ld + 1, sizeof(*b.at));
    for (size_t i = 0; i < rows * b.ld; i++)
        b.at[i] = draw();
    return b;
}

static real element(const struct block *b, bool transposed, size_t i, size_t j)
{
    return transposed ? b->at[j * b->ld + i] : b->at[i * b->ld + j];
}

/* To bfloat16, to nearest, ties to even. */
static float rounded(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Where the terms of one element of C are. */
struct inner {
    const struct block *a, *b;
    const bool *turned;
    size_t row, col;
};

/* The second of each pair of rounded numbers first. */
static real pair_chain(const struct inner *in, size_t from, size_t to)
{
    float c = 0;

    for (size_t p = from; p < to; p += 2)
        for (size_t q = p + 2; q-- > p;) {
            bool is_there = q < to;
            float x = is_there ? rounded((float)element(in->a, in->turned[0], in->row, q)) : 0;
            float y = is_there ? rounded((float)element(in->b, in->turned[1], q, in->col)) : 0;
            c = fmaf(x, y, c);
        }
    return (real)c;
}

/* a_0 b_0, a_1 b_1, ... added from 0, each step rounded once. */
static real chain(const struct inner *in, size_t from, size_t to)
{
    float c = 0;

    if (precision == PRODUCT_BFLOAT16)
        return pair_chain(in, from, to);
    for (size_t p = from; p < to; p++)
        c = fmaf((float)element(in->a, in->turned[0], in->row, p),
                 (float)element(in->b, in->turned[1], p, in->col), c);
    return (real)c;
}

/* The chains of 256 positions each, added in order to `was`, or to the first one. */
static real chains(const real *was, const struct inner *in, size_t k)
{
    real c = was == NULL ? chain(in, 0, k < 256 ? k : 256) : *was;

    for (size_t from = was == NULL ? 256 : 0; from < k; from += 256)
        c += chain(in, from, k - from < 256 ? k : from + 256);
    return c;
}

static const bool TURNED[][2] = {{false, false}, {false, true}, {true, false}, {true, true}};

/* Compares every element where the product is small, else some of every row. */
static void check_shape(size_t m, size_t n, size_t k, const bool turned[2])
{
    struct block a = turned[0] ? draw_block(k, m) : draw_block(m, k);
    struct block b = turned[1] ? draw_block(n, k) : draw_block(k, n);
    struct block was = draw_block(m, n), c = draw_block(m, n);
    size_t step = m * n * k > 1000000 ? 37 : 1;

    for (int add = 0; add < 2; add++) {
        memcpy(c.at, was.at, m * c.ld * sizeof(real));
        product(precision, c.at, c.ld, add, (struct operand){a.at, a.ld, turned[0]},
                (struct operand){b.at, b.ld, turned[1]}, m, n, k);
        for (size_t i = 0; i < m; i++) {
            for (size_t j = i % step; j < n; j += step) {
                struct inner in = {&a, &b, turned, i, j};
                real want = chains(add ? &was.at[i * c.ld + j] : NULL, &in, k);
                if (want != c.at[i * c.ld + j])
                    fail_msg("%zu x %zu x %zu, turned %d %d, add %d, element %zu %zu: %a, not %a",
                             m, n, k, turned[0], turned[1], add, i, j, (double)c.at[i * c.ld + j],
                             (double)want);
            }
            assert_memory_equal(c.at + i * c.ld + n, was.at + i * c.ld + n, APART * sizeof(real));
        }
    }
    free(a.at);
    free(b.at);
    free(c.at);
    free(was.at);
}

/* The smaller ones are at the same cuts. */
static bool is_wanted(const size_t shape[3])
{
    return sparse_part() == 1 || shape[0] * shape[1] * shape[2] <= 5000000;
}

static void check_all_shapes(void)
{
    static const size_t SHAPES[][3] = {
        {1, 1, 1},       {1, 1, 0},      {6, 16, 8},     {5, 17, 3},     {7, 64, 31},
        {64, 64, 64},    {13, 65, 9},    {12, 130, 40},  {193, 70, 513}, {66, 513, 20},
        {9, 200, 600},   {300, 8, 100},  {390, 150, 70}, {40, 9, 1030},  {4, 1025, 257},
        {200, 140, 516}, {1030, 520, 7}, {3, 530, 1030}, {98, 192, 259}, {12, 769, 300},
        {97, 1537, 16},  {1030, 800, 7}};

    for (size_t s = 0; s < ARRAY_LEN(SHAPES); s++)
        for (size_t t = 0; is_wanted(SHAPES[s]) && t < ARRAY_LEN(TURNED); t++)
            check_shape(SHAPES[s][0], SHAPES[s][1], SHAPES[s][2], TURNED[t]);
}

/* PREREG_BFLOAT16 changes nothing in float32. */
static enum product_precision first_precision(void)
{
    return getenv("PREREG_BFLOAT16") == NULL ? PRODUCT_FLOAT32 : PRODUCT_BFLOAT16;
}

static void test_chains(void **state)
{
    (void)state;
    precision = PRODUCT_FLOAT32;
    if (precision == first_precision())
        check_all_shapes();
}

/* Narrow and low products, as the router's and a small expert's, with k about the contract's cut.
 */
static void test_every_small_size(void **state)
{
    static const size_t DEPTHS[] = {1, 15, 33, 255, 256, 257, 513};

    (void)state;
    for (precision = first_precision(); precision < PRODUCT_PRECISION_NR; precision++)
        for (size_t size = 1; size <= 33; size += sparse_part())
            for (size_t k = 0; k < ARRAY_LEN(DEPTHS); k++)
                for (size_t t = 0; t < ARRAY_LEN(TURNED); t++) {
                    check_shape(7, size, DEPTHS[k], TURNED[t]);
                    check_shape(size, 9, DEPTHS[k], TURNED[t]);
                }
}

/* Rows far apart are copied, but those at product_pitch() are read in place. */
static void test_long_rows(void **state)
{
    const size_t k = 9 * 1024 + 144 - APART;

    (void)state;
    assert_int_equal(product_pitch(8191), 8191);
    assert_int_equal(product_pitch(32768), 32768 + 144);
    assert_int_equal(product_pitch(k), k + APART);
    assert_int_equal(product_pitch(k + APART), k + APART);
    for (precision = first_precision(); precision < PRODUCT_PRECISION_NR; precision++) {
        check_shape(2, 129, k, TURNED[0]);
        check_shape(1, 129, k - 1, TURNED[0]);
    }
}

static void test_bfloat16(void **state)
{
    (void)state;
    print_message("  %s\n", bfloat16_is_native() ? "vdpbf16ps" : "widened");
    precision = PRODUCT_BFLOAT16;
    check_all_shapes();
}

/* Ties go to even, the last step up can end in infinity, NaN stays NaN, and a NaN whose payload is
 * in the lower half does not become infinity. */
static void test_rounding_to_bfloat16(void **state)
{
    static const uint32_t CASES[][2] = {{0x3F808000, 0x3F800000}, {0x3F818000, 0x3F820000},
                                        {0x3F808001, 0x3F810000}, {0x3F807FFF, 0x3F800000},
                                        {0x7F7FFFFF, 0x7F800000}, {0xFF800000, 0xFF800000},
                                        {0x80000000, 0x80000000}};
    static const uint32_t NOT_A_NUMBER[] = {0x7FC00000, 0x7F800001, 0xFF80FFFF};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%08x", CASES[i][0]);
        float x, want, one = 1, got = 0;
        memcpy(&x, &CASES[i][0], sizeof(x));
        memcpy(&want, &CASES[i][1], sizeof(want));
        product(PRODUCT_BFLOAT16, &got, 1, false, operand_plain(&x, 1), operand_plain(&one, 1), 1,
                1, 1);
        assert_true(got == want);
    }
    for (size_t i = 0; i < ARRAY_LEN(NOT_A_NUMBER); i++) {
        float x, one = 1, got = 0;
        memcpy(&x, &NOT_A_NUMBER[i], sizeof(x));
        product(PRODUCT_BFLOAT16, &got, 1, false, operand_plain(&x, 1), operand_plain(&one, 1), 1,
                1, 1);
        assert_true(isnan(got));
    }
}

static void test_threads_do_not_show(void **state)
{
    static const int COUNTS[] = {3, 1, 2, 7};
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i * sparse_part() < ARRAY_LEN(COUNTS); i++) {
        CHECK_ROW("%d threads", COUNTS[i]);
        assert_int_equal(nn_threads_start(COUNTS[i], &err), 0);
        assert_int_equal(nn_threads(), COUNTS[i]);
        for (precision = first_precision(); precision < PRODUCT_PRECISION_NR; precision++)
            check_all_shapes();
        nn_threads_stop();
    }
}

/* Tiny numbers count as zero in all threads: products of normal numbers, and subnormal operands. */
static void test_denormals_are_flushed(void **state)
{
    struct err err = {0};
    real a[2] = {(real)0x1p-100, (real)0x1p-130}, b[2] = {(real)0x1p-40, 1}, c[1] = {1};

    (void)state;
    assert_int_equal(nn_threads_start(1, &err), 0);
    product(PRODUCT_FLOAT32, c, 1, false, operand_plain(a, 2), operand_plain(b, 1), 1, 1, 2);
    assert_true(c[0] >= 0 && c[0] <= 0 && !signbit(c[0]));
    nn_threads_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_every_small_size),
        cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_bfloat16),
        cmocka_unit_test(test_rounding_to_bfloat16),
        cmocka_unit_test(test_threads_do_not_show),
        cmocka_unit_test(test_denormals_are_flushed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
