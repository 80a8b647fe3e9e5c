/*
 * The rules of a program, as plain data: measures and floors, contrasts, counters, inputs, the
 * table, outcomes, and what informs but never binds. Part of struct plan_program, which owns all of
 * it (prereg/program/program.h). Indices refer to the arrays there.
 */
#ifndef PREREG_PROGRAM_ANALYSIS_H
#define PREREG_PROGRAM_ANALYSIS_H

#include "prereg/program/design.h"
#include "prereg/program/stage_set.h"

struct plan_measure {
    const char *name;
    const char *metric_text; /* "mmlu.acc" */
    size_t stage;
    const char *metric; /* "acc", "exact_match:strict" */
    bool has_items;
    int64_t items;
    bool has_chance;
    double chance;
    bool has_floor;
    double floor;
    const char *floor_text; /* the literal as a shortest decimal, for exact rational comparison */
    bool has_best_arm;
    double best_arm;
    const char *best_arm_text;
    bool counted;      /* default true */
    bool lower_better; /* better = "lower" */
    struct plan_hub hub;
    struct place place;
    struct place metric_place;
    struct place items_place;
};

/* A share of items, within 0..1 as its chance and floor; units, fields and bounds ask this. */
static inline bool measure_is_share(const struct plan_measure *m)
{
    return m->has_chance || m->has_floor;
}

struct plan_setting { /* a factor pinned to a level */
    size_t factor;
    size_t level;
};

/* [[same_work]]: cells that differ in these levels alone are one work (prereg/program/same_work.h)
 */
struct plan_same_work {
    size_t factor;  /* `across` */
    size_t *levels; /* two or more of its levels */
    size_t n_levels;
    struct plan_setting *where;
    size_t n_where;
    struct stage_set stages;
    struct place place;
};

/* [reuse]: cells whose results an earlier receipt gives (prereg/reuse/). */
struct plan_reuse_cells {
    const char *name; /* of one cell, as written; NULL: those with the settings */
    struct plan_setting *where;
    size_t n_where;
    struct place place;
};

struct plan_reuse {
    const char *receipt; /* absolute path of its folder; NULL: nothing is reused */
    bool matching;       /* every cell that the receipt has, instead of `cells` */
    struct plan_reuse_cells *cells;
    size_t n_cells;
    struct place place;
};

enum contrast_over { OVER_COUNTED, OVER_CLEARED };

struct plan_contrast {
    const char *name;
    bool is_difference; /* of - minus */
    size_t factor;      /* between: a - b */
    size_t level_a;
    size_t level_b;
    struct plan_setting *where;
    size_t n_where;
    enum contrast_over over; /* default OVER_COUNTED */
    size_t of;               /* contrast indices; only of is_difference */
    size_t minus;
    struct place place;
};

enum counter_clears { CLEARS_EVERY_CELL, CLEARS_ARM_MEANS };

struct counter {
    const char *name;
    size_t contrast;
    enum counter_clears clears;
    bool binds;
    struct place place;
};

struct cond_text {
    const char *text;
    struct place place;
};

struct input_level {
    const char *name;
    struct cond_text condition; /* "otherwise" included */
};

struct plan_input {
    const char *name;
    struct input_level *levels;
    size_t n_levels;
    struct place place;
};

struct plan_row {
    size_t *levels; /* n_table_inputs level indices, one per table input */
    size_t outcome;
    struct place place;
};

/* Priors are decimals: 0.1 ten times is a whole, whatever doubles make of it. */
#define PRIORS_SUM_SLACK 1e-9

struct plan_outcome {
    const char *name;
    const char *title;
    double prior;
    struct place place;
};

enum on_fail { ON_FAIL_FLAG, ON_FAIL_VOID };

struct plan_validity {
    const char *name;
    struct cond_text condition;
    enum on_fail on_fail;
    bool timing; /* rests on timings: goes to provenance.json, never to verdict.json */
};

struct plan_forecast {
    const char *name;
    struct cond_text condition;
    double confidence;
};

/* A difference between arms, or in how they were made, that could explain the outcome instead. */
struct plan_confound {
    const char *column; /* of "what is held fixed", by its key ("tokens_per_expert"); or NULL */
    const char *text;
    struct place place;
};

struct plan_texts {
    const char **items;
    size_t n;
};

/* [scope]: what the author says before the data of how far the verdict reaches. It informs: no
 * condition reads it. */
struct plan_scope {
    bool declared;
    struct place place;
    struct plan_texts claims;
    struct plan_texts not_claimed;
    struct plan_texts forward_work;
    struct plan_confound *confounds;
    size_t n_confounds;
    const char *mechanism; /* or NULL */
    size_t forecast;       /* that would show the mechanism; or INDEX_NONE */
};

struct plan_instrument { /* validated here, computed in truthtable/instruments */
    const char *name;
    const char *kind; /* bayes, mixed, connector, ... */
    const cJSON *spec;
    struct cond_text trigger; /* of a connector: what else makes it fire; text NULL: nothing */
};

/* A reference model that must score `value` within `within` before any sealed stage that comes
 * after another may start. It has no cell: the stage's parameters do not depend on a factor.
 *
 * Each table of the program is two entries: the check NAME, and behind all of those NAME@end, the
 * same task once more after the last evaluation, whose score must be that of the first. */
struct plan_apparatus {
    const char *name;
    size_t first; /* of NAME@end: the entry that it repeats; else INDEX_NONE */
    size_t stage;
    const char *model;       /* path as written, pinned by the lock under this name */
    const char *metric_text; /* "mmlu.acc" */
    const char *metric;      /* "acc" */
    double value;
    double within;
    double again;      /* how far the second score may be from the first */
    const cJSON *spec; /* the table as written */
    struct place place;
};

#endif
