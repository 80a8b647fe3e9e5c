/*
 * A proof by refutation, as a search over goals. A goal that can be met in only one way becomes
 * rows at once (propagate); one with several ways stays open. The search picks an open goal, tries
 * each way on a saved state, and recurses. It branches first on a goal that has at most one way
 * left, as SAT solvers do. Whatever does not fit (rows, goals, steps) is dropped, and dropping only
 * makes a contradiction harder to find, never wrong. Two cases are proved apart, because pooled
 * figures are undetermined if no measure cleared.
 */
#include "truthtable/prove/impossible.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/prove/prover.h"

#define STEPS_MAX 20000 /* sets of goals considered in one proof; beyond, nothing is proved */

/* What does not fit is not demanded, which only weakens the proof. */
static void push(struct prover *pr, struct goal g)
{
    if (pr->n_demanded < GOALS_MAX) {
        pr->demanded[pr->n_demanded++] = g;
    }
}

/* The condition of one level of the goal's input, as a goal of its own. */
static struct goal level_goal(const struct prover *pr, const struct goal *of, size_t level,
                              bool want)
{
    return (struct goal){
        .kind = GOAL_CONDITION,
        .c = pr->rules->inputs[of->input][level],
        .want = want,
        .input = of->input,
        .level = level,
    };
}

/* What a goal asks for when it is one comparison of two numbers. */
struct comparison {
    struct linear a_over_b;
    struct linear b_over_a;
    enum relop op;
};

/* False when it may be undetermined, or is not linear: it then constrains nothing. */
static bool comparison_of(struct prover *pr, const struct goal *g, struct comparison *out)
{
    static const enum relop negated[] = {REL_GE, REL_GT, REL_LE, REL_LT, REL_NE, REL_EQ};
    struct linear a;
    struct linear b;
    if (!linear_of(pr, g->c->kids[g->link], &a) || !linear_of(pr, g->c->kids[g->link + 1], &b)) {
        return false;
    }
    struct linear minus_a = linear_scale(&a, rational_of_int(-1));
    struct linear minus_b = linear_scale(&b, rational_of_int(-1));
    out->a_over_b = linear_add(&a, &minus_b);
    out->b_over_a = linear_add(&b, &minus_a);
    out->op = g->want ? g->c->ops[g->link] : negated[g->c->ops[g->link]];
    return true;
}

/* |x - 1| <= t as x - 1 - t and 1 - x - t: both <= 0, or one > 0. */
static bool excess_of(struct prover *pr, const struct cond *within, struct linear *above,
                      struct linear *below)
{
    struct linear x;
    if (!linear_of(pr, within->kids[0], &x)) {
        return false;
    }
    struct linear one = linear_constant(rational_of_int(1));
    struct linear t = linear_constant(rational_of_double(within->number));
    struct linear minus_one = linear_scale(&one, rational_of_int(-1));
    struct linear minus_t = linear_scale(&t, rational_of_int(-1));
    struct linear off = linear_add(&x, &minus_one);
    struct linear minus_off = linear_scale(&off, rational_of_int(-1));
    *above = linear_add(&off, &minus_t);
    *below = linear_add(&minus_off, &minus_t);
    return true;
}

/* "a is not b" can be met in two ways: above or below. */
static bool is_unequal(const struct goal *g)
{
    return g->c->ops[g->link] == (g->want ? REL_NE : REL_EQ);
}

/* In how many ways a goal can be met; 1: what it asks for can be demanded at once. */
static size_t n_ways(const struct goal *g)
{
    if (g->kind == GOAL_LEVEL) {
        return 2;
    }
    if (g->kind == GOAL_LINK) {
        return is_unequal(g) ? 2 : 1;
    }
    switch (g->c->kind) {
    case COND_OR: return g->want ? g->c->n_kids : 1;
    case COND_AND: return g->want ? 1 : g->c->n_kids;
    case COND_CHAIN: return g->want ? 1 : g->c->n_kids - 1;
    case COND_WITHIN: return g->want ? 1 : 2;
    case COND_OTHERWISE: return g->want ? 1 : g->level;
    case COND_NOT:
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
    case COND_RANK:
    case COND_TREND:
    case COND_INSTRUMENT: break;
    }
    return 1;
}

/* Adds the rows of one comparison. A strict sign is kept, so that x < 1 and x >= 1 contradict each
 * other. */
static void demand_comparison(struct prover *pr, const struct goal *g, size_t way)
{
    struct comparison k;
    if (!comparison_of(pr, g, &k)) {
        return;
    }
    switch (k.op) {
    case REL_GT:
    case REL_GE: require(pr, &k.a_over_b, k.op == REL_GT); break;
    case REL_LT:
    case REL_LE: require(pr, &k.b_over_a, k.op == REL_LT); break;
    case REL_EQ:
        require(pr, &k.a_over_b, false);
        require(pr, &k.b_over_a, false);
        break;
    case REL_NE: require(pr, way == 0 ? &k.a_over_b : &k.b_over_a, true); break;
    }
}

/* |x - 1| <= t demands both sides; its negation demands one of them, which is the way. */
static void demand_within(struct prover *pr, const struct goal *g, size_t way)
{
    struct linear above;
    struct linear below;
    if (!excess_of(pr, g->c, &above, &below)) {
        return;
    }
    if (g->want) {
        above = linear_scale(&above, rational_of_int(-1));
        below = linear_scale(&below, rational_of_int(-1));
        require(pr, &above, false);
        require(pr, &below, false);
    } else {
        require(pr, way == 0 ? &above : &below, true);
    }
}

/* A level of a table's input is possible by its own condition, none before it being true, or
 * because all levels are false. */
static void demand_level(struct prover *pr, const struct goal *g, size_t way)
{
    size_t n = way == 0 ? g->level + 1 : pr->rules->program->inputs[g->input].n_levels;
    for (size_t l = 0; l < n; l++) {
        push(pr, level_goal(pr, g, l, way == 0 && l == g->level));
    }
}

/* The parts of a goal: all of them, or the one that is this way of meeting it. */
static void demand_parts(struct prover *pr, const struct goal *g, size_t way)
{
    bool all = n_ways(g) == 1;
    size_t n = g->c->kind == COND_OTHERWISE ? g->level
               : g->c->kind == COND_CHAIN   ? g->c->n_kids - 1
                                            : g->c->n_kids;
    for (size_t i = all ? 0 : way; i < (all ? n : way + 1); i++) {
        struct goal part = *g;
        if (g->c->kind == COND_OTHERWISE) { /* every level before is false */
            part = level_goal(pr, g, i, !g->want);
        } else if (g->c->kind == COND_CHAIN) {
            part.kind = GOAL_LINK;
            part.link = i;
        } else {
            part.c = g->c->kids[i];
            part.want = g->c->kind == COND_NOT ? !g->want : g->want;
        }
        push(pr, part);
    }
}

/* Turns one way of meeting a goal into rows and further goals. Conditions without structure, such
 * as a fact, demand nothing. */
static void demand(struct prover *pr, const struct goal *g, size_t way)
{
    if (g->kind == GOAL_LEVEL) {
        demand_level(pr, g, way);
    } else if (g->kind == GOAL_LINK) {
        demand_comparison(pr, g, way);
    } else if (g->c->kind == COND_WITHIN) {
        demand_within(pr, g, way);
    } else if (g->c->kind == COND_OR || g->c->kind == COND_AND || g->c->kind == COND_NOT ||
               g->c->kind == COND_CHAIN || g->c->kind == COND_OTHERWISE) {
        demand_parts(pr, g, way);
    }
}

/* Turns what is demanded into rows as far as it can be met in one way only; what can be met in
 * several becomes open. False when the rows contradict each other. */
static bool propagate(struct prover *pr)
{
    bool may = true;
    pr->n_steps++;
    while (pr->n_demanded > 0) {
        struct goal g = pr->demanded[--pr->n_demanded];
        size_t n = n_ways(&g);
        may = may && n > 0;
        if (n == 1) {
            demand(pr, &g, 0);
        } else if (n > 1 && pr->n_open < GOALS_MAX) {
            pr->open[pr->n_open++] = g;
        }
    }
    return may && system_may_hold(pr->system, pr->work);
}

struct saved {
    struct linear_system system;
    struct goal open[GOALS_MAX];
    size_t n_open;
    size_t n_vars;
};

/* A copy of what a branch changes. `demanded` is empty between steps. */
static struct saved *save(const struct prover *pr)
{
    struct saved *s = xmalloc(sizeof(*s));
    system_copy(&s->system, pr->system);
    memcpy(s->open, pr->open, pr->n_open * sizeof(pr->open[0]));
    s->n_open = pr->n_open;
    s->n_vars = pr->n_vars;
    return s;
}

/* Forgets variables that the branch introduced; their rows are gone with the system. */
static void restore(struct prover *pr, const struct saved *s)
{
    system_copy(pr->system, &s->system);
    memcpy(pr->open, s->open, s->n_open * sizeof(pr->open[0]));
    pr->n_open = s->n_open;
    pr->n_vars = s->n_vars;
}

/* Meets an open goal in one of its ways; false when that contradicts what is demanded already. */
static bool meet(struct prover *pr, size_t goal, size_t way)
{
    struct goal g = pr->open[goal];
    pr->open[goal] = pr->open[--pr->n_open];
    demand(pr, &g, way);
    return propagate(pr);
}

/* Which open goal to branch on: one that can be met in no way or in one, or else the first. */
static size_t narrowest(struct prover *pr, const struct saved *s)
{
    for (size_t i = 0; i < s->n_open; i++) {
        size_t n = n_ways(&s->open[i]);
        size_t n_met = 0;
        for (size_t way = 0; way < n && n_met < 2; way++) {
            n_met += meet(pr, i, way) ? 1 : 0;
            restore(pr, s);
        }
        /* At most one way is left, so branching here costs nothing. */
        if (n_met < 2) {
            return i;
        }
    }
    return 0;
}

/* Whether the rows and all open goals may hold together. */
static bool solve(struct prover *pr)
{
    /* Out of steps counts as "may hold". */
    if (pr->n_open == 0 || pr->n_steps > STEPS_MAX) {
        return true;
    }
    struct saved *s = save(pr);
    size_t goal = narrowest(pr, s);
    size_t n = n_ways(&s->open[goal]);
    bool may = false;
    for (size_t way = 0; way < n && !may; way++) {
        may = meet(pr, goal, way) && solve(pr);
        restore(pr, s);
    }
    free(s);
    return may;
}

/* Whether some counted measure has no floor; pooled figures over "cleared" always include such a
 * measure. */
static bool has_floorless(const struct plan_program *p)
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
    const struct plan_program *p = rules->program;
    bool floorless = has_floorless(p);
    if (!pooled_known && floorless) {
        return false; /* a counted measure without a floor always counts as cleared */
    }
    /* The prover refers to it as long as it lives. */
    /* The binding counter as an expression, so that the case can bound it. */
    const struct cond k = {.kind = COND_COUNTER,
                           .index = p->binding_counter,
                           .measure = INDEX_NONE,
                           .fact = INDEX_NONE,
                           .factor = INDEX_NONE,
                           .level_a = INDEX_NONE,
                           .level_b = INDEX_NONE};
    struct linear v;
    struct prover *pr = xcalloc(1, sizeof(*pr));
    pr->system = xcalloc(1, sizeof(*pr->system));
    pr->work = xcalloc(2, sizeof(*pr->work));
    pr->rules = rules;
    pr->pooled_known = pooled_known;
    if (p->binding_counter != INDEX_NONE && prover_variable(pr, &k, &v)) {
        if (!pooled_known) {
            require_bounds(pr, 0, 0, 0);
        } else if (!floorless) {
            require_at_least(pr, 0, 1);
        }
    }
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        if (levels[i] != INDEX_NONE) {
            push(pr, (struct goal){
                         .kind = GOAL_LEVEL, .input = p->table_inputs[i], .level = levels[i]});
        }
    }
    bool may = propagate(pr) && solve(pr);
    free(pr->system);
    free(pr->work);
    free(pr);
    return may;
}

/* Impossible only if both cases are: pooled figures known, and unknown. */
bool row_is_impossible(const struct rules *rules, const size_t *levels)
{
    return !case_may(rules, levels, true) && !case_may(rules, levels, false);
}
