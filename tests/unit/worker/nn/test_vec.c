/* Sums to the bit against lanes that are added one number after another, the greatest of a row, and
 * long sums with threads. */
#include <math.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/nn/threads.h"
#include "worker/nn/vec.h"

#define SHORT_MAX 100
#define PART      65536u /* docs/arithmetic.md */

static uint64_t state_of_draw = 5;

static float draw(void)
{
    state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(state_of_draw >> 32) * 0x1p-31F;
}

static void fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = draw();
}

static float dot(const float *a, const float *b, size_t n)
{
    float lane[16] = {0};

    for (size_t i = 0; i < n; i++)
        lane[i % 16] += a[i] * b[i];
    return ((((lane[0] + lane[8]) + (lane[4] + lane[12])) +
             ((lane[2] + lane[10]) + (lane[6] + lane[14]))) +
            (((lane[1] + lane[9]) + (lane[5] + lane[13])) +
             ((lane[3] + lane[11]) + (lane[7] + lane[15]))));
}

static double squares(const float *x, size_t n)
{
    double lane[16] = {0};

    for (size_t i = 0; i < n; i++)
        lane[i % 16] += (double)x[i] * (double)x[i];
    for (size_t half = 8; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

static void test_short_sums(void **state)
{
    (void)state;
    for (size_t n = 0; n < SHORT_MAX; n++) {
        float a[SHORT_MAX], b[SHORT_MAX], y[SHORT_MAX], z[SHORT_MAX];
        CHECK_ROW("%zu numbers", n);
        fill(a, n);
        fill(b, n);
        memcpy(y, b, sizeof(y));
        memcpy(z, b, sizeof(z));
        float got = vec_dot(a, b, n), want = dot(a, b, n);
        assert_memory_equal(&got, &want, sizeof(got));
        double sum = vec_sum_squares(a, n), all = squares(a, n);
        assert_memory_equal(&sum, &all, sizeof(sum));
        vec_axpy(y, 0.7F, a, n);
        vec_add(z, a, n);
        for (size_t i = 0; i < n; i++) {
            volatile float product = 0.7F * a[i];
            assert_true(y[i] == b[i] + product && z[i] == b[i] + a[i]);
        }
    }
}

NN_BODY real greatest_body(const real *x, size_t n)
{
    return nn_max(x, n);
}

static real greatest(const real *x, size_t n);
NN_KERNEL_RETURN(real, greatest, (const real *x, size_t n), (x, n))

/* At every place; infinities count, and a NaN is not made up. */
static void test_greatest(void **state)
{
    (void)state;
    float x[SHORT_MAX];

    for (size_t n = 1; n < SHORT_MAX; n++)
        for (size_t at = 0; at < n; at++) {
            fill(x, n);
            x[at] = 2;
            CHECK_ROW("%zu of %zu", at, n);
            assert_true(greatest(x, n) == 2);
            x[at] = INFINITY;
            assert_true(isinf(greatest(x, n)));
        }
    for (size_t i = 0; i < SHORT_MAX; i++)
        x[i] = -INFINITY;
    assert_true(isinf(greatest(x, SHORT_MAX)));
}

/* Around the ends of parts, and beyond the 256 parts that are summed before they are added up. */
static void test_long_sums(void **state)
{
    static const size_t SIZES[] = {0,        1,        PART - 1,       PART,
                                   PART + 1, 3 * PART, 256 * PART - 5, 257 * PART + 17};
    static const int COUNTS[] = {1, 3};
    struct err err = {0};
    size_t most = SIZES[ARRAY_LEN(SIZES) - 1];
    float *x = xcalloc(most, sizeof(*x));

    (void)state;
    fill(x, most);
    for (size_t c = 0; c < ARRAY_LEN(COUNTS); c++) {
        assert_int_equal(nn_threads_start(COUNTS[c], &err), 0);
        for (size_t i = 0; i < ARRAY_LEN(SIZES); i++) {
            CHECK_ROW("%zu numbers, %d threads", SIZES[i], COUNTS[c]);
            double want = 0, got = vec_sum_squares_long(x, SIZES[i]);
            for (size_t at = 0; at < SIZES[i]; at += PART)
                want += squares(x + at, SIZES[i] - at < PART ? SIZES[i] - at : PART);
            assert_memory_equal(&got, &want, sizeof(got));
        }
        nn_threads_stop();
    }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_sums),
        cmocka_unit_test(test_greatest),
        cmocka_unit_test(test_long_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
