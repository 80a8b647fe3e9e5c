/* Mixed models of what should not have come: every answer is a fit of finite numbers or a reason,
 * and the reasons are the right ones. The random part is what ASan and UBSan look through. */

#include <float.h>
#include <math.h>

#include "base/rng.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "truthtable/instruments/mixed.h"

#define NONE    ((double)NAN)
#define ENDLESS ((double)INFINITY)
#define MOST_N  24
#define MOST_P  7

static const double noise[12] = {0.3, -1.2, 0.8,  1.9,  -0.4, 0.1,
                                 0.9, -2.2, 1.25, -0.7, 0.55, -0.15};

/* An intercept and one column, three groups of four. */
struct small {
    double x[12 * 2], y[12];
    size_t group[12];
    struct mixed_data d;
};

static struct mixed_data *small_init(struct small *s)
{
    for (size_t i = 0; i < 12; i++) {
        s->x[2 * i] = 1;
        s->x[2 * i + 1] = noise[(5 * i + 3) % 12];
        s->y[i] = 3 + noise[i] + (double)(i / 4);
        s->group[i] = i / 4;
    }
    s->d = (struct mixed_data){s->x, s->y, s->group, 12, 2, 3};
    return &s->d;
}

static void look_finite(const struct mixed_data *d, const struct mixed_fit *f)
{
    double sum = f->var_b + f->var_e + f->sigma_b + f->sigma_e + f->theta + f->loglik +
                 f->r2_marginal + f->r2_conditional;
    assert_true(isfinite(sum));
    for (size_t k = 0; k < d->p; k++) {
        assert_true(isfinite(f->beta[k]) && isfinite(f->se[k]));
    }
    for (size_t i = 0; i < f->n_reasons; i++) {
        assert_true(f->reasons[i].column < d->p + 1);
        for (size_t k = 0; k < f->reasons[i].n_of; k++) {
            assert_true(isfinite(f->reasons[i].coefficient[k]));
            assert_true(f->kept[f->reasons[i].of[k]]);
        }
    }
    assert_int_equal(f->singular, f->n_reasons > 0);
}

static void look_why(const struct mixed_data *d, const char *why)
{
    struct arena a;
    struct mixed_fit f;
    arena_init(&a);
    int rc = mixed_model_fit(d, &a, &f);
    look_finite(d, &f);
    assert_int_equal(rc, why == NULL ? 0 : ERR_INVALID);
    if (why == NULL) {
        assert_null(f.why);
    } else {
        assert_non_null(f.why);
        assert_string_equal(f.why, why);
    }
    arena_release(&a);
}

static void test_values(void **state)
{
    struct small s;
    (void)state;
    look_why(small_init(&s), NULL);
    small_init(&s)->n = 0;
    look_why(&s.d, "no row is left");
    small_init(&s);
    s.y[3] = NONE;
    look_why(&s.d, "a value of the response is not a finite number");
    small_init(&s);
    s.x[7] = -ENDLESS;
    look_why(&s.d, "a value of a column is not a finite number");
    small_init(&s);
    s.group[11] = 3;
    look_why(&s.d, "a row belongs to no known group");
    small_init(&s);
    for (size_t i = 0; i < 12; i++) {
        s.y[i] = 0.2316;
    }
    look_why(&s.d, "the response is the same in every row");
    small_init(&s);
    for (size_t i = 0; i < 12; i++) {
        s.y[i] = 2 - 3 * s.x[2 * i + 1];
    }
    look_why(&s.d, "the columns fit the response exactly");
}

static void test_groups(void **state)
{
    struct small s;
    (void)state;
    small_init(&s);
    for (size_t i = 0; i < 12; i++) {
        s.group[i] = 1;
    }
    look_why(&s.d, "one group alone shows no variance between groups");
    small_init(&s)->n = 2;
    look_why(&s.d, "one group alone shows no variance between groups");
    small_init(&s);
    for (size_t i = 0; i < 12; i++) {
        s.group[i] = i;
    }
    s.d.n_groups = 12;
    look_why(&s.d, "every group has one row: its variance cannot be separated from the residual's");
    small_init(&s)->n = 2;
    s.group[1] = 1;
    look_why(&s.d, "no more rows than columns: nothing is left to estimate an error from");
    small_init(&s);
    for (size_t i = 0; i < 12; i++) {
        s.group[i] = i < 6 ? 0 : 2;
        s.x[2 * i + 1] = i < 6 ? 1 : 4;
    }
    look_why(&s.d, "the columns already tell the groups apart: nothing is left between groups");
    small_init(&s);
    for (size_t i = 0; i < 12; i++) {
        s.y[i] = (double)(i / 4 * (i / 4)) + 2 * s.x[2 * i + 1];
    }
    look_why(&s.d, "within groups the columns fit the response exactly");
    /* three rows in two groups, a column that takes the one degree of freedom within them */
    small_init(&s)->n = 4;
    s.d.n_groups = 3;
    s.group[0] = s.group[1] = 0;
    s.group[2] = 1;
    s.group[3] = 2;
    look_why(&s.d, "nothing is left within groups to estimate the residual variance from");
}

/* beta and sigma follow a change of units exactly, when it is by powers of two: over the whole
 * range of doubles, as far as the squares fit. */
static void test_units(void **state)
{
    static const int shifts[] = {-400, -37, 0, 52, 400};
    struct small s;
    struct arena a;
    struct mixed_fit plain;
    struct mixed_fit moved;
    (void)state;
    arena_init(&a);
    assert_int_equal(mixed_model_fit(small_init(&s), &a, &plain), 0);
    for (size_t k = 0; k < ARRAY_LEN(shifts); k++) {
        CHECK_ROW("shifts[%zu]", k);
        small_init(&s);
        for (size_t i = 0; i < 12; i++) {
            s.y[i] = ldexp(s.y[i], shifts[k]);
            s.x[2 * i + 1] = ldexp(s.x[2 * i + 1], -shifts[k]);
        }
        assert_int_equal(mixed_model_fit(&s.d, &a, &moved), 0);
        assert_true(moved.theta == plain.theta);
        assert_true(moved.sigma_e == ldexp(plain.sigma_e, shifts[k]));
        assert_true(moved.beta[1] == ldexp(plain.beta[1], 2 * shifts[k]));
        assert_true(moved.se[0] == ldexp(plain.se[0], shifts[k]));
        assert_true(moved.r2_conditional == plain.r2_conditional);
        double units = (double)shifts[k] * log(2) * ((12 - 2) - 1);
        assert_true(fabs(moved.loglik - (plain.loglik - units)) < 1e-9);
    }
    small_init(&s);
    for (size_t i = 0; i < 12; i++) {
        s.y[i] = ldexp(s.y[i], 1000);
    }
    look_why(&s.d, "the estimates are beyond the range of double");
    arena_release(&a);
}

/* The rows' order does not matter, nor do groups without rows or their numbers. */
static void test_names_of_groups(void **state)
{
    struct small s;
    struct arena a;
    struct mixed_fit plain;
    struct mixed_fit other;
    (void)state;
    arena_init(&a);
    assert_int_equal(mixed_model_fit(small_init(&s), &a, &plain), 0);
    for (size_t i = 0; i < 12; i++) {
        s.group[i] = 90 - 7 * s.group[i];
    }
    s.d.n_groups = 100;
    assert_int_equal(mixed_model_fit(&s.d, &a, &other), 0);
    assert_int_equal(other.n_groups, 3);
    assert_true(fabs(other.theta - plain.theta) < 1e-12);
    assert_true(fabs(other.loglik - plain.loglik) < 1e-12);
    arena_release(&a);
}

struct wild {
    double x[MOST_N * MOST_P], y[MOST_N];
    size_t group[MOST_N];
    struct mixed_data d;
};

static double wild_number(struct rng *r)
{
    static const double odd[] = {0, 1, -1, 1e-300, 1e300, DBL_MIN / 4, DBL_MAX, 1e15, 1e-15};
    uint64_t kind = rng_below(r, 8);
    if (kind == 0) {
        return odd[rng_below(r, ARRAY_LEN(odd))];
    }
    return kind < 4 ? (double)rng_below(r, 3) : rng_unit(r) * 2 - 1;
}

/* Columns drawn, pinned, repeated, or put together from those before. */
static void wild_column(struct rng *r, struct wild *w, size_t k)
{
    uint64_t kind = rng_below(r, 6);
    size_t other = k > 0 ? (size_t)rng_below(r, k) : 0;
    double pinned = wild_number(r);
    double scale = ldexp(1, (int)rng_below(r, 60) - 30);
    for (size_t i = 0; i < w->d.n; i++) {
        double *row = w->x + i * w->d.p;
        double own = kind == 5 ? wild_number(r) : scale * (rng_unit(r) - 0.5);
        bool copied = kind >= 2 && kind <= 3 && k > 0;
        row[k] = kind == 0 || k == 0 ? pinned : copied ? row[other] * scale : own;
        row[k] += kind == 3 && k > 1 ? row[other / 2] : 0;
        row[k] = isfinite(row[k]) ? row[k] : 1;
    }
}

static void wild_init(struct rng *r, struct wild *w)
{
    w->d = (struct mixed_data){.x = w->x, .y = w->y, .group = w->group};
    w->d.n = 1 + (size_t)rng_below(r, MOST_N);
    w->d.p = (size_t)rng_below(r, MOST_P + 1);
    w->d.n_groups = 1 + (size_t)rng_below(r, MOST_N / 2);
    bool even = rng_below(r, 4) > 0;
    for (size_t i = 0; i < w->d.n; i++) {
        w->group[i] = (size_t)rng_below(r, w->d.n_groups);
        w->y[i] = even ? rng_unit(r) : wild_number(r);
    }
    for (size_t k = 0; k < w->d.p; k++) {
        wild_column(r, w, k);
    }
}

static void test_random(void **state)
{
    struct rng r;
    struct wild w;
    size_t n_fitted = 0;
    size_t n_aliased = 0;
    (void)state;
    rng_seed(&r, 5);
    for (int i = 0; i < 1500; i++) {
        struct arena a;
        struct mixed_fit f;
        wild_init(&r, &w);
        arena_init(&a);
        int rc = mixed_model_fit(&w.d, &a, &f);
        assert_int_equal(rc == 0, f.why == NULL);
        look_finite(&w.d, &f);
        assert_true(f.rank <= w.d.p && f.rank <= w.d.n);
        n_fitted += rc == 0;
        n_aliased += f.n_reasons > 0 && f.reasons[0].kind == MIXED_ALIASED;
        if (rc == 0) {
            assert_true(f.r2_marginal >= 0 && f.r2_conditional <= 1 &&
                        f.r2_marginal <= f.r2_conditional);
        }
        arena_release(&a);
    }
    assert_true(n_fitted > 300 && n_aliased > 100); /* the draw is one that reaches both */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_groups),
        cmocka_unit_test(test_units),  cmocka_unit_test(test_names_of_groups),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
