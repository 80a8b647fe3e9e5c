/*
 * The samples files of one task (lm-evaluation-harness --log_samples): every line recomputed
 * (judge.h), then their sums compared with the results file: counts, means, standard errors,
 * perplexities, the hash over all hashes.
 *
 * Accepts the formats of all 0.4.x: JSON lines; before 0.4.3 one indented array; with or without
 * "filter" (0.4.7) and "metrics". Without "filter" the k-th line of a document belongs to the
 * task's k-th filter. Borrows the results; owns what it collects.
 */
#ifndef TRUTHTABLE_IMPORTED_SAMPLES_H
#define TRUTHTABLE_IMPORTED_SAMPLES_H

#include "base/strbuf.h"
#include "truthtable/imported/results.h"

#define SAMPLES_LINE_MAX    ((size_t)64 << 20)
#define SAMPLES_ARRAY_MAX   ((size_t)1 << 30)
#define SAMPLES_DOCS_MAX    ((int64_t)1 << 26)
#define SAMPLES_FILTERS_MAX 32

enum samples_sum {
    SUM_MEAN,
    SUM_PERPLEXITY, /* exp(-mean) */
    SUM_WEIGHTED,   /* exp(-sum / weights) */
    SUM_BITS,       /* -sum / weights / ln 2 */
    SUM_UNKNOWN,
};

struct samples_metric { /* of the results file, and what the lines say of it */
    const struct results_metric *of;
    enum samples_sum sum;
    double *xs;
    size_t n;
    size_t cap;
    double weights;
    size_t n_there;      /* lines that have the metric, */
    size_t n_not;        /* and that do not */
    size_t n_recomputed; /* lines whose value follows from their answers */
};

struct samples {
    const struct imported_results *results;
    const struct results_entry *task;
    struct samples_metric *metrics; /* one for each of the task's */
    const char *filters[SAMPLES_FILTERS_MAX];
    size_t n_filters;
    size_t n_docs[SAMPLES_FILTERS_MAX];
    uint32_t *seen; /* by doc_id: a bit a filter */
    size_t cap_seen;
    struct digest_stream hashes;
    bool all_hashes; /* every line had all three */
    size_t n_lines;
    struct digest digest; /* of the file */
    int64_t n_bytes;
};

int samples_init(struct samples *s, const struct imported_results *r,
                 const struct results_entry *task, struct err *err) MUST_CHECK;
void samples_release(struct samples *s);

/* The task's one file. Messages begin with the path and the line. */
int samples_read(struct samples *s, const char *path, struct err *err) MUST_CHECK;
/* One line; text is NULL where only the parsed value is at hand. */
int samples_line(struct samples *s, const cJSON *line, const char *text, size_t len,
                 struct err *err) MUST_CHECK;
/* After the last line: ERR_CORRUPT names the first figure that the lines do not give. */
int samples_compare(const struct samples *s, struct err *err) MUST_CHECK;

/* What was recomputed, in words: "acc, acc_norm from 1267 answers"; appends. */
void samples_describe(const struct samples *s, struct strbuf *out);

#endif
