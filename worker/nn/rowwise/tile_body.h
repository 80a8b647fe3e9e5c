/*
 * worker/nn/rowwise/tile.c for one instruction set; included there once for each, with
 *   TILE_NAME(x)  x with the set's suffix
 *   TILE_TARGET   the attribute that allows the set
 *   TILE_BYTES    of a vector register
 *   TILE_WIDE     vectors of C that a row keeps in registers
 * No guard: it is meant to be read more than once.
 */

typedef real TILE_NAME(vec) __attribute__((vector_size(TILE_BYTES)));

#define TILE_LANES (TILE_BYTES / sizeof(real))

/* rows <= TILE_ROWS and wide <= TILE_WIDE are constants wherever this is inlined, so the loops over
 * them unroll and `sum` stays in registers. */
TILE_TARGET static inline __attribute__((always_inline)) void
TILE_NAME(block)(real *restrict c, size_t ldc, bool add, struct tile_view a, struct tile_view b,
                 const size_t rows, const size_t wide, size_t k)
{
    TILE_NAME(vec) sum[TILE_ROWS][TILE_WIDE], from[TILE_WIDE];

    UNROLLED
    for (size_t r = 0; r < rows; r++)
        UNROLLED
    for (size_t v = 0; v < wide; v++) {
        if (add)
            memcpy(&sum[r][v], c + r * ldc + v * TILE_LANES, TILE_BYTES);
        else
            sum[r][v] = (TILE_NAME(vec)){0};
    }
    for (size_t i = 0; i < k; i++) {
        UNROLLED
        for (size_t v = 0; v < wide; v++)
            memcpy(&from[v], b.at + i * b.ld + v * TILE_LANES, TILE_BYTES);
        UNROLLED
        for (size_t r = 0; r < rows; r++)
            UNROLLED
        for (size_t v = 0; v < wide; v++)
            sum[r][v] += a.at[r * a.ld + i] * from[v];
    }
    UNROLLED
    for (size_t r = 0; r < rows; r++)
        UNROLLED
    for (size_t v = 0; v < wide; v++)
        memcpy(c + r * ldc + v * TILE_LANES, &sum[r][v], TILE_BYTES);
}

#define TILE_CASE(n)                                                                               \
    case n: TILE_NAME(block)(c, ldc, add, a, b, n, wide, k); break

TILE_TARGET static inline __attribute__((always_inline)) void
TILE_NAME(rows)(real *restrict c, size_t ldc, bool add, struct tile_view a, struct tile_view b,
                size_t rows, const size_t wide, size_t k)
{
    for (; rows >= TILE_ROWS; rows -= TILE_ROWS) {
        TILE_NAME(block)(c, ldc, add, a, b, TILE_ROWS, wide, k);
        c += TILE_ROWS * ldc;
        a.at += TILE_ROWS * a.ld;
    }
    switch (rows) {
        TILE_CASE(1);
        TILE_CASE(2);
        TILE_CASE(3);
        TILE_CASE(4);
        TILE_CASE(5);
    default: break;
    }
}

#undef TILE_CASE

TILE_TARGET static void TILE_NAME(multiply)(real *restrict c, size_t ldc, bool add,
                                            struct tile_view a, struct tile_view b, size_t rows,
                                            size_t cols, size_t k)
{
    size_t at = 0;

    for (; at + TILE_WIDE * TILE_LANES <= cols; at += TILE_WIDE * TILE_LANES) {
        TILE_NAME(rows)(c + at, ldc, add, a, b, rows, TILE_WIDE, k);
        b.at += TILE_WIDE * TILE_LANES;
    }
    for (; at + TILE_LANES <= cols; at += TILE_LANES) {
        TILE_NAME(rows)(c + at, ldc, add, a, b, rows, 1, k);
        b.at += TILE_LANES;
    }
}

#undef TILE_LANES
