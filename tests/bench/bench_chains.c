/*
 * bench_chains: how far long products are from the exact sum: the contract's
 * (worker/nn/product/tile.h), chains of other lengths, and OpenBLAS's sgemm for the core that it
 * chose (OPENBLAS_CORETYPE asks for another one).
 *
 * The reference adds products that are exact in double in double. Errors are relative to the root
 * of the mean square of the exact elements: the root of the errors' mean square, and the worst one.
 *
 *   bench_chains [--long]          numbers drawn as named: of one kind, with --long of all
 *   bench_chains MODEL CORPUS      of a trained model (a folder with model.json, of bytes): the
 *                                  gradient of its head over the first 100,000 bytes of a text
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "worker/model/run_private.h"
#include "worker/model/store.h"
#include "worker/nn/crossent.h"
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
    float *b; /* (k, cols) */
    double *exact;
    float *c;
    size_t k, cols;
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

static void fill(struct problem *p, const struct pair *pair)
{
    for (size_t i = 0; i < p->k * ROWS; i++)
        p->a[i] = (float)pair->a();
    for (size_t i = 0; i < p->k * p->cols; i++)
        p->b[i] = (float)pair->b();
}

static void halve(struct problem *p)
{
    for (size_t i = 0; i < p->k * ROWS; i++)
        p->a[i] = cut(p->a[i]);
    for (size_t i = 0; i < p->k * p->cols; i++)
        p->b[i] = cut(p->b[i]);
}

static void add_exactly(struct problem *p)
{
    memset(p->exact, 0, ROWS * p->cols * sizeof(*p->exact));
    for (size_t i = 0; i < p->k; i++)
        for (size_t r = 0; r < ROWS; r++)
            for (size_t j = 0; j < p->cols; j++)
                p->exact[r * p->cols + j] +=
                    (double)p->a[i * ROWS + r] * (double)p->b[i * p->cols + j];
}

/* Chains of `piece` positions, each beginning at 0, added in order; 0: as training multiplies. */
static void multiply(const struct problem *p, enum product_precision precision, size_t piece)
{
    if (piece == 0) {
        product(precision, p->c, p->cols, false, operand_turned(p->a, ROWS),
                operand_plain(p->b, p->cols), ROWS, p->cols, p->k);
        return;
    }
    for (size_t from = 0; from < p->k; from += piece) {
        size_t k = p->k - from < piece ? p->k - from : piece;
        tile_multiply(p->c, p->cols, from == 0 ? TILE_NEW : TILE_ADDED,
                      tile_turned(p->a + from * ROWS, ROWS),
                      (struct tile_panel){p->b + from * p->cols, p->cols}, ROWS, p->cols, k);
    }
}

static void report(const struct problem *p, const char *pair, const char *by)
{
    double squares = 0, errors = 0, worst = 0;

    for (size_t i = 0; i < ROWS * p->cols; i++) {
        double e = (double)p->c[i] - p->exact[i];
        squares += p->exact[i] * p->exact[i];
        errors += e * e;
        worst = fabs(e) > worst ? fabs(e) : worst;
    }
    double size = sqrt(squares / (double)(ROWS * p->cols));
    printf("{\"figure\": \"%s, k %zu, %s, error rms\", \"unit\": \"1e-7\", \"values\": [%.3f]}\n",
           pair, p->k, by, sqrt(errors / (double)(ROWS * p->cols)) / size * 1e7);
    printf("{\"figure\": \"%s, k %zu, %s, error worst\", \"unit\": \"1e-7\", \"values\": [%.2f]}\n",
           pair, p->k, by, worst / size * 1e7);
}

static void compare(struct problem *p, const char *pair)
{
    static const size_t pieces[] = {128, 512, 1024, MANY};
    char by[64];

    add_exactly(p);
    multiply(p, PRODUCT_FLOAT32, 0);
    report(p, pair, "contract");
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        multiply(p, PRODUCT_FLOAT32, pieces[i]);
        (void)snprintf(by, sizeof(by), "pieces of %zu", pieces[i]);
        report(p, pair, pieces[i] == MANY ? "one chain" : by);
    }
    gemm(p->c, p->cols, false, operand_turned(p->a, ROWS), operand_plain(p->b, p->cols), ROWS,
         p->cols, p->k);
    report(p, pair, "OpenBLAS");
    halve(p);
    add_exactly(p);
    multiply(p, PRODUCT_BFLOAT16, 0);
    report(p, pair, "bfloat16, contract");
}

/* ---- a trained model ---- */

/* The operands of the first MANY tokens: gradients of the logits of printable characters, and the
 * final norm's output. */
static void run_model(struct problem *p, const struct weights *w, const unsigned char *text)
{
    const size_t c = (size_t)w->cfg.width, v = (size_t)w->cfg.vocab, t = (size_t)w->cfg.context;
    const size_t first = 32; /* the space */
    uint32_t *tokens = xcalloc(t + 1, sizeof(*tokens));
    double *loss = xcalloc(t, sizeof(*loss));
    struct err err = {0};
    struct run *run = NULL;

    if (run_create(&w->cfg, RUN_INFER, t, &run, &err) != 0)
        exit(1);
    p->cols = c < COLS ? c : COLS;
    for (size_t at = 0; at < MANY; at += t) {
        size_t n = MANY - at < t ? MANY - at : t;
        for (size_t i = 0; i <= n; i++)
            tokens[i] = text[at + i];
        struct run_batch batch = {tokens, tokens + 1, 1, n};
        run_forward(run, w, &batch, NULL);
        for (size_t row = 0; row < n; row += run->head_rows) {
            size_t rows = n - row < run->head_rows ? n - row : run->head_rows;
            (void)run_logits(run, w, row, rows);
            crossent_forward_backward(loss, run->logits, 1.0F / MANY, tokens + 1 + row,
                                      &(struct crossent_dims){rows, v, run->logits_ld});
            for (size_t i = 0; i < rows; i++) {
                size_t token = at + row + i;
                memcpy(p->a + token * ROWS, run->logits + i * run->logits_ld + first,
                       ROWS * sizeof(float));
                memcpy(p->b + token * p->cols, run->xn_last + (row + i) * c,
                       p->cols * sizeof(float));
            }
        }
    }
    run_free(run);
    free(loss);
    free(tokens);
}

static int compare_trained(struct problem *p, const char *folder, const char *corpus)
{
    struct strbuf text = STRBUF_INIT;
    struct weights w = {0};
    struct store_info info = {0};
    struct err err = {0};

    if (store_load(folder, &w, &info, &err) != 0 ||
        file_read(corpus, (size_t)64 << 20, &text, &err) != 0) {
        (void)fprintf(stderr, "bench_chains: %s\n", err.msg);
        return 1;
    }
    if (text.len <= MANY || w.cfg.vocab < 128) {
        (void)fprintf(stderr, "bench_chains: needs a model of bytes and a text of %d of them\n",
                      MANY + 1);
        return 1;
    }
    for (size_t d = 0; d < sizeof(DEPTHS) / sizeof(DEPTHS[0]); d++) {
        run_model(p, &w, (const unsigned char *)text.buf); /* the last comparison has cut them */
        p->k = DEPTHS[d];
        compare(p, "head of a trained model");
    }
    strbuf_release(&text);
    store_info_release(&info);
    weights_release(&w);
    return 0;
}

int main(int argc, char **argv)
{
    struct problem p = {.a = xcalloc(MANY * ROWS, sizeof(float)),
                        .b = xcalloc(MANY * COLS, sizeof(float)),
                        .exact = xcalloc(ROWS * COLS, sizeof(double)),
                        .c = xcalloc(ROWS * COLS, sizeof(float)),
                        .cols = COLS};

    nn_flush_denormals();
    printf("%s\n", gemm_blas_text());
    if (argc == 3)
        return compare_trained(&p, argv[1], argv[2]);
    for (size_t i = 0; i < (argc == 2 ? sizeof(PAIRS) / sizeof(PAIRS[0]) : 1); i++)
        for (size_t d = 0; d < sizeof(DEPTHS) / sizeof(DEPTHS[0]); d++) {
            p.k = DEPTHS[d];
            fill(&p, &PAIRS[i]);
            compare(&p, PAIRS[i].name);
        }
    return 0;
}
