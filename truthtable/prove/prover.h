/* What a proof of impossibility knows: its variables, its rows, its goals. Private to
 * impossible.c and linear_form.c. */
#ifndef TRUTHTABLE_PROVE_PROVER_H
#define TRUTHTABLE_PROVE_PROVER_H

#include "truthtable/condition/decision_rules.h"
#include "truthtable/prove/rational.h"

#define GOALS_MAX 512

enum goal_kind {
    GOAL_CONDITION, /* a formula must be possible (want) or possibly not hold (!want) */
    GOAL_LINK,      /* so must one comparison of a chain */
    GOAL_LEVEL,     /* a level of a table's input must be possible */
};

struct goal {
    enum goal_kind kind;
    const struct cond *c;
    bool want;
    size_t link;  /* GOAL_LINK: between kids[link] and the next */
    size_t input; /* what `otherwise` means: none of the levels before this one */
    size_t level;
};

struct prover {
    const struct rules *rules;
    bool pooled_known;                        /* this case: some counted measure cleared */
    const struct cond *vars[LINEAR_VARS_MAX]; /* the expression of each */
    size_t n_vars;
    struct linear_system *system;
    struct linear_system *work;      /* two, for the elimination */
    struct goal demanded[GOALS_MAX]; /* to be turned into rows and open goals */
    size_t n_demanded;
    struct goal open[GOALS_MAX]; /* each can be met in several ways */
    size_t n_open;
    size_t n_steps;
};

/* Rows: e >= 0, or > 0 when strict; a - b likewise; a variable's bounds. */
void require(struct prover *pr, const struct linear *e, bool strict);
void require_order(struct prover *pr, const struct linear *a, const struct linear *b, bool strict);
void require_bounds(struct prover *pr, size_t var, double low, double high);
void require_at_least(struct prover *pr, size_t var, double low);

/* The variable of a name or function, made with all that always holds of it. Equal expressions are
 * one variable. False when there are too many. c must outlive the prover. */
bool prover_variable(struct prover *pr, const struct cond *c, struct linear *out);
/* False when the expression is not linear, may be undetermined, or has overflowed. */
bool linear_of(struct prover *pr, const struct cond *c, struct linear *out);

#endif
