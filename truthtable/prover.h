/* What a proof of impossibility knows: its variables, its rows, its open goals. Private to
 * impossible.c and linear_form.c. */
#ifndef TRUTHTABLE_PROVER_H
#define TRUTHTABLE_PROVER_H

#include "truthtable/rational.h"
#include "truthtable/rules.h"

#define PENDING_MAX 512

/* A formula that must be possible (want) or possibly not hold (!want). */
struct goal {
    const struct cond *c;
    bool want;
    size_t input; /* what `otherwise` means: none of the levels before this one */
    size_t level;
};

struct variable {
    char *name; /* cond_print's text */
    const struct cond *c;
};

struct prover {
    const struct rules *rules;
    bool pooled_known; /* this case: some counted measure cleared */
    struct variable vars[LINEAR_VARS_MAX];
    size_t n_vars;
    struct linear_system *system;
    struct goal pending[PENDING_MAX];
    size_t n_pending;
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
/* False when the expression is not linear or may be undetermined. */
bool linear_of(struct prover *pr, const struct cond *c, struct linear *out);

#endif
