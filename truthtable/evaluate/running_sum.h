/*
 * A sum of numbers and their mean, shared by the files of truthtable/evaluate. Numbers are added in
 * the order given, so that equal records give equal bytes.
 */
#ifndef TRUTHTABLE_EVALUATE_RUNNING_SUM_H
#define TRUTHTABLE_EVALUATE_RUNNING_SUM_H

#include <stddef.h>

#include "truthtable/condition/number.h"

struct running_sum {
    struct number total;
    size_t n;
};

/* The first number is taken as it is: 0 + x could lose an open bound. */
static inline void sum_add(struct running_sum *s, struct number x)
{
    s->total = s->n == 0 ? x : number_add(s->total, x);
    s->n++;
}

/* The mean; unknown, for the given reason, if nothing was added. */
static inline struct number sum_mean(const struct running_sum *s, const char *why_none)
{
    return s->n == 0 ? number_unknown(why_none) : number_div(s->total, number_point((double)s->n));
}

#endif
