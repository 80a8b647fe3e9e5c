/* Central differences against an analytic gradient, in double: h = 1e-5, relative error under 1e-6.
 */
#ifndef TESTS_UNIT_WORKER_GRADCHECK_H
#define TESTS_UNIT_WORKER_GRADCHECK_H

#include <stddef.h>
#include <stdint.h>

#define GRADCHECK_H   1e-5
#define GRADCHECK_TOL 1e-6
/* Differences have an absolute error of about 1e-11 x |loss| / h: smaller gradients are compared
 * absolutely. */
#define GRADCHECK_FLOOR 1e-4

typedef double (*gradcheck_loss_fn)(void *ctx);

/* Moves each of x[0 .. n - 1] (every `stride`-th), and fails the test on the first that disagrees.
 */
void gradcheck(const char *what, double *x, const double *analytic, size_t n, size_t stride,
               gradcheck_loss_fn loss, void *ctx);

/* n numbers around 0 with the given spread, from a seed. */
void fill_random(double *x, size_t n, uint64_t seed, double spread);
double *random_array(size_t n, uint64_t seed, double spread);
double *zero_array(size_t n);

#endif
