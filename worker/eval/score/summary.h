/*
 * The metrics of a run: what its items gave, group by group, and the named numbers that follow.
 *
 * Names: "acc" over all items; where there are groups also "acc:anatomy" of each and "acc:stem" of
 * each group of groups; under a second key "acc@redux" and "acc@redux:anatomy".
 */
#ifndef WORKER_EVAL_SCORE_SUMMARY_H
#define WORKER_EVAL_SCORE_SUMMARY_H

#include "worker/eval/score/judge.h"
#include "worker/eval/score/marks.h"

struct summary_rules {
    bool pools_leaves; /* from v0.4.4: groups of groups from their leaves, not from each other */
    size_t bootstrap_iters;          /* of the standard error of a perplexity; 0: none */
    enum baseline_version baselines; /* of tasks of style dclm */
    bool (*asked)(void);             /* to stop; NULL: never */
};

struct summary_entry {
    char *name;
    enum metric_kind kind;
    const char *why; /* it has no value although there are items; NULL: it has */
    struct metric_score score;
};

/* Zeroed but for what summary_init() sets. */
struct summary {
    const struct judge *judge;
    struct marks *marks; /* [key][metric][group]; key 1 is the second, where there is one */
    struct summary_entry *entries;
    size_t n;
    size_t cap;
};

/* Borrows the judge and its set. */
void summary_init(struct summary *s, const struct judge *j);
void summary_release(struct summary *s);
/* The outcome of the index-th item, without fault. */
void summary_add(struct summary *s, size_t index, const struct item_outcome *o);

/* What was counted under a key (0: the first answer, 1: the second) of a metric, in a group. */
struct marks *summary_marks(const struct summary *s, size_t key, size_t metric, size_t group);
/* Makes the entries. ERR_BUSY: asked to stop. */
int summary_finish(struct summary *s, const struct summary_rules *rules,
                   struct err *err) MUST_CHECK;
/* kind: how to look at the score. */
void summary_put(struct summary *s, const char *name, enum metric_kind kind,
                 const struct metric_score *score);
/* The mean of one group's items under the index-th metric of its task. */
struct metric_score summary_group_mean(const struct summary *s, size_t metric, size_t group);
/* The names that summary_finish() will give, one after the other. */
void summary_each_name(const struct judge *j, void (*name)(void *self, const char *name),
                       void *self);

#endif
