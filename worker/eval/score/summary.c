/*
 * Marks are collected per key, metric and group while items arrive, and turned into entries at the
 * end. A set of one task has a column per metric and key: the whole, parents, groups, in this
 * order. A set of several tasks has each group's metrics under its name; tasks of style dclm go to
 * core_summary.c.
 *
 * The names do not depend on the items, which is why --describe can list them from an empty
 * summary.
 */
#include "worker/eval/score/summary.h"

#include <math.h>

#include "base/xalloc.h"
#include "worker/eval/score/bootstrap.h"
#include "worker/eval/score/core_summary.h"

#define KEYS 2

/* One metric under one key. */
struct summary_column {
    const struct task_metric *metric;
    size_t index; /* among the spec's */
    size_t key;
    char *name; /* "acc", "acc@redux" */
};

/* The task of the whole set; NULL when its groups are tasks of their own. */
static const struct task_spec *only_task(const struct item_set *set)
{
    for (size_t g = 1; g < set->n_groups; g++)
        if (set->groups[g].spec != set->groups[0].spec)
            return NULL;
    return set->groups[0].spec;
}

void summary_init(struct summary *s, const struct judge *j)
{
    *s = (struct summary){.judge = j};
    s->marks = xcalloc(KEYS * SPEC_METRICS_MAX * j->set->n_groups, sizeof(*s->marks));
}

void summary_release(struct summary *s)
{
    const size_t n_groups = s->judge == NULL ? 0 : s->judge->set->n_groups;
    for (size_t i = 0; i < KEYS * SPEC_METRICS_MAX * n_groups; i++)
        marks_release(&s->marks[i]);
    for (size_t i = 0; i < s->n; i++)
        free(s->entries[i].name);
    free(s->marks);
    free(s->entries);
    *s = (struct summary){0};
}

void summary_add(struct summary *s, size_t index, const struct item_outcome *o)
{
    const size_t group = s->judge->set->items[index].group;
    const struct task_spec *spec = item_spec(s->judge->set, index);
    for (size_t m = 0; m < spec->n_metrics; m++) {
        const struct item_verdict *v = &o->verdicts[m];
        marks_add(summary_marks(s, 0, m, group), v->value, v->weight);
        if (second_key_has(s->judge->second, index))
            marks_add(summary_marks(s, 1, m, group), v->second, 1.0);
    }
}

/* Value and standard error by the kind of the metric; n alone without items. */
static int score_marks(const struct marks *m, enum metric_kind kind,
                       const struct summary_rules *rules, struct metric_score *out, struct err *err)
{
    *out = (struct metric_score){m->n, (double)NAN, (double)NAN};
    if (m->n == 0)
        return 0;
    switch (kind) {
    case METRIC_ACC:
    case METRIC_ACC_NORM:
    case METRIC_EXACT_MATCH:
        out->value = marks_mean(m);
        out->se = marks_mean_se(m);
        break;
    case METRIC_PERPLEXITY:
        out->value = marks_perplexity(m);
        return bootstrap_perplexity_se(m->x, m->n, rules->bootstrap_iters, rules->asked, &out->se,
                                       err);
    case METRIC_WORD_PERPLEXITY:
    case METRIC_BYTE_PERPLEXITY: out->value = marks_weighted_perplexity(m); break;
    case METRIC_BITS_PER_BYTE: out->value = marks_bits(m); break;
    case METRIC_NR: break;
    }
    return 0;
}

/* The group of groups that a group is in, among the spec's; SIZE_MAX: none. */
static size_t parent_of(const struct item_set *set, size_t group)
{
    return task_spec_parent_of(set->groups[group].spec, set->groups[group].name);
}

static bool has_members(const struct item_set *set, size_t parent)
{
    for (size_t g = 0; g < set->n_groups; g++)
        if (parent_of(set, g) == parent)
            return true;
    return false;
}

/* Pools the groups of each parent into parents[], and everything into *all. */
static void pool(const struct item_set *set, const struct summary_rules *rules,
                 const struct metric_score *leaves, struct metric_score *parents,
                 struct metric_score *all)
{
    const struct task_spec *spec = set->groups[0].spec;
    struct metric_score *members = xcalloc(set->n_groups, sizeof(*members));
    struct metric_score *tops = xcalloc(set->n_groups + spec->n_parents, sizeof(*tops));
    size_t n_tops = 0;
    for (size_t p = 0; p < spec->n_parents; p++) {
        size_t n = 0;
        for (size_t g = 0; g < set->n_groups; g++)
            if (parent_of(set, g) == p)
                members[n++] = leaves[g];
        parents[p] = marks_pool(members, n);
        tops[n_tops++] = parents[p];
    }
    for (size_t g = 0; g < set->n_groups; g++)
        if (parent_of(set, g) == SIZE_MAX)
            tops[n_tops++] = leaves[g];
    *all = rules->pools_leaves ? marks_pool(leaves, set->n_groups) : marks_pool(tops, n_tops);
    free(members);
    free(tops);
}

/* "acc", "acc:stem", "acc:anatomy", in this order; of the groups that are read. */
static int put_column(struct summary *s, const struct summary_column *c,
                      const struct summary_rules *rules, struct err *err)
{
    const struct item_set *set = s->judge->set;
    const struct task_spec *spec = set->groups[0].spec;
    struct metric_score *leaves = xcalloc(set->n_groups, sizeof(*leaves));
    struct metric_score *parents = xcalloc(spec->n_parents + 1, sizeof(*parents));
    struct metric_score all;
    int rc = 0;
    for (size_t g = 0; g < set->n_groups && rc == 0; g++)
        rc = score_marks(summary_marks(s, c->key, c->index, g), c->metric->kind, rules, &leaves[g],
                         err);
    if (rc == 0) {
        pool(set, rules, leaves, parents, &all);
        summary_put(s, c->name, c->metric->kind, &all);
    }
    for (size_t p = 0; p < spec->n_parents && rc == 0; p++) {
        if (!has_members(set, p))
            continue;
        char *name = xasprintf("%s:%s", c->name, spec->parents[p].name);
        summary_put(s, name, c->metric->kind, &parents[p]);
        free(name);
    }
    for (size_t g = 0; g < set->n_groups && rc == 0; g++) {
        if (set->groups[g].name[0] == '\0')
            continue;
        char *name = xasprintf("%s:%s", c->name, set->groups[g].name);
        summary_put(s, name, c->metric->kind, &leaves[g]);
        free(name);
    }
    free(leaves);
    free(parents);
    return rc;
}

/* A set of tasks: each task's metrics, named after its group. */
static int put_tasks(struct summary *s, const struct summary_rules *rules, struct err *err)
{
    const struct item_set *set = s->judge->set;
    int rc = 0;
    for (size_t g = 0; g < set->n_groups; g++) {
        const struct task_spec *spec = set->groups[g].spec;
        for (size_t m = 0; m < spec->n_metrics && rc == 0; m++) {
            struct metric_score score;
            char *name = xasprintf("%s:%s", spec->metrics[m].name, set->groups[g].name);
            rc = score_marks(summary_marks(s, 0, m, g), spec->metrics[m].kind, rules, &score, err);
            if (rc == 0)
                summary_put(s, name, spec->metrics[m].kind, &score);
            free(name);
        }
    }
    return rc;
}

/* A metric under a key; the caller frees the name. */
static struct summary_column column_of(const struct judge *j, const struct task_spec *spec,
                                       size_t key, size_t m)
{
    const char *name = spec->metrics[m].name;
    struct summary_column c = {.metric = &spec->metrics[m], .index = m, .key = key};
    c.name = key == 0 ? xstrdup(name) : xasprintf("%s@%s", name, j->second->name);
    return c;
}

int summary_finish(struct summary *s, const struct summary_rules *rules, struct err *err)
{
    const struct task_spec *spec = only_task(s->judge->set);
    int rc = 0;
    if (s->judge->set->groups[0].spec->style == STYLE_DCLM) {
        core_summary_finish(s, rules->baselines);
        return 0;
    }
    if (spec == NULL)
        return put_tasks(s, rules, err);
    for (size_t key = 0; key < (s->judge->second == NULL ? 1 : KEYS); key++) {
        for (size_t m = 0; m < spec->n_metrics && rc == 0; m++) {
            struct summary_column c = column_of(s->judge, spec, key, m);
            rc = put_column(s, &c, rules, err);
            free(c.name);
        }
    }
    return rc;
}

void summary_each_name(const struct judge *j, void (*name)(void *self, const char *name),
                       void *self)
{
    /* The names do not depend on the items: those of an empty summary. */
    const struct summary_rules rules = {.bootstrap_iters = 0};
    struct summary empty;
    struct err err = {0};
    summary_init(&empty, j);
    if (summary_finish(&empty, &rules, &err) == 0)
        for (size_t i = 0; i < empty.n; i++)
            name(self, empty.entries[i].name);
    summary_release(&empty);
}
