/*
 * result.json, written last and atomically into the working directory; and the exit codes of a
 * worker.
 *
 * The builder collects metrics, facts, digests of what was read and artifacts. Numbers are finite
 * or null with a "why" (and a "bound" where censored).
 */
#ifndef WORKER_REPORT_RESULT_H
#define WORKER_REPORT_RESULT_H

#include <cjson/cJSON.h>
#include <stdint.h>

#include "base/err.h"
#include "base/files/digest.h"
#include "worker/report/environment.h"
#include "worker/report/task.h"

enum worker_exit {
    WORKER_DONE = 0,
    WORKER_CRASH = 1,
    WORKER_USAGE = 64,        /* bad parameters; never retried */
    WORKER_DATA = 65,         /* bad input data; never retried */
    WORKER_UNMEASURABLE = 69, /* cannot be measured; blocked at once */
    WORKER_AGAIN = 75,        /* checkpointed, run me again */
};

/* ERR_USAGE, ERR_INVALID -> 64; ERR_SYNTAX, ERR_CORRUPT, ERR_NOT_FOUND, ERR_VERSION -> 65;
 * ERR_REFUSED -> 69; ERR_BUSY (asked to stop) -> 75; anything else 1. */
enum worker_exit worker_exit_code(int err_code);

struct worker_result {
    cJSON *json;
    cJSON *metrics;
    cJSON *facts;
    cJSON *read;
    cJSON *inputs; /* NULL until something is put there */
    cJSON *artifacts;
};

void result_init(struct worker_result *r, const struct worker_task *task);
void result_release(struct worker_result *r);

/* n < 0: no count; se NaN: unknown. A value that is not finite becomes null, why "not_finite". */
void result_metric(struct worker_result *r, const char *name, double value, int64_t n, double se);
/* bound may be NULL, e.g. ">4864". */
void result_metric_null(struct worker_result *r, const char *name, const char *why,
                        const char *bound);
/* Not finite: null with why "not_finite". */
void result_fact(struct worker_result *r, const char *name, double value);
void result_fact_text(struct worker_result *r, const char *name, const char *value);
/* {"value":null,"why":why} */
void result_fact_null(struct worker_result *r, const char *name, const char *why);
/* The digest of data that was read, under its name in the task. */
void result_read(struct worker_result *r, const char *data_name, const struct digest *digest);
/* The artifact of an earlier stage that was read, by its digest. */
void result_input(struct worker_result *r, const char *stage, const struct digest *digest);
/* Hashes the file at path (relative to the working directory). */
int result_artifact(struct worker_result *r, const char *path, struct err *err) MUST_CHECK;
/* The path of items.jsonl. */
void result_items(struct worker_result *r, const char *path);
/* Of `preregctl try`: `done` of `of` units of work were done, in `seconds`. */
void result_try(struct worker_result *r, double done, double of, double seconds);
/* Replaces result.json atomically; to be called last. */
int result_write(struct worker_result *r, struct err *err) MUST_CHECK;

/* Facts every worker gives: threads, blas, arithmetic (unless 0), instructions, peak_rss_bytes. */
void result_fact_sheet(struct worker_result *r, const struct worker_environment *env);

#endif
