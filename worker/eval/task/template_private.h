/* The parts of a compiled template, and the reader of a field between braces. */
#ifndef WORKER_EVAL_TASK_TEMPLATE_PRIVATE_H
#define WORKER_EVAL_TASK_TEMPLATE_PRIVATE_H

#include "base/strbuf.h"
#include "worker/eval/task/template.h"
#include "worker/eval/task/template_filter.h"

/* A path is a list of steps; the first is the column's. */
struct template_step {
    const char *name; /* NULL: by index */
    size_t index;
    struct template_step *next;
};

struct template_use {
    const struct filter *filter;
    struct filter_args args;
    struct template_step *path; /* in place of args; else NULL */
    struct template_use *next;
};

struct template_part {
    const char *literal; /* NULL: a column */
    struct template_step *path;
    struct template_use *uses;
    struct template_part *next;
};

struct template
{
    const char *source;
    struct template_part *parts;
};

struct template_scan {
    struct arena *arena;
    const char *source;
    const char *at;
};

/* At the {; ends after the }. */
int template_scan_field(struct template_scan *s, struct template_part *part,
                        struct err *err) MUST_CHECK;
/* ERR_SYNTAX with the column in front. */
int template_fault(const struct template_scan *s, struct err *err, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/*
 * WikiText's tokens turned back into text, as lm-evaluation-harness does it before it scores a page
 * (tasks/wikitext/preprocess_wikitext.py), its slips kept: one of its rules puts "[0-9]" where a
 * digit was.
 */

/* Appends to out; `page` is valid UTF-8. */
void wikitext_add_detokenized(const char *page, struct strbuf *out);

#endif
