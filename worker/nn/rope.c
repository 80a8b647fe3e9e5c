/*
 * Cosines and sines come from a table computed once in double: row p of the table holds them for
 * position p. Forward and backward are the same rotation with the sign of the sine swapped. Queries
 * and keys are next to each other in a packed row, so one call rotates the heads of both.
 */
#include "worker/nn/rope.h"

#include "worker/nn/threads.h"
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

/* One call: rows of x (N, ld), of sequences of t tokens. */
struct turn {
    real *x;
    const real *table;
    real sign;
    size_t t;
    size_t heads;
    size_t d;
    size_t ld;
};

NN_BODY void turn_rows_body(const struct turn *p, size_t from, size_t to)
{
    for (size_t r = from; r < to; r++)
        rotate(p->x + r * p->ld, p->table + (r % p->t) * p->d, p->sign, p->heads, p->d);
}

static void turn_rows(const struct turn *p, size_t from, size_t to);
NN_KERNEL(turn_rows, (const struct turn *p, size_t from, size_t to), (p, from, to))

static void turn_part(void *ctx, size_t from, size_t to, int thread)
{
    (void)thread;
    turn_rows(ctx, from, to);
}

void rope_forward(real *restrict x, const real *restrict table, size_t n, size_t t, size_t heads,
                  size_t d, size_t ld)
{
    struct turn p = {x, table, 1, t, heads, d, ld};

    nn_parallel_rows(n, heads * d, turn_part, &p);
}

void rope_backward(real *restrict dx, const real *restrict table, size_t n, size_t t, size_t heads,
                   size_t d, size_t ld)
{
    struct turn p = {dx, table, -1, t, heads, d, ld};

    nn_parallel_rows(n, heads * d, turn_part, &p);
}
