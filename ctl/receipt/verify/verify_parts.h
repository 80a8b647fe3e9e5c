/* The steps of a verification, and what they hand to each other; private to verify. Each step
 * returns 0 or a fault's code. */
#ifndef CTL_RECEIPT_VERIFY_VERIFY_PARTS_H
#define CTL_RECEIPT_VERIFY_VERIFY_PARTS_H

#include "base/arena.h"
#include "base/files/temp_folder.h"
#include "ctl/receipt/parts.h"
#include "ctl/receipt/verify/verify.h"
#include "prereg/reuse/reuse.h"
#include "truthtable/instruments/recount.h"

/* What a result reports about where it was made, to be compared with provenance.json. */
struct place_of_result {
    const char *blas; /* NULL: it does not say */
    const char *instructions;
    int64_t threads; /* -1 likewise */
    int64_t arithmetic;
};

/* What the accepted results of one cell state as their artifacts. */
struct cell_artifacts {
    size_t cell;
    cJSON **of; /* per stage: {"artifacts":[...]}; NULL: it has no result */
    size_t n_stages;
    size_t n_named; /* results of the program so far that name what they read */
};

/* Results that later tasks are another name of. */
struct kept_works {
    cJSON **of;        /* per task; NULL: none is kept */
    size_t *last_name; /* per work: the last task that is a name of it */
    const char
        *rests_on; /* which parameter of a name differs from the work's, in words, so that only
                      its worker can say that they come to the same; in the arena; or NULL */
};

/* The receipt that results are reused from. */
struct reused_results {
    struct temp_folder temp; /* where it was extracted; its path is NULL where there is none */
    struct reuse_source source;
    struct reuse_pin *pins; /* per task; NULL: nothing is reused */
    int (*verify)(const struct verify_spec *spec, struct verify_answer *out); /* a whole receipt */
};

/* The metrics of a stage on which the verdict rests: those of counted measures. */
struct binding_metrics {
    const char **names; /* borrowed from the plan */
    size_t n;
};

/* The items of a receipt that has them, and what was counted again from them. */
struct receipt_items {
    bool present;                    /* the receipt has some, and so must have all */
    struct digest *said;             /* per task: those that its result names */
    bool *named;                     /* per task: whether it names some */
    bool *used;                      /* per file of the listing */
    struct binding_metrics *binding; /* per stage */
    int64_t bytes;                   /* of the items of all results so far */
    size_t n_results;                /* whose scores were counted again */
    size_t n_without;                /* results with scores that name no items */
    struct recount count;            /* over all of them */
    size_t n_uncounted;              /* scores of counted measures that were not counted again */
    struct strbuf uncounted;         /* the first: CELL/STAGE.METRIC */
    bool same_instruments;
    const char *not_computed; /* why the instruments were not computed again; in the arena */
};

/* The state of a verification: what the steps so far have read and established. Owned here
 * unless said. */
struct verifying {
    const struct verify_spec *spec;
    struct verify_answer *out;
    struct err *err;
    struct arena arena;
    struct receipt_files files;
    struct plan_program *program;
    struct lock *lock;
    bool imported;
    struct history history;
    struct place_of_result *places; /* per task */
    struct cell_artifacts artifacts;
    struct receipt_items items;
    struct kept_works works;
    struct reused_results reused;
    struct plan_program *judged; /* with which the verdict was computed; NULL: that is `program` */
    bool has_evidence;
    struct evidence evidence;
    struct table_verdict verdict;
    cJSON *provenance;  /* in the arena */
    cJSON *established; /* of the answer */
    cJSON *reruns;      /* likewise, as the next */
    cJSON *claimed;
    cJSON *signatures; /* over SHA256SUMS: {"key","principal","role","allowed"} */
    char tool[40];     /* the version that made the receipt */
    bool is_signed;    /* the lock and all amendments, by allowed keys */
    bool is_vouched;   /* SHA256SUMS, and so the records, by one of them */
    bool is_stamped;
    bool lacks_again;   /* an apparatus check was not run again: an earlier version */
    bool other_workers; /* than the lock's, as [pin] workers = "record" allows */
};

struct receipt verifying_receipt(const struct verifying *v);
/* Adds a sentence to what is established, cut after 600 bytes; the second form cuts nothing. */
void verifying_says(struct verifying *v, const char *fmt, ...) PRINTF_LIKE(2, 3);
void verifying_says_whole(struct verifying *v, const char *text);
/* Adds to a fault which version made the receipt and which computed a member here. */
void verifying_versions(struct verifying *v);

int verify_lock(struct verifying *v) MUST_CHECK;    /* lock, amendments, plan */
int verify_amended(struct verifying *v) MUST_CHECK; /* the journal's word on amendments */
int verify_records(struct verifying *v) MUST_CHECK; /* fills judged, evidence */
/* Checks that what a task's result reports to have read of earlier stages is an artifact of their
 * accepted results (of prereg-eval: the one that its params name), and that the data are the locked
 * ones. Results come in the order of the tasks. */
int verify_inputs(struct verifying *v, size_t task, const cJSON *result) MUST_CHECK;
void verify_inputs_release(struct verifying *v);

/* Counts the scores of a task's result again from its items, if the receipt has items. */
int verify_items(struct verifying *v, size_t task, const cJSON *result) MUST_CHECK;
/* After the last result: no items file is left over. */
int verify_items_end(struct verifying *v) MUST_CHECK;
void verify_items_release(struct verifying *v);
/* Computes instruments.json again, if the receipt has items; after provenance.json was read. */
int verify_instruments(struct verifying *v) MUST_CHECK;
/* The member "items" of the answer. */
cJSON *verify_items_json(const struct verifying *v);
/* What the scores rest on, once every step succeeded. */
enum verify_basis verify_items_basis(const struct verifying *v);

/* Checks that the result of another name of a work is that of the work. Likewise in order. */
int verify_same_work(struct verifying *v, size_t task, const cJSON *result) MUST_CHECK;
void verify_same_work_release(struct verifying *v);
/* Verifies the receipt that results are reused from, and computes again what the lock pins of it.
 */
int verify_reuse(struct verifying *v) MUST_CHECK;
/* Sets the result that a reused task must have; NULL: it is not reused. The caller deletes it. */
int verify_reused_result(struct verifying *v, size_t task, cJSON **out) MUST_CHECK;
/* The member "reused" of the answer. */
cJSON *verify_reused_json(const struct verifying *v);
void verify_reuse_release(struct verifying *v);
/* Checks that the plan's other names of works ask the same as the works. */
int verify_works(struct verifying *v) MUST_CHECK;
int verify_verdict(struct verifying *v) MUST_CHECK;    /* and coverage */
int verify_provenance(struct verifying *v) MUST_CHECK; /* and environment, apparatus, instruments */
int verify_reruns(struct verifying *v) MUST_CHECK;     /* rerun files, and what they claim */
int verify_apparatus(struct verifying *v) MUST_CHECK;
/* Checks every result of a check against the journal and the plan that asked for it, and whether
 * the amendments state what was known when they were made. */
int verify_check_results(struct verifying *v) MUST_CHECK;
/* The second runs: each ended before the verdict, its first score is that of the first run, and it
 * is missing only from a receipt of a version that made none. */
int verify_again(struct verifying *v) MUST_CHECK;
/* Whether neither the journal nor provenance.json knows of a second run, as of earlier versions. */
bool verify_lacks_again(const struct verifying *v, const char *name);
/* Whether the score bears out that it holds, or that it does not, under the plan's tolerances, up
 * to rounding. `first` is NaN except for a second run. */
bool verify_bears_out(const struct plan_apparatus *a, double value, double first, bool holds);
int verify_signatures(struct verifying *v) MUST_CHECK; /* lock, amendments, reviewers */
int verify_timestamp(struct verifying *v) MUST_CHECK;

/* The member "release" of the answer, after the signatures: what the plan requires, and whether it
 * is there. */
cJSON *verify_release(struct verifying *v);

/* Checks that an attempt at a stage ran what the lock pins; a fault begins with `at`. */
int verify_worker(struct verifying *v, const char *at, size_t stage,
                  const cJSON *attempt) MUST_CHECK;

/* Fills the members of the answer that are words: the sentence and what is not shown; both are
 * empty for a receipt that does not follow. */
void verify_words(struct verifying *v, bool holds);

#endif
