/*
 * Means of scores: of an arm of a contrast and of a level of a factor. Replicates are averaged
 * first, then settings or conditions, so that an excluded cell does not shift the weight of what
 * it belongs to.
 */
#include <assert.h>

#include "truthtable/evaluate/evaluation.h"
#include "truthtable/evaluate/running_sum.h"

/* Both arms drop a pair that either of them lost, so the difference of the arms' means is the
 * contrast's mean. */
struct number arm_mean_of(const struct table_evaluation *ev, size_t contrast, size_t measure,
                          bool b, const double *times)
{
    assert(contrast < ev->rules->program->n_contrasts && measure < ev->rules->program->n_measures);
    assert(!ev->rules->program->contrasts[contrast].is_difference); /* it has no arms */
    const struct layout *l = &ev->rules->layout;
    const struct score *scores = evaluation_scores(ev, measure);
    struct running_sum over_settings = {0};
    for (size_t s = 0; s < l->contrasts[contrast].n_settings; s++) {
        struct running_sum over_replicates = {0};
        if (times != NULL && times[s] == 0) {
            continue;
        }
        for (size_t r = 0; r < l->n_replicates; r++) {
            const struct score *x = &scores[layout_pair_a(l, contrast, s, r)];
            const struct score *y = &scores[layout_pair_b(l, contrast, s, r)];
            if (!x->excluded && !y->excluded) {
                sum_add(&over_replicates, b ? y->value : x->value);
            }
        }
        sum_add(&over_settings, sum_mean(&over_replicates, "no pair is left"));
    }
    return sum_mean(&over_settings, "the contrast has no settings");
}

struct number arm_mean(const struct table_evaluation *ev, size_t contrast, size_t measure, bool b)
{
    return arm_mean_of(ev, contrast, measure, b, NULL);
}

/* Averages conditions, not cells, so that excluded cells do not shift the weight of conditions. For
 * a level of a replicate factor every condition has cells. */
struct number level_mean(const struct table_evaluation *ev, size_t measure, size_t factor,
                         size_t level)
{
    assert(factor < ev->rules->program->n_factors &&
           level < ev->rules->program->factors[factor].n_levels);
    const struct plan_program *p = ev->rules->program;
    const struct layout *l = &ev->rules->layout;
    const struct score *scores = evaluation_scores(ev, measure);
    bool replicate = p->factors[factor].replicate;
    struct running_sum over_conditions = {0};
    for (size_t i = 0; i < p->n_conditions; i++) {
        if (!replicate && p->conditions[i].levels[factor] != level) {
            continue;
        }
        struct running_sum over_cells = {0};
        for (size_t r = 0; r < l->n_replicates; r++) {
            size_t cell = layout_cell(l, i, r);
            if (p->cells[cell].levels[factor] == level && !scores[cell].excluded) {
                sum_add(&over_cells, scores[cell].value);
            }
        }
        sum_add(&over_conditions, sum_mean(&over_cells, "no cell of a condition is left"));
    }
    return sum_mean(&over_conditions, "no cell has the level");
}
