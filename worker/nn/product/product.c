/*
 * The product is cut three ways. A piece of B (DEPTH, STRETCH) is packed once and meets all rows of
 * A, ROWS at a time, panel by panel: what is used again stays in the second cache. A transposed A
 * is packed in strips. A plain one is read in place, and while it meets the first panel, its next
 * rows are fetched. What is packed next is fetched while the processor multiplies. The contract
 * cuts the chains at DEPTH, too, so the cuts leave no other trace in the result.
 *
 * The last panel may be wider than the columns that are left: then the tile writes to a copy of C's
 * columns, from which they are copied back. In bfloat16 both operands are rounded as they are
 * packed; a plain A that meets several pieces of B is rounded once for all of them.
 */
#include "worker/nn/product/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math/contract.h"
#include "worker/nn/cpu.h"
#include "worker/nn/gemm.h"
#include "worker/nn/pages.h"
#include "worker/nn/product/bfloat16.h"
#include "worker/nn/product/pack.h"
#include "worker/nn/product/pack_rounded.h"
#include "worker/nn/product/tile.h"
#include "worker/nn/threads.h"

#define DEPTH   TILE_PIECE /* of a piece along k */
#define STRETCH 768        /* columns of a piece; half as many where there are more */
#define ROWS    96         /* of A that meet a panel before the next one comes, at most */
#define HELD    1024       /* of A that are rounded once for all pieces of B */
#define DIRECT  128        /* columns: for fewer, A is read in place */
#define WORTH   64         /* columns and positions of k: for fewer, reading ahead costs more */
#define FAR     8192       /* elements between rows: these may share their places in the caches */
#define PAGE    1024       /* elements after which places in the nearest cache come again */
#define BESIDE  144        /* from PAGE: a distance at which few rows share their places */
#define SMALL   100000     /* multiplications: fewer are not worth waking threads for */

/* Of one thread: packed operands, and columns of C that a panel overlaps. */
struct scratch {
    real b[DEPTH * STRETCH];
    real a[HELD * (DEPTH + TILE_COLS)];
    real c[ROWS * PACK_COLS_MAX];
};

/* Not thread-local itself: that would be part of every thread's stack, BLAS's among them, and fill
 * those of 2 MiB. */
static _Thread_local struct scratch *scratch;

/* Makes the scratch of a thread of the pool, at its first product, the calling thread's. */
static void take_scratch(int thread)
{
    static struct scratch *all[NN_THREADS_MAX];

    if (all[thread] == NULL)
        all[thread] = pages_alloc(sizeof(*all[thread]));
    if (all[thread] == NULL) {
        fputs("out of memory: a product's packed operands\n", stderr);
        abort();
    }
    scratch = all[thread];
}

static enum product_kind chosen;

void product_choose(enum product_kind kind, int threads)
{
    chosen = kind;
    gemm_set_threads(kind == PRODUCTS_OPENBLAS ? threads : 1);
}

const char *product_text(void)
{
    return chosen == PRODUCTS_OPENBLAS ? gemm_blas_text()
                                       : "fixed products, contract " CONTRACT_VERSION_TEXT;
}

int product_contract(void)
{
    return chosen == PRODUCTS_OPENBLAS ? 0 : CONTRACT_VERSION;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t product_pitch(size_t cols)
{
    return cols < FAR ? cols : (cols - BESIDE + PAGE - 1) / PAGE * PAGE + BESIDE;
}

/* A piece of a product. Its operands have `units` of k: positions, or what bfloat16.h makes of
 * them. */
struct product_piece {
    enum product_precision precision;
    real *c;
    size_t ldc;
    bool add;
    bool held; /* A is in scratch->a, rounded */
    size_t cols;
    size_t units;
    struct tile_ahead *ahead; /* the next piece of B, or NULL */
};

/* Half as many are faster with AVX2, as measured. */
static size_t block_rows(void)
{
    return nn_cpu() == NN_CPU_AVX2 ? ROWS / 2 : ROWS;
}

static size_t panel_width(size_t cols)
{
    return (cols + TILE_COLS - 1) / TILE_COLS * TILE_COLS;
}

static void multiply(const struct product_piece *p, real *restrict c, size_t ldc,
                     struct tile_view a, struct tile_panel b, size_t rows)
{
    enum tile_chain chain = p->add ? TILE_ADDED : TILE_NEW;

#ifdef TILE_HAS_PAIRS
    if (p->precision == PRODUCT_BFLOAT16 && bfloat16_is_native()) {
        tile_multiply_pairs(c, ldc, chain, a, b, rows, b.ld, p->units);
        return;
    }
#endif
    tile_multiply(c, ldc, chain, a, b, rows, b.ld, p->units);
}

/* One panel of which only `cols` columns are C's. */
static void narrow_panel(const struct product_piece *p, real *restrict c, struct tile_view a,
                         struct tile_panel panel, size_t rows, size_t cols)
{
    for (size_t r = 0; p->add && r < rows; r++)
        memcpy(scratch->c + r * panel.ld, c + r * p->ldc, cols * sizeof(real));
    multiply(p, scratch->c, panel.ld, a, panel, rows);
    for (size_t r = 0; r < rows; r++)
        memcpy(c + r * p->ldc, scratch->c + r * panel.ld, cols * sizeof(real));
}

/* Rows of A, the first of them C's row `row`, against the packed piece of B. */
static void panels_product(const struct product_piece *p, size_t row, struct tile_view a,
                           size_t rows)
{
    real *c = p->c + row * p->ldc;

    for (size_t first = 0; first < p->cols; first += pack_cols()) {
        size_t n = min_size(pack_cols(), p->cols - first);
        struct tile_panel panel = {scratch->b + first * p->units, panel_width(n)};
        if (n == panel.ld)
            multiply(p, c + first, p->ldc, a, panel, rows);
        else
            narrow_panel(p, c + first, a, panel, rows, n);
        a.is_far = false;
    }
}

/* Rows of A that meet the piece of B: in place where its columns are few, else packed. */
static struct tile_view rows_of(struct operand a, size_t rows, size_t cols, size_t k)
{
    size_t ld = k + TILE_COLS;

    if (cols <= DIRECT || (!a.transposed && (a.ld < FAR || a.ld % PAGE == BESIDE))) {
        struct tile_view view = a.transposed ? tile_turned(a.at, a.ld) : tile_plain(a.at, a.ld);
        view.is_far = !a.transposed && cols >= WORTH && k >= WORTH;
        return view;
    }
    if (a.transposed) {
        pack_strips(scratch->a, k, a.at, a.ld, rows, k);
        return tile_strips(scratch->a, k);
    }
    for (size_t r = 0; r < rows; r++)
        memcpy(scratch->a + r * ld, a.at + r * a.ld, k * sizeof(real));
    return tile_plain(scratch->a, ld);
}

/* The same, rounded to bfloat16. */
static struct tile_view rounded_rows_of(struct operand a, bool held, size_t row, size_t rows,
                                        size_t k)
{
    size_t units = bfloat16_units(k), ld = units + TILE_COLS;

    if (held)
        return tile_plain(scratch->a + row * ld, ld);
    if (!a.transposed) {
        bfloat16_rows(scratch->a, ld, a.at, a.ld, rows, k);
        return tile_plain(scratch->a, ld);
    }
    pack_rounded_strips(scratch->a, a.at, a.ld, rows, k);
    return tile_strips(scratch->a, units);
}

/* An operand's rows and columns, and then what `next` reads. */
static struct tile_ahead ahead_of(struct operand m, size_t rows, size_t cols,
                                  struct tile_ahead *next)
{
    size_t there = m.transposed ? cols : rows, wide = m.transposed ? rows : cols;

    return (struct tile_ahead){m.at, m.ld, wide == 0 ? 0 : there, wide, 0, next};
}

/* All rows of A (m, k) against one piece of B (k, p->cols), k <= DEPTH, p->cols <= STRETCH. */
static void piece_product(const struct product_piece *p, struct operand a, struct operand b,
                          size_t m, size_t k)
{
    bool rounds = p->precision == PRODUCT_BFLOAT16;
    const size_t together = block_rows();

    if (rounds)
        pack_rounded_panels(scratch->b, b, k, p->cols);
    else
        pack_panels(scratch->b, b, k, p->cols);
    for (size_t row = 0; row < m; row += together) {
        size_t rows = min_size(together, m - row);
        struct operand at = operand_from(a, row, 0);
        struct tile_view view =
            rounds ? rounded_rows_of(at, p->held, row, rows, k) : rows_of(at, rows, p->cols, k);
        bool packed = view.at != at.at && !p->held;
        size_t more = packed ? min_size(together, m - row - rows) : 0;
        struct tile_ahead ahead = ahead_of(operand_from(a, row + rows, 0), more, k, p->ahead);
        view.ahead = ahead.rows > 0 ? &ahead : p->ahead;
        panels_product(p, row, view, rows);
    }
}

/* A product, and how it is cut for threads: in units of rows or of columns of C. */
struct product_work {
    enum product_precision precision;
    real *c;
    size_t ldc;
    bool add;
    struct operand a;
    struct operand b;
    size_t m;
    size_t n;
    size_t k;
    bool by_rows;
};

/* Less than all columns: the next piece of B is read while this one is needed. */
static size_t stretch_of(const struct product_work *w)
{
    return w->n > STRETCH ? STRETCH / 2 : STRETCH;
}

/* The piece of B that begins at position i and column col; none behind the last one. */
static struct tile_ahead piece_of(const struct product_work *w, size_t i, size_t col)
{
    if (i >= w->k) {
        i = 0;
        col += stretch_of(w);
    }
    if (col >= w->n)
        return (struct tile_ahead){0};
    struct operand b = operand_from(w->b, i, col);
    size_t k = min_size(DEPTH, w->k - i), n = min_size(stretch_of(w), w->n - col);
    return ahead_of(b, k, n, NULL);
}

/* Positions i to i + k - 1 of rows from `row` on, m of them, and of a stretch of columns. */
static void compute_piece(const struct product_work *w, bool held, size_t row, size_t m, size_t col,
                          size_t i)
{
    size_t k = min_size(DEPTH, w->k - i);
    struct tile_ahead ahead = piece_of(w, i + DEPTH, col);
    struct product_piece p = {.precision = w->precision,
                              .c = w->c + row * w->ldc + col,
                              .ldc = w->ldc,
                              .add = w->add || i > 0,
                              .held = held,
                              .cols = min_size(stretch_of(w), w->n - col),
                              .units = w->precision == PRODUCT_BFLOAT16 ? bfloat16_units(k) : k,
                              .ahead = ahead.rows > 0 ? &ahead : NULL};

    piece_product(&p, operand_from(w->a, row, i), operand_from(w->b, i, col), m, k);
}

/* Rows of a plain A are rounded once, and B once for all these rows. */
static void compute_held(const struct product_work *w)
{
    for (size_t row = 0; row < w->m; row += HELD)
        for (size_t i = 0; i < w->k; i += DEPTH) {
            size_t m = min_size(HELD, w->m - row), k = min_size(DEPTH, w->k - i);
            bfloat16_rows(scratch->a, bfloat16_units(k) + TILE_COLS, w->a.at + row * w->a.ld + i,
                          w->a.ld, m, k);
            for (size_t col = 0; col < w->n; col += stretch_of(w))
                compute_piece(w, true, row, m, col, i);
        }
}

static void compute(const struct product_work *w)
{
    if (w->precision == PRODUCT_BFLOAT16 && !w->a.transposed && w->n > STRETCH) {
        compute_held(w);
        return;
    }
    for (size_t col = 0; col < w->n; col += stretch_of(w))
        for (size_t i = 0; i < w->k; i += DEPTH)
            compute_piece(w, false, 0, w->m, col, i);
}

static void compute_part(void *ctx, size_t from, size_t to, int thread)
{
    struct product_work w = *(const struct product_work *)ctx;
    size_t unit = w.by_rows ? TILE_ROWS : PACK_COLS_MAX;
    size_t first = from * unit, end = min_size(to * unit, w.by_rows ? w.m : w.n);

    take_scratch(thread);
    w.c += w.by_rows ? first * w.ldc : first;
    if (w.by_rows) {
        w.a = operand_from(w.a, first, 0);
        w.m = end - first;
    } else {
        w.b = operand_from(w.b, 0, first);
        w.n = end - first;
    }
    if (end > first)
        compute(&w);
}

void product(enum product_precision precision, real *restrict c, size_t ldc, bool add,
             struct operand a, struct operand b, size_t m, size_t n, size_t k)
{
    struct product_work w = {precision, c, ldc, add, a, b, m, n, k, m >= n};
    size_t unit = w.by_rows ? TILE_ROWS : PACK_COLS_MAX;

    if (chosen == PRODUCTS_OPENBLAS) {
        gemm(c, ldc, add, a, b, m, n, k);
        return;
    }
    for (size_t r = 0; k == 0 && !add && r < m; r++)
        memset(c + r * ldc, 0, n * sizeof(real));
    if (nn_threads() == 1 || m * n < SMALL / (k + 1)) {
        take_scratch(0);
        compute(&w);
    } else {
        nn_parallel(((w.by_rows ? m : n) + unit - 1) / unit, compute_part, &w);
    }
}
