/*
 * A few rows and positions at a time are rounded into a buffer that stays in the nearest cache, and
 * turned or cut into strips from there. Panels of a plain B need no second step.
 */
#include "worker/nn/product/pack_rounded.h"

#include <string.h>

#include "worker/nn/product/bfloat16.h"
#include "worker/nn/product/pack.h"
#include "worker/nn/product/tile.h"

#define ROWS   192 /* of A at a time */
#define DEPTH  32  /* positions of them */
#define TURNED 16  /* rows in memory of a transposed B at a time */
#define LENGTH 256 /* positions of them */
#define APART  (LENGTH + TILE_COLS)

static _Thread_local _Alignas(64) real rounded[ROWS * DEPTH];
_Static_assert(TURNED *APART <= ROWS * DEPTH, "one buffer for both");

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Positions i to i + n - 1 of a panel of B, which begins with b's first column and is ld wide. */
static void panel_part(real *restrict panel, size_t ld, struct operand b, size_t i, size_t n,
                       size_t cols)
{
    real *part = panel + bfloat16_units(i) * ld;
    size_t units = bfloat16_units(n);
    struct operand from = operand_from(b, i, 0);

    for (size_t j = 0; b.transposed && j < cols; j += TURNED) {
        size_t some = min_size(TURNED, cols - j);
        bfloat16_rows(rounded, APART, from.at + j * b.ld, b.ld, some, n);
        pack_turned(part + j, ld, rounded, APART, some, units);
    }
    if (!b.transposed)
        bfloat16_columns(part, ld, from.at, b.ld, n, cols);
    for (size_t u = 0; cols < ld && u < units; u++)
        memset(part + u * ld + cols, 0, (ld - cols) * sizeof(real));
}

/* A plain B a few rows at a time through all panels, so that its rows are read as they are. */
void pack_rounded_panels(real *restrict to, struct operand b, size_t k, size_t cols)
{
    size_t units = bfloat16_units(k), step = b.transposed ? LENGTH : DEPTH;

    for (size_t i = 0; i < k; i += step)
        for (size_t first = 0; first < cols; first += pack_cols()) {
            size_t n = min_size(pack_cols(), cols - first);
            panel_part(to + first * units, (n + TILE_COLS - 1) / TILE_COLS * TILE_COLS,
                       operand_from(b, 0, first), i, min_size(step, k - i), n);
        }
}

void pack_rounded_strips(real *restrict to, const real *at, size_t ld, size_t rows, size_t k)
{
    size_t units = bfloat16_units(k);

    for (size_t row = 0; row < rows; row += ROWS)
        for (size_t i = 0; i < k; i += DEPTH) {
            size_t n = min_size(ROWS, rows - row), depth = min_size(DEPTH, k - i);
            bfloat16_columns(rounded, ROWS, at + i * ld + row, ld, depth, n);
            pack_strips(to + row * units + bfloat16_units(i) * TILE_ROWS, units, rounded, ROWS, n,
                        bfloat16_units(depth));
        }
}
