/*
 * worker/nn/rowwise/stream.c for one instruction set; included there once for each, with
 *   STREAM_NAME(x)        x with the set's suffix
 *   STREAM_TARGET         the attribute that allows the set
 *   STREAM_VEC            a vector register
 *   STREAM_SPLAT(x)       x in all lanes
 *   STREAM_FMA(a, b, c)   a b + c, rounded once
 *   STREAM_WIDE           vectors of a panel's row
 *   STREAM_HALVES         whether 7 and 8 rows meet half of its columns at a time
 * No guard: it is meant to be read more than once.
 */

#define STREAM_LANES (sizeof(STREAM_VEC) / sizeof(real))

/* rows <= TILE_ROWS is a constant wherever this is inlined, so the loops over it unroll and `sum`
 * stays in registers. */
STREAM_TARGET static inline __attribute__((always_inline)) void
STREAM_NAME(block)(real *restrict c, size_t ldc, bool add, struct tile_view a,
                   const real *restrict b, const size_t rows, const size_t wide, size_t k,
                   struct stream_ahead ahead)
{
    STREAM_VEC sum[STREAM_ROWS][STREAM_WIDE], from[STREAM_WIDE];

    UNROLLED
    for (size_t r = 0; r < rows; r++)
        UNROLLED
    for (size_t v = 0; v < wide; v++)
        sum[r][v] = STREAM_SPLAT(0);
    for (size_t i = 0; i < k; i++) {
        for (size_t line = 0; line < ahead.lines; line++)
            __builtin_prefetch(ahead.at + line * CACHE_LINE, 0, 2);
        ahead.at += ahead.step;
        UNROLLED
        for (size_t v = 0; v < wide; v++)
            memcpy(&from[v], b + (i * STREAM_WIDE + v) * STREAM_LANES, sizeof(STREAM_VEC));
        UNROLLED
        for (size_t r = 0; r < rows; r++) {
            STREAM_VEC x = STREAM_SPLAT(a.at[r * a.row + i]);
            UNROLLED
            for (size_t v = 0; v < wide; v++)
                sum[r][v] = STREAM_FMA(x, from[v], sum[r][v]);
        }
    }
    UNROLLED
    for (size_t r = 0; r < rows; r++)
        UNROLLED
    for (size_t v = 0; v < wide; v++) {
        if (add) {
            memcpy(&from[0], c + r * ldc + v * STREAM_LANES, sizeof(STREAM_VEC));
            sum[r][v] = from[0] + sum[r][v];
        }
        memcpy(c + r * ldc + v * STREAM_LANES, &sum[r][v], sizeof(STREAM_VEC));
    }
}

#define STREAM_CASE(n)                                                                             \
    case n: STREAM_NAME(block)(c, ldc, add, a, b, n, STREAM_WIDE, k, ahead); break

/* Half the columns of more rows than a strip has, so that b is read once and not by two strips. */
STREAM_TARGET static void STREAM_NAME(halves)(real *restrict c, size_t ldc, bool add,
                                              struct tile_view a, const real *restrict b,
                                              size_t rows, size_t k, struct stream_ahead ahead)
{
    for (size_t v = 0; v < STREAM_WIDE; v += STREAM_WIDE / 2) {
        if (rows == STREAM_ROWS)
            STREAM_NAME(block)
        (c + v * STREAM_LANES, ldc, add, a, b + v * STREAM_LANES, STREAM_ROWS, STREAM_WIDE / 2, k,
         ahead);
        else STREAM_NAME(block)(c + v * STREAM_LANES, ldc, add, a, b + v * STREAM_LANES,
                                STREAM_ROWS - 1, STREAM_WIDE / 2, k, ahead);
        ahead.at += k * ahead.step;
    }
}

STREAM_TARGET static void STREAM_NAME(multiply)(real *restrict c, size_t ldc, bool add,
                                                struct tile_view a, const real *restrict b,
                                                size_t rows, size_t k, struct stream_ahead ahead)
{
    if (STREAM_HALVES && rows > TILE_ROWS && rows <= STREAM_ROWS) {
        STREAM_NAME(halves)(c, ldc, add, a, b, rows, k, ahead);
        return;
    }
    for (; rows >= TILE_ROWS; rows -= TILE_ROWS) {
        STREAM_NAME(block)(c, ldc, add, a, b, TILE_ROWS, STREAM_WIDE, k, ahead);
        c += TILE_ROWS * ldc;
        a.at += a.strip;
        ahead.at += k * ahead.step;
    }
    switch (rows) {
        STREAM_CASE(1);
        STREAM_CASE(2);
        STREAM_CASE(3);
        STREAM_CASE(4);
        STREAM_CASE(5);
    default: break;
    }
}

#undef STREAM_CASE
#undef STREAM_LANES
#undef STREAM_NAME
#undef STREAM_TARGET
#undef STREAM_VEC
#undef STREAM_SPLAT
#undef STREAM_FMA
#undef STREAM_WIDE
#undef STREAM_HALVES
