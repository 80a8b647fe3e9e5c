/*
 * Follows the harness's bootstrap_stderr(): chunk i seeds its own generator with i, so chunks could
 * run in any order and the result is the same. Sums are plain left-to-right additions in double, as
 * in the reference. Between chunks the caller may ask to stop; a large run takes minutes.
 */
#include "worker/eval/score/bootstrap.h"

#include <math.h>
#include <stdlib.h>

#include "base/math/elementary.h"
#include "base/xalloc.h"
#include "worker/eval/prompt/pyrandom.h"

#define CHUNK 1000

/* random.random(): 53 bits of two draws. */
static double draw(struct pyrandom *random)
{
    const uint32_t a = pyrandom_u32(random) >> 5;
    const uint32_t b = pyrandom_u32(random) >> 6;
    return ((double)a * 67108864.0 + (double)b) / 9007199254740992.0;
}

/* random.choices(xs, k = n), and the perplexity of what was chosen. */
static double replicate(struct pyrandom *random, const double *xs, size_t n)
{
    const double size = (double)n;
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += xs[(size_t)(draw(random) * size)];
    return elementary_exp(-(sum / size));
}

/* With n - 1 in the denominator, as statistics.stdev(). */
static double sample_deviation(const double *xs, size_t n)
{
    double sum = 0.0;
    double squares = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += xs[i];
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (xs[i] - mean) * (xs[i] - mean);
    return sqrt(squares / (double)(n - 1));
}

int bootstrap_perplexity_se(const double *xs, size_t n, size_t iters, bool (*asked)(void),
                            double *se, struct err *err)
{
    const size_t chunk = iters < CHUNK ? iters : CHUNK;
    const size_t n_chunks = chunk == 0 ? 0 : iters / chunk;
    int rc = 0;

    *se = (double)NAN;
    if (n == 0 || n_chunks * chunk < 2)
        return 0;
    double *replicates = xcalloc(n_chunks * chunk, sizeof(*replicates));
    for (size_t i = 0; i < n_chunks && rc == 0; i++) {
        struct pyrandom random;
        pyrandom_seed(&random, i);
        for (size_t k = 0; k < chunk; k++)
            replicates[i * chunk + k] = replicate(&random, xs, n);
        if (asked != NULL && asked())
            rc = err_set(err, ERR_BUSY, "asked to stop while resampling");
    }
    if (rc == 0)
        *se = sample_deviation(replicates, n_chunks * chunk);
    free(replicates);
    return rc;
}
