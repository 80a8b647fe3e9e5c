/*
 * Union-find over the inputs of the table and the quantities that their conditions read. Two inputs
 * end up in one set if they read the same figure, counter or measure, or figures that a relation of
 * linear_form.c connects. The links mirror the relations that the prover knows; a missing link
 * costs proofs, never soundness.
 */
#include "truthtable/prove/check_parts.h"

#include <stdlib.h>

#include "base/xalloc.h"

/* Sets of nodes: table inputs first, then figures (a contrast, pooled or of one measure), counters,
 * measures. */
struct sets {
    const struct rules *rules;
    size_t *parent;
};

/* The representative, halving the path on the way. */
static size_t find(struct sets *s, size_t node)
{
    while (s->parent[node] != node) {
        s->parent[node] = s->parent[s->parent[node]];
        node = s->parent[node];
    }
    return node;
}

/* Joins two sets; the direction does not matter at these sizes. */
static void unite(struct sets *s, size_t a, size_t b)
{
    s->parent[find(s, a)] = find(s, b);
}

/* Nodes of figures: a row per contrast, a column per measure, the pooled figure last. */
static size_t figure_node(const struct plan_program *p, size_t contrast, size_t measure)
{
    size_t column = measure == INDEX_NONE ? p->n_measures : measure;
    return p->n_table_inputs + contrast * (p->n_measures + 1) + column;
}

static size_t counter_node(const struct plan_program *p, size_t counter)
{
    return p->n_table_inputs + p->n_contrasts * (p->n_measures + 1) + counter;
}

static size_t measure_node(const struct plan_program *p, size_t measure)
{
    return counter_node(p, p->n_counters) + measure;
}

/* A difference of contrasts is related to both of its parts, in the same measure. */
static void unite_figure(struct sets *s, size_t input, const struct cond *c)
{
    const struct plan_program *p = s->rules->program;
    const struct plan_contrast *k = &p->contrasts[c->index];
    size_t figure = figure_node(p, c->index, c->measure);
    unite(s, input, figure);
    if (k->is_difference) {
        unite(s, figure, figure_node(p, k->of, c->measure));
        unite(s, figure, figure_node(p, k->minus, c->measure));
    }
    /* Whether a pooled figure is known hangs on whether anything cleared. */
    if (c->measure == INDEX_NONE && p->binding_counter != INDEX_NONE) {
        unite(s, figure, counter_node(p, p->binding_counter));
    }
}

/* Connects an input with everything its condition reads. Facts and instruments are never variables
 * of a proof. */
static void unite_condition(struct sets *s, size_t input, const struct cond *c)
{
    const struct plan_program *p = s->rules->program;
    if (c->kind == COND_CONTRAST) {
        unite_figure(s, input, c);
    } else if (c->kind == COND_COUNTER) {
        unite(s, input, counter_node(p, c->index));
    } else if (c->kind == COND_TREND && c->index != INDEX_NONE) {
        unite(s, input, figure_node(p, c->index, c->measure));
    } else if (c->kind == COND_MEASURE || c->kind == COND_RANK || c->kind == COND_TREND) {
        unite(s, input, measure_node(p, c->measure));
    }
    for (size_t i = 0; i < c->n_kids; i++) {
        unite_condition(s, input, c->kids[i]);
    }
}

/* Groups are numbered by their first input. */
size_t related_groups(const struct rules *rules, size_t *group)
{
    const struct plan_program *p = rules->program;
    size_t n_nodes = measure_node(p, p->n_measures);
    struct sets s = {.rules = rules, .parent = xcalloc(n_nodes, sizeof(*s.parent))};
    for (size_t i = 0; i < n_nodes; i++) {
        s.parent[i] = i;
    }
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        size_t input = p->table_inputs[i];
        for (size_t l = 0; l < p->inputs[input].n_levels; l++) {
            unite_condition(&s, i, rules->inputs[input][l]);
        }
    }
    size_t n = 0;
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        group[i] = INDEX_NONE;
        for (size_t k = 0; k < i && group[i] == INDEX_NONE; k++) {
            group[i] = find(&s, k) == find(&s, i) ? group[k] : INDEX_NONE;
        }
        n += group[i] == INDEX_NONE ? 1 : 0;
        group[i] = group[i] == INDEX_NONE ? n - 1 : group[i];
    }
    free(s.parent);
    return n;
}
