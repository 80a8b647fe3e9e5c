/*
 * Groups of the set belong to members by their spec: consecutive groups with one spec are one
 * member, several of them its categories. From their means core_score.h makes accuracies and
 * centred scores, which are entered under the suite's names.
 *
 * "core" has a value only with all of CORE's members; "core_partial" is the same number whenever
 * any are there, so both names are always reported.
 */
#include "worker/eval/score/core_summary.h"

#include <math.h>

#include "base/xalloc.h"
#include "worker/eval/score/core_score.h"

/* One task's groups: its categories, or the only one. */
struct member {
    const struct task_spec *spec;
    const char *name; /* in a suite; NULL: the task is by itself */
    size_t first;     /* group */
    size_t n;
};

/* The member whose groups begin at the first-th. */
static struct member member_at(const struct item_set *set, size_t first)
{
    struct member m = {.spec = set->groups[first].spec, .first = first};
    m.name = set->groups[first].parent;
    while (first + m.n < set->n_groups && set->groups[first + m.n].spec == m.spec)
        m.n++;
    return m;
}

/* "acc" or "acc:name". */
static void put(struct summary *s, const char *metric, const char *name,
                const struct metric_score *score)
{
    char *full = name == NULL ? xstrdup(metric) : xasprintf("%s:%s", metric, name);
    summary_put(s, full, METRIC_ACC, score);
    free(full);
}

static struct metric_score accuracy_of(const struct summary *s, const struct member *m)
{
    struct metric_score *parts = xcalloc(m->n, sizeof(*parts));
    for (size_t i = 0; i < m->n; i++)
        parts[i] = summary_group_mean(s, 0, m->first + i);
    const struct metric_score accuracy = core_accuracy(parts, m->n);
    free(parts);
    return accuracy;
}

/* A member's two metrics, and the accuracies of its categories when there are several. */
static void put_member(struct summary *s, const struct member *m, enum baseline_version baselines)
{
    const struct metric_score accuracy = accuracy_of(s, m);
    const struct metric_score centred = core_centred(&accuracy, m->spec->baselines[baselines]);
    put(s, "acc", m->name, &accuracy);
    put(s, "centered", m->name, &centred);
    for (size_t i = 0; m->n > 1 && i < m->n; i++) {
        const struct metric_score part = summary_group_mean(s, 0, m->first + i);
        put(s, "acc", s->judge->set->groups[m->first + i].name, &part);
    }
}

/* The two means and, where they have no value, the reason. */
static void put_means(struct summary *s, enum baseline_version baselines)
{
    const struct item_set *set = s->judge->set;
    struct metric_score *centred = xcalloc(set->n_groups, sizeof(*centred));
    size_t n = 0;
    for (size_t g = 0; g < set->n_groups;) {
        const struct member m = member_at(set, g);
        const struct metric_score accuracy = accuracy_of(s, &m);
        centred[n++] = core_centred(&accuracy, m.spec->baselines[baselines]);
        g += m.n;
    }
    const struct metric_score mean = core_mean(centred, n);
    const char *why = isnan(mean.value) ? CORE_WHY_EMPTY : NULL;
    put(s, "core", NULL, &mean);
    s->entries[s->n - 1].why = n != CORE_MEMBERS ? CORE_WHY_ABSENT : why;
    put(s, "core_partial", NULL, &mean);
    s->entries[s->n - 1].why = why;
    free(centred);
}

void core_summary_finish(struct summary *s, enum baseline_version baselines)
{
    const struct item_set *set = s->judge->set;
    if (set->groups[0].parent != NULL)
        put_means(s, baselines);
    for (size_t g = 0; g < set->n_groups;) {
        const struct member m = member_at(set, g);
        put_member(s, &m, baselines);
        g += m.n;
    }
}

size_t core_summary_absent(const struct task_spec *suite, const struct item_set *set,
                           struct strbuf *absent)
{
    size_t n_there = 0;
    for (size_t i = 0; i < suite->n_members; i++) {
        bool is_there = false;
        for (size_t g = 0; g < set->n_groups; g++)
            is_there = is_there || set->groups[g].spec == suite->members[i];
        n_there += is_there;
        if (!is_there)
            strbuf_addf(absent, "%s%s", absent->len == 0 ? "" : ", ",
                        task_spec_member_name(suite, i));
    }
    return n_there;
}
