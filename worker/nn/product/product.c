/*
 * The product is cut three ways. A piece of B (DEPTH, STRETCH) is packed once and meets all rows of
 * A, ROWS at a time, panel by panel: what is used again stays in the caches. A transposed A is
 * packed in strips, a plain one is read in place. tile_multiply() continues its chains across the
 * cuts, so they leave no trace in the result.
 *
 * The last panel may be wider than the columns that are left: then the tile writes to a copy of C's
 * columns, from which they are copied back.
 */
#include "worker/nn/product/product.h"

#include <string.h>

#include "worker/nn/gemm.h"
#include "worker/nn/product/pack.h"
#include "worker/nn/product/tile.h"
#include "worker/nn/threads.h"

#define DEPTH   512    /* of a piece along k */
#define STRETCH 512    /* columns of a piece */
#define ROWS    192    /* of A that meet a panel before the next one comes */
#define DIRECT  128    /* columns: for fewer, A is read in place */
#define FAR     8192   /* elements between rows: these would share their places in the caches */
#define SMALL   100000 /* multiplications: fewer are not worth waking threads for */

/* Of one thread: packed operands, and columns of C that a panel overlaps. */
struct scratch {
    real b[DEPTH * STRETCH];
    real a[ROWS * (DEPTH + TILE_COLS)];
    real c[ROWS * PACK_COLS_MAX];
};

static _Thread_local _Alignas(64) struct scratch scratch;

static enum product_kind chosen;

void product_choose(enum product_kind kind, int threads)
{
    chosen = kind;
    gemm_set_threads(kind == PRODUCTS_OPENBLAS ? threads : 1);
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

const char *product_text(void)
{
    return chosen == PRODUCTS_OPENBLAS ? gemm_blas_text() : "fixed products, contract 2";
}

/* One panel of which only `cols` columns are C's. */
static void narrow_panel(real *restrict c, size_t ldc, bool add, struct tile_view a,
                         struct tile_panel panel, size_t rows, size_t cols, size_t k)
{
    for (size_t r = 0; add && r < rows; r++)
        memcpy(scratch.c + r * panel.ld, c + r * ldc, cols * sizeof(real));
    tile_multiply(scratch.c, panel.ld, add, a, panel, rows, panel.ld, k);
    for (size_t r = 0; r < rows; r++)
        memcpy(c + r * ldc, scratch.c + r * panel.ld, cols * sizeof(real));
}

/* Rows of A against the packed piece of B. */
static void panels_product(real *restrict c, size_t ldc, bool add, struct tile_view a, size_t rows,
                           size_t cols, size_t k)
{
    const real *b = scratch.b;

    for (size_t first = 0; first < cols; first += pack_cols()) {
        size_t n = min_size(pack_cols(), cols - first);
        size_t ld = (n + TILE_COLS - 1) / TILE_COLS * TILE_COLS;
        struct tile_panel panel = {b, ld};
        if (n == ld)
            tile_multiply(c + first, ldc, add, a, panel, rows, n, k);
        else
            narrow_panel(c + first, ldc, add, a, panel, rows, n, k);
        b += k * ld;
    }
}

/* Rows of A that meet `cols` columns: in place where these are few, else packed. */
static struct tile_view rows_of(struct matrix a, size_t rows, size_t cols, size_t k)
{
    size_t ld = k + TILE_COLS;

    if (cols <= DIRECT || (!a.transposed && a.ld < FAR))
        return a.transposed ? tile_turned(a.at, a.ld) : tile_plain(a.at, a.ld);
    if (a.transposed) {
        pack_strips(scratch.a, a.at, a.ld, rows, k);
        return tile_strips(scratch.a, k);
    }
    for (size_t r = 0; r < rows; r++)
        memcpy(scratch.a + r * ld, a.at + r * a.ld, k * sizeof(real));
    return tile_plain(scratch.a, ld);
}

/* All rows of A (m, k) against one piece of B (k, cols), k <= DEPTH, cols <= STRETCH. */
static void piece_product(real *restrict c, size_t ldc, bool add, struct matrix a, struct matrix b,
                          size_t m, size_t cols, size_t k)
{
    pack_panels(scratch.b, b, k, cols);
    for (size_t row = 0; row < m; row += ROWS) {
        size_t rows = min_size(ROWS, m - row);
        struct matrix at = matrix_from(a, row, 0);
        struct tile_view view = rows_of(at, rows, cols, k);
        panels_product(c + row * ldc, ldc, add, view, rows, cols, k);
    }
}

/* A product, and how it is cut for threads: in units of rows or of columns of C. */
struct work {
    real *c;
    size_t ldc;
    bool add;
    struct matrix a;
    struct matrix b;
    size_t m;
    size_t n;
    size_t k;
    bool by_rows;
};

static void compute(const struct work *w)
{
    for (size_t col = 0; col < w->n; col += STRETCH)
        for (size_t i = 0; i < w->k; i += DEPTH)
            piece_product(w->c + col, w->ldc, w->add || i > 0, matrix_from(w->a, 0, i),
                          matrix_from(w->b, i, col), w->m, min_size(STRETCH, w->n - col),
                          min_size(DEPTH, w->k - i));
}

static void compute_part(void *ctx, size_t from, size_t to, int thread)
{
    struct work w = *(const struct work *)ctx;
    size_t unit = w.by_rows ? TILE_ROWS : PACK_COLS_MAX;
    size_t first = from * unit, end = min_size(to * unit, w.by_rows ? w.m : w.n);

    (void)thread;
    w.c += w.by_rows ? first * w.ldc : first;
    if (w.by_rows) {
        w.a = matrix_from(w.a, first, 0);
        w.m = end - first;
    } else {
        w.b = matrix_from(w.b, 0, first);
        w.n = end - first;
    }
    if (end > first)
        compute(&w);
}

void product(real *restrict c, size_t ldc, bool add, struct matrix a, struct matrix b, size_t m,
             size_t n, size_t k)
{
    struct work w = {c, ldc, add, a, b, m, n, k, m >= n};
    size_t unit = w.by_rows ? TILE_ROWS : PACK_COLS_MAX;

    if (chosen == PRODUCTS_OPENBLAS) {
        gemm(c, ldc, add, a, b, m, n, k);
        return;
    }
    for (size_t r = 0; k == 0 && !add && r < m; r++)
        memset(c + r * ldc, 0, n * sizeof(real));
    if (nn_threads() == 1 || m * n < SMALL / (k + 1))
        compute(&w);
    else
        nn_parallel(((w.by_rows ? m : n) + unit - 1) / unit, compute_part, &w);
}
