/*
 * A program: everything that can influence the answer, as plain data (docs/program-format.md).
 *
 * Owned by one arena inside; built by program_load() (prereg/load/), freed by program_free();
 * constant in between, so pointers into it stay good. Indices refer to the arrays of this struct,
 * in the order of the file. Condition texts are kept as written, with their place; truthtable/
 * compiles them.
 *
 * Invariants after a successful load: names are unique; every index is in range; every cell is the
 * mixed-radix expansion of the factors (first factor slowest); stages are in a topological order of
 * `after`; exactly one counter binds when there is any.
 */
#ifndef PREREG_PROGRAM_PROGRAM_H
#define PREREG_PROGRAM_PROGRAM_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/files/digest.h"
#include "base/strbuf.h"
#include "prereg/program/analysis.h"
#include "prereg/program/design.h"
#include "prereg/program/release.h"

struct plan_program {
    struct arena arena;
    cJSON *empty_object; /* the params of stages without any */
    cJSON *tree;         /* the whole file as JSON; owns what the const cJSON * above point to */
    const char *path;
    const char *folder; /* absolute folder of grid.toml */

    const char *name;
    const char *question;
    const char *supersedes; /* or NULL */
    int64_t schema;

    struct plan_factor *factors;
    size_t n_factors;
    struct data_input *data;
    size_t n_data;
    struct plan_stage *stages;
    size_t n_stages;
    struct plan_measure *measures;
    size_t n_measures;
    struct plan_contrast *contrasts;
    size_t n_contrasts;
    struct counter *counters;
    size_t n_counters;
    size_t binding_counter; /* or INDEX_NONE */
    struct plan_input *inputs;
    size_t n_inputs;
    size_t *table_inputs; /* input indices, in the table's order */
    size_t n_table_inputs;
    struct plan_row *rows;
    size_t n_rows;
    struct place table_place;
    struct plan_outcome *outcomes;
    size_t n_outcomes;
    double exclusion_budget;
    bool excluded_fails; /* [exclusion] every_cell = "fails"; default unknown */
    struct plan_validity *validity;
    size_t n_validity;
    struct plan_instrument *instruments;
    size_t n_instruments;
    struct plan_forecast *forecasts;
    size_t n_forecasts;
    struct plan_scope scope;
    struct plan_same_work *same_work;
    size_t n_same_work;
    struct plan_reuse reuse;
    struct plan_apparatus *apparatus;
    size_t n_apparatus;
    const char **pin_files;
    size_t n_pin_files;
    bool pin_workers_record; /* [pin] workers = "record" */
    const char *pin_gpu;     /* [pin] gpu: the model that attempts with GPUs run on; or NULL */
    struct place pin_gpu_place;
    bool sign_required;
    struct plan_release release;
    struct run_settings run;

    struct plan_cell *cells;
    size_t n_cells;
    const struct plan_cell **cells_by_name; /* sorted; for program_find_cell() */
    struct plan_condition *conditions;
    size_t n_conditions;
    uint32_t *workers; /* per task: which one does its work (same_work.h); NULL: each its own */
};

/* Frees what program_load() made; NULL is fine. */
void program_free(struct plan_program *p);

/* Loading opens no other file. This does: every [data], [pin] file, apparatus model and worker
 * must be there and of a kind that can be pinned; errors with their places. */
void program_check_files(const struct plan_program *p, struct diag *diag);

/* n_cells * n_stages; task index = cell * n_stages + stage. */
size_t program_n_tasks(const struct plan_program *p);
/* True when the stage feeds a counted measure, or a stage that does comes after it. */
bool program_stage_is_counted(const struct plan_program *p, size_t stage);
/* True when some counted measure reads this stage's metric: its results are sealed (invariant 8
 * of docs/invariants.md). */
bool program_stage_is_sealed(const struct plan_program *p, size_t stage);

/* True when a counted measure or an input of the table reads the stage's metrics or facts: its
 * tasks are what the exclusion budget is a share of. */
bool program_stage_is_budgeted(const struct plan_program *p, size_t stage);
/* True when the stage is budgeted or comes before one that is: a mechanical loss of its task
 * excludes figures, within the budget. */
bool program_stage_is_excludable(const struct plan_program *p, size_t stage);

size_t program_find_stage(const struct plan_program *p,
                          const char *name); /* INDEX_NONE when unknown; so all below */
size_t program_find_measure(const struct plan_program *p, const char *name);
size_t program_find_factor(const struct plan_program *p, const char *name);
size_t program_find_contrast(const struct plan_program *p, const char *name);
size_t program_find_outcome(const struct plan_program *p, const char *name);
size_t program_find_apparatus(const struct plan_program *p, const char *name);
size_t program_find_cell(const struct plan_program *p, const char *name);
size_t program_find_level(const struct plan_factor *f, const char *text);

/* The params object of a task: stage params, then each factor's `when` override merged (member by
 * member at the top level), then "$factor" strings replaced by the level's value, at any depth. The
 * caller frees it. */
cJSON *program_task_params(const struct plan_program *p, size_t stage, size_t cell);

/* Where the parameter (a dotted path, "mix.stories") of a stage is written, as a condition has it:
 * itself, else what holds it, else the stage. */
struct place program_param_place(const struct plan_program *p, size_t stage, size_t condition,
                                 const char *param);

/* Every covered value as one object ("plan" of the lock): the file's sections but [run], as
 * written, and "order": the names of each section whose order shows in the report. The caller
 * deletes it. */
cJSON *program_covered(const struct plan_program *p);
/* Whether their [run] is the same, written in whatever order. */
bool program_same_run(const struct plan_program *a, const struct plan_program *b);
/* Appends its RFC 8785 text. */
int program_canonical(const struct plan_program *p, struct strbuf *out, struct err *err) MUST_CHECK;

#endif
