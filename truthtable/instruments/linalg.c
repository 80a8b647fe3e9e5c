/*
 * Thin wrappers over BLAS and LAPACK in column-major order, and a Gram-Schmidt basis that decides
 * which columns are independent. Nothing allocates after init. Workspace is sized for LAPACK's
 * blocked code; a negative `info` would be a wrong argument of ours and is asserted.
 */
#include "truthtable/instruments/linalg.h"

#include <assert.h>
#include <cblas.h>
#include <string.h>

#define QR_BLOCK 32

/* LAPACK's own names and calling convention; lapacke.h is not part of OpenBLAS's package. */
void dgeqrf_(const int *m, const int *n, double *a, const int *lda, double *tau, double *work,
             const int *lwork, int *info);
void dtrtrs_(const char *uplo, const char *trans, const char *diag, const int *n, const int *nrhs,
             const double *a, const int *lda, double *b, const int *ldb, int *info);

/* Lengths fit BLAS's int, as mixed.c checks. */
double linalg_dot(const double *x, const double *y, size_t n)
{
    return cblas_ddot((int)n, x, 1, y, 1);
}

double linalg_norm(const double *x, size_t n)
{
    return cblas_dnrm2((int)n, x, 1);
}

void linalg_axpy(double a, const double *x, double *y, size_t n)
{
    cblas_daxpy((int)n, a, x, 1, y, 1);
}

/* One element more than needed keeps empty matrices valid. */
void linalg_qr_init(struct linalg_qr *q, size_t rows, size_t cols, struct arena *a)
{
    *q = (struct linalg_qr){.rows = rows, .cols = cols};
    q->a = arena_array(a, rows * cols + 1, sizeof(*q->a));
    q->tau = arena_array(a, cols + 1, sizeof(*q->tau));
    q->work = arena_array(a, (cols + 1) * QR_BLOCK, sizeof(*q->work));
}

/* R is left in the upper triangle; Q is not needed. */
void linalg_qr_factor(struct linalg_qr *q)
{
    int m = (int)q->rows;
    int n = (int)q->cols;
    int lwork = (n + 1) * QR_BLOCK;
    int info = 0;
    if (m == 0 || n == 0) {
        return;
    }
    dgeqrf_(&m, &n, q->a, &m, q->tau, q->work, &lwork, &info);
    assert(info == 0); /* otherwise an argument was wrong */
}

/* dtrtrs reports an exact zero on the diagonal; near-singular systems are the caller's to judge. */
bool linalg_solve_upper(const double *r, size_t n, size_t ld, bool transposed, double *b)
{
    int order = (int)n;
    int lda = (int)ld;
    int one = 1;
    int info = 0;
    if (n == 0) {
        return true;
    }
    dtrtrs_("U", transposed ? "T" : "N", "N", &order, &one, r, &lda, b, &order, &info);
    assert(info >= 0);
    return info == 0;
}

void linalg_basis_init(struct linalg_basis *b, size_t rows, size_t max, struct arena *a)
{
    *b = (struct linalg_basis){.rows = rows, .max = max};
    b->q = arena_array(a, rows * max + 1, sizeof(*b->q));
    b->r = arena_array(a, max * max + 1, sizeof(*b->r));
}

/* Two passes: one leaves errors of the size of the rounding times the condition, the second removes
 * them. */
double linalg_basis_project(const struct linalg_basis *b, double *v, double *c)
{
    memset(c, 0, b->n * sizeof(*c));
    for (int pass = 0; pass < 2; pass++) {
        for (size_t k = 0; k < b->n; k++) {
            const double *q = b->q + k * b->rows;
            double along = linalg_dot(q, v, b->rows);
            linalg_axpy(-along, q, v, b->rows);
            c[k] += along;
        }
    }
    return linalg_norm(v, b->rows);
}

/* A column is kept if more than `least` of its length remains. */
bool linalg_basis_take(struct linalg_basis *b, double *v, double *c, double least)
{
    double left = linalg_basis_project(b, v, c);
    if (!(left > least) || b->n == b->max || b->n == b->rows) {
        return false;
    }
    double *r = b->r + b->n * b->max;
    double *q = b->q + b->n * b->rows;
    memcpy(r, c, b->n * sizeof(*c));
    r[b->n] = left;
    for (size_t i = 0; i < b->rows; i++) {
        q[i] = v[i] / left;
    }
    b->n++;
    return true;
}
