/*
 * What a report is made from: the program and its lock, verdict.json, provenance.json, the results
 * the daemon linked, and the curves their attempts left behind. Read once from a program's folder
 * (docs/report.md), constant afterwards; sections.h turns it into a document.
 *
 * The lock is the amended one: what it covers now, under the root it always had. Instruments
 * (docs/instruments.md) are shown as they were computed, and a report without them is whole.
 *
 * Owns everything it points to. The binding figures come from verdict.json alone: nothing here
 * recomputes a gate, a contrast or an input, so a report can never disagree with its verdict.
 * Results add what the verdict does not hold (standard errors, facts); provenance adds who ran
 * what, where and how often, and may be absent. Of an imported program (prereg/lock/imported.h) the
 * results are its records, and nothing was executed.
 */
#ifndef TRUTHTABLE_REPORT_REPORT_MODEL_H
#define TRUTHTABLE_REPORT_REPORT_MODEL_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"
#include "prereg/program/verdict_kind.h"
#include "truthtable/evidence/evidence.h"
#include "truthtable/report/report_acts.h"
#include "truthtable/report/report_losses.h"
#include "truthtable/report/report_trust.h"
#include "truthtable/report/router_course.h"

struct curve { /* one quantity over the steps of one task, attempts joined */
    size_t cell;
    size_t stage;
    const char *name;
    double *xs; /* strictly increasing; thinned, the last one kept */
    double *ys;
    size_t n;
    size_t cap;
    double width;  /* of steps that share a point; 0: none do */
    double last_x; /* while it is read: the newest point, kept or not */
    double last_y;
};

struct curve_set {
    struct curve *curves; /* by task, then in order of first sight */
    size_t n;
    size_t cap;
    size_t n_unread; /* event files that could not be read */
};

struct report_model {
    struct arena arena;
    struct plan_program *program;
    struct lock *lock;
    cJSON *verdict;
    enum verdict_kind kind;      /* of the verdict, from its outcome */
    cJSON *provenance;           /* NULL: there is none */
    cJSON *imported;             /* imported.json; NULL: an executed program */
    cJSON *amendments;           /* array of the amendments' files, in order */
    cJSON *instruments;          /* instruments.json; NULL: none, or none that can be read */
    const char *instruments_why; /* why that is NULL */
    struct report_trust trust;
    cJSON **results;     /* by task index; NULL: none linked, or not readable */
    size_t n_results;    /* that are there */
    const cJSON **gates; /* of verdict.json by measure * n_cells + cell; NULL: none */
    bool *row_fires;     /* [row], by verdict.json */
    struct curve_set curves;
    struct router_courses routers;
    struct report_acts acts;     /* of an executed program, as the next */
    struct report_losses losses; /* report_losses_read(): none before that */
};

/* Adopts instruments.json as it was just computed; NULL and a reason when it could not be. */
void report_model_set_instruments(struct report_model *m, cJSON *instruments, const char *why);

/* Needs grid.toml, grid.toml.lock and report/verdict.json; ERR_LOCK when the verdict is of another
 * root than the lock, or the lock does not hold. `m` is valid to release whatever happened. */
int report_model_read(struct report_model *m, const char *folder, struct err *err) MUST_CHECK;
void report_model_release(struct report_model *m);

/* Curves of one task, from the event files of its attempts up to the one whose result is linked. */
void curves_read_task(struct curve_set *set, struct arena *a, const char *task_folder, size_t cell,
                      size_t stage);
void curves_release(struct curve_set *set);

/* A linked result's metric, as the verdict reads it; texts are the model's. */
struct evidence_value report_metric(const struct report_model *m, size_t cell, size_t stage,
                                    const char *name);

/* What a worker says of a metric that has no value: its "why", and its "bound" (">4864") where
 * censored; NULL, NULL. */
struct metric_words {
    const char *why;
    const char *bound;
};
struct metric_words report_metric_words(const struct report_model *m, size_t cell, size_t stage,
                                        const char *name);

/* Its fact, as a number (NAN when there is none); *why, unless NULL, says why when the worker did.
 */
double report_fact(const struct report_model *m, size_t cell, size_t stage, const char *name,
                   const char **why);

/* The gate of (measure, cell) in verdict.json, or NULL. */
const cJSON *report_gate(const struct report_model *m, size_t measure, size_t cell);

/* Tasks that a person cancelled, stopped, gave up as lost or ended by narrower limits of [run], by
 * the verdict. */
size_t report_n_by_person(const struct report_model *m);

/* A cell by name; INDEX_NONE when unknown. Lists are in the order of the cells: the cell `near`
 * and the next are tried before all others. */
size_t report_cell_near(const struct report_model *m, size_t near, const char *name);

/* Members of JSON objects, for sections: NAN, NULL, an empty array's length 0 when absent or of
 * another type. */
double member_number(const cJSON *obj, const char *key);
const char *member_text(const cJSON *obj, const char *key);
const cJSON *member(const cJSON *obj, const char *key); /* obj may be NULL */
size_t member_count(const cJSON *obj, const char *key);

#endif
