/*
 * One evaluation while it runs: the state that run.c holds together, shared with the parts in other
 * files (results, interchange). Zeroed, then filled from top to bottom; always valid to release.
 */
#ifndef WORKER_EVAL_CLI_EVALUATION_H
#define WORKER_EVAL_CLI_EVALUATION_H

#include "worker/eval/score/benchmark.h"
#include "worker/eval/score/items_file.h"
#include "worker/eval/score/scorer.h"
#include "worker/eval/score/summary.h"
#include "worker/eval/score/viability.h"
#include "worker/model/model.h"
#include "worker/report/events.h"
#include "worker/report/result.h"

#define EVAL_READS_MAX 8

/* Data of the task that the run reads, and what it found there. */
struct eval_read {
    const char *key; /* the parameter that names it */
    const struct task_data *data;
    struct digest digest; /* zero: the parameter is not given */
};

struct eval_session {
    const struct worker_task *task;
    struct eval_options options;
    struct eval_read reads[EVAL_READS_MAX];
    size_t n_reads;
    struct benchmark bench;
    struct second_key second;
    struct judge judge;
    struct model *model;
    struct tokenizer *tok;
    struct lm lm;
    struct scorer scorer;
    struct summary summary;
    struct viability viability;
    struct events events;
    struct items_file items;
    struct strbuf header; /* of items.jsonl */
    /* over the items done so far */
    size_t n_done;
    size_t n_faults;
    size_t n_cut_items;
    double n_cut;
    const char *null_why; /* why the metrics have no value; NULL: they have */
    /* of this attempt alone */
    size_t n_taken; /* items adopted from an earlier one */
    struct score_counter *counter;
    struct score_cost cost;
    double tried_work;  /* of a try: bytes that are asked, */
    double whole_work;  /* and those of all items; 0: not a try */
    double seconds;     /* from the first item to the last */
    double cpu_seconds; /* of these; less on a busy machine */
};

void evaluation_init(struct eval_session *e, const struct worker_task *task);
void evaluation_release(struct eval_session *e);
/* Options, data, items and what judges them. verify: data must be what was locked. */
int evaluation_load(struct eval_session *e, bool verify, struct err *err) MUST_CHECK;
/* The same, and the model: everything that asking needs. */
int evaluation_prepare(struct eval_session *e, bool verify, struct err *err) MUST_CHECK;

/* Result.json from all of it, written last. ERR_BUSY: asked to stop. */
int eval_write_result(struct eval_session *e, struct err *err) MUST_CHECK;
/* Prints a line about the cost on standard error; no score. */
void eval_say_cost(const struct eval_session *e);

/*
 * The header line of items.jsonl: everything its lines follow from. Lines under another header are
 * worth nothing.
 */

/* Appends the line, without line feed. Options, data, model and tokenizer are known. */
int items_key_make(const struct eval_session *e, struct strbuf *out, struct err *err) MUST_CHECK;
/* Appends the names of the members in which two headers differ. */
void items_key_difference(const struct strbuf *ours, const struct strbuf *theirs,
                          struct strbuf *out);

#endif
