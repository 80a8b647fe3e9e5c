/*
 * A reading: the values that gates, contrasts and conditions use, one score per (measure, cell) and
 * one value per (fact, cell). Read off evidence, or made up by the witness search; the evaluation
 * cannot tell which.
 */
#ifndef TRUTHTABLE_EVIDENCE_MEASURE_SCORES_H
#define TRUTHTABLE_EVIDENCE_MEASURE_SCORES_H

#include "base/arena.h"
#include "truthtable/condition/decision_rules.h"
#include "truthtable/condition/number.h"
#include "truthtable/evidence/evidence.h"
#include "truthtable/evidence/task_coverage.h"

struct score {
    struct number value;
    int64_t n;
    bool has_n;
    bool n_from_items; /* the record had none: the plan's `items` */
    bool excluded;     /* left out with its partner; value is unknown */
    const char *copy;  /* the same result as another cell's (copies.c): which; NULL: it is not */
    size_t copied;     /* of a copy: that cell, an earlier one; it may be a copy itself */
};

struct table_reading {
    struct score *scores;      /* [measure * n_cells + cell] */
    struct number *facts;      /* [fact * n_cells + cell] */
    const bool *fact_excluded; /* likewise */
    size_t n_copies;           /* scores that are copies */
};

/* A record as the score of a measure: unknown, with its reason, where it is out of support or its n
 * is not the plan's. `imported`: a record without n rests on the plan's `items`. */
struct score score_read(const struct plan_measure *m, const struct evidence_value *v, bool imported,
                        struct arena *arena);

/* Lives in the arena. Values of tasks that are not done do not count. */
void reading_of_evidence(struct table_reading *r, const struct evidence *e,
                         const struct rules *rules, const struct coverage *coverage,
                         struct arena *arena);

/* Finds scores that are copies of one another; the last step of reading_of_evidence(). */
void mark_copies(struct table_reading *r, const struct evidence *e, struct arena *arena);

#endif
