/*
 * Restricted maximum likelihood for one random intercept. First the columns are judged
 * (mixed_columns.c), then theta is found by minimizing a profile in one dimension
 * (mixed_profile.c), then estimates are scaled back to the caller's units. Degenerate data are
 * recognized before the search and named, because an optimizer would return some number for them.
 * The result agrees with lme4 to its own precision (tests/oracle).
 */
#include "truthtable/instruments/mixed.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>

#include "base/math/elementary.h"
#include "truthtable/instruments/mixed_parts.h"

#define LN_2PI 1.8378770664093455
/* A residual below this share of the response's length is rounding. */
#define EXACT 1e-12

/* Sizes beyond any plan, values that are not finite, groups that do not exist. */
static const char *why_unfit(const struct mixed_data *d)
{
    if (d->n == 0) {
        return "no row is left";
    }
    if (d->n > INT_MAX / 2 || d->p > INT_MAX / 64 || d->n_groups > INT_MAX / 2 ||
        d->n > SIZE_MAX / 64 / (d->p + 1)) {
        return "more rows or columns than can be fitted";
    }
    for (size_t i = 0; i < d->n; i++) {
        if (!isfinite(d->y[i])) {
            return "a value of the response is not a finite number";
        }
        if (d->group[i] >= d->n_groups) {
            return "a row belongs to no known group";
        }
    }
    for (size_t i = 0; i < d->n * d->p; i++) {
        if (!isfinite(d->x[i])) {
            return "a value of a column is not a finite number";
        }
    }
    return NULL;
}

/* Exactly equal, as a constant response is. */
static bool all_equal(const double *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (v[i] != v[0]) {
            return false;
        }
    }
    return true;
}

/* What the columns leave of the response without any groups. */
static double residual_length(const struct mixed_columns *c, struct arena *a)
{
    double *v = arena_array(a, c->n, sizeof(*v));
    double *coordinates = arena_array(a, c->rank + 1, sizeof(*coordinates));
    for (size_t i = 0; i < c->n; i++) {
        v[i] = c->y[i];
    }
    return linalg_basis_project(&c->basis, v, coordinates);
}

/* Data on which the variances are not identified, whatever theta. */
static const char *why_undetermined(const struct mixed_columns *c, struct arena *a)
{
    if (all_equal(c->y, c->n)) {
        return "the response is the same in every row";
    }
    if (c->n_groups < 2) {
        return "one group alone shows no variance between groups";
    }
    if (c->n <= c->rank) {
        return "no more rows than columns: nothing is left to estimate an error from";
    }
    if (c->n_groups == c->n) {
        return "every group has one row: its variance cannot be separated from the residual's";
    }
    if (residual_length(c, a) <= EXACT * linalg_norm(c->y, c->n)) {
        return "the columns fit the response exactly";
    }
    return NULL;
}

/* The same for what needs the profile: nothing left between or within groups. */
static const char *why_flat(const struct mixed_profile *m, const struct mixed_columns *c)
{
    if (m->between_df == 0) {
        return "the columns already tell the groups apart: nothing is left between groups";
    }
    if (m->within_df == 0) {
        return "nothing is left within groups to estimate the residual variance from";
    }
    if (m->within_left <= EXACT * linalg_norm(c->y, c->n)) {
        return "within groups the columns fit the response exactly";
    }
    return NULL;
}

/* se^2 = var_e * diag((R'R)^-1): the squared length of a row of R^-1 is that of R'^-1 e_k. */
static double column_error(struct mixed_profile *m, size_t k, double sigma)
{
    for (size_t i = 0; i < m->p; i++) {
        m->row[i] = i == k ? 1 : 0;
    }
    (void)linalg_solve_upper(m->qr.a, m->p, m->qr.rows, true, m->row);
    return sigma * linalg_norm(m->row, m->p);
}

/* The variance of the fixed part over rows, for R2. */
static double fixed_variance(const struct mixed_profile *m, const struct mixed_columns *c,
                             struct arena *a)
{
    double *fixed = arena_array(a, c->n, sizeof(*fixed));
    double mean = 0;
    double sum = 0;
    for (size_t k = 0; k < c->rank; k++) {
        linalg_axpy(m->beta[k], c->x + k * c->n, fixed, c->n);
    }
    for (size_t i = 0; i < c->n; i++) {
        mean += fixed[i] / (double)c->n;
    }
    for (size_t i = 0; i < c->n; i++) {
        sum += (fixed[i] - mean) * (fixed[i] - mean);
    }
    return sum / (double)(c->n - 1);
}

/* The point's value is of scaled numbers: each power of two adds its logarithm. */
static double log_likelihood(const struct mixed_profile *m, const struct mixed_columns *c,
                             double value)
{
    double df = (double)(m->n - m->p);
    double scales = df * c->y_exponent;
    for (size_t k = 0; k < c->rank; k++) {
        scales += c->exponent[k];
    }
    return -0.5 * (value + df * (1 + LN_2PI - elementary_log(df)) + 2 * ELEMENTARY_LN_2 * scales);
}

/* Results beyond double become a reason instead of an infinity. */
static bool all_finite(const struct mixed_fit *f, size_t p)
{
    bool finite = isfinite(f->loglik) && isfinite(f->r2_marginal) && isfinite(f->r2_conditional) &&
                  isfinite(f->var_b) && isfinite(f->var_e) && f->var_e > 0;
    for (size_t k = 0; k < p; k++) {
        finite = finite && isfinite(f->beta[k]) && isfinite(f->se[k]);
    }
    return finite;
}

/* Estimates at the minimum. Powers of two are undone exactly by ldexp(). */
static void fill(struct mixed_profile *m, const struct mixed_columns *c,
                 const struct mixed_point *at, struct arena *work, struct mixed_fit *out)
{
    double var_e = at->rss / (double)(m->n - m->p);
    double var_b = at->gamma * var_e;
    double fixed = fixed_variance(m, c, work);
    out->theta = sqrt(at->gamma);
    out->var_e = ldexp(var_e, 2 * c->y_exponent);
    out->var_b = ldexp(var_b, 2 * c->y_exponent);
    out->sigma_e = ldexp(sqrt(var_e), c->y_exponent);
    out->sigma_b = out->theta * out->sigma_e;
    out->r2_marginal = fixed / (fixed + var_b + var_e);
    out->r2_conditional = (fixed + var_b) / (fixed + var_b + var_e);
    out->loglik = log_likelihood(m, c, at->value);
    for (size_t k = 0; k < c->rank; k++) {
        int exponent = c->y_exponent - c->exponent[k];
        out->beta[c->source[k]] = ldexp(m->beta[k], exponent);
        out->se[c->source[k]] = ldexp(column_error(m, k, sqrt(var_e)), exponent);
    }
}

/* Singular as lme4's isSingular() defines it. */
static void note_boundary(struct mixed_fit *out)
{
    if (out->theta < MIXED_BOUNDARY) {
        out->reasons[out->n_reasons++] = (struct mixed_reason){.kind = MIXED_BOUNDARY_THETA};
    }
}

/* The steps in order; returns why nothing was fitted, or NULL. */
static const char *fit(const struct mixed_data *d, struct arena *a, struct mixed_fit *out,
                       struct arena *work)
{
    struct mixed_columns columns;
    struct mixed_profile profile;
    struct mixed_point least;
    mixed_columns_judge(d, a, work, &columns, out);
    const char *why = why_undetermined(&columns, work);
    if (why == NULL) {
        mixed_profile_init(&profile, &columns, work);
        why = why_flat(&profile, &columns);
    }
    if (why != NULL) {
        return why;
    }
    if (!mixed_profile_minimise(&profile, &least)) {
        return "the likelihood has no maximum: it grows with theta without end";
    }
    fill(&profile, &columns, &least, work, out);
    if (!all_finite(out, d->p)) {
        return "the estimates are beyond the range of double";
    }
    note_boundary(out);
    return NULL;
}

/* What was not estimated is 0, not what a step on the way left there. */
static void clear_estimates(struct mixed_fit *out, size_t p)
{
    out->var_b = out->var_e = out->sigma_b = out->sigma_e = out->theta = 0;
    out->loglik = out->r2_marginal = out->r2_conditional = 0;
    for (size_t k = 0; k < p; k++) {
        out->beta[k] = out->se[k] = 0;
    }
}

/* All working memory is released; only the result remains in the caller's arena. */
int mixed_model_fit(const struct mixed_data *d, struct arena *a, struct mixed_fit *out)
{
    struct arena work;
    *out = (struct mixed_fit){.why = why_unfit(d)};
    out->kept = arena_array(a, d->p + 1, sizeof(*out->kept));
    out->beta = arena_array(a, d->p + 1, sizeof(*out->beta));
    out->se = arena_array(a, d->p + 1, sizeof(*out->se));
    out->reasons = arena_array(a, d->p + 1, sizeof(*out->reasons));
    arena_init(&work);
    if (out->why == NULL) {
        out->why = fit(d, a, out, &work);
    }
    arena_release(&work);
    out->singular = out->n_reasons > 0;
    if (out->why != NULL) {
        clear_estimates(out, d->p);
        return ERR_INVALID;
    }
    return 0;
}
