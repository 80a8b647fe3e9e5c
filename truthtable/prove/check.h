/*
 * What `check` proves of a program before any data exist (docs/truth-table.md): totality of the
 * table, its partial states, which rows and outcomes can come about, what the floors and the design
 * can resolve, priors, what is held fixed, the plan.
 *
 * A report owns an arena and borrows the program; constant after check_run(). Pure: `describe` is
 * what the workers said before (prereg/task/describe.h), NULL under --no-run; the same inputs give
 * the same report.
 */
#ifndef TRUTHTABLE_PROVE_CHECK_H
#define TRUTHTABLE_PROVE_CHECK_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "prereg/program/program.h"

#define CHECK_LISTED_MAX 20 /* holes, clashes and indeterminate states that are spelled out */

struct table_proof {
    uint64_t n_combinations; /* of levels */
    uint64_t n_holes;        /* without a row */
    uint64_t n_clashes;      /* with more than one */
    bool states_counted;     /* false: too many to enumerate */
    uint64_t n_partial;      /* states in which some input has more than one possible level */
    uint64_t n_indeterminate;
    const char *indeterminate[CHECK_LISTED_MAX]; /* "magnitude decisive|small, cleared 1|0" */
    size_t n_listed;
};

enum reach { REACH_NOT_SHOWN, REACH_WITNESSED, REACH_IMPOSSIBLE };

struct row_proof {
    enum reach reach;
    bool alone;       /* witnessed by scores that fire no other row */
    uint64_t witness; /* number of the search's trial */
    size_t conflict;  /* REACH_IMPOSSIBLE: which; else INDEX_NONE */
};

/* Levels of a few inputs that no complete set of records makes possible together; without any one
 * of them the rest is not proved impossible. */
struct conflict {
    const size_t *levels; /* [table input]; INDEX_NONE: that input has no part in it */
};

struct outcome_proof {
    enum reach reach;
    bool binds;         /* witnessed by scores under which it binds */
    const char *scores; /* of that witness: "mmlu: dense 0.31, moe 0.26; ..."; NULL */
};

struct measure_proof {         /* NaN: not defined, not known */
    double floor_above_chance; /* in binomial standard errors */
    double detectable;    /* smallest difference of two arms at 80 % power, item sampling alone */
    size_t cells_per_arm; /* of the contrast `detectable` speaks of; 0: none */
};

enum fixed_column {
    FIXED_PARAMS_TOTAL,
    FIXED_PARAMS_ACTIVE,
    FIXED_ACTIVE_FFN,
    FIXED_TOKENS,
    FIXED_TOKENS_PER_TOTAL,
    FIXED_TOKENS_PER_ACTIVE,
    FIXED_TOKENS_PER_EXPERT,
    FIXED_FLOPS_PER_TOKEN,
    FIXED_STEPS,
    FIXED_PASSES,                   /* over the source that is passed over most */
    FIXED_UNIQUE_TOKENS_PER_EXPERT, /* a pass over the same data shows nothing new */
    FIXED_NR
};

struct fixed_row { /* one per condition; NaN: unknown */
    double values[FIXED_NR];
};

struct fixed_words { /* which columns are equal, "tokens, P_active (within 0.095 %)", and which are
                        not; "" for none */
    const char *equal;
    const char *differ;
    const char *unknown;
};

struct fixed_difference { /* of a column, over all contrasts */
    bool differs;         /* between the arms of some contrast */
    bool unknown;         /* for the arms of some contrast */
    size_t contrast;      /* where it differs most */
    double ratio;         /* of the larger to the smaller value there; infinite: one is 0 or less */
};

struct confound_proof { /* of a column, where the program has [scope] */
    bool declared;
    bool undeclared; /* it differs, and [scope] does not say so */
    bool idle;       /* declared, but equal between the arms of every contrast */
};

struct plan_proof { /* NaN: unknown */
    size_t n_cells;
    size_t n_tasks;
    size_t n_other_names; /* tasks that accept the result of another ([[same_work]]) */
    size_t n_reused;      /* tasks whose result is of an earlier receipt ([reuse]) */
    double flops;
    double disk_bytes;
    double seconds; /* of all tasks, one after another */
};

struct check_report {
    struct arena arena;
    const struct plan_program *program;
    struct table_proof table;
    struct row_proof *rows;     /* [row] */
    struct conflict *conflicts; /* what the impossible rows run against */
    size_t n_conflicts;
    uint64_t n_proofs; /* attempts at a contradiction */
    bool proofs_ended; /* at their limit: rows without a witness may be impossible, too */
    struct outcome_proof *outcomes; /* [outcome] */
    const char **uncovered;         /* [input]: scores under which none of its levels holds; NULL */
    uint64_t n_trials;
    struct measure_proof *measures; /* [measure] */
    double prior_sum;
    double prior_remainder;
    struct fixed_row *fixed;        /* [condition] */
    struct fixed_words fixed_words; /* over all conditions */
    struct fixed_words
        *fixed_contrasts; /* [contrast]: between its arms; all NULL for a difference */
    struct fixed_difference differences[FIXED_NR];
    struct confound_proof confounds[FIXED_NR];
    struct plan_proof plan;
};

/* Adds what it finds to diag: conditions that do not compile, holes, clashes and impossible
 * outcomes are errors, impossible rows notes; so are inputs that some scores leave without a level,
 * and stages and [data] that nothing reads; outcomes that none bind are warnings. ERR_INVALID when
 * conditions do not compile (out is then empty but releasable); errors about the table leave a full
 * report and return 0: ask diag. */
int check_run(const struct plan_program *p, const cJSON *describe, struct check_report *out,
              struct diag *diag, struct err *err) MUST_CHECK;
void check_release(struct check_report *r);
/* What the plan costs, into out->plan: check_run() takes everything to run, and this leaves out
 * what `reuse` pins (prereg/reuse/reuse.h; NULL: nothing). */
void check_plan(struct check_report *r, const cJSON *describe, const cJSON *reuse);

/* Adds the errors of each condition alone, for a program whose other parts have errors; what
 * conditions name must have none, and `forecasts` says whether that holds of theirs. Conditions
 * without a text are left out: their place has an error already. */
void check_conditions(const struct plan_program *p, bool forecasts, struct diag *diag);
/* Adds the holes and clashes of the table, likewise; inputs, outcomes and rows must have no errors.
 */
void check_table_alone(const struct plan_program *p, struct diag *diag);

/* Adds an error for each factor whose levels make the same tasks; nothing when conditions do not
 * compile. Apart from check_run(), for it is about what runs: not about imported records, but about
 * an amendment, which may change the parameters that take a factor. */
void check_factors(const struct plan_program *p, struct diag *diag);
/* Holds [[same_work]] against what the tasks ask and what the workers say that it comes to;
 * describe NULL: none was asked. Errors for what is not one work and for conditions that can never
 * be known, a note for what could be declared. */
void check_same_work(const struct plan_program *p, const cJSON *describe, struct diag *diag);
/* Whether every other name of a work asks the same as the work, by what the plan writes and, unless
 * describe is NULL, what the workers say that it comes to. If not, appends to `other` which
 * parameter of which stage differs where first. */
bool same_work_is_shown(const struct plan_program *p, const cJSON *describe, struct strbuf *other);

/* Warns of floors that guessing may clear, and of a chance that contradicts what the workers
 * describe (the fact `chance`); describe may be NULL. */
void check_floors(const struct plan_program *p, const cJSON *describe, struct diag *diag);

/* The whole report; the caller frees it. Also the lock's "proof". */
cJSON *check_json(const struct check_report *r) __attribute__((returns_nonnull));

/* As tables show it ("tokens/P_total"), and as [scope] names it ("tokens_per_total"). */
const char *fixed_column_name(enum fixed_column c);
const char *fixed_column_key(enum fixed_column c);

/* Only what is held fixed, for a plan as locked or amended: the member "fixed" of check_json(). The
 * caller deletes it; NULL when conditions do not compile. */
cJSON *check_fixed_json(const struct plan_program *p, const cJSON *describe,
                        struct err *err) MUST_CHECK;

#endif
