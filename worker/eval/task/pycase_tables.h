/* Unicode's cases as Python has them, for worker/eval/task/pycase.c alone. All in rising order. */
#ifndef WORKER_EVAL_TASK_PYCASE_TABLES_H
#define WORKER_EVAL_TASK_PYCASE_TABLES_H

#include <stddef.h>
#include <stdint.h>

struct case_span {
    uint32_t first;
    uint32_t last;
};

/* Code points `step` apart that all change by `delta`. Runs do not overlap. */
struct case_run {
    struct case_span span;
    uint32_t step;
    int32_t delta;
};

/* What becomes several characters. */
struct case_several {
    uint32_t from;
    const char *to;
};

struct case_table {
    const struct case_run *lower;
    size_t n_lower;
    const struct case_run *title;
    size_t n_title;
    const struct case_several *several; /* in title case */
    size_t n_several;
    const struct case_span *cased; /* without those that are ignorable */
    size_t n_cased;
    const struct case_span *ignorable;
    size_t n_ignorable;
};

extern const struct case_table case_table;

#endif
