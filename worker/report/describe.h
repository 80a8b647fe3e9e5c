/* What `COMMAND --describe task.json` prints: metrics, facts, seconds, solved parameters, errors.
 */
#ifndef WORKER_REPORT_DESCRIBE_H
#define WORKER_REPORT_DESCRIBE_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "worker/report/params.h"

struct description {
    cJSON *json;
    cJSON *metrics;
    cJSON *facts;
    cJSON *params;
    cJSON *notes;
};

void description_init(struct description *d);
void description_release(struct description *d);
/* A metric that the task will yield, in the order of the result. */
void description_metric(struct description *d, const char *name);
void description_fact(struct description *d, const char *name, double value);
/* The estimated duration. */
void description_seconds(struct description *d, double seconds);
/* What the user should know before anything runs; `check` prints it as a warning. */
void description_note(struct description *d, const char *text);
/* A file that the result will name among its artifacts, where later stages may need it. */
void description_artifact(struct description *d, const char *path);
/* An artifact that the task will read, of an earlier stage. */
void description_reads(struct description *d, const char *stage, const char *path);
/* A solved parameter. */
void description_param(struct description *d, const char *key, double value);
/* What a parameter comes to, when parameters that are written differently may come to the same:
 * tasks that agree in all others are then one work. Takes `value`. */
void description_resolves(struct description *d, const char *key, cJSON *value);
/* One line of JSON and a newline; faults become "errors". Returns 0, or ERR_IO. */
int description_print(struct description *d, const struct param_faults *faults, FILE *out,
                      struct err *err) MUST_CHECK;

#endif
