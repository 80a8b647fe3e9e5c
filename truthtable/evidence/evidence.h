/*
 * Evidence: what the cells have yielded, as the truth table sees it. One record slot per (cell,
 * stage, metric), one fact slot per (cell, stage, fact), one end per task. Built from the store,
 * from cell folders or from records.json; the engine cannot tell which.
 *
 * Owned by an arena inside. Every value is in exactly one state, so that a missing, NaN, doubled or
 * out-of-support value can never pass for a number (invariant 5).
 */
#ifndef TRUTHTABLE_EVIDENCE_EVIDENCE_H
#define TRUTHTABLE_EVIDENCE_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "prereg/program/program.h"

enum value_state {
    VALUE_MISSING,  /* nothing was recorded */
    VALUE_KNOWN,    /* finite number */
    VALUE_NULL,     /* recorded as undetermined; `why` says why */
    VALUE_CENSORED, /* a bound: value > bound or value < bound */
    VALUE_DOUBLED,  /* recorded more than once: undetermined */
};

struct evidence_value {
    enum value_state state;
    bool has_n;
    bool has_se;
    bool bound_above; /* CENSORED: true: value > bound; false: value < bound */
    double value;     /* KNOWN */
    int64_t n;        /* items behind the value */
    double se;
    double bound;
    const char *why; /* NULL, DOUBLED, CENSORED; or NULL */
};

enum task_end {
    TASK_END_PENDING,
    TASK_END_DONE,
    TASK_END_BLOCKED,
    TASK_END_NEVER_RUN,
};

struct evidence_task {
    enum task_end end;
    const char
        *cause; /* of the closed list in prereg/task/task_cause.h; NULL when done or pending */
    const char *narrower; /* limits of [run] that it had and others of its stage did not: it was
                             lost by a person's choice; else NULL */
    bool reused;          /* its result was taken from an earlier receipt */
    uint64_t print;       /* of the metrics and artifacts of its result; 0: it has no artifact */
};

struct evidence_check {
    enum task_end end; /* pending also where nothing is known of it */
    const char *cause;
};

struct evidence {
    struct arena arena;
    const struct plan_program *program;
    struct evidence_check *checks; /* as the program's `apparatus` */
    struct evidence_task *tasks;   /* program_n_tasks() of them */
    const char *label; /* of imported records ("reconstructed"); NULL for an executed program */
    const char *reused_root;      /* of that receipt; NULL: nothing was reused */
    struct evidence_index *index; /* private, as is what follows */
    size_t last_cell;             /* records of one cell are mostly adjacent */
    const char *last_narrower;
};

void evidence_init(struct evidence *e,
                   const struct plan_program *p); /* all tasks pending, all values missing */
void evidence_release(struct evidence *e);

void evidence_set_task(struct evidence *e, size_t cell, size_t stage, enum task_end end,
                       const char *cause);
/* Of the program's apparatus check `i`. */
void evidence_set_check(struct evidence *e, size_t i, enum task_end end, const char *cause);
/* The second run of a check that makes the comparison void: the first one held, and it did not, or
 * was not made although there was something to guard; INDEX_NONE: none. */
size_t evidence_failed_check(const struct evidence *e);
/* For a task whose end is set. */
void evidence_set_narrower(struct evidence *e, size_t cell, size_t stage, const char *limits);
/* A second value for one name makes it VALUE_DOUBLED. NaN and infinity become VALUE_NULL, why "not
 * finite". */
void evidence_add_metric(struct evidence *e, size_t cell, size_t stage, const char *metric,
                         const struct evidence_value *v);
void evidence_add_fact(struct evidence *e, size_t cell, size_t stage, const char *fact,
                       const struct evidence_value *v);
/* Never NULL: a missing one points to a value of state VALUE_MISSING. */
const struct evidence_value *evidence_metric(const struct evidence *e, size_t cell, size_t stage,
                                             const char *metric);
const struct evidence_value *evidence_fact(const struct evidence *e, size_t cell, size_t stage,
                                           const char *fact);

/* A number, null, or {"value","n","se","why","bound"}; VALUE_MISSING for NULL. Texts are borrowed.
 */
struct evidence_value evidence_value_of(const cJSON *json);

/* Values count only for tasks whose end is TASK_END_DONE: an aborted attempt yields nothing. The
 * caller sets ends.
 *
 * Adds the metrics and facts of one worker's result.json (already parsed; worker-protocol.md) to a
 * task. Malformed members become VALUE_NULL with a reason; ERR_PROTOCOL only when the object is not
 * a result at all. */
int evidence_add_result(struct evidence *e, size_t cell, size_t stage, const cJSON *result,
                        struct err *err) MUST_CHECK;

/* records.json:
 * {"schema":1,"program":NAME,"label":"reconstructed","records":[{"cell":NAME,"stage":NAME,
 *  "end":"done|blocked|never_run","cause":…,"narrower":…,"metrics":{NAME:{"value","n","se"}|number},"facts":{…}}]}
 */
int evidence_read_records(struct evidence *e, const cJSON *records, struct err *err) MUST_CHECK;
/* The same from a file of at most max_bytes, record by record; NaN and Infinity, which Python
 * writes, are values without a number. Messages name the file, line and column. */
int evidence_read_file(struct evidence *e, const char *path, size_t max_bytes,
                       struct err *err) MUST_CHECK;
int evidence_read_text(struct evidence *e, const char *text, size_t len,
                       struct err *err) MUST_CHECK;

/* What readers of records.json share; private to them. */

/* Checks schema and program of the object that holds the records; *label is borrowed. */
int evidence_check_head(const struct evidence *e, const cJSON *head, const char **label,
                        struct err *err) MUST_CHECK;
/* One element of "records". */
int evidence_add_record(struct evidence *e, const cJSON *record, struct err *err) MUST_CHECK;

/*
 * The evidence of a program's whole folder (STATE/programs/<id>): of an executed program the
 * results that the daemon linked, with the ends of the other tasks from provenance.json; of an
 * imported one its records.json.
 */

/* Fills e, which was initialised. provenance: the parsed provenance.json, NULL without one: then
 * tasks without a result stay pending. */
int folder_evidence(struct evidence *e, const char *folder, const cJSON *provenance,
                    struct err *err) MUST_CHECK;

#endif
