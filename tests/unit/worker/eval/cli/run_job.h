/*
 * Runs of the program itself on models of random weights: what its tests share.
 */
#ifndef TESTS_UNIT_WORKER_EVAL_CLI_RUN_JOB_H
#define TESTS_UNIT_WORKER_EVAL_CLI_RUN_JOB_H

#include <stdint.h>

#include "base/json/json.h"
#include "base/strbuf.h"

#define N_ITEMS 400 /* of the data "choices" */
#define CHOICES "{\"task\":\"choices\"}"

struct job {
    const char *folder; /* the attempt's */
    const char *params;
    const char *resume;     /* NULL, or an earlier attempt's folder */
    const char *model;      /* NULL: "model-a" */
    int64_t kill_after_ms;  /* 0: let it run */
    const char *term_after; /* NULL, or seconds until SIGTERM */
    int threads;            /* 0: 1 */
    int try_items;          /* 0: not a try */
};

struct end {
    int code;
    int signal;
    char said[512]; /* on stderr */
};

/* A folder of its own with models and data; left by scratch_leave(). */
int run_set_up(void **state);
/* task.json of the job in its folder. Data "skewed" are the caller's. */
void run_write_task(const struct job *job);
struct end run_job(const struct job *job);

void run_read_text(const char *folder, const char *name, struct strbuf *out);
void run_assert_same_file(const char *a, const char *b, const char *name);
/* The caller's; NULL when result.json has no such metric. */
cJSON *run_read_metric(const char *folder, const char *name);
void run_assert_event(const char *folder, const char *part);

#endif
