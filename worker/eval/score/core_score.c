/*
 * Equal-weight means of accuracies with their errors. The three functions nest: categories to a
 * member's accuracy, accuracy to a centred score, centred scores to the mean. A part without items
 * is skipped among categories, but makes the mean over members NaN, because a missing member must
 * not raise the score.
 */
#include "worker/eval/score/core_score.h"

#include <math.h>

/* A sum over equal parts. */
struct score_sum {
    double value;
    double variance;
    size_t n_items;
    size_t n_parts;
};

static void sum_add(struct score_sum *s, const struct metric_score *part)
{
    s->value += part->value;
    s->variance += part->se * part->se;
    s->n_items += part->n;
    s->n_parts++;
}

static struct metric_score sum_mean(const struct score_sum *s)
{
    const double k = (double)s->n_parts;
    struct metric_score mean = {.n = s->n_items, .value = (double)NAN, .se = (double)NAN};
    if (s->n_parts > 0) {
        mean.value = s->value / k;
        mean.se = sqrt(s->variance) / k;
    }
    return mean;
}

struct metric_score core_accuracy(const struct metric_score *parts, size_t n_parts)
{
    struct score_sum s = {0};
    for (size_t i = 0; i < n_parts; i++)
        if (parts[i].n > 0)
            sum_add(&s, &parts[i]);
    return sum_mean(&s);
}

struct metric_score core_centred(const struct metric_score *accuracy, double baseline)
{
    const double chance = 0.01 * baseline;
    return (struct metric_score){.n = accuracy->n,
                                 .value = (accuracy->value - chance) / (1.0 - chance),
                                 .se = accuracy->se / (1.0 - chance)};
}

struct metric_score core_mean(const struct metric_score *members, size_t n)
{
    struct score_sum s = {0};
    for (size_t i = 0; i < n; i++)
        sum_add(&s, &members[i]);
    return sum_mean(&s);
}
