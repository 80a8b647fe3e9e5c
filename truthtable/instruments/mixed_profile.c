/*
 * The profile of the restricted likelihood in gamma = theta^2. Data are reduced once to a
 * triangular factor within groups and a row of means for each group, so one evaluation costs a QR
 * of (groups + columns) rows, whatever the number of cells. The search looks for sign changes of
 * the analytic slope on a grid of powers of two and bisects each to the last bit, which finds every
 * minimum that the grid separates and gives the same bytes everywhere.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/math/elementary.h"
#include "truthtable/instruments/mixed_parts.h"

/* The search covers gamma from 2^-64 to 2^84, theta from 2e-10 to 4e12: wider than anything that
 * passes the test for an exact fit within groups. */
#define GRID_FIRST (-64)
#define GRID_LAST  84

/* Splits one column into its group means (a column of m->means) and the remainder (v). */
static void centre(struct mixed_profile *m, const struct mixed_columns *c, size_t k, double *v)
{
    const double *x = k < c->rank ? c->x + k * c->n : c->y;
    size_t width = m->p + 1;
    double *mean = m->means + k;
    for (size_t i = 0; i < c->n; i++) {
        mean[c->group[i] * width] += x[i] / m->sizes[c->group[i]];
    }
    for (size_t i = 0; i < c->n; i++) {
        v[i] = x[i] - mean[c->group[i] * width];
    }
}

/* The rank of the columns within groups, judged by their whole lengths, and the length of y that
 * remains.
 */
static void judge_within(struct mixed_profile *m, const struct mixed_columns *c,
                         const double *centred, struct arena *a)
{
    struct linalg_basis within;
    double *v = arena_array(a, c->n, sizeof(*v));
    double *coordinates = arena_array(a, m->p + 1, sizeof(*coordinates));
    linalg_basis_init(&within, c->n, m->p, a);
    for (size_t k = 0; k < m->p; k++) {
        double length = linalg_norm(c->x + k * c->n, c->n);
        memcpy(v, centred + k * c->n, c->n * sizeof(*v));
        (void)linalg_basis_take(&within, v, coordinates, MIXED_RANK_TOLERANCE * length);
    }
    memcpy(v, centred + m->p * c->n, c->n * sizeof(*v));
    m->within_left = linalg_basis_project(&within, v, coordinates);
    size_t together = within.n + m->n_groups;
    m->within_df = c->n > together ? c->n - together : 0;
    m->between_df = together > m->p ? together - m->p : 0;
}

/* The triangular factor of the centred columns, n x (p + 1): all that the criterion needs of them.
 */
static void factor_within(struct mixed_profile *m, const double *centred, struct arena *a)
{
    struct linalg_qr qr;
    size_t width = m->p + 1;
    linalg_qr_init(&qr, m->n, width, a);
    memcpy(qr.a, centred, m->n * width * sizeof(*centred));
    linalg_qr_factor(&qr);
    for (size_t k = 0; k < width; k++) {
        for (size_t i = 0; i <= k && i < m->n; i++) {
            m->within[k * width + i] = qr.a[k * m->n + i];
        }
    }
}

/* Everything that does not depend on gamma. */
void mixed_profile_init(struct mixed_profile *m, const struct mixed_columns *c, struct arena *a)
{
    size_t width = c->rank + 1;
    *m = (struct mixed_profile){.n = c->n, .p = c->rank, .n_groups = c->n_groups};
    m->within = arena_array(a, width * width, sizeof(*m->within));
    m->means = arena_array(a, m->n_groups * width, sizeof(*m->means));
    m->sizes = arena_array(a, m->n_groups, sizeof(*m->sizes));
    m->beta = arena_array(a, width, sizeof(*m->beta));
    m->row = arena_array(a, width, sizeof(*m->row));
    linalg_qr_init(&m->qr, m->n_groups + width, width, a);
    for (size_t i = 0; i < c->n; i++) {
        m->sizes[c->group[i]]++;
    }
    double *centred = arena_array(a, c->n * width, sizeof(*centred));
    for (size_t k = 0; k < width; k++) {
        centre(m, c, k, centred + k * c->n);
    }
    judge_within(m, c, centred, a);
    factor_within(m, centred, a);
}

/* Stacks the within factor on the weighted means: the matrix whose QR gives R, beta and RSS. */
static void stack(struct mixed_profile *m, double gamma)
{
    size_t width = m->p + 1;
    size_t rows = m->qr.rows;
    for (size_t k = 0; k < width; k++) {
        double *column = m->qr.a + k * rows;
        memcpy(column, m->within + k * width, width * sizeof(*column));
        for (size_t g = 0; g < m->n_groups; g++) {
            double weight = sqrt(m->sizes[g] / (1 + m->sizes[g] * gamma));
            column[width + g] = weight * m->means[g * width + k];
        }
    }
}

/* beta = R^-1 Q'y; false when R has a zero on its diagonal. */
static bool solve_beta(struct mixed_profile *m)
{
    memcpy(m->beta, m->qr.a + m->p * m->qr.rows, m->p * sizeof(*m->beta));
    return linalg_solve_upper(m->qr.a, m->p, m->qr.rows, false, m->beta);
}

/* One group's part of the slope: n w (1 - n w h) and (n w r)^2, with w = 1 / (1 + n gamma), h = x'
 * A^-1 x and r = y - x'beta at the group's means. */
static void add_group(struct mixed_profile *m, size_t g, double gamma, double *trace, double *pull)
{
    const double *mean = m->means + g * (m->p + 1);
    double nw = m->sizes[g] / (1 + m->sizes[g] * gamma);
    double r = mean[m->p];
    for (size_t k = 0; k < m->p; k++) {
        r -= mean[k] * m->beta[k];
    }
    memcpy(m->row, mean, m->p * sizeof(*m->row));
    (void)linalg_solve_upper(m->qr.a, m->p, m->qr.rows, true, m->row);
    double h = linalg_dot(m->row, m->row, m->p);
    *trace += nw * (1 - nw * h);
    *pull += nw * r * nw * r;
}

/* The criterion and its slope at one gamma. A singular R gives the greatest value, which the search
 * avoids. */
struct mixed_point mixed_profile_at(struct mixed_profile *m, double gamma)
{
    struct mixed_point at = {.gamma = gamma, .value = DBL_MAX, .slope = 1};
    size_t rows = m->qr.rows;
    stack(m, gamma);
    linalg_qr_factor(&m->qr);
    double left = m->qr.a[m->p * rows + m->p];
    at.rss = left * left;
    if (!(at.rss > 0) || !solve_beta(m)) {
        return at;
    }
    double trace = 0;
    double pull = 0;
    double df = (double)(m->n - m->p);
    at.value = df * elementary_log(at.rss);
    for (size_t g = 0; g < m->n_groups; g++) {
        at.value += elementary_log1p(m->sizes[g] * gamma);
        add_group(m, g, gamma, &trace, &pull);
    }
    for (size_t k = 0; k < m->p; k++) {
        at.value += 2 * elementary_log(fabs(m->qr.a[k * rows + k]));
    }
    at.slope = trace - df * pull / at.rss;
    return at;
}

/* The slope changes its sign from - to + between the two: halves the interval of gamma's exponent
 * until doubles have nothing between. */
static struct mixed_point refine(struct mixed_profile *m, double low, double high)
{
    for (;;) {
        double mid = low + (high - low) / 2;
        if (mid <= low || mid >= high) {
            return mixed_profile_at(m, high);
        }
        if (mixed_profile_at(m, mid).slope < 0) {
            low = mid;
        } else {
            high = mid;
        }
    }
}

/* The boundary gamma = 0 is a candidate if the slope there is not negative. The minimum is
 * evaluated last, so that beta and R belong to it. */
bool mixed_profile_minimise(struct mixed_profile *m, struct mixed_point *out)
{
    struct mixed_point before = mixed_profile_at(m, 0);
    bool found = before.slope >= 0;
    *out = before;
    for (int k = GRID_FIRST; k <= GRID_LAST; k++) {
        struct mixed_point here = mixed_profile_at(m, ldexp(1, k));
        if (before.slope < 0 && here.slope >= 0) {
            struct mixed_point least = refine(m, before.gamma, here.gamma);
            *out = !found || least.value < out->value ? least : *out;
            found = true;
        }
        before = here;
    }
    found = found && (before.slope >= 0 || out->value <= before.value);
    *out = mixed_profile_at(m, out->gamma);
    return found;
}
