/*
 * The worker's view of task.json (docs/worker-protocol.md): what to do, and nothing else.
 *
 * struct worker_task owns the parsed JSON; every pointer in it lives until task_release(). Relative
 * paths are taken as given (the daemon writes absolute ones).
 */
#ifndef WORKER_REPORT_TASK_H
#define WORKER_REPORT_TASK_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/files/digest.h"

#define TASK_PROTOCOL 1

struct worker_task {
    cJSON *json;
    const char *program; /* "" when task.json does not say */
    const char *stage;
    const char *cell_name;
    const char *attempt; /* the attempt's id; "" under --describe */
    int64_t attempt_no;  /* from 1 */
    const cJSON *params; /* object, never NULL */
    const cJSON *inputs; /* object or NULL */
    const cJSON *data;   /* object or NULL */
    const cJSON *peers;  /* object or NULL; under --describe only */
    const char **resume; /* earlier attempt folders, newest first */
    size_t n_resume;
    bool sealed; /* the plan seals what the stage measures: nothing of it is shown */
    const cJSON *sealed_metrics; /* of it, those that the plan seals; NULL: not said, so all */
    int threads;                 /* >= 1 */
    int64_t memory_bytes;        /* 0: no limit given */
    double checkpoint_seconds;   /* < 0: "auto" */
    int64_t try_steps;           /* of `preregctl try`: at most this many; 0: all */
    int64_t try_items;
    const char *rates;      /* under --describe, the file of machine_rates.h; NULL: none */
    const cJSON *producers; /* under --describe, by input: what it is made from; or NULL */
};

/* Whether no point of a curve may be reported that has the value of a metric, or its value at a
 * mark or of a part: "val_loss" also where "val_loss@0.2" is sealed. */
bool task_seals(const struct worker_task *task, const char *metric);

/* One entry of "data". */
struct task_data {
    const char *name;
    const char *path;
    struct digest sha256; /* all zero when the task gives none */
};

/* What a thread of a usual processor does in a second, for estimates where nothing is measured. */
#define TASK_USUAL_FLOPS 5e10

/* ERR_USAGE for a member of the wrong type, ERR_VERSION for another protocol. Call task_release()
 * also after an error. */
int task_read(const char *path, struct worker_task *task, struct err *err) MUST_CHECK;
/* The same for the task of an attempt that may have ended, in `folder`. */
int task_read_attempt(const char *folder, struct worker_task *task, struct err *err) MUST_CHECK;
/* The same for JSON that is parsed already. The task owns it from then on, also on error. */
int task_from_json(cJSON *json, struct worker_task *task, struct err *err) MUST_CHECK;
void task_release(struct worker_task *task); /* also fine on a zeroed struct */

/* The folder of another stage's result. ERR_USAGE when the task has no such input. */
int task_find_input(const struct worker_task *task, const char *stage, const char **folder,
                    struct err *err) MUST_CHECK;
/* ERR_USAGE when the task has no such data. */
int task_find_data(const struct worker_task *task, const char *name, struct task_data *out,
                   struct err *err) MUST_CHECK;
/* Hashes the file or folder at data->path into *found; ERR_CORRUPT when the task locked another
 * digest. */
int task_verify_data(const struct task_data *data, struct digest *found,
                     struct err *err) MUST_CHECK;

#endif
