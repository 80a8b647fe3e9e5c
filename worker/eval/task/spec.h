/*
 * A task: a description file, read and checked. It says how a record becomes an item, what precedes
 * it, how it is asked and judged. docs/tasks.md is the reference of the file; the shipped ones are
 * in worker/eval/task/shipped and are part of the program.
 *
 * A spec owns everything it points to and is immutable once read. An item may point to its spec, so
 * specs outlive item sets.
 */
#ifndef WORKER_EVAL_TASK_SPEC_H
#define WORKER_EVAL_TASK_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/files/digest.h"
#include "worker/eval/task/template.h"

enum task_kind {
    TASK_CHOICE,     /* one context, several choices */
    TASK_CONTEXT,    /* several contexts, one continuation */
    TASK_LIKELIHOOD, /* one context, one target */
    TASK_ROLLING,    /* the likelihood of a whole text */
    TASK_GENERATE,   /* greedy text, filtered and compared */
    TASK_KIND_NR,
};

/* Whose way to put a prompt together, to cut it into tokens and to judge the answer. */
enum task_style {
    STYLE_HARNESS, /* lm-evaluation-harness's */
    STYLE_DCLM,    /* llm-foundry's, as DCLM calls it for CORE */
    TASK_STYLE_NR,
};

enum sampler_kind {
    SAMPLER_RANDOM, /* the harness's default: drawn afresh for every item, one stream a group */
    SAMPLER_FIRST,  /* its first_n: the first of the pool for all */
    SAMPLER_DCLM,   /* llm-foundry's (worker/eval/prompt/dclm_sample.h), of the items themselves */
    SAMPLER_NR,
};

enum metric_kind {
    METRIC_ACC,
    METRIC_ACC_NORM,
    METRIC_EXACT_MATCH, /* one a filter */
    METRIC_PERPLEXITY,
    METRIC_WORD_PERPLEXITY,
    METRIC_BYTE_PERPLEXITY,
    METRIC_BITS_PER_BYTE,
    METRIC_NR,
};

/* Versions of what counts as guessing. */
enum baseline_version { BASELINE_V2, BASELINE_V1, BASELINES_NR };

#define SPEC_METRICS_MAX 8
#define SPEC_FILE_MAX    ((size_t)1 << 20)
#define SHOTS_MAX        64

/* An expression that extracts the answer from a generation: match number `select`, counted from the
 * end when negative. */
struct task_filter {
    const char *name; /* as the harness calls it: "strict-match" */
    const char *key;  /* as metrics and items.jsonl call it: "strict" */
    const char *pattern;
    int select;
};

struct task_metric {
    enum metric_kind kind;
    const char *name;                 /* "acc", "exact_match:strict" */
    const struct task_filter *filter; /* METRIC_EXACT_MATCH; else NULL */
};

/* A group of groups, as mmlu's stem. */
struct task_parent {
    const char *name;
    const char *const *members;
    size_t n_members;
};

/* A column that a form adds to each record, or puts in the place of one of that name. Names that
 * begin with _ are not shown in samples. Several templates make a list. */
struct task_column {
    const char *name;
    const struct template *const *values;
    size_t n_values; /* 0: `values` has one template, which is the value */
};

/* One shape that records may have. It fits a record that has every column of `needs`, which are
 * those that its templates read and it does not add itself. */
struct task_form {
    const char *const *needs;
    size_t n_needs;
    const struct task_column *adds;
    size_t n_adds;
    const char *const *shows; /* the columns of item.doc in this order; none: all */
    size_t n_shows;
    const struct template *context; /* TASK_CHOICE, TASK_LIKELIHOOD, TASK_GENERATE */
    struct task_column options;     /* TASK_CHOICE: choices; TASK_CONTEXT: contexts */
    const struct template *gold;    /* both: the index of the right one, or for choices its text */
    bool gold_is_text;             /* the harness's target is the right choice's text in any case */
    const struct template *target; /* TASK_CONTEXT, TASK_LIKELIHOOD, TASK_GENERATE */
    const struct template *text;   /* TASK_ROLLING: what is scored */
    const struct template *original; /* TASK_ROLLING: whose words and bytes count */
    const struct template *category; /* of any kind; NULL: none */
};

struct task_spec {
    struct arena arena;
    const char *name;
    const char *version; /* as the harness prints it */
    const char *about;   /* one line for people */
    enum task_kind kind;
    enum task_style style;
    const char *delimiter;              /* between context and continuation */
    const char *shot_delimiter;         /* after an example; STYLE_DCLM: before all but the first */
    const struct template *description; /* precedes the examples; NULL: none */
    enum sampler_kind sampler;
    int shots;           /* unless the stage says otherwise; of a suite -1: each member's own */
    bool draws_one_more; /* the sampler draws one too many and drops it */
    uint64_t seed;       /* of the sampler */
    const char *split;
    const char *fewshot_split;
    const char *const *files; /* in a folder: "<split>.jsonl", "<split>/<group>_<split>.csv" */
    size_t n_files;
    const char *const *columns; /* of headerless CSV files; n_columns 0: a header line names them */
    size_t n_columns;
    const struct task_filter *filters;
    size_t n_filters;
    struct task_metric metrics[SPEC_METRICS_MAX];
    size_t n_metrics;
    const char *const *ignores; /* exact_match: regular expressions deleted from both, in order */
    size_t n_ignores;
    bool ignores_case;
    const char *const *until; /* ends a generation, besides the end-of-text token */
    size_t n_until;
    int max_tokens;
    const struct task_parent *parents;
    size_t n_parents;
    const char *const *chosen; /* groups that alone are read; n_chosen 0: all */
    size_t n_chosen;
    const struct task_form *forms;
    size_t n_forms;
    double baselines[BASELINES_NR]; /* STYLE_DCLM: what guessing gives, in percent */
    /* A suite has members, which it owns, in place of all that says how to ask. */
    struct task_spec **members;
    size_t n_members;
    bool needs_members;   /* none may be absent from the data */
    struct digest digest; /* of the description's canonical JSON */
};

/* `file` names the text in messages, which hold line and column, or the key: "t.json:
 * forms[0].gold: unknown filter 'indx'; did you mean 'index'?". ERR_SYNTAX. */
int task_spec_parse(const char *text, size_t len, const char *file, struct task_spec **out,
                    struct err *err) MUST_CHECK;
/* The same from a file of at most SPEC_FILE_MAX bytes. */
int task_spec_read(const char *path, struct task_spec **out, struct err *err) MUST_CHECK;
void task_spec_free(struct task_spec *spec);

/* The shipped descriptions, by name. */
size_t task_builtin_count(void);
const char *task_builtin_name(size_t i);
const char *task_builtin_text(size_t i); /* the file's text, terminated */
/* ERR_USAGE names the nearest known. */
int task_builtin_read(const char *name, struct task_spec **out, struct err *err) MUST_CHECK;

const char *task_kind_name(enum task_kind kind);
const char *metric_kind_name(enum metric_kind kind);
/* How a suite calls one of its members: without the suite's own name and _ in front. */
const char *task_spec_member_name(const struct task_spec *suite, size_t i);
/* Leaves only the named members, in the suite's order, all of whose data must be there. ERR_USAGE
 * names one that is unknown or twice there. */
int task_spec_choose_members(struct task_spec *suite, const char *const *names, size_t n,
                             struct err *err) MUST_CHECK;

/* Whether its files come one a group. */
bool task_spec_has_groups(const struct task_spec *spec);
/* The index of the parent that has the group among its members; SIZE_MAX: none. */
size_t task_spec_parent_of(const struct task_spec *spec, const char *group);
/* ERR_SYNTAX when the task lists its groups and this is not one of them. */
int task_spec_check_group(const struct task_spec *spec, const char *group,
                          struct err *err) MUST_CHECK;
/* Leaves only the named groups to be read; a parent's name means all its members. ERR_USAGE names
 * one that is unknown or given twice. */
int task_spec_choose_groups(struct task_spec *spec, const char *const *names, size_t n,
                            struct err *err) MUST_CHECK;
/* Whether the group is read. */
bool task_spec_takes_group(const struct task_spec *spec, const char *group);

#endif
