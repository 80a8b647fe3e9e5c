#include "truthtable/impossible.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "truthtable/prover.h"

#define STEPS_MAX 20000 /* branches of one proof; beyond, nothing is proved */

static bool solve(struct prover *pr);

static bool push(struct prover *pr, struct goal g)
{
    if (pr->n_pending == PENDING_MAX) {
        return false;
    }
    pr->pending[pr->n_pending++] = g;
    return true;
}

/* One side of a disjunction: solve with the extra goal or row, then restore what was there. */
static bool solve_branch(struct prover *pr, const struct goal *g, const struct linear *row,
                         bool strict)
{
    struct prover *saved = xmalloc(sizeof(*saved));
    struct linear_system *system = xmalloc(sizeof(*system));
    *saved = *pr;
    system_copy(system, pr->system);
    bool may = true;
    if (g == NULL || push(pr, *g)) {
        if (row != NULL) {
            require(pr, row, strict);
        }
        may = solve(pr);
    }
    for (size_t i = saved->n_vars; i < pr->n_vars; i++) {
        free(pr->vars[i].name);
    }
    size_t n_steps = pr->n_steps;
    system_copy(pr->system, system);
    *pr = *saved;
    pr->n_steps = n_steps;
    free(system);
    free(saved);
    return may;
}

/* Each of two rows alone. */
static bool solve_either(struct prover *pr, const struct linear *a, const struct linear *b)
{
    return solve_branch(pr, NULL, a, true) || solve_branch(pr, NULL, b, true);
}

static bool solve_comparison(struct prover *pr, const struct cond *chain, size_t i, bool want)
{
    struct linear a;
    struct linear b;
    enum relop op = chain->ops[i];
    if (!linear_of(pr, chain->kids[i], &a) || !linear_of(pr, chain->kids[i + 1], &b)) {
        return solve(pr);
    }
    static const enum relop negated[] = {REL_GE, REL_GT, REL_LE, REL_LT, REL_NE, REL_EQ};
    op = want ? op : negated[op];
    struct linear minus_a = linear_scale(&a, rational_of_int(-1));
    struct linear minus_b = linear_scale(&b, rational_of_int(-1));
    struct linear a_over_b = linear_add(&a, &minus_b);
    struct linear b_over_a = linear_add(&b, &minus_a);
    switch (op) {
    case REL_GT:
    case REL_GE: require(pr, &a_over_b, op == REL_GT); break;
    case REL_LT:
    case REL_LE: require(pr, &b_over_a, op == REL_LT); break;
    case REL_EQ:
        require(pr, &a_over_b, false);
        require(pr, &b_over_a, false);
        break;
    case REL_NE: return solve_either(pr, &a_over_b, &b_over_a);
    }
    return solve(pr);
}

/* A chain of two is a comparison; a longer one is the conjunction of its links. */
static bool solve_chain(struct prover *pr, const struct goal *g)
{
    size_t n_links = g->c->n_kids - 1;
    if (n_links == 1) {
        return solve_comparison(pr, g->c, 0, g->want);
    }
    for (size_t i = 0; i < n_links; i++) {
        struct cond *link = xcalloc(1, sizeof(*link));
        *link = *g->c;
        link->kids = &g->c->kids[i];
        link->ops = &g->c->ops[i];
        link->n_kids = 2;
        struct goal one = {.c = link, .want = g->want};
        bool may = g->want ? true : solve_branch(pr, &one, NULL, false);
        if (g->want) {
            struct linear a;
            struct linear b;
            /* All links hold: as rows, here and now; != cannot be a row and is left out. */
            if (link->ops[0] != REL_NE && linear_of(pr, link->kids[0], &a) &&
                linear_of(pr, link->kids[1], &b)) {
                bool up = link->ops[0] == REL_LT || link->ops[0] == REL_LE;
                bool strict = link->ops[0] == REL_LT || link->ops[0] == REL_GT;
                require_order(pr, up ? &b : &a, up ? &a : &b, strict);
                if (link->ops[0] == REL_EQ) {
                    require_order(pr, &b, &a, false);
                }
            }
        }
        free(link);
        if (!g->want && may) {
            return true;
        }
    }
    return g->want ? solve(pr) : false;
}

static bool solve_within(struct prover *pr, const struct goal *g)
{
    struct linear x;
    if (!linear_of(pr, g->c->kids[0], &x)) {
        return solve(pr);
    }
    struct linear one = linear_constant(rational_of_int(1));
    struct linear t = linear_constant(rational_of_double(g->c->number));
    struct linear minus_one = linear_scale(&one, rational_of_int(-1));
    struct linear off = linear_add(&x, &minus_one);
    struct linear minus_off = linear_scale(&off, rational_of_int(-1));
    if (g->want) {
        require_order(pr, &t, &off, false);
        require_order(pr, &t, &minus_off, false);
        return solve(pr);
    }
    struct linear minus_t = linear_scale(&t, rational_of_int(-1));
    struct linear above = linear_add(&off, &minus_t);
    struct linear below = linear_add(&minus_off, &minus_t);
    return solve_either(pr, &above, &below);
}

/* All kids with the same wish, or any one of them. */
static bool solve_kids(struct prover *pr, const struct goal *g, bool all)
{
    for (size_t i = 0; i < g->c->n_kids; i++) {
        struct goal kid = *g;
        kid.c = g->c->kids[i];
        if (all ? !push(pr, kid) : solve_branch(pr, &kid, NULL, false)) {
            return true;
        }
    }
    return all ? solve(pr) : false;
}

/* `otherwise` is that every level before is false. */
static bool solve_otherwise(struct prover *pr, const struct goal *g)
{
    for (size_t l = 0; l < g->level; l++) {
        struct goal earlier = {
            .c = pr->rules->inputs[g->input][l], .want = !g->want, .input = g->input, .level = l};
        if (g->want ? !push(pr, earlier) : solve_branch(pr, &earlier, NULL, false)) {
            return true;
        }
    }
    return g->want ? solve(pr) : false;
}

/* Whether the rows and all pending goals may hold together. */
static bool solve(struct prover *pr)
{
    if (++pr->n_steps > STEPS_MAX) {
        return true;
    }
    if (!system_may_hold(pr->system)) {
        return false;
    }
    if (pr->n_pending == 0) {
        return true;
    }
    struct goal g = pr->pending[--pr->n_pending];
    switch (g.c->kind) {
    case COND_OR: return solve_kids(pr, &g, !g.want);
    case COND_AND: return solve_kids(pr, &g, g.want);
    case COND_NOT:
        g.c = g.c->kids[0];
        g.want = !g.want;
        return push(pr, g) ? solve(pr) : true;
    case COND_CHAIN: return solve_chain(pr, &g);
    case COND_WITHIN: return solve_within(pr, &g);
    case COND_OTHERWISE: return solve_otherwise(pr, &g);
    case COND_NUMBER:
    case COND_ADD:
    case COND_SUB:
    case COND_MUL:
    case COND_DIV:
    case COND_NEG:
    case COND_ABS:
    case COND_MIN:
    case COND_MAX:
    case COND_RATIO:
    case COND_COUNTER:
    case COND_CONTRAST:
    case COND_MEASURE:
    case COND_FACT:
    case COND_INSTRUMENT: break;
    }
    return solve(pr);
}

static struct goal level_goal(const struct rules *rules, size_t input, size_t level, bool want)
{
    return (struct goal){
        .c = rules->inputs[input][level], .want = want, .input = input, .level = level};
}

/* Goes through the table's inputs: a level is possible by its own condition, or because all levels
 * are false. */
static bool inputs_may(struct prover *pr, const size_t *levels, size_t i)
{
    const struct rules *rules = pr->rules;
    const struct program *p = rules->program;
    while (i < p->n_table_inputs && levels[i] == INDEX_NONE) {
        i++;
    }
    if (i == p->n_table_inputs) {
        return solve_branch(pr, NULL, NULL, false);
    }
    size_t input = p->table_inputs[i];
    for (int no_level = 0; no_level < 2; no_level++) {
        size_t n_pending = pr->n_pending;
        size_t last = no_level ? p->inputs[input].n_levels - 1 : levels[i];
        bool fits = true;
        for (size_t l = 0; l <= last; l++) {
            fits = fits && push(pr, level_goal(rules, input, l, !no_level && l == last));
        }
        bool may = !fits || inputs_may(pr, levels, i + 1);
        pr->n_pending = n_pending;
        if (may) {
            return true;
        }
    }
    return false;
}

static bool has_floorless(const struct program *p)
{
    for (size_t m = 0; m < p->n_measures; m++) {
        if (p->measures[m].counted && !p->measures[m].has_floor) {
            return true;
        }
    }
    return false;
}

/* One of the two cases: nothing cleared, or something. */
static bool case_may(const struct rules *rules, const size_t *levels, bool pooled_known)
{
    const struct program *p = rules->program;
    bool floorless = has_floorless(p);
    if (!pooled_known && floorless) {
        return false; /* a counted measure without a floor always counts as cleared */
    }
    /* The prover refers to it as long as it lives. */
    const struct cond k = {.kind = COND_COUNTER, .index = p->binding_counter};
    struct linear v;
    struct prover *pr = xcalloc(1, sizeof(*pr));
    pr->system = xcalloc(1, sizeof(*pr->system));
    pr->rules = rules;
    pr->pooled_known = pooled_known;
    if (p->binding_counter != INDEX_NONE && prover_variable(pr, &k, &v)) {
        if (!pooled_known) {
            require_bounds(pr, 0, 0, 0);
        } else if (!floorless) {
            require_at_least(pr, 0, 1);
        }
    }
    bool may = inputs_may(pr, levels, 0);
    for (size_t i = 0; i < pr->n_vars; i++) {
        free(pr->vars[i].name);
    }
    free(pr->system);
    free(pr);
    return may;
}

bool row_is_impossible(const struct rules *rules, const size_t *levels)
{
    return !case_may(rules, levels, true) && !case_may(rules, levels, false);
}
