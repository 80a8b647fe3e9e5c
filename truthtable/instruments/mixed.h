/*
 * y = X beta + Z b + e with one random intercept per group, b ~ N(0, var_b), e ~ N(0, var_e), by
 * restricted maximum likelihood (docs/statistics.md). What lme4's lmer(REML = TRUE) computes.
 *
 * A singular fit is a result: which columns carry no variance, which are combinations of which
 * others, whether theta = sigma_b / sigma_e is at its boundary. What cannot be fitted is a result
 * too: `why` says it in a sentence. No input makes a NaN or an infinity in the result.
 *
 * The caller owns the data and drops rows with missing values beforehand. Everything in the result
 * lives in the caller's arena.
 */
#ifndef TRUTHTABLE_INSTRUMENTS_MIXED_H
#define TRUTHTABLE_INSTRUMENTS_MIXED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

/* A column counts as a combination of earlier ones when less than this share of its length is left
 * after projection on them: R's qr() and so lme4. */
#define MIXED_RANK_TOLERANCE 1e-7
/* Below it the groups' variance counts as zero: lme4's isSingular(). */
#define MIXED_BOUNDARY 1e-4

struct mixed_data {
    const double *x;     /* n x p, row-major; an intercept is a column of the caller's */
    const double *y;     /* n */
    const size_t *group; /* n, each < n_groups; groups without a row are let pass */
    size_t n, p, n_groups;
};

enum mixed_reason_kind {
    MIXED_NO_VARIANCE,    /* `column` is the same in every row, and an intercept or zeros say it */
    MIXED_ALIASED,        /* `column` is a combination of the columns `of` */
    MIXED_BOUNDARY_THETA, /* theta < MIXED_BOUNDARY: the groups add no variance */
};

struct mixed_reason {
    enum mixed_reason_kind kind;
    size_t column;    /* index into x's columns; unused at the boundary */
    size_t n_of;      /* of MIXED_ALIASED: n_of kept columns, ascending, */
    const size_t *of; /* and what they are multiplied by */
    const double *coefficient;
};

struct mixed_fit {
    const char *why; /* NULL: fitted. Else only kept, rank, reasons and singular say something */
    bool singular;   /* n_reasons > 0 */
    struct mixed_reason *reasons;
    size_t n_reasons;
    bool *kept;        /* p: the columns that were fitted; the others' beta and se are 0 and mean
                        * nothing */
    size_t rank;       /* how many were kept */
    size_t n_groups;   /* groups that have a row */
    double *beta, *se; /* p */
    double var_b, var_e, sigma_b, sigma_e, theta;
    double loglik;                      /* restricted, with all constants, as lme4's logLik() */
    double r2_marginal, r2_conditional; /* Nakagawa & Schielzeth; fixed part's variance, ddof 1 */
};

/* 0 when fitted, ERR_INVALID when not (`out->why`). */
int mixed_model_fit(const struct mixed_data *d, struct arena *a, struct mixed_fit *out);

#endif
