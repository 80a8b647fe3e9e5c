/*
 * bench_chains: how far long products are from the exact sum: the contract's
 * (worker/nn/product/tile.h), chains of other lengths, and OpenBLAS's sgemm for the core that it
 * chose (OPENBLAS_CORETYPE asks for another one).
 *
 * The reference adds products that are exact in double in double. Errors are relative to the root
 * of the mean square of the exact elements: the root of the errors' mean square, and the worst one.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "worker/nn/gemm.h"
#include "worker/nn/product/product.h"
#include "worker/nn/product/tile.h"
#include "worker/nn/threads.h"

#define ROWS 96
#define COLS 96
#define MANY 100000 /* tokens of a step */

static uint64_t state_of_draw = 7;

static double uniform(void)
{
    state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
    return ((double)(state_of_draw >> 11) + 0.5) * 0x1p-53;
}

static double normal(void)
{
    double r = sqrt(-2 * log(uniform()));

    return r * cos(6.283185307179586 * uniform());
}

static double positive(void)
{
    return uniform();
}

/* A few large ones, as activations and probabilities have. */
static double skewed(void)
{
    return exp(2 * normal());
}

/* A mean beside the spread, as the columns of a layer's input have. */
static double shifted(void)
{
    return 0.5 + normal();
}

static const struct pair {
    const char *name;
    double (*a)(void);
    double (*b)(void);
} PAIRS[] = {
    {"normal, normal", normal, normal},
    {"shifted, shifted", shifted, shifted},
    {"probabilities, normal", skewed, normal},
    {"positive, positive", positive, positive},
    {"probabilities, positive", skewed, positive},
};

static const size_t DEPTHS[] = {512, 4096, 32768, MANY};

struct problem {
    float *a; /* (k, ROWS): dy; products take its transpose */
    float *b; /* (k, COLS) */
    double *exact;
    float *c;
    size_t k;
};

/* bfloat16 has the upper half of the bits. Cut, not rounded: any number that it has will do. */
static float cut(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    bits = bits & 0xFFFF0000u;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static void fill(struct problem *p, const struct pair *pair, bool half)
{
    for (size_t i = 0; i < p->k * ROWS; i++)
        p->a[i] = (float)pair->a();
    for (size_t i = 0; i < p->k * COLS; i++)
        p->b[i] = (float)pair->b();
    for (size_t i = 0; half && i < p->k * ROWS; i++)
        p->a[i] = cut(p->a[i]);
    for (size_t i = 0; half && i < p->k * COLS; i++)
        p->b[i] = cut(p->b[i]);
    memset(p->exact, 0, ROWS * COLS * sizeof(*p->exact));
    for (size_t i = 0; i < p->k; i++)
        for (size_t r = 0; r < ROWS; r++)
            for (size_t j = 0; j < COLS; j++)
                p->exact[r * COLS + j] += (double)p->a[i * ROWS + r] * (double)p->b[i * COLS + j];
}

/* Chains of `piece` positions, each beginning at 0, added in order; 0: as training multiplies. */
static void multiply(const struct problem *p, enum product_precision precision, size_t piece)
{
    if (piece == 0) {
        product(precision, p->c, COLS, false, operand_turned(p->a, ROWS), operand_plain(p->b, COLS),
                ROWS, COLS, p->k);
        return;
    }
    for (size_t from = 0; from < p->k; from += piece) {
        size_t k = p->k - from < piece ? p->k - from : piece;
        tile_multiply(p->c, COLS, from == 0 ? TILE_NEW : TILE_ADDED,
                      tile_turned(p->a + from * ROWS, ROWS),
                      (struct tile_panel){p->b + from * COLS, COLS}, ROWS, COLS, k);
    }
}

static void report(const struct problem *p, const char *pair, const char *by)
{
    double squares = 0, errors = 0, worst = 0;

    for (size_t i = 0; i < ROWS * COLS; i++) {
        double e = (double)p->c[i] - p->exact[i];
        squares += p->exact[i] * p->exact[i];
        errors += e * e;
        worst = fabs(e) > worst ? fabs(e) : worst;
    }
    double size = sqrt(squares / (ROWS * COLS));
    printf("{\"figure\": \"%s, k %zu, %s, error rms\", \"unit\": \"1e-7\", \"values\": [%.3f]}\n",
           pair, p->k, by, sqrt(errors / (ROWS * COLS)) / size * 1e7);
    printf("{\"figure\": \"%s, k %zu, %s, error worst\", \"unit\": \"1e-7\", \"values\": [%.2f]}\n",
           pair, p->k, by, worst / size * 1e7);
}

static void compare(struct problem *p, const struct pair *pair)
{
    static const size_t pieces[] = {128, 512, 1024, MANY};
    char by[64];

    fill(p, pair, false);
    multiply(p, PRODUCT_FLOAT32, 0);
    report(p, pair->name, "contract");
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        multiply(p, PRODUCT_FLOAT32, pieces[i]);
        (void)snprintf(by, sizeof(by), "pieces of %zu", pieces[i]);
        report(p, pair->name, pieces[i] == MANY ? "one chain" : by);
    }
    gemm(p->c, COLS, false, operand_turned(p->a, ROWS), operand_plain(p->b, COLS), ROWS, COLS,
         p->k);
    report(p, pair->name, "OpenBLAS");
    fill(p, pair, true);
    multiply(p, PRODUCT_BFLOAT16, 0);
    report(p, pair->name, "bfloat16, contract");
}

int main(void)
{
    struct problem p = {.a = xcalloc(MANY * ROWS, sizeof(float)),
                        .b = xcalloc(MANY * COLS, sizeof(float)),
                        .exact = xcalloc(ROWS * COLS, sizeof(double)),
                        .c = xcalloc(ROWS * COLS, sizeof(float))};

    nn_flush_denormals();
    printf("%s\n", gemm_blas_text());
    for (size_t i = 0; i < sizeof(PAIRS) / sizeof(PAIRS[0]); i++)
        for (size_t d = 0; d < sizeof(DEPTHS) / sizeof(DEPTHS[0]); d++) {
            p.k = DEPTHS[d];
            compare(&p, &PAIRS[i]);
        }
    return 0;
}
