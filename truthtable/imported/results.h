/*
 * A results file of lm-evaluation-harness, as any 0.4.x writes it and 0.3.x did: read, checked, and
 * turned into entries (a task or group with its metrics).
 *
 * Owns the parsed file and an arena; everything handed out points into one of them and is constant
 * after results_read(), but for counts. Numbers that Python wrote as NaN or Infinity are not values
 * here: such a metric has none. Every message names the task and the key.
 */
#ifndef TRUTHTABLE_IMPORTED_RESULTS_H
#define TRUTHTABLE_IMPORTED_RESULTS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/files/digest.h"
#include "truthtable/imported/shape.h"

#define RESULTS_BYTES_MAX   ((size_t)256 << 20)
#define RESULTS_ITEMS_MAX   ((int64_t)1 << 32)
#define RESULTS_TASKS_MAX   4096
#define RESULTS_METRICS_MAX 256 /* of a task */

struct results_metric {
    const char *key;    /* as written: "exact_match,strict-match" */
    const char *name;   /* "exact_match" */
    const char *filter; /* "strict-match"; "none" where the key names none (0.3.x) */
    bool has_value;
    double value;
    bool has_se; /* absent, "N/A" and null are none */
    double se;
};

struct results_entry {
    const char *task;
    struct results_metric *metrics;
    size_t n_metrics;
    const char **members; /* of a group, as the file lists them; else NULL */
    size_t n_members;
    const cJSON *config; /* of "configs"; NULL when there is none */
    bool has_n;
    int64_t n; /* items scored; of a group, the sum over its leaves */
};

struct imported_results {
    struct arena arena;
    cJSON *json;             /* as written, or brought into its shape */
    struct file_shape shape; /* of another tool's file */
    const char *path;
    struct digest digest;
    int64_t n_bytes;
    struct results_entry *entries; /* in the file's order */
    size_t n_entries;
    const struct results_entry **by_task; /* sorted; for results_find() */
    bool has_limit;                       /* a limited run: "limit" is not null */
    double limit;
};

/* ERR_SYNTAX, ERR_RANGE and ERR_REFUSED name the key. Valid to release whatever happened. */
int results_read(struct imported_results *r, const char *path, struct err *err) MUST_CHECK;
/* The same of text; `path` is for messages only and no digest is taken. */
int results_parse(struct imported_results *r, const char *text, size_t len, const char *path,
                  struct err *err) MUST_CHECK;
void results_release(struct imported_results *r);

const struct results_entry *results_find(const struct imported_results *r, const char *task);
/* "value,filter"; NULL when there is none. */
const struct results_metric *results_metric(const struct results_entry *e, const char *name,
                                            const char *filter);

/* The leaves of a task: itself, or of a group all tasks under it, in the file's order and each
 * once. The array is in the arena. ERR_REFUSED when a group contains itself or names a task that
 * has no entry: such a group has no n, and is refused only where it is asked for. */
int results_leaves(struct imported_results *r, const struct results_entry *of,
                   const struct results_entry ***leaves, size_t *n, struct err *err) MUST_CHECK;

/* How many items a task without a count has, from elsewhere; its groups then have theirs.
 * ERR_CORRUPT when a group says another number. */
int results_set_count(struct imported_results *r, const struct results_entry *task, int64_t n,
                      struct err *err) MUST_CHECK;

/* ERR_CORRUPT if no known formula gives the group's score or standard error from its members. *how
 * says what was found: "weighted by size, pooled over leaves"; "" when it could not be checked. */
int results_check_group(struct imported_results *r, const struct results_entry *group,
                        const char **how, struct err *err) MUST_CHECK;

/* Equal but for the rounding of sums in another order. */
bool results_agree(double a, double b);

#endif
