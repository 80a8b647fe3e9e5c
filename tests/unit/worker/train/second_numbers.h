/*
 * The operations of docs/arithmetic.md over again, from that page: one number after another,
 * without vectors, blocks or threads. Shares with worker/ what base/math/elementary.h has, which
 * tests/unit/base/math/test_second.py checks in the same way. The caller flushes tiny numbers.
 */
#ifndef TESTS_UNIT_WORKER_TRAIN_SECOND_NUMBERS_H
#define TESTS_UNIT_WORKER_TRAIN_SECOND_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A matrix: element (i, j) is at[i * row + j * col]. */
struct second_matrix {
    const float *at;
    size_t row, col;
};

/* The matrix in memory (rows, cols), and its transpose. */
static inline struct second_matrix second_plain(const float *at, size_t cols)
{
    return (struct second_matrix){at, cols, 1};
}

static inline struct second_matrix second_turned(const float *at, size_t cols)
{
    return (struct second_matrix){at, 1, cols};
}

/* fma(a, b, c) */
float second_fma(float a, float b, float c);
/* C (n[0], n[1]) = A B or C += A B over n[2] positions, in pieces. */
void second_product(float *c, bool add, struct second_matrix a, struct second_matrix b,
                    const size_t n[3], bool bfloat16);
float second_exp(float x);
float second_log(float x);
/* In 16 lanes. */
float second_sum(const float *terms, size_t n);
float second_dot(const float *a, const float *b, size_t n);
double second_sum_squares(const float *x, size_t n);

/* y, s (n), x of c columns, as in worker/nn/rmsnorm.h; so are the others. */
void second_norm(float *y, float *s, const float *x, const float *w, double eps, const size_t n[2]);
void second_norm_back(float *dx, float *dw, const float *dy, const float *x, const float *w,
                      const float *s, const size_t n[2]);
void second_swiglu(float *h, const float *gu, size_t n, size_t f);
void second_swiglu_back(float *dgu, const float *dh, const float *gu, size_t n, size_t f);
/* Turns the first heads of each row: n rows, `ld` apart, of sequences of t tokens. */
void second_rope(float *x, double theta, int sign, const size_t n[2], size_t heads, size_t d,
                 size_t ld);

/* Pairs of normal numbers: element i of tensor a. */
double second_normal(uint64_t seed, uint32_t stream, uint32_t a, uint64_t i);

#endif
