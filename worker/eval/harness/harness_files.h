/*
 * The files that lm-evaluation-harness 0.4.3 would have left of an evaluation: a results file, and
 * with `samples` one samples file a task (docs/interchange.md). They are made from items.jsonl,
 * each of whose lines is checked once more on the way; each file is there whole or not at all, the
 * results file last.
 */
#ifndef WORKER_EVAL_HARNESS_HARNESS_FILES_H
#define WORKER_EVAL_HARNESS_HARNESS_FILES_H

#include "worker/eval/harness/harness_results.h"
#include "worker/eval/score/judge.h"

#define HARNESS_FOLDER      "harness"          /* of an attempt */
#define HARNESS_RESULTS     "results.json"     /* in it; samples_<task>.jsonl beside it */
#define HARNESS_RESULTS_MAX ((size_t)64 << 20) /* bytes of it */

/* The input of harness_files_write(); borrows everything. */
struct harness_files {
    const struct benchmark *bench;
    const struct judge *judge;
    struct harness_results results; /* tree and hashes are filled in here */
    const char *items;              /* path of items.jsonl */
    const char *folder;             /* where they go; there already */
    const char *stamp;              /* after each name: "" or "_2026-11-21T09-36-04.772939" */
    bool samples;
};

/* ERR_CORRUPT: a line of items.jsonl is not what follows from its own answer. *missing: nothing was
 * written, because this metric has no value; else NULL. */
int harness_files_write(struct harness_files *f, const char **missing, struct err *err) MUST_CHECK;

struct eval_session;
struct worker_result;

/* What the files follow from, but for where they go, the model and the metrics. */
struct harness_files harness_files_of(const struct eval_session *e);
/* A suite's tasks are asked in a form that the harness does not have. */
bool harness_has_no_form(const struct eval_session *e);

/* The files of a run that is over, into the attempt's folder and among the artifacts of its result,
 * which has its metrics. */
int harness_run_write(struct eval_session *e, struct worker_result *result,
                      struct err *err) MUST_CHECK;

#endif
