/*
 * What mixed.c is made of: the columns that can be fitted, and the criterion over theta. All
 * numbers here are scaled: every column and the response divided by a power of two that brings its
 * largest value into [1/2, 1), which costs no digit and lets no square overflow.
 */
#ifndef TRUTHTABLE_INSTRUMENTS_MIXED_PARTS_H
#define TRUTHTABLE_INSTRUMENTS_MIXED_PARTS_H

#include "truthtable/instruments/linalg.h"
#include "truthtable/instruments/mixed.h"

/* The kept columns, scaled, one behind the other. */
struct mixed_columns {
    size_t n, rank;
    double *x;      /* n x rank, column-major */
    int *exponent;  /* rank: the column is x * 2^exponent */
    size_t *source; /* rank: its index among the caller's */
    double *y;
    int y_exponent;
    size_t *group; /* n: groups that have rows, counted from 0 */
    size_t n_groups;
    struct linalg_basis basis; /* of the kept columns, in their order */
};

/* Copies v scaled to out and returns the exponent. */
int mixed_scale(const double *v, size_t n, size_t stride, double *out);

/* Judges the columns, notes in `fit` which are kept and why others are not: what belongs to `fit`
 * comes from `a`, all else from `work`. */
void mixed_columns_judge(const struct mixed_data *d, struct arena *a, struct arena *work,
                         struct mixed_columns *out, struct mixed_fit *fit);

/*
 * Minus twice the restricted log likelihood, but for constants, with beta and var_e profiled out,
 * in gamma = theta^2:
 *     f = (n - p) ln RSS + sum_j ln(1 + n_j gamma) + ln |X' V^-1 X|.
 * V^-1/2 takes (1 - 1/sqrt(1 + n_j gamma)) times its group's mean from every row, so that rows
 * enter through two things: the triangular factor of the remainder within groups, computed once,
 * and a row of means for every group, weighted by sqrt(n_j / (1 + n_j gamma)).
 */
struct mixed_profile {
    size_t n, p, n_groups;
    double *within;      /* (p + 1) x (p + 1), upper, column-major; the last column is y's */
    double *means;       /* n_groups x (p + 1), a row per group */
    double *sizes;       /* n_groups */
    struct linalg_qr qr; /* n_groups + p + 1 rows, p + 1 columns */
    double *beta, *row;  /* p each */
    size_t within_df;    /* rows - rank of the columns and the groups together */
    size_t between_df;   /* rank of the columns and the groups together - p */
    double within_left;  /* of y within groups, unexplained: a length */
};

void mixed_profile_init(struct mixed_profile *m, const struct mixed_columns *c, struct arena *a);

/* At one gamma; m->beta and the triangle in m->qr belong to it afterwards. */
struct mixed_point {
    double gamma, value, slope; /* slope = df / d gamma */
    double rss;
};
struct mixed_point mixed_profile_at(struct mixed_profile *m, double gamma);

/* The lowest minimum over gamma >= 0; false when the criterion falls without end. */
bool mixed_profile_minimise(struct mixed_profile *m, struct mixed_point *out);

#endif
