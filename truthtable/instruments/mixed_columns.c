/*
 * Decides which columns can be fitted, in the order given: a column of which too little remains
 * after projection on those before it is dropped, as R's qr() does. A dropped column is reported as
 * constant or as a combination, with its coefficients. Every column is scaled by a power of two
 * first, so squares neither overflow nor lose digits.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/math/elementary.h"
#include "truthtable/instruments/mixed_parts.h"

/* A coefficient that moves a column by less than this share of its length is rounding. */
#define COEFFICIENT_FLOOR 1e-6

/* An all-zero column has exponent 0 and stays zero. */
int mixed_scale(const double *v, size_t n, size_t stride, double *out)
{
    double most = 0;
    int exponent = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs(v[i * stride]));
    }
    (void)frexp(most, &exponent);
    for (size_t i = 0; i < n; i++) {
        out[i] = ldexp(v[i * stride], -exponent);
    }
    return exponent;
}

/* Constant relative to its own length, by the same tolerance as the rank. */
static bool is_constant(const double *v, size_t n)
{
    double mean = 0;
    double spread = 0;
    for (size_t i = 0; i < n; i++) {
        mean += v[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        spread = elementary_hypot(spread, v[i] - mean);
    }
    return !(spread > MIXED_RANK_TOLERANCE * linalg_norm(v, n));
}

/* State of the pass over the columns. */
struct column_judge {
    const struct mixed_data *d;
    struct arena *a;
    struct mixed_columns *cols;
    struct mixed_fit *fit;
    double *length; /* rank: of the kept columns, scaled */
    double *v, *c;  /* one column, its coordinates */
};

/* Names the kept columns that make up the one that was refused: R x = its coordinates. */
static void note_combination(struct column_judge *j, struct mixed_reason *r, int exponent,
                             double length)
{
    const struct linalg_basis *b = &j->cols->basis;
    size_t *of = arena_array(j->a, b->n + 1, sizeof(*of));
    double *coefficient = arena_array(j->a, b->n + 1, sizeof(*coefficient));
    if (!linalg_solve_upper(b->r, b->n, b->max, false, j->c)) {
        return;
    }
    for (size_t k = 0; k < b->n; k++) {
        if (fabs(j->c[k]) * j->length[k] > COEFFICIENT_FLOOR * length) {
            double whole = ldexp(j->c[k], exponent - j->cols->exponent[k]);
            of[r->n_of] = j->cols->source[k];
            coefficient[r->n_of++] = fmax(-DBL_MAX, fmin(DBL_MAX, whole));
        }
    }
    r->of = of;
    r->coefficient = coefficient;
}

/* Keeps the column, or notes why it is dropped. */
static void judge_column(struct column_judge *j, size_t column)
{
    struct mixed_columns *cols = j->cols;
    size_t n = cols->n;
    double *copy = cols->x + cols->rank * n;
    int exponent = mixed_scale(j->d->x + column, n, j->d->p, copy);
    double length = linalg_norm(copy, n);
    memcpy(j->v, copy, n * sizeof(*copy));
    if (linalg_basis_take(&cols->basis, j->v, j->c, MIXED_RANK_TOLERANCE * length)) {
        j->fit->kept[column] = true;
        cols->exponent[cols->rank] = exponent;
        cols->source[cols->rank] = column;
        j->length[cols->rank++] = length;
        return;
    }
    struct mixed_reason *r = &j->fit->reasons[j->fit->n_reasons++];
    *r = (struct mixed_reason){.column = column, .kind = MIXED_NO_VARIANCE};
    if (!is_constant(copy, n)) {
        r->kind = MIXED_ALIASED;
        note_combination(j, r, exponent, length);
    }
}

/* Groups that have rows get numbers of their own, in the caller's order. */
static void count_groups(const struct mixed_data *d, struct arena *a, struct mixed_columns *out)
{
    size_t *number = arena_array(a, d->n_groups + 1, sizeof(*number));
    for (size_t i = 0; i < d->n; i++) {
        number[d->group[i]] = 1;
    }
    for (size_t g = 0; g < d->n_groups; g++) {
        number[g] = number[g] != 0 ? out->n_groups++ : 0;
    }
    for (size_t i = 0; i < d->n; i++) {
        out->group[i] = number[d->group[i]];
    }
}

/* The copy of a dropped column is overwritten by the next one. */
void mixed_columns_judge(const struct mixed_data *d, struct arena *a, struct arena *work,
                         struct mixed_columns *out, struct mixed_fit *fit)
{
    *out = (struct mixed_columns){.n = d->n};
    out->x = arena_array(work, d->n * (d->p + 1), sizeof(*out->x));
    out->exponent = arena_array(work, d->p + 1, sizeof(*out->exponent));
    out->source = arena_array(work, d->p + 1, sizeof(*out->source));
    out->y = arena_array(work, d->n, sizeof(*out->y));
    out->group = arena_array(work, d->n, sizeof(*out->group));
    linalg_basis_init(&out->basis, d->n, d->p, work);
    struct column_judge j = {.d = d, .a = a, .cols = out, .fit = fit};
    j.length = arena_array(work, d->p + 1, sizeof(*j.length));
    j.v = arena_array(work, d->n, sizeof(*j.v));
    j.c = arena_array(work, d->p + 1, sizeof(*j.c));
    for (size_t k = 0; k < d->p; k++) {
        judge_column(&j, k);
    }
    out->y_exponent = mixed_scale(d->y, d->n, 1, out->y);
    count_groups(d, work, out);
    fit->rank = out->rank;
    fit->n_groups = out->n_groups;
}
