/*
 * Rules: a program's decision part, compiled: conditions parsed, contrasts laid out, the floors as
 * exact decimals. Owns an arena; borrows the program, which must outlive it; constant after
 * rules_compile().
 */
#ifndef TRUTHTABLE_CONDITION_DECISION_RULES_H
#define TRUTHTABLE_CONDITION_DECISION_RULES_H

#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/err.h"
#include "prereg/program/program.h"
#include "truthtable/condition/cell_layout.h"
#include "truthtable/condition/condition.h"
#include "truthtable/condition/exact.h"

struct threshold {
    double value;
    bool is_exact; /* `exact` holds the literal as written */
    struct decimal exact;
};

struct prior_sds { /* of the bayes instrument that names a contrast */
    const double *taus;
    size_t n; /* 0: no instrument names it */
};

struct rules {
    struct arena arena;
    const struct plan_program *program;
    struct layout layout;
    struct fact_table facts;
    const struct cond ***inputs;   /* [input][level] */
    const struct cond **validity;  /* [validity] */
    const struct cond **forecasts; /* [forecast] */
    const struct cond **triggers;  /* [instrument]; NULL without a condition */
    struct threshold *floors;      /* [measure]; meaningful where has_floor */
    struct threshold *best_arms;   /* [measure]; meaningful where has_best_arm */
    struct prior_sds *prior_sds;   /* [contrast] */
    double t_full;                 /* t(0.975, replicates - 1): of figures with every replicate */
    uint64_t ***row_masks;         /* [table input][level]: a bit for each row that has the level */
    size_t n_row_words;
};

/* Reports every error of every condition in one go; ERR_INVALID when there was any. */
int rules_compile(const struct plan_program *p, struct rules *out, struct diag *diag,
                  struct err *err) MUST_CHECK;
void rules_release(struct rules *r);

/* Counted and with a floor: what counters run over. */
bool rules_in_counters(const struct rules *r, size_t measure);

#endif
