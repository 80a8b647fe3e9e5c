/* Both forms of a unit of bfloat16 to the bit against the definition: rounding, and chains of pairs
 * through the tile, with numbers of every kind. CMake runs it with PREREG_BFLOAT16=yes and =no. */
#include <math.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/nn/cpu.h"
#include "worker/nn/product/bfloat16.h"
#include "worker/nn/product/tile.h"
#include "worker/nn/threads.h"

#define ROWS      (2 * TILE_ROWS + 1)
#define COLS      (5 * TILE_COLS)
#define PAIRS_MAX 9
#define K_MAX     37

static uint64_t state_of_draw = 5;

static uint32_t draw(void)
{
    state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state_of_draw >> 32);
}

static bool is_long(void)
{
    const char *text = getenv("PREREGD_LONG");
    return text != NULL && strcmp(text, "1") == 0;
}

static float of_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* Any bits; small and large exponents, whose products underflow and overflow; exponents that
 * cancel; few digits, which end in ties; zeros, subnormal numbers, infinities and NaN. */
enum kind { KIND_ANY, KIND_SMALL, KIND_LARGE, KIND_NEAR, KIND_TIES, KIND_SPECIAL, KIND_NR };

static uint32_t draw_bits(enum kind kind)
{
    static const uint32_t SPECIAL[] = {0,          0x80000000, 0x00010000, 0x807F0000, 0x00800000,
                                       0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7F0000, 0x3F800000,
                                       0x007FFFFF, 0x7F800001, 0x3F808000, 0x3F818000, 0x80008000};
    uint32_t bits = draw(), rest = bits & 0x807FFFFFu;

    switch (kind) {
    case KIND_SMALL: return rest | (draw() % 4 + 62) << 23;
    case KIND_LARGE: return rest | (draw() % 4 + 189) << 23;
    case KIND_NEAR: return rest | (draw() % 6 + 124) << 23;
    case KIND_TIES: return (bits & 0x80018000u) | (draw() % 24 + 115) << 23;
    case KIND_SPECIAL: return SPECIAL[draw() % ARRAY_LEN(SPECIAL)];
    case KIND_ANY:
    case KIND_NR: break;
    }
    return bits;
}

/* To nearest, ties to even; NaN keeps its upper half and becomes quiet. The neighbor of the largest
 * finite number is infinity, and subnormal numbers are rounded like others. */
static uint32_t rounded_bits(uint32_t bits)
{
    uint32_t down = bits & 0xFFFF0000u, magnitude = bits & 0x7FFFFFFFu;

    if (magnitude > 0x7F800000u)
        return down | 0x00400000u;
    if (magnitude == 0x7F800000u || bits == down)
        return down;
    uint32_t cut = bits & 0xFFFFu, half = 0x8000u;
    bool is_up = cut > half || (cut == half && (down & 0x10000u) != 0);
    return is_up ? down + 0x10000u : down;
}

/* --- rounding --- */

/* What one unit, or two, must be for the positions x and y; x first along k. */
static void check_units(uint32_t x, uint32_t y, const real *unit, size_t apart)
{
    uint32_t first = rounded_bits(x), second = rounded_bits(y);

    if (bfloat16_is_native()) {
        assert_int_equal(bits_of(unit[0]), second | first >> 16);
        return;
    }
    assert_int_equal(bits_of(unit[0]), second);
    assert_int_equal(bits_of(unit[apart]), first);
}

static void check_rounding(enum kind kind, size_t n, size_t k)
{
    static real from[ROWS * (K_MAX + 3)], rows[ROWS * (K_MAX + 5)], cols[(K_MAX + 1) * ROWS];
    size_t ldf = K_MAX + 3, ldt = K_MAX + 5, units = bfloat16_units(k);

    for (size_t i = 0; i < n * ldf; i++)
        from[i] = of_bits(draw_bits(kind));
    bfloat16_rows(rows, ldt, from, ldf, n, k);
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < k; i += 2)
            check_units(bits_of(from[r * ldf + i]), i + 1 < k ? bits_of(from[r * ldf + i + 1]) : 0,
                        rows + r * ldt + i * units / (k + k % 2), 1);
    /* The same numbers as k rows of n columns */
    bfloat16_columns(cols, ROWS, from, n, k, n);
    for (size_t c = 0; c < n; c++)
        for (size_t i = 0; i < k; i += 2)
            check_units(bits_of(from[i * n + c]), i + 1 < k ? bits_of(from[(i + 1) * n + c]) : 0,
                        cols + i * units / (k + k % 2) * ROWS + c, ROWS);
}

static void test_rounding(void **state)
{
    (void)state;
    for (int i = 0; i < (is_long() ? 20000 : 400); i++)
        for (enum kind kind = 0; kind < KIND_NR; kind++)
            check_rounding(kind, 1 + draw() % ROWS, 1 + draw() % K_MAX);
}

/* --- chains --- */

/* Operands of bfloat16 as bits: a (ROWS, 2 pairs), b (2 pairs, COLS). */
struct operands {
    uint32_t a[ROWS][2 * PAIRS_MAX];
    uint32_t b[2 * PAIRS_MAX][COLS];
    float c[ROWS][COLS];
    size_t pairs;
};

static void draw_operands(struct operands *o, enum kind kind)
{
    o->pairs = 1 + draw() % PAIRS_MAX;
    for (size_t i = 0; i < 2 * o->pairs; i++) {
        for (size_t r = 0; r < ROWS; r++)
            o->a[r][i] = draw_bits(kind) & 0xFFFF0000u;
        for (size_t j = 0; j < COLS; j++)
            o->b[i][j] = draw_bits(kind) & 0xFFFF0000u;
    }
    for (size_t r = 0; r < ROWS; r++)
        for (size_t j = 0; j < COLS; j++)
            o->c[r][j] =
                of_bits(kind == KIND_SMALL ? draw() & 0x80FFFFFFu
                                           : draw_bits(draw() % 2 == 0 ? KIND_NEAR : kind));
}

static float chain(const struct operands *o, enum tile_chain how, size_t r, size_t j)
{
    float c = how == TILE_CONTINUED ? o->c[r][j] : 0;

    for (size_t i = 0; i < o->pairs; i++) {
        c = fmaf(of_bits(o->a[r][2 * i + 1]), of_bits(o->b[2 * i + 1][j]), c);
        c = fmaf(of_bits(o->a[r][2 * i]), of_bits(o->b[2 * i][j]), c);
    }
    return how == TILE_ADDED ? o->c[r][j] + c : c;
}

static void multiply(const struct operands *o, enum tile_chain how, bool pairs, float *c)
{
    static float a[ROWS * 2 * PAIRS_MAX], b[2 * PAIRS_MAX * COLS];
    size_t n = 2 * o->pairs;

    for (size_t i = 0; i < n; i++) {
        for (size_t r = 0; r < ROWS; r++)
            a[r * n + i] = of_bits(o->a[r][i ^ 1]);
        for (size_t j = 0; j < COLS; j++)
            b[i * COLS + j] = of_bits(o->b[i ^ 1][j]);
    }
    if (!pairs) {
        tile_multiply(c, COLS, how, tile_plain(a, n), (struct tile_panel){b, COLS}, ROWS, COLS, n);
        return;
    }
#ifdef TILE_HAS_PAIRS
    for (size_t i = 0; i < o->pairs; i++) {
        for (size_t r = 0; r < ROWS; r++)
            a[r * n + i] = of_bits(o->a[r][2 * i + 1] | o->a[r][2 * i] >> 16);
        for (size_t j = 0; j < COLS; j++)
            b[i * COLS + j] = of_bits(o->b[2 * i + 1][j] | o->b[2 * i][j] >> 16);
    }
    tile_multiply_pairs(c, COLS, how, tile_plain(a, n), (struct tile_panel){b, COLS}, ROWS, COLS,
                        o->pairs);
#endif
}

/* NaN for NaN, else the same bits; the sign of zero among them. */
static void check_chains(bool pairs)
{
    static struct operands o;
    static float c[ROWS * COLS];
    size_t finite = 0, all = 0;

    for (int i = 0; i < (is_long() ? 40000 : 400); i++)
        for (enum kind kind = 0; kind < KIND_NR; kind++) {
            enum tile_chain how = (enum tile_chain)(draw() % 3);
            draw_operands(&o, kind);
            memcpy(c, o.c, sizeof(c));
            multiply(&o, how, pairs, c);
            for (size_t e = 0; e < (size_t)ROWS * COLS; e++) {
                float want = chain(&o, how, e / COLS, e % COLS);
                if (!(isnan(want) && isnan(c[e])) && bits_of(want) != bits_of(c[e]))
                    fail_msg("kind %d, %zu pairs, chain %d, element %zu: %a, not %a", (int)kind,
                             o.pairs, (int)how, e, (double)c[e], (double)want);
                finite += isfinite(want) ? 1 : 0;
            }
            all += (size_t)ROWS * COLS;
        }
    print_message("  %zu chains, %zu of them finite\n", all, finite);
    assert_true(finite > all / 4 && finite < all);
}

static void test_numbers(void **state)
{
    (void)state;
    check_chains(false);
}

static void test_pairs(void **state)
{
    (void)state;
    if (!nn_cpu_has_bfloat16()) {
        print_message("  skipped: no vdpbf16ps here (PREREG_BFLOAT16=yes asks the processor)\n");
        skip();
    }
    assert_true(bfloat16_is_native() || nn_cpu_bfloat16_wish() == NN_WISH_NONE);
    check_chains(true);
}

static int flush(void **state)
{
    (void)state;
    nn_flush_denormals();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, flush, NULL);
}
