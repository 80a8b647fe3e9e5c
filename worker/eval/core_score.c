#include "worker/eval/core_score.h"

#include <math.h>

/* A sum over equal parts. */
struct sum {
    double value;
    double variance;
    int64_t n_items;
    size_t n_parts;
};

static void sum_add(struct sum *s, const struct core_value *part)
{
    s->value += part->value;
    s->variance += part->se * part->se;
    s->n_items += part->n;
    s->n_parts++;
}

static struct core_value sum_mean(const struct sum *s)
{
    const double k = (double)s->n_parts;
    struct core_value mean = {.value = (double)NAN, .se = (double)NAN, .n = s->n_items};
    if (s->n_parts > 0) {
        mean.value = s->value / k;
        mean.se = sqrt(s->variance) / k;
    }
    return mean;
}

struct core_value core_accuracy(const struct tally *parts, size_t n_parts)
{
    struct sum s = {0};
    for (size_t i = 0; i < n_parts; i++) {
        const struct core_value part = {tally_mean(&parts[i]), tally_se(&parts[i]), parts[i].n};
        if (part.n > 0)
            sum_add(&s, &part);
    }
    return sum_mean(&s);
}

struct core_value core_centred(const struct core_value *accuracy, double baseline)
{
    const double chance = 0.01 * baseline;
    return (struct core_value){.value = (accuracy->value - chance) / (1.0 - chance),
                               .se = accuracy->se / (1.0 - chance),
                               .n = accuracy->n};
}

struct core_value core_mean(const struct core_value *members, size_t n)
{
    struct sum s = {0};
    for (size_t i = 0; i < n; i++)
        sum_add(&s, &members[i]);
    return sum_mean(&s);
}
