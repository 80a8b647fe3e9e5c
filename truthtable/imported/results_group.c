/*
 * A group's figures against its members'. Upstream has had three standard errors: combined from
 * pairs (0.4.0, 0.4.1), pooled over the members of each group, groups over groups (0.4.2, 0.4.3),
 * and pooled over the leaves (0.4.4 on). The version is not in the files before 0.4.9, so each is
 * tried.
 */
#include <math.h>
#include <string.h>

#include "truthtable/imported/results.h"

#define AGREE_RELATIVE 1e-9
#define AGREE_ABSOLUTE 1e-12

/* Sums in another order differ by rounding; anything more is a contradiction. */
bool results_agree(double a, double b)
{
    return fabs(a - b) <= AGREE_ABSOLUTE + AGREE_RELATIVE * fmax(fabs(a), fabs(b));
}

struct part { /* a member's figures of one metric */
    double value;
    double se;
    double n;
};

struct parts {
    const struct part *list;
    size_t n;
    bool all_se;
};

/* False when a member lacks the metric or its size. */
static bool collect(const struct results_metric *of, const struct results_entry *const *members,
                    size_t n, struct part *out, struct parts *parts)
{
    *parts = (struct parts){.list = out, .n = n, .all_se = true};
    for (size_t i = 0; i < n; i++) {
        const struct results_metric *m = results_metric(members[i], of->name, of->filter);
        if (m == NULL || !m->has_value || !members[i]->has_n || members[i]->n < 1) {
            return false;
        }
        out[i] = (struct part){.value = m->value, .se = m->se, .n = (double)members[i]->n};
        parts->all_se = parts->all_se && m->has_se;
    }
    return n > 0;
}

/* Each member by its number of items: upstream's default. */
static double weighted_mean(const struct parts *p)
{
    double sum = 0;
    double n = 0;
    for (size_t i = 0; i < p->n; i++) {
        sum += p->list[i].value * p->list[i].n;
        n += p->list[i].n;
    }
    return sum / n;
}

/* Each member alike: groups with weight_by_size = false. */
static double plain_mean(const struct parts *p)
{
    double sum = 0;
    for (size_t i = 0; i < p->n; i++) {
        sum += p->list[i].value;
    }
    return sum / (double)p->n;
}

/* Upstream's pooled_sample_stderr: variances weighted by n - 1, over all items. */
static double pooled_se(const struct parts *p)
{
    double sum = 0;
    double n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct part *x = &p->list[i];
        sum += (x->n - 1) * x->n * x->se * x->se;
        n += x->n;
    }
    return sqrt(sum / (n - (double)p->n) / n);
}

/* 0.4.0: pairs of what was met so far and the next; the mean in the last term is already the new
 * one. */
static double combined_se(const struct parts *p)
{
    double mean = p->list[0].value;
    double var = p->list[0].se * p->list[0].se;
    double n = p->list[0].n;
    for (size_t i = 1; i < p->n; i++) {
        const struct part *x = &p->list[i];
        mean = (mean * n + x->value * x->n) / (n + x->n);
        var = ((n - 1) * var + (x->n - 1) * x->se * x->se) / (n + x->n - 1) +
              n * x->n / ((n + x->n) * (n + x->n - 1)) * (mean - x->value) * (mean - x->value);
        n += x->n;
    }
    return sqrt(var);
}

struct group_look {
    const struct results_entry *group;
    const struct results_metric *metric;
    struct parts leaves;
    bool has_direct;
    struct parts direct; /* members as the file lists them, groups among them */
};

/* The group's score must be one of the two means; *how says which. */
static int check_value(const struct group_look *g, const char **how, struct err *err)
{
    const double value = g->metric->value;
    if (results_agree(value, weighted_mean(&g->leaves))) {
        *how = "weighted by size";
        return 0;
    }
    if (results_agree(value, plain_mean(&g->leaves))) {
        *how = "a plain mean over tasks";
        return 0;
    }
    return err_set(err, ERR_CORRUPT,
                   "%.80s \"%s\" is %.17g; its %zu tasks give %.17g weighted by size, %.17g plain",
                   g->group->task, g->metric->key, value, g->leaves.n, weighted_mean(&g->leaves),
                   plain_mean(&g->leaves));
}

/* Tries both formulas over the leaves and over the direct members, which covers every version. */
static int check_se(const struct group_look *g, struct err *err)
{
    const double se = g->metric->se;
    if (!g->metric->has_se || !g->leaves.all_se) {
        return 0;
    }
    bool agrees =
        results_agree(se, pooled_se(&g->leaves)) || results_agree(se, combined_se(&g->leaves)) ||
        (g->has_direct && g->direct.all_se &&
         (results_agree(se, pooled_se(&g->direct)) || results_agree(se, combined_se(&g->direct))));
    return agrees ? 0
                  : err_set(err, ERR_CORRUPT,
                            "%.80s: the standard error of \"%s\" is %.17g; pooled over its %zu "
                            "tasks it is %.17g, and no formula of 0.4.x gives it",
                            g->group->task, g->metric->key, se, g->leaves.n, pooled_se(&g->leaves));
}

/* The members themselves, where results_leaves() has shown that all have entries. */
static const struct results_entry **direct_members(struct imported_results *r,
                                                   const struct results_entry *group)
{
    const struct results_entry **list = arena_array(&r->arena, group->n_members + 1, sizeof(*list));
    for (size_t i = 0; i < group->n_members; i++) {
        list[i] = results_find(r, group->members[i]);
    }
    return list;
}

/* Metrics that a member lacks are skipped: nothing can be recomputed for them. */
int results_check_group(struct imported_results *r, const struct results_entry *group,
                        const char **how, struct err *err)
{
    const struct results_entry **leaves = NULL;
    size_t n = 0;
    *how = "";
    int rc = results_leaves(r, group, &leaves, &n, err);
    const struct results_entry **direct = rc == 0 ? direct_members(r, group) : NULL;
    struct part *of_leaves = arena_array(&r->arena, n + 1, sizeof(*of_leaves));
    struct part *of_direct = arena_array(&r->arena, group->n_members + 1, sizeof(*of_direct));
    for (size_t i = 0; rc == 0 && i < group->n_metrics; i++) {
        struct group_look g = {.group = group, .metric = &group->metrics[i]};
        if (!g.metric->has_value || !collect(g.metric, leaves, n, of_leaves, &g.leaves)) {
            continue;
        }
        g.has_direct = collect(g.metric, direct, group->n_members, of_direct, &g.direct);
        rc = check_value(&g, how, err);
        if (rc == 0) {
            rc = check_se(&g, err);
        }
    }
    return rc == 0 ? 0 : err_wrap(err, "%s", r->path);
}
