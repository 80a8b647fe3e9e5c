/* What a summary counted, by metric and group, and the metrics that are put into it. */
#include "worker/eval/score/summary.h"

#include "base/xalloc.h"
#include "worker/eval/score/bootstrap.h"
#include "worker/eval/score/core_summary.h"

struct marks *summary_marks(const struct summary *s, size_t key, size_t metric, size_t group)
{
    const size_t n_groups = s->judge->set->n_groups;
    return &s->marks[(key * SPEC_METRICS_MAX + metric) * n_groups + group];
}

struct metric_score summary_group_mean(const struct summary *s, size_t metric, size_t group)
{
    const struct marks *m = summary_marks(s, 0, metric, group);
    return (struct metric_score){m->n, marks_mean(m), marks_mean_se(m)};
}

void summary_put(struct summary *s, const char *name, enum metric_kind kind,
                 const struct metric_score *score)
{
    ARRAY_GROW(s->entries, s->n, s->cap);
    s->entries[s->n++] =
        (struct summary_entry){.name = xstrdup(name), .kind = kind, .score = *score};
}
