/* One measure in one cell, as the verdict has it, and what its cells say together. */
#ifndef TRUTHTABLE_REPORT_MEASURE_VALUES_H
#define TRUTHTABLE_REPORT_MEASURE_VALUES_H

#include "truthtable/report/report_model.h"

struct measure_reading {
    double score; /* NAN: open or excluded */
    double n;     /* items; NAN: unknown */
    double se;    /* the record's own, else binomial; NAN: unknown */
    double z;     /* margin to the floor; NAN: none */
    bool has_gate;
    bool is_known; /* whether `cleared` says anything */
    bool cleared;
    bool excluded;
    const char *why;   /* open: the reason, or NULL */
    const char *bound; /* censored: "> 4864", or NULL */
    double bound_at;
    bool bound_above; /* the value is above the bound */
};

struct measure_tally {
    size_t n_cleared;
    size_t n_failed;
    size_t n_open;
    size_t n_scores;  /* that can be read */
    size_t best_cell; /* by the measure's own direction; INDEX_NONE */
    double best;
    double nearest; /* the margin of the smallest size */
};

/* Reads one cell; the tally is over all cells of the measure. */
struct measure_reading measure_read(struct arena *a, const struct report_model *m, size_t measure,
                                    size_t cell);
struct measure_tally measure_count(struct arena *a, const struct report_model *m, size_t measure);

/* A score as the tables print it. */
const char *measure_score_text(struct arena *a, const struct plan_measure *measure, double v);
/* "3 of 12, 1 open" */
const char *measure_clearing_text(struct arena *a, const struct plan_measure *measure,
                                  const struct measure_tally *t);
/* The reasons for what is open, each with the number of its cells; "" when nothing is. */
const char *measure_open_reasons(struct arena *a, const struct report_model *m, size_t measure);

#endif
