/*
 * The evaluation of one reading, in the order gates -> counters -> contrasts -> inputs -> table
 * (docs/truth-table.md). Nothing looks back. Everything lives in the caller's arena; the evaluation
 * is constant after evaluation_run().
 */
#ifndef TRUTHTABLE_EVALUATE_EVALUATION_H
#define TRUTHTABLE_EVALUATE_EVALUATION_H

#include "base/arena.h"
#include "truthtable/condition/condition.h"
#include "truthtable/condition/decision_rules.h"
#include "truthtable/condition/number.h"
#include "truthtable/evidence/measure_scores.h"

struct gate {
    enum truth floor;   /* score >= floor */
    enum truth cleared; /* and, with best_arm, the larger arm mean of the binding counter's contrast
                           reaches it */
    const char *why;    /* unknown only */
};

struct figure {                     /* a contrast: pooled, or of one measure */
    struct number fields[FIELD_NR]; /* those that do not fit are unknown */
    const struct number *settings;  /* per measure: the difference at each setting */
    const size_t *excluded; /* cells without a value; each took its partner along; ascending */
    size_t n_excluded;
};

struct input_state {
    const enum truth *holds; /* [level]: its condition */
    const bool *possible;    /* [level] */
    size_t n_possible;
    size_t level;     /* decided; else INDEX_NONE */
    bool no_level;    /* every condition is false */
    bool may_be_none; /* none is known to be true, and all may turn out false */
    const char *why;  /* not decided: the reason */
};

/* A field of an instrument (prereg/program/instrument.h), for forecasts alone. */
struct instrument_answer {
    enum truth truth;     /* of a truth field */
    struct number number; /* of a number field; its `why` is also that of an unknown truth */
};

struct table_evaluation {
    const struct rules *rules;
    const struct table_reading *reading;
    struct arena *arena;
    struct gate *gates;         /* [measure * n_cells + cell]; measures with a floor */
    enum truth *clears;         /* [counter * n_measures + measure]; those in counters */
    struct number *counters;    /* [counter] */
    struct figure *per_measure; /* [contrast * n_measures + measure] */
    struct figure *pooled;      /* [contrast] */
    struct input_state *inputs; /* [input] */
    const size_t *fired;        /* rows, ascending */
    size_t n_fired;
    /* [instrument][field]; NULL, as always in a verdict: nothing is known of them */
    const struct instrument_answer *const *instruments;
};

void evaluation_run(struct table_evaluation *ev, const struct rules *rules,
                    const struct table_reading *reading, struct arena *arena);

/* A condition of this program. otherwise: what the word means there. *why is set to the first
 * reason if the result is unknown, and otherwise left alone. */
enum truth evaluation_truth(const struct table_evaluation *ev, const struct cond *c,
                            enum truth otherwise, const char **why);
struct number evaluation_number(const struct table_evaluation *ev, const struct cond *c);

/* The steps, in order; each in its own file. */
void evaluate_gates(struct table_evaluation *ev);     /* gate.c: gates and counters */
void evaluate_contrasts(struct table_evaluation *ev); /* contrast.c */
void evaluate_table(struct table_evaluation *ev);     /* rows_fired.c: inputs and rows */

/* Whether one of the input's levels must turn out true, whatever is still missing (input_cover.c).
 */
bool input_is_covered(const struct table_evaluation *ev, size_t input);

/* The scores of one measure, [cell]. */
static inline const struct score *evaluation_scores(const struct table_evaluation *ev,
                                                    size_t measure)
{
    return &ev->reading->scores[measure * ev->rules->program->n_cells];
}

/* Mean over settings of the mean over the replicates that are left of one arm (b: the second) of a
 * contrast that is not a difference. */
struct number arm_mean(const struct table_evaluation *ev, size_t contrast, size_t measure, bool b);
/* The same over the settings in which times[setting] is not 0. */
struct number arm_mean_of(const struct table_evaluation *ev, size_t contrast, size_t measure,
                          bool b, const double *times);
/* Whether the contrast's pooled figures are over the measure, too. */
enum truth contrast_pools(const struct table_evaluation *ev, size_t contrast, size_t measure);
/* Mean over the conditions of a level of the mean over their cells that are left. */
struct number level_mean(const struct table_evaluation *ev, size_t measure, size_t factor,
                         size_t level);
/* The rank of a level and a field of a trend, as the condition has them (level_figures.c). */
struct number rank_of_level(const struct table_evaluation *ev, const struct cond *c);
struct number trend_of_levels(const struct table_evaluation *ev, const struct cond *c);
/* Whether all that it compares, between levels, is one work: a trend of 0, or a rank of 1. */
bool level_figure_is_equal(const struct rules *rules, const struct cond *c);
/* The outcome that all fired rows agree on; INDEX_NONE when they do not, or none fired. */
size_t evaluation_outcome(const struct table_evaluation *ev);

/* A difference between two conditions, replicate by replicate. */
struct condition_pair {
    struct number mean;
    struct number n; /* replicates: a range while one is not known */
    struct number se;
    size_t *excluded; /* cells without a value, by replicate; NULL when there are none */
    size_t n_excluded;
};
struct condition_pair evaluation_pair(const struct table_evaluation *ev, size_t measure, size_t a,
                                      size_t b);

#endif
