/*
 * The filters of templates: text in, text out. docs/tasks.md lists them; lists are filtered member
 * by member by the caller. `index`, `map` and `number`, which make something else of a text or take
 * any number of arguments, are here too.
 */
#ifndef WORKER_EVAL_TASK_TEMPLATE_FILTER_H
#define WORKER_EVAL_TASK_TEMPLATE_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"

#define FILTER_ARGS_MAX 32

struct filter_args {
    const char *const *texts;
    size_t n;
};

struct filter {
    const char *name;
    size_t min_args;
    size_t max_args;
    bool numbers; /* the result is a whole number, as text */
    bool paths;   /* takes the path of a list in place of literal arguments */
    bool pairs;   /* arguments come in twos */
    int (*apply)(const char *s, const struct filter_args *args, struct strbuf *out,
                 struct err *err);
};

/* NULL when unknown. */
const struct filter *filter_find(const char *name);
/* The nearest known name, or NULL. */
const char *filter_nearest(const char *name);

#endif
