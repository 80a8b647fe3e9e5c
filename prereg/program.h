/*
 * A program: everything that can influence the answer, as plain data (program.md).
 *
 * Owned by one arena inside; built by program_load(), freed by program_free(); constant in between,
 * so pointers into it stay good. Indices refer to the arrays of this struct, in the order of the
 * file. Condition texts are kept as written, with their place; truthtable/ compiles them.
 *
 * Invariants after a successful load: names are unique; every index is in range; every cell is the
 * mixed-radix expansion of the factors (first factor slowest); stages form an acyclic order and
 * stand in a topological order of `after`; exactly one counter binds when there is any; `canonical`
 * is the RFC 8785 text of all covered values.
 */
#ifndef PREREG_PROGRAM_H
#define PREREG_PROGRAM_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/strbuf.h"

#define PROGRAM_CELLS_MAX                                                                          \
    ((size_t)100000) /* more is an error: 10^6 cells is a slip, not a plan                         \
                      */
#define INDEX_NONE SIZE_MAX

struct place { /* where in grid.toml; line 0: unknown */
    unsigned line;
    unsigned column;
};

struct level {
    const char *text;   /* as it stands in cell names: "moe", "0.002", "42" */
    const cJSON *value; /* string, number or bool */
};

struct factor {
    const char *name;
    struct level *levels;
    size_t n_levels;
    bool replicate;
    struct place place;
};

struct data_input { /* [data]: a pinned file or folder */
    const char *name;
    const char *path;     /* as written */
    const char *abs_path; /* resolved against the file's folder */
    struct place place;
};

struct stage_run {          /* [run] and [run.STAGE]: not locked */
    int64_t memory_bytes;   /* 0: unset */
    int64_t crashes;        /* crash budget (default 3) */
    int64_t attempts;       /* all attempts (default 50) */
    int64_t deadline_ms[4]; /* by enum section of docs/interfaces.md: setup, step, checkpoint, eval;
                               0: measured */
    int64_t checkpoint_ms;  /* 0: "auto" (Daly) */
};

struct run_settings {     /* program-wide part of [run] */
    const char *executor; /* "local" */
    const char *work;     /* folder for cells/, or NULL */
    int64_t slots;        /* 0: by cores and memory */
    const cJSON *covered; /* the whole [run] table as JSON: journalled, printed, never locked */
};

struct stage {
    const char *name;
    size_t *after; /* stage indices */
    size_t n_after;
    const char **command; /* argv as written; command[0] is the worker */
    size_t n_command;
    int64_t threads;
    const cJSON *params; /* object, before `when` and $factor */
    const cJSON *when;   /* object factor -> level text -> params, or NULL */
    const cJSON *env;    /* object name -> string, or NULL */
    bool sealed;         /* a counted measure reads its metrics */
    bool counted;        /* sealed, or a counted stage waits for it */
    struct stage_run run;
    struct place place;
};

struct measure {
    const char *name;
    const char *metric_text; /* "mmlu.acc" */
    size_t stage;
    const char *metric; /* "acc", "exact_match:strict" */
    bool has_items;
    int64_t items;
    bool has_chance;
    double chance;
    bool has_floor;
    double floor;
    const char *floor_text; /* the literal as a shortest decimal, for exact rational comparison */
    bool has_best_arm;
    double best_arm;
    const char *best_arm_text;
    bool counted;      /* default true */
    bool lower_better; /* better = "lower" */
    struct place place;
};

struct setting { /* a factor pinned to a level */
    size_t factor;
    size_t level;
};

enum contrast_over { OVER_COUNTED, OVER_CLEARED };

struct contrast {
    const char *name;
    bool is_difference; /* of - minus */
    size_t factor;      /* between: a - b */
    size_t level_a;
    size_t level_b;
    struct setting *where;
    size_t n_where;
    enum contrast_over over; /* default OVER_COUNTED */
    size_t of;               /* contrast indices; only of is_difference */
    size_t minus;
    struct place place;
};

enum counter_clears { CLEARS_EVERY_CELL, CLEARS_ARM_MEANS };

struct counter {
    const char *name;
    size_t contrast;
    enum counter_clears clears;
    bool binds;
    struct place place;
};

struct cond_text {
    const char *text;
    struct place place;
};

struct input_level {
    const char *name;
    struct cond_text condition; /* "otherwise" included */
};

struct input {
    const char *name;
    struct input_level *levels;
    size_t n_levels;
    struct place place;
};

struct table_row {
    size_t *levels; /* n_table_inputs level indices, one per table input */
    size_t outcome;
    struct place place;
};

struct outcome {
    const char *name;
    const char *title;
    double prior;
    struct place place;
};

enum on_fail { ON_FAIL_FLAG, ON_FAIL_VOID };

struct validity {
    const char *name;
    struct cond_text condition;
    enum on_fail on_fail;
    bool timing; /* rests on timings: goes to provenance.json, never to verdict.json */
};

struct forecast {
    const char *name;
    struct cond_text condition;
    double confidence;
};

struct instrument { /* validated here, computed in truthtable/instruments */
    const char *name;
    const char *kind; /* bayes, mixed, connector, ... */
    const cJSON *spec;
};

struct apparatus {
    const char *name;
    size_t stage;
    const char *model;
    const char *metric_text;
    double value;
    double within;
    struct place place;
};

struct cell {
    size_t index;
    size_t *levels; /* one level index per factor */
    const char
        *name; /* "arch=moe,lr=0.002,seed=43", also its folder's name (escaped when needed) */
    const char *folder;
    size_t condition; /* index of its condition */
};

struct condition {  /* a cell without its replicates */
    size_t *levels; /* per factor; INDEX_NONE for replicates */
    const char *name;
    size_t first_cell;
};

struct program {
    struct arena arena;
    cJSON *empty_object; /* the params of stages without any */
    cJSON *tree;         /* the whole file as JSON; owns what the const cJSON * above point to */
    const char *path;
    const char *folder; /* absolute folder of grid.toml */

    const char *name;
    const char *question;
    const char *supersedes; /* or NULL */
    int64_t schema;

    struct factor *factors;
    size_t n_factors;
    struct data_input *data;
    size_t n_data;
    struct stage *stages;
    size_t n_stages;
    struct measure *measures;
    size_t n_measures;
    struct contrast *contrasts;
    size_t n_contrasts;
    struct counter *counters;
    size_t n_counters;
    size_t binding_counter; /* or INDEX_NONE */
    struct input *inputs;
    size_t n_inputs;
    size_t *table_inputs; /* input indices, in the table's order */
    size_t n_table_inputs;
    struct table_row *rows;
    size_t n_rows;
    struct place table_place;
    struct outcome *outcomes;
    size_t n_outcomes;
    double exclusion_budget;
    bool excluded_fails; /* [exclusion] every_cell = "fails"; default unknown */
    struct validity *validity;
    size_t n_validity;
    struct instrument *instruments;
    size_t n_instruments;
    struct forecast *forecasts;
    size_t n_forecasts;
    struct apparatus *apparatus;
    size_t n_apparatus;
    const char **pin_files;
    size_t n_pin_files;
    bool pin_workers_record; /* [pin] workers = "record" */
    bool sign_required;
    struct run_settings run;

    struct cell *cells;
    size_t n_cells;
    const struct cell **cells_by_name; /* sorted; for program_find_cell() */
    struct condition *conditions;
    size_t n_conditions;
};

/* Reads, validates and expands. All diagnostics go to `diag` (errors, warnings); on any error
 * returns ERR_INVALID (ERR_NOT_FOUND, ERR_IO when the file cannot be read) and *out is NULL. */
int program_load(const char *path, struct program **out, struct diag *diag,
                 struct err *err) MUST_CHECK;
/* The same from the text of a file: `path` is used for messages and relative paths only. */
int program_parse(const char *text, size_t len, const char *path, struct program **out,
                  struct diag *diag, struct err *err) MUST_CHECK;
/* program_load() with relative paths taken from `folder` (NULL: the file's own): for a copy of a
 * grid.toml that has moved, as under STATE/programs. */
int program_load_from(const char *path, const char *folder, struct program **out, struct diag *diag,
                      struct err *err) MUST_CHECK;
void program_free(struct program *p); /* NULL is fine */

/* Loading looks at no other file. This does: every [data], [pin] file, apparatus model and worker
 * must be there and of a kind that can be pinned; errors with their places. */
void program_check_files(const struct program *p, struct diag *diag);

/* n_cells * n_stages; task index = cell * n_stages + stage. */
size_t program_n_tasks(const struct program *p);
/* True when the stage feeds a counted measure, or a stage that does comes after it. */
bool program_stage_is_counted(const struct program *p, size_t stage);
/* True when some counted measure reads this stage's metric: its results are sealed (invariant 8).
 */
bool program_stage_is_sealed(const struct program *p, size_t stage);

size_t program_find_stage(const struct program *p,
                          const char *name); /* INDEX_NONE when unknown; so all below */
size_t program_find_measure(const struct program *p, const char *name);
size_t program_find_factor(const struct program *p, const char *name);
size_t program_find_contrast(const struct program *p, const char *name);
size_t program_find_counter(const struct program *p, const char *name);
size_t program_find_outcome(const struct program *p, const char *name);
size_t program_find_cell(const struct program *p, const char *name);
size_t program_find_level(const struct factor *f, const char *text);

/* The params object of a task: stage params, then each factor's `when` override merged (member by
 * member at the top level), then "$factor" strings replaced by the level's value, at any depth. The
 * caller frees it. */
cJSON *program_task_params(const struct program *p, size_t stage, size_t cell);

/* Every covered value as one object ("plan" of the lock): the file's sections but [run], as
 * written, and "order": the names of each section whose order shows in the report. The caller
 * deletes it. */
cJSON *program_covered(const struct program *p);
/* Appends its RFC 8785 text. */
int program_canonical(const struct program *p, struct strbuf *out, struct err *err) MUST_CHECK;

#endif
