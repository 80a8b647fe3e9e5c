/*
 * Cosines and sines come from a table computed once in double: row p of the table holds them for
 * position p. Forward and backward are the same rotation with the sign of the sine swapped. Queries
 * and keys are next to each other in a packed row, so one call rotates the heads of both.
 */
#include "worker/nn/rope.h"

#include "worker/nn/vec.h"

void rope_table(real *table, double theta, size_t t, size_t d)
{
    for (size_t i = 0; i < d / 2; i++) {
        double frequency = elementary_pow(theta, -2.0 * (double)i / (double)d);
        for (size_t p = 0; p < t; p++) {
            double angle = (double)p * frequency;
            table[p * d + i] = (real)elementary_cos(angle);
            table[p * d + d / 2 + i] = (real)elementary_sin(angle);
        }
    }
}

/* sign 1 rotates on, -1 back. */
NN_BODY void rotate(real *restrict x, const real *restrict at, real sign, size_t heads, size_t d)
{
    size_t half = d / 2;

    for (size_t h = 0; h < heads; h++) {
        real *restrict a = x + h * d;
        for (size_t i = 0; i < half; i++) {
            real c = at[i], s = sign * at[half + i];
            real u = a[i], v = a[half + i];
            a[i] = u * c - v * s;
            a[half + i] = v * c + u * s;
        }
    }
}

NN_BODY void rope_forward_body(real *restrict x, const real *restrict table, size_t n, size_t t,
                               size_t heads, size_t d, size_t ld)
{
    for (size_t r = 0; r < n; r++)
        rotate(x + r * ld, table + (r % t) * d, 1, heads, d);
}

NN_KERNEL(rope_forward,
          (real *restrict x, const real *restrict table, size_t n, size_t t, size_t heads, size_t d,
           size_t ld),
          (x, table, n, t, heads, d, ld))

NN_BODY void rope_backward_body(real *restrict dx, const real *restrict table, size_t n, size_t t,
                                size_t heads, size_t d, size_t ld)
{
    for (size_t r = 0; r < n; r++)
        rotate(dx + r * ld, table + (r % t) * d, -1, heads, d);
}

NN_KERNEL(rope_backward,
          (real *restrict dx, const real *restrict table, size_t n, size_t t, size_t heads,
           size_t d, size_t ld),
          (dx, table, n, t, heads, d, ld))
