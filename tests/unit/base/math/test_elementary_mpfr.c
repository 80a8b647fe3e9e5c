/*
 * The stated error bounds, held against MPFR with 160 binary digits: arguments drawn uniformly and
 * by magnitude over the whole range of each function, and neighbors of the places where a function
 * changes its way. PREREGD_LONG draws 200 times as many, and ten times of erfc
 * and the functions of two arguments, which take MPFR so much longer.
 */
#include "tests/unit/check.h"

#ifdef PREREGD_MPFR

#include <math.h>
#include <mpfr.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/math/elementary.h"
#include "base/rng.h"
#include "base/xalloc.h"

#define DIGITS 160
#define DRAWS  30000

typedef int (*mpfr_function)(mpfr_t, const mpfr_t, mpfr_rnd_t);

struct function {
    const char *name;
    double (*ours)(double);
    mpfr_function theirs;
    double bound; /* units in the last place */
    double low, high;
    double near; /* 0, or the least magnitude of arguments drawn by magnitude about `center` */
    double center;
};

static const struct function functions[] = {
    {"exp", elementary_exp, mpfr_exp, 0.54, -708.3, 709.7, 1e-20, 0},
    {"exp near 0", elementary_exp, mpfr_exp, 0.54, -2, 2, 1e-20, 0},
    {"expm1", elementary_expm1, mpfr_expm1, 0.65, -50, 700, 1e-300, 0},
    {"expm1 near 0", elementary_expm1, mpfr_expm1, 0.65, -2, 2, 1e-20, 0},
    {"log", elementary_log, mpfr_log, 0.6, 1e-307, 10, 1e-307, 0},
    {"log far", elementary_log, mpfr_log, 0.6, 1, 1e300, 1, 0},
    {"log near 1", elementary_log, mpfr_log, 0.6, 0.5, 2, 1e-15, 1},
    {"log1p", elementary_log1p, mpfr_log1p, 0.65, -0.9999999, 1e6, 1e-300, 0},
    {"log1p near 0", elementary_log1p, mpfr_log1p, 0.65, -0.9, 2, 1e-20, 0},
    {"log2", elementary_log2, mpfr_log2, 0.51, 1e-307, 10, 1e-307, 0},
    {"log2 near 1", elementary_log2, mpfr_log2, 0.51, 0.5, 2, 1e-15, 1},
    {"log10", elementary_log10, mpfr_log10, 0.51, 1e-307, 10, 1e-307, 0},
    {"log10 near 1", elementary_log10, mpfr_log10, 0.51, 0.5, 2, 1e-15, 1},
    {"sin", elementary_sin, mpfr_sin, 0.82, -0x1p24, 0x1p24, 1e-300, 0},
    {"sin, a few turns", elementary_sin, mpfr_sin, 0.82, -30, 30, 1e-12, 3.141592653589793},
    {"cos", elementary_cos, mpfr_cos, 0.82, -0x1p24, 0x1p24, 1e-300, 0},
    {"cos, a few turns", elementary_cos, mpfr_cos, 0.82, -30, 30, 1e-12, 1.5707963267948966},
    {"atan", elementary_atan, mpfr_atan, 0.55, -2, 2, 1e-300, 0},
    {"atan far", elementary_atan, mpfr_atan, 0.55, -1e3, 1e300, 1, 0},
    {"erfc", elementary_erfc, mpfr_erfc, 0.7, -6.5, 2, 1e-20, 0},
    {"erfc far", elementary_erfc, mpfr_erfc, 4, 2, 26.5, 0, 0},
};

/* How many arguments; NULL: of two arguments. */
static size_t draws(mpfr_function of)
{
    size_t many = of == NULL || of == mpfr_erfc ? 10 : 200;

    return DRAWS * (getenv("PREREGD_LONG") != NULL ? many : 1);
}

/* |y - exact| in units in the last place of exact. */
static double units(double y, const mpfr_t exact)
{
    mpfr_t difference;

    mpfr_init2(difference, DIGITS);
    mpfr_d_sub(difference, y, exact, MPFR_RNDN);
    mpfr_mul_2si(difference, difference, 53 - mpfr_get_exp(exact), MPFR_RNDN);
    double u = fabs(mpfr_get_d(difference, MPFR_RNDN));
    mpfr_clear(difference);
    return mpfr_zero_p(exact) ? (y == 0 ? 0 : (double)INFINITY) : u;
}

/* Every other one by magnitude: center +- near (high / near)^u. */
static double draw(const struct function *f, struct rng *rng, size_t i)
{
    if (f->near > 0 && i % 2 == 0) {
        double size = f->near * exp(rng_unit(rng) * log(fmin(fabs(f->high), 1e300) / f->near));
        double x = f->center + (rng_next(rng) % 2 == 0 ? size : -size);
        if (x >= f->low && x <= f->high)
            return x;
    }
    return f->low + rng_unit(rng) * (f->high - f->low);
}

static void test_one_argument(void **state)
{
    (void)state;
    mpfr_t x, y;

    mpfr_init2(x, DIGITS);
    mpfr_init2(y, DIGITS);
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        const struct function *f = &functions[i];
        struct rng rng;
        double worst = 0, at = 0;
        CHECK_ROW("%s", f->name);
        rng_seed(&rng, i);
        for (size_t n = 0; n < draws(f->theirs); n++) {
            double argument = draw(f, &rng, n);
            mpfr_set_d(x, argument, MPFR_RNDN);
            f->theirs(y, x, MPFR_RNDN);
            double u = units(f->ours(argument), y);
            if (!(u <= worst)) {
                worst = u;
                at = argument;
            }
        }
        print_message("%s: %.4f units at %a\n", f->name, worst, at);
        assert_true(worst < f->bound);
    }
    mpfr_clear(x);
    mpfr_clear(y);
}

struct two_arguments {
    const char *name;
    double x_low, x_high, y_low, y_high;
    bool whole; /* y */
};

/* Bases and exponents of RoPE's frequencies and of AdamW's corrections, and of everything. */
static const struct two_arguments powers[] = {
    {"theta^(-2 i / d)", 1000, 1e6, -1, 0, false},
    {"beta^t", 0.8, 0.999999, 1, 1e6, true},
    {"10^k", 10, 10, -307, 308, true},
    {"small bases", 1e-300, 1, -1, 1, false},
    {"near 1", 0.9999999, 1.0000001, -1e9, 1e9, false},
    {"all", 0, 100, -150, 150, false},
};

static void test_pow(void **state)
{
    (void)state;
    mpfr_t x, y, z;

    mpfr_init2(x, DIGITS);
    mpfr_init2(y, DIGITS);
    mpfr_init2(z, DIGITS);
    for (size_t i = 0; i < ARRAY_LEN(powers); i++) {
        const struct two_arguments *p = &powers[i];
        struct rng rng;
        double worst = 0;
        CHECK_ROW("%s", p->name);
        rng_seed(&rng, i);
        for (size_t n = 0; n < draws(NULL); n++) {
            double a = p->x_low + rng_unit(&rng) * (p->x_high - p->x_low);
            double b = p->y_low + rng_unit(&rng) * (p->y_high - p->y_low);
            b = p->whole ? floor(b) : b;
            mpfr_set_d(x, a, MPFR_RNDN);
            mpfr_set_d(y, b, MPFR_RNDN);
            mpfr_pow(z, x, y, MPFR_RNDN);
            double expected = mpfr_get_d(z, MPFR_RNDN);
            if (fabs(expected) < 0x1p-1022 || isinf(expected))
                continue;
            worst = fmax(worst, units(elementary_pow(a, b), z));
        }
        print_message("%s: %.4f units\n", p->name, worst);
        assert_true(worst < 0.9);
    }
    mpfr_clear(x);
    mpfr_clear(y);
    mpfr_clear(z);
}

static void test_hypot(void **state)
{
    (void)state;
    mpfr_t x, y, z;
    struct rng rng;
    double worst = 0;

    mpfr_init2(x, DIGITS);
    mpfr_init2(y, DIGITS);
    mpfr_init2(z, DIGITS);
    rng_seed(&rng, 7);
    for (size_t n = 0; n < draws(NULL); n++) {
        double a = exp((rng_unit(&rng) - 0.5) * 1390), b = a * exp((rng_unit(&rng) - 0.5) * 20);
        mpfr_set_d(x, a, MPFR_RNDN);
        mpfr_set_d(y, b, MPFR_RNDN);
        mpfr_hypot(z, x, y, MPFR_RNDN);
        worst = fmax(worst, units(elementary_hypot(a, b), z));
    }
    print_message("hypot: %.4f units\n", worst);
    assert_true(worst < 0.6);
    mpfr_clear(x);
    mpfr_clear(y);
    mpfr_clear(z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_argument),
        cmocka_unit_test(test_pow),
        cmocka_unit_test(test_hypot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    printf("skipped: libmpfr-dev was not installed when this was built (ops/setup)\n");
    return 77;
}

#endif
