/*
 * The product is cut three ways, rows of x, panels and the inner dimension, so that a stretch of a
 * panel is used by many rows before the next one is read. The cuts follow constants and the row
 * count alone; along k they are the contract's pieces, so no cut leaves a trace of its own.
 *
 * The last panel may be narrower than a tile: it is multiplied through a copy padded with zeros,
 * which adds columns and changes none.
 */
#include "worker/nn/rowwise/packed.h"

#include <string.h>

#include "worker/nn/cpu.h"
#include "worker/nn/rowwise/stream.h"

/* A stretch of a panel, and the most rows that meet it before the next panel comes: what is used
 * again stays in the caches, and the next stretch has time to come from memory. */
#define DEPTH TILE_PIECE
#define ROWS  ((size_t)96)

#define NARROW_ROWS 6

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* As wide as the registers' share of a row of y: a stretch of a panel is then one piece of memory,
 * and falls evenly on the nearest cache. */
static size_t panel_cols(void)
{
    return nn_cpu() == NN_CPU_AVX512 ? PACKED_COLS : TILE_COLS;
}

void packed_make(real *restrict w, real *restrict scratch, size_t out, size_t in)
{
    size_t whole = panel_cols();

    for (size_t first = 0; first < out; first += whole) {
        size_t cols = min_size(whole, out - first);
        real *panel = w + first * in;
        memcpy(scratch, panel, cols * in * sizeof(*w));
        for (size_t i = 0; i < in; i++)
            for (size_t c = 0; c < cols; c++)
                panel[i * cols + c] = scratch[c * in + i];
    }
}

void packed_row(real *restrict row, const real *restrict w, size_t r, size_t out, size_t in)
{
    size_t whole = panel_cols(), first = r / whole * whole;
    size_t cols = min_size(whole, out - first);
    const real *at = w + first * in + (r - first);

    for (size_t i = 0; i < in; i++)
        row[i] = at[i * cols];
}

/* A panel whose width no tile takes: through copies with zeros beside it. */
static void narrow_panel(real *restrict y, size_t ldy, enum tile_chain chain, struct tile_view x,
                         struct tile_panel panel, size_t n, size_t depth)
{
    real wide[DEPTH * PACKED_COLS], sum[NARROW_ROWS * PACKED_COLS] = {0};
    size_t cols = panel.ld, tiles = (cols + TILE_COLS - 1) / TILE_COLS * TILE_COLS;

    for (size_t i = 0; i < depth; i++) {
        memcpy(wide + i * tiles, panel.at + i * cols, cols * sizeof(real));
        memset(wide + i * tiles + cols, 0, (tiles - cols) * sizeof(real));
    }
    for (size_t at = 0; at < n; at += NARROW_ROWS) {
        size_t rows = min_size(NARROW_ROWS, n - at);
        for (size_t r = 0; chain != TILE_NEW && r < rows; r++)
            memcpy(sum + r * tiles, y + (at + r) * ldy, cols * sizeof(real));
        tile_multiply(sum, tiles, chain, tile_plain(x.at + at * x.row, x.row),
                      (struct tile_panel){wide, tiles}, rows, tiles, depth);
        for (size_t r = 0; r < rows; r++)
            memcpy(y + (at + r) * ldy, sum + r * tiles, cols * sizeof(real));
    }
}

/* A few rows of x against one panel, over the whole inner dimension in stretches of DEPTH. */
static void panel_product(real *restrict y, size_t ldy, bool add, struct tile_view x,
                          struct tile_panel panel, size_t n, size_t in)
{
    for (size_t k = 0; k < in; k += DEPTH) {
        size_t depth = min_size(DEPTH, in - k);
        bool added = add || k > 0;
        struct tile_view a = tile_plain(x.at + k, x.row);
        struct tile_panel b = {panel.at + k * panel.ld, panel.ld};
        if (panel.ld % TILE_COLS == 0)
            stream_multiply(y, ldy, added, a, b, n, depth);
        else
            narrow_panel(y, ldy, added ? TILE_ADDED : TILE_NEW, a, b, n, depth);
    }
}

/* As equal as whole strips allow, since a few rows that are left over would read all of W. */
static size_t rows_together(size_t n)
{
    size_t blocks = (n + ROWS - 1) / ROWS, rows = blocks > 0 ? (n + blocks - 1) / blocks : 1;

    return (rows + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
}

void packed_product(real *restrict y, size_t ldy, bool add, const real *restrict x,
                    const real *restrict w, size_t n, size_t in, size_t out)
{
    size_t whole = panel_cols(), together = rows_together(n);

    for (size_t row = 0; row < n; row += together)
        for (size_t first = 0; first < out; first += whole)
            panel_product(y + row * ldy + first, ldy, add, tile_plain(x + row * in, in),
                          (struct tile_panel){w + first * in, min_size(whole, out - first)},
                          min_size(together, n - row), in);
}
