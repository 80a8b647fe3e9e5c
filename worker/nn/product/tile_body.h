/*
 * worker/nn/product/tile.c for one instruction set; included there once for each, with
 *   TILE_NAME(x)        x with the set's suffix
 *   TILE_TARGET         the attribute that allows the set
 *   TILE_VEC            a vector register
 *   TILE_SPLAT(x)       x in all lanes
 *   TILE_FMA(a, b, c)   a b + c, rounded once
 *   TILE_WIDE           vectors of C that a row keeps in registers
 *   TILE_STRIDE         positions of k between two reads ahead
 *   TILE_LEAD           positions of k before the end at which reading C's rows begins
 *   TILE_AHEAD          C's rows that are read each time
 *   TILE_LINES          lines of struct tile_ahead that are read each time
 * No guard: it is meant to be read more than once.
 */

#define TILE_LANES (sizeof(TILE_VEC) / sizeof(real))

/* rows <= TILE_ROWS, wide <= TILE_WIDE and plain are constants wherever this is inlined, so the
 * loops over them unroll and `sum` stays in registers. plain: A's rows are read along k. */
TILE_TARGET static TILE_COPIED void TILE_NAME(block)(real *restrict c, size_t ldc,
                                                     enum tile_chain chain, struct tile_view a,
                                                     struct tile_panel b, const size_t rows,
                                                     const size_t wide, const bool plain, size_t k)
{
    const size_t row = plain ? a.row : 1, col = plain ? 1 : a.col;
    TILE_VEC sum[TILE_ROWS][TILE_WIDE], from[TILE_WIDE];

    UNROLLED
    for (size_t r = 0; r < rows; r++)
        UNROLLED
    for (size_t v = 0; v < wide; v++) {
        if (chain == TILE_CONTINUED)
            memcpy(&sum[r][v], c + r * ldc + v * TILE_LANES, sizeof(TILE_VEC));
        else
            sum[r][v] = TILE_SPLAT(0);
    }
    for (size_t i = 0, next = 0; i < k;) {
        size_t end = k - i < TILE_STRIDE ? k : i + TILE_STRIDE;
        for (size_t n = 0; n < TILE_AHEAD && next < rows && k - i <= TILE_LEAD; n++, next++)
            for (size_t v = 0; v < wide * TILE_LANES; v += LINE)
                __builtin_prefetch(c + next * ldc + v, 1);
        for (size_t r = 0; a.is_far && r < rows; r++)
            __builtin_prefetch(a.at + a.strip + r * row + i * col, 0, 2);
        if (a.ahead != NULL)
            fetch(a.ahead, TILE_LINES);
        for (; i < end; i++) {
            UNROLLED
            for (size_t v = 0; v < wide; v++)
                memcpy(&from[v], b.at + i * b.ld + v * TILE_LANES, sizeof(TILE_VEC));
            UNROLLED
            for (size_t r = 0; r < rows; r++) {
                TILE_VEC x = TILE_SPLAT(a.at[r * row + i * col]);
                UNROLLED
                for (size_t v = 0; v < wide; v++)
                    sum[r][v] = TILE_FMA(x, from[v], sum[r][v]);
            }
        }
    }
    UNROLLED
    for (size_t r = 0; r < rows; r++)
        UNROLLED
    for (size_t v = 0; v < wide; v++) {
        if (chain == TILE_ADDED) {
            memcpy(&from[0], c + r * ldc + v * TILE_LANES, sizeof(TILE_VEC));
            sum[r][v] = from[0] + sum[r][v];
        }
        memcpy(c + r * ldc + v * TILE_LANES, &sum[r][v], sizeof(TILE_VEC));
    }
}

#define TILE_CASE(n)                                                                               \
    case n: TILE_NAME(block)(c, ldc, chain, a, b, n, wide, plain, k); break

TILE_TARGET static TILE_COPIED void TILE_NAME(rows)(real *restrict c, size_t ldc,
                                                    enum tile_chain chain, struct tile_view a,
                                                    struct tile_panel b, size_t rows,
                                                    const size_t wide, const bool plain, size_t k)
{
    for (; rows >= TILE_ROWS; rows -= TILE_ROWS) {
        TILE_NAME(block)(c, ldc, chain, a, b, TILE_ROWS, wide, plain, k);
        c += TILE_ROWS * ldc;
        a.at += a.strip;
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

TILE_TARGET static TILE_COPIED void TILE_NAME(columns)(real *restrict c, size_t ldc,
                                                       enum tile_chain chain, struct tile_view a,
                                                       struct tile_panel b, size_t rows,
                                                       size_t cols, const bool plain, size_t k)
{
    for (; cols >= TILE_WIDE * TILE_LANES; cols -= TILE_WIDE * TILE_LANES) {
        TILE_NAME(rows)(c, ldc, chain, a, b, rows, TILE_WIDE, plain, k);
        c += TILE_WIDE * TILE_LANES;
        b.at += TILE_WIDE * TILE_LANES;
    }
    if (TILE_WIDE > 3 && cols == 3 * TILE_LANES)
        TILE_NAME(rows)(c, ldc, chain, a, b, rows, 3, plain, k);
    if (TILE_WIDE > 2 && cols == 2 * TILE_LANES)
        TILE_NAME(rows)(c, ldc, chain, a, b, rows, 2, plain, k);
    if (cols == TILE_LANES)
        TILE_NAME(rows)(c, ldc, chain, a, b, rows, 1, plain, k);
}

TILE_TARGET static void TILE_NAME(multiply)(real *restrict c, size_t ldc, enum tile_chain chain,
                                            struct tile_view a, struct tile_panel b, size_t rows,
                                            size_t cols, size_t k)
{
    if (a.col == 1)
        TILE_NAME(columns)(c, ldc, chain, a, b, rows, cols, true, k);
    else
        TILE_NAME(columns)(c, ldc, chain, a, b, rows, cols, false, k);
}

#undef TILE_LANES
#undef TILE_NAME
#undef TILE_TARGET
#undef TILE_VEC
#undef TILE_SPLAT
#undef TILE_FMA
#undef TILE_WIDE
#undef TILE_STRIDE
#undef TILE_LEAD
#undef TILE_AHEAD
#undef TILE_LINES
