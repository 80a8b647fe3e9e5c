/* Follows from the plan alone, so a proof, a verdict and a replay agree on it. Levels of replicate
 * factors are the same throughout a group, so what holds for one replicate holds for all. */
#include "truthtable/condition/equal_pairs.h"

#include "prereg/program/same_work.h"

bool pair_is_equal(const struct plan_program *p, const struct layout *l, const struct pair_at *at)
{
    const struct plan_contrast *k = &p->contrasts[at->contrast];
    const size_t stage = p->measures[at->measure].stage;
    const size_t plus = k->is_difference ? k->of : at->contrast;
    const size_t a = layout_pair_a(l, plus, at->setting, at->replicate);
    const size_t b = layout_pair_b(l, plus, at->setting, at->replicate);
    if (!k->is_difference) {
        return program_is_same_work(p, stage, a, b);
    }
    const size_t c = layout_pair_a(l, k->minus, at->setting, at->replicate);
    const size_t d = layout_pair_b(l, k->minus, at->setting, at->replicate);
    return (program_is_same_work(p, stage, a, b) && program_is_same_work(p, stage, c, d)) ||
           (program_is_same_work(p, stage, a, c) && program_is_same_work(p, stage, b, d));
}

bool contrast_is_equal(const struct plan_program *p, const struct layout *l, size_t contrast,
                       size_t measure)
{
    bool equal = p->workers != NULL;
    for (size_t s = 0; equal && s < l->contrasts[contrast].n_settings; s++) {
        const struct pair_at at = {.contrast = contrast, .measure = measure, .setting = s};
        equal = pair_is_equal(p, l, &at);
    }
    return equal;
}

bool conditions_are_equal(const struct plan_program *p, size_t measure, size_t a, size_t b)
{
    return a != b && program_is_same_work(p, p->measures[measure].stage,
                                          p->conditions[a].first_cell, p->conditions[b].first_cell);
}
