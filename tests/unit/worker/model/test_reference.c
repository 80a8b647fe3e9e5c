/* Float against double: losses, gradients and updated parameters of the same case; and the
 * vectorised exp. */
#include <math.h>

#include "base/machine/proc.h"
#include "tests/unit/check.h"
#include "tests/unit/worker/model/reference.h"
#include "worker/nn/vec.h"

static void check(const char *what)
{
    const char *argv[] = {REFERENCE_F64, what, NULL};
    struct proc_spec spec = {.argv = argv, .timeout_ms = 30000, .max_out_bytes = 1 << 24};
    struct proc_result result;
    struct err err = {0};
    unsigned long n = 0;

    double *x = reference_numbers(strcmp(what, "mixture") == 0, &n);
    if (proc_run(&spec, &result, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(result.code, 0);
    const char *at = result.out.buf;
    double worst = 0.0, norm = 0.0, apart = 0.0;
    for (unsigned long i = 0; i < n; i++) {
        char *end = NULL;
        double want = strtod(at, &end);
        assert_true(end != at);
        at = end;
        worst = fmax(worst, fabs(x[i] - want));
        norm += want * want;
        apart += (x[i] - want) * (x[i] - want);
        if (i < 3 && fabs(x[i] - want) > 2e-6 * want)
            fail_msg("loss %lu: float %.9g, double %.9g", i, x[i], want);
    }
    double rel = sqrt(apart / norm);
    print_message("  %s: %lu numbers, worst |difference| %.2e, relative %.2e\n", what, n, worst,
                  rel);
    assert_true(worst < 1e-4);
    assert_true(rel < 1e-5);
    proc_result_release(&result);
    free(x);
}

static void test_dense(void **state)
{
    (void)state;
    check("dense");
}

static void test_mixture(void **state)
{
    (void)state;
    check("mixture");
}

static void test_exp(void **state)
{
    (void)state;
    double worst = 0.0;

    for (double x = -87.0; x <= 88.0; x += 0.00137) {
        double want = exp((double)(float)x);
        worst = fmax(worst, fabs((double)nn_exp((float)x) - want) / want);
    }
    print_message("  exp: worst relative error %.2e\n", worst);
    assert_true(worst < 2e-7);
    assert_true(isnan(nn_exp(NAN)));
    assert_true(nn_exp(0.0F) == 1.0F);
    assert_true(isfinite(nn_exp(INFINITY)) && nn_exp(-INFINITY) < 1e-37F);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_mixture),
        cmocka_unit_test(test_exp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
