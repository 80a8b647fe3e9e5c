/* The basis stays orthogonal where columns nearly coincide, and factors solve what they should. */

#include <math.h>
#include <string.h>

#include "tests/unit/check.h"
#include "truthtable/instruments/linalg.h"

#define N 12
#define P 6

/* The columns of a Hilbert matrix: the last differs from the rest by some 1e-6 of its length. */
static void hilbert(double *a)
{
    for (size_t k = 0; k < P; k++) {
        for (size_t i = 0; i < N; i++) {
            a[k * N + i] = 1 / (double)(i + k + 1);
        }
    }
}

static void test_basis(void **state)
{
    double a[N * P];
    double v[N];
    double c[P];
    struct linalg_basis b;
    struct arena arena;
    (void)state;
    hilbert(a);
    arena_init(&arena);
    linalg_basis_init(&b, N, P, &arena);
    for (size_t k = 0; k < P; k++) {
        memcpy(v, a + k * N, sizeof(v));
        assert_true(linalg_basis_take(&b, v, c, 1e-9));
    }
    for (size_t j = 0; j < P; j++) {
        for (size_t k = 0; k < P; k++) {
            double dot = linalg_dot(b.q + j * N, b.q + k * N, N);
            assert_true(fabs(dot - (j == k ? 1 : 0)) < 1e-14);
        }
    }
    memcpy(v, a, sizeof(v));
    linalg_axpy(-2, a + 3 * N, v, N);
    assert_false(linalg_basis_take(&b, v, c, 1e-9));
    assert_true(linalg_solve_upper(b.r, b.n, b.max, false, c));
    for (size_t k = 0; k < P; k++) {
        assert_true(fabs(c[k] - (k == 0 ? 1 : k == 3 ? -2 : 0)) < 1e-8);
    }
    arena_release(&arena);
}

/* R'R = A'A, and both ways to solve with R. */
static void test_factor(void **state)
{
    double a[N * P];
    struct linalg_qr q;
    struct arena arena;
    (void)state;
    hilbert(a);
    arena_init(&arena);
    linalg_qr_init(&q, N, P, &arena);
    memcpy(q.a, a, sizeof(a));
    linalg_qr_factor(&q);
    for (size_t j = 0; j < P; j++) {
        for (size_t k = j; k < P; k++) {
            double rr = linalg_dot(q.a + j * N, q.a + k * N, j + 1);
            assert_true(fabs(rr - linalg_dot(a + j * N, a + k * N, N)) < 1e-14);
        }
    }
    double b[2] = {1, 2};
    double r[4] = {2, 0, 3, 4}; /* [2 3; 0 4] */
    assert_true(linalg_solve_upper(r, 2, 2, false, b));
    assert_true(fabs(b[1] - 0.5) < 1e-15 && fabs(b[0] + 0.25) < 1e-15);
    b[0] = 1;
    b[1] = 2;
    assert_true(linalg_solve_upper(r, 2, 2, true, b));
    assert_true(fabs(b[0] - 0.5) < 1e-15 && fabs(b[1] - 0.125) < 1e-15);
    r[3] = 0;
    assert_false(linalg_solve_upper(r, 2, 2, false, b));
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_basis),
        cmocka_unit_test(test_factor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
