/*
 * The few dense operations that the instruments need, on column-major matrices: the same bits on
 * every machine.
 */
#ifndef TRUTHTABLE_INSTRUMENTS_LINALG_H
#define TRUTHTABLE_INSTRUMENTS_LINALG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

double linalg_dot(const double *x, const double *y, size_t n);
double linalg_norm(const double *x, size_t n); /* neither overflows nor underflows on the way */
void linalg_axpy(double a, const double *x, double *y, size_t n); /* y += a x */

/* Room for the factors of one matrix, to be used again. */
struct linalg_qr {
    size_t rows, cols;
    double *a; /* rows x cols, column-major: before, the matrix; after, R in the upper triangle */
};
void linalg_qr_init(struct linalg_qr *q, size_t rows, size_t cols, struct arena *a);
void linalg_qr_factor(struct linalg_qr *q);

/* Solves R x = b, or R' x = b, in place; R is the upper triangle of an n x n matrix with leading
 * dimension ld. False when a diagonal element is exactly 0. */
bool linalg_solve_upper(const double *r, size_t n, size_t ld, bool transposed, double *b);

/*
 * An orthonormal basis grown a column at a time, in the order given: Gram-Schmidt, twice, so that
 * the columns stay orthogonal to rounding. A column of which less than a share is left is not
 * added.
 */
struct linalg_basis {
    size_t rows, n; /* n columns so far */
    size_t max;
    double *q; /* rows x max */
    double *r; /* max x max, upper: the columns in the basis = Q R */
};
void linalg_basis_init(struct linalg_basis *b, size_t rows, size_t max, struct arena *a);
/* The remainder of v[rows] after projection, in place; coordinates in c[n]. Returns its length. */
double linalg_basis_project(const struct linalg_basis *b, double *v, double *c);
/* Takes v as a further column if more than `least` of it is left; v holds the remainder afterwards,
 * c[n] its coordinates in the basis before. */
bool linalg_basis_take(struct linalg_basis *b, double *v, double *c, double least);

#endif
