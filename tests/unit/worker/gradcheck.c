#include <math.h>

#include "base/rng.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/sparse.h"
#include "tests/unit/worker/gradcheck.h"

void gradcheck(const char *what, double *x, const double *analytic, size_t n, size_t stride,
               gradcheck_loss_fn loss, void *ctx)
{
    double worst = 0.0;

    for (size_t i = 0; i < n; i += stride * sparse_part()) {
        double keep = x[i];
        x[i] = keep + GRADCHECK_H;
        double up = loss(ctx);
        x[i] = keep - GRADCHECK_H;
        double down = loss(ctx);
        x[i] = keep;
        double numeric = (up - down) / (2.0 * GRADCHECK_H);
        double size = fmax(fmax(fabs(numeric), fabs(analytic[i])), GRADCHECK_FLOOR);
        double rel = fabs(numeric - analytic[i]) / size;
        worst = fmax(worst, rel);
        if (!(rel < GRADCHECK_TOL))
            fail_msg("%s[%zu]: analytic %.12g, numeric %.12g, relative error %.3g", what, i,
                     analytic[i], numeric, rel);
    }
    print_message("  %-28s worst relative error %.2e\n", what, worst);
}

void fill_random(double *x, size_t n, uint64_t seed, double spread)
{
    struct rng r;

    rng_seed(&r, seed);
    for (size_t i = 0; i < n; i++)
        x[i] = (2.0 * rng_unit(&r) - 1.0) * spread;
}

double *random_array(size_t n, uint64_t seed, double spread)
{
    double *x = xcalloc(n, sizeof(*x));

    fill_random(x, n, seed, spread);
    return x;
}

double *zero_array(size_t n)
{
    return xcalloc(n, sizeof(double));
}
