#include "worker/eval/tally.h"

#include <math.h>

double tally_mean(const struct tally *t)
{
    return t->n == 0 ? (double)NAN : (double)t->passed / (double)t->n;
}

double tally_se(const struct tally *t)
{
    if (t->n < 2)
        return (double)NAN;
    const double n = (double)t->n;
    const double mean = tally_mean(t);
    const double failed = n - (double)t->passed;
    const double squares = (double)t->passed * (1.0 - mean) * (1.0 - mean) + failed * mean * mean;
    return sqrt(squares / (n - 1.0)) / sqrt(n);
}

double tally_pooled_se(const struct tally *groups, int64_t n_groups)
{
    double sum = 0.0;
    double n_all = 0.0;
    double n_used = 0.0;
    const struct tally *last = NULL;
    for (int64_t g = 0; g < n_groups; g++) {
        if (groups[g].n == 0)
            continue;
        const double n = (double)groups[g].n;
        const double se = groups[g].n < 2 ? 0.0 : tally_se(&groups[g]);
        sum += (n - 1.0) * n * se * se;
        n_all += n;
        n_used += 1.0;
        last = &groups[g];
    }
    if (n_used < 2.0)
        return last == NULL ? (double)NAN : tally_se(last);
    return sqrt(sum / (n_all - n_used) / n_all);
}
