/* What the shapes of other tools share; private to them. */
#ifndef TRUTHTABLE_IMPORTED_SHAPE_PARTS_H
#define TRUTHTABLE_IMPORTED_SHAPE_PARTS_H

#include "truthtable/imported/shape.h"

#define SHAPE_LIST_MAX  256 /* scores of a log, metrics of each */
#define SHAPE_ITEMS_MAX ((int64_t)1 << 32)

/* `out` has {"results":{},"n-samples":{},"config":{},"configs":{},"versions":{}}. */
int shape_inspect(const cJSON *log, cJSON *out, struct file_shape *s, struct err *err) MUST_CHECK;
int shape_every_eval(const cJSON *file, cJSON *out, struct file_shape *s,
                     struct err *err) MUST_CHECK;

/* Adds "NAME,FILTER" or "NAME_stderr,FILTER" to a task's metrics; ERR_SYNTAX for a name that cannot
 * be such a key. A value that is not a number is null. */
struct shape_key {
    const char *name;
    const char *suffix; /* "" or "_stderr" */
    const char *filter;
};
int shape_put_metric(cJSON *task, const struct shape_key *key, const cJSON *value,
                     struct err *err) MUST_CHECK;
/* {"effective":N,"original":M} of a task; original < 0: not said. */
void shape_put_counts(cJSON *out, const char *task, double effective, double original);

#endif
