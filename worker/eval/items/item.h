/*
 * Items: what a benchmark asks, read from a file or folder and brought into one shape.
 *
 * A set owns everything through its arena; items are in the order of the file (of one file a group:
 * groups by name, then records). Texts are what the model is shown, as the task's templates make
 * them, without the delimiter that joins context and continuation.
 */
#ifndef WORKER_EVAL_ITEMS_ITEM_H
#define WORKER_EVAL_ITEMS_ITEM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "worker/eval/task/spec.h"

#define ITEM_OPTIONS_MAX 64
#define ITEM_FILE_MAX    ((size_t)1 << 30)

struct item {
    enum task_kind kind;
    const char *context;        /* TASK_CONTEXT, TASK_ROLLING: NULL */
    const char *const *options; /* TASK_CHOICE: the bare choices; TASK_CONTEXT: the contexts */
    size_t n_options;           /* other kinds: 0 */
    const char *continuation;   /* TASK_CONTEXT, TASK_LIKELIHOOD: the target; TASK_GENERATE: the
                                   right answer; TASK_ROLLING: the text; TASK_CHOICE: NULL */
    const char *original;       /* TASK_ROLLING: whose words and bytes count; else NULL */
    const char *category;       /* or NULL */
    const char *doc;   /* the record as JSON on one line: its columns in order, then those added */
    size_t gold;       /* index in options */
    bool gold_is_text; /* the record gave the right choice itself, not its index */
    size_t group;
    unsigned line; /* in its file, from 1 */
};

/* A task without groups has one. The few-shot pool's groups are matched by name. */
struct item_group {
    const struct task_spec *spec;
    const char *name;        /* "" for the only one */
    const char *description; /* precedes the examples; "" without */
    const char *parent;      /* "stem", or NULL */
    size_t first;            /* of its items in the set */
    size_t n;
};

struct item_set {
    struct arena arena;
    struct item *items;
    size_t n;
    size_t cap;
    struct item_group *groups; /* at least one */
    size_t n_groups;
};

/* Where records are. */
struct item_source {
    const char *path; /* a file, or a folder with files as the task names them */
    const char *more; /* of a suite: where members' files are that are not there; or NULL */
    const char *split;
    int description_newlines; /* that end each description, whatever the file says; 0: as there */
    bool drops_last_newline;  /* of each description (worker/eval/task/harness_version.h) */
    bool may_lack_groups;     /* of those that the task lists or of which some are chosen */
};

void item_set_init(struct item_set *set);
void item_set_release(struct item_set *set);

/* Appends the groups and items of one task; called again it appends another's. ERR_SYNTAX names
 * file, line and item, or the groups that a folder lacks. Both borrow the spec. */
int item_set_read(struct item_set *set, const struct task_spec *spec, const struct item_source *src,
                  struct err *err) MUST_CHECK;
/* The same of the text of a JSONL file, as one group. */
int item_set_parse_jsonl(struct item_set *set, const struct task_spec *spec, const char *text,
                         size_t len, struct err *err) MUST_CHECK;

static inline const struct task_spec *item_spec(const struct item_set *set, size_t item)
{
    return set->groups[set->items[item].group].spec;
}

/* Whether two items are of the same record, as Python compares two dicts. */
bool item_equal(const struct item *a, const struct item *b);
/* What an example shows: context, delimiter, right answer. */
void item_add_example(const struct item *it, const struct task_spec *spec, struct strbuf *out);
/* item.doc as the harness's samples hash it: Python's json.dumps(indent=2, ensure_ascii=False). */
int item_add_doc_layout(const struct item *it, struct strbuf *out, struct err *err) MUST_CHECK;

#endif
