/*
 * Items: what a benchmark asks, read from a file or folder and brought into one shape.
 *
 * A set owns everything through its arena; items are in the order of the file (for MMLU: subjects
 * by name, then rows). Texts are what the model is shown, cleaned as the task demands, without the
 * space that joins context and continuation.
 */
#ifndef WORKER_EVAL_ITEM_H
#define WORKER_EVAL_ITEM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "worker/eval/task_def.h"

#define ITEM_OPTIONS_MAX 64
#define ITEM_FILE_MAX    ((size_t)1 << 30)

struct item {
    enum item_form form;
    const char *context;        /* FORM_SCHEMA, FORM_WINOGRANDE: NULL */
    const char *const *options; /* choices; for those two forms the contexts; FORM_QUESTION: none */
    size_t n_options;
    const char *continuation; /* for those two forms; FORM_QUESTION: the whole answer */
    size_t gold;
    size_t group;  /* index of the subject; 0 without subjects */
    unsigned line; /* in its file, from 1 */
};

static inline bool item_is_schema(const struct item *it)
{
    return it->form == FORM_SCHEMA || it->form == FORM_WINOGRANDE;
}

struct item_group {
    const char *description; /* stands before the examples; "" without subjects */
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

void item_set_init(struct item_set *set);
void item_set_release(struct item_set *set);

/* Appends every item of JSON lines; ERR_SYNTAX names line and item. */
int item_set_parse_jsonl(struct item_set *set, const struct task_def *def, const char *text,
                         size_t len, struct err *err) MUST_CHECK;
/* The same of a file, which the message names too. */
int item_set_read_jsonl(struct item_set *set, const struct task_def *def, const char *path,
                        struct err *err) MUST_CHECK;
/* Appends every item of MMLU's <folder>/<split>, one group a subject; description_newlines (1 or 2)
 * end the subjects' descriptions. */
int item_set_read_mmlu(struct item_set *set, const char *folder, const char *split,
                       int description_newlines, struct err *err) MUST_CHECK;
/* Whichever path is: a file; a folder with <split>.jsonl; for MMLU the folder of CSV files. */
int item_set_read(struct item_set *set, const struct task_def *def, const char *path,
                  const char *split, int description_newlines, struct err *err) MUST_CHECK;

struct item *item_set_add(struct item_set *set) __attribute__((returns_nonnull));
/* Closes a group over the items added since the last. */
void item_set_end_group(struct item_set *set, const char *description);

/* Whether two items ask the same: every text and the gold. */
bool item_equal(const struct item *a, const struct item *b);
/* What an example shows: context, space, right answer. */
void item_add_example(const struct item *it, struct strbuf *out);

#endif
