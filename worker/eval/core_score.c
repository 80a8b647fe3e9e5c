#include "worker/eval/core_score.h"

#include <math.h>

/* A sum over equal parts. */
struct sum {
    double value;
    double variance;
    size_t n_items;
    size_t n_parts;
};

static void sum_add(struct sum *s, const struct score *part)
{
    s->value += part->value;
    s->variance += part->se * part->se;
    s->n_items += part->n;
    s->n_parts++;
}

static struct score sum_mean(const struct sum *s)
{
    const double k = (double)s->n_parts;
    struct score mean = {.n = s->n_items, .value = (double)NAN, .se = (double)NAN};
    if (s->n_parts > 0) {
        mean.value = s->value / k;
        mean.se = sqrt(s->variance) / k;
    }
    return mean;
}

struct score core_accuracy(const struct score *parts, size_t n_parts)
{
    struct sum s = {0};
    for (size_t i = 0; i < n_parts; i++)
        if (parts[i].n > 0)
            sum_add(&s, &parts[i]);
    return sum_mean(&s);
}

struct score core_centred(const struct score *accuracy, double baseline)
{
    const double chance = 0.01 * baseline;
    return (struct score){.n = accuracy->n,
                          .value = (accuracy->value - chance) / (1.0 - chance),
                          .se = accuracy->se / (1.0 - chance)};
}

struct score core_mean(const struct score *members, size_t n)
{
    struct sum s = {0};
    for (size_t i = 0; i < n; i++)
        sum_add(&s, &members[i]);
    return sum_mean(&s);
}
