/*
 * Plain loops in column-major order, so that the last digit does not depend on a library's choice
 * of kernels for the processor: sums in eight lanes that are added pairwise, Householder's
 * reflections as LAPACK's dgeqr2 applies them, and a Gram-Schmidt basis that decides which columns
 * are independent. Nothing allocates after init.
 */
#include "truthtable/instruments/linalg.h"

#include <math.h>
#include <string.h>

#include "base/math/elementary.h"

#define LANES 8

double linalg_dot(const double *x, const double *y, size_t n)
{
    double sum[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (size_t j = 0; j < LANES; j++) {
            sum[j] += x[i + j] * y[i + j];
        }
    }
    for (size_t j = 0; i + j < n; j++) {
        sum[j] += x[i + j] * y[i + j];
    }
    for (size_t half = LANES / 2; half > 0; half /= 2) {
        for (size_t j = 0; j < half; j++) {
            sum[j] += sum[j + half];
        }
    }
    return sum[0];
}

/* Scaled by a power of two where squares would leave the range of double. */
double linalg_norm(const double *x, size_t n)
{
    double most = 0;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs(x[i]));
    }
    if (most >= 0x1p-400 && most <= 0x1p400) {
        return sqrt(linalg_dot(x, x, n));
    }
    double scale = most > 1 ? 0x1p-600 : 0x1p600;
    for (size_t i = 0; i < n; i++) {
        sum += x[i] * scale * (x[i] * scale);
    }
    return sqrt(sum) / scale;
}

void linalg_axpy(double a, const double *x, double *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += a * x[i];
    }
}

/* One element more than needed keeps empty matrices valid. */
void linalg_qr_init(struct linalg_qr *q, size_t rows, size_t cols, struct arena *a)
{
    *q = (struct linalg_qr){.rows = rows, .cols = cols};
    q->a = arena_array(a, rows * cols + 1, sizeof(*q->a));
}

/* Turns x[n] into its first element alone, (b, 0, ...): I - tau v v' with v[0] = 1, whose rest
 * replaces that of x. Returns tau, 0 where nothing is to be done. */
static double reflect(double *x, size_t n)
{
    double rest = linalg_norm(x + 1, n - 1);
    if (rest <= 0) {
        return 0;
    }
    double length = elementary_hypot(x[0], rest);
    double b = x[0] > 0 ? -length : length;
    double tau = (b - x[0]) / b;
    double scale = x[0] - b;
    for (size_t i = 1; i < n; i++) {
        x[i] /= scale;
    }
    x[0] = b;
    return tau;
}

/* R is left in the upper triangle; Q is not needed. */
void linalg_qr_factor(struct linalg_qr *q)
{
    size_t m = q->rows;
    for (size_t k = 0; k < q->cols && k < m; k++) {
        double *v = q->a + k * m + k;
        double tau = reflect(v, m - k);
        for (size_t j = k + 1; j < q->cols && tau > 0; j++) {
            double *x = q->a + j * m + k;
            double along = tau * (x[0] + linalg_dot(v + 1, x + 1, m - k - 1));
            x[0] -= along;
            linalg_axpy(-along, v + 1, x + 1, m - k - 1);
        }
    }
}

/* An exact zero on the diagonal is reported; near-singular systems are the caller's to judge. */
bool linalg_solve_upper(const double *r, size_t n, size_t ld, bool transposed, double *b)
{
    for (size_t k = 0; k < n; k++) {
        if (!(r[k * ld + k] > 0 || r[k * ld + k] < 0)) {
            return false;
        }
    }
    for (size_t k = 0; k < n && transposed; k++) {
        b[k] = (b[k] - linalg_dot(r + k * ld, b, k)) / r[k * ld + k];
    }
    for (size_t k = n; k-- > 0 && !transposed;) {
        b[k] /= r[k * ld + k];
        linalg_axpy(-b[k], r + k * ld, b, k);
    }
    return true;
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
