/*
 * Inside of program_load(): typed reading of the TOML tree, every fault to one list of diagnostics.
 *
 * A section reader takes what it can and goes on; nothing here stops at the first fault. `where` is
 * the dotted path of a table ("measure.mmlu"), the beginning of every message about it. Readers
 * leave *out alone when the key is absent or wrong, and say whether they set it.
 */
#ifndef PREREG_LOAD_H
#define PREREG_LOAD_H

#include "prereg/program.h"
#include "prereg/toml.h"

struct load {
    struct program *p;
    struct diag *diag;
    const struct toml_node *root;
};

/* The place of a value, for the structs of program.h. */
struct place load_place(const struct toml_node *n);
void load_error(struct load *l, const struct toml_node *at, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* At a node's key instead of its value. */
void load_error_key(struct load *l, const struct toml_node *at, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
void load_warn(struct load *l, const struct toml_node *at, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* "<where>: unknown <what> "x"; did you mean "y"?", at the value. */
void load_unknown(struct load *l, const struct toml_node *at, const char *what, const char *name,
                  const char *const *known, size_t n_known);

/* Every key of the table must be one of `known`; nearest known name otherwise. */
void load_check_keys(struct load *l, const struct toml_node *table, const char *where,
                     const char *const *known, size_t n_known);

/* A member that must be of this kind: NULL (and an error) when it is not; NULL when absent, with an
 * error when required. TOML_FLOAT also takes whole numbers. */
struct toml_node *load_member(struct load *l, const struct toml_node *table, const char *where,
                              const char *key, enum toml_kind kind);
struct toml_node *load_need(struct load *l, const struct toml_node *table, const char *where,
                            const char *key, enum toml_kind kind);
bool load_is(struct load *l, const struct toml_node *n, const char *where, enum toml_kind kind);

bool load_bool(struct load *l, const struct toml_node *table, const char *where, const char *key,
               bool *out);
/* Within min..max, both included. */
bool load_int(struct load *l, const struct toml_node *table, const char *where, const char *key,
              int64_t range[2], int64_t *out);
bool load_number(struct load *l, const struct toml_node *table, const char *where, const char *key,
                 double *out);
/* One of the words; *out is its index. */
bool load_word(struct load *l, const struct toml_node *table, const char *where, const char *key,
               const char *const *words, size_t n_words, size_t *out);
/* A string that is not empty; the arena's. */
bool load_text(struct load *l, const struct toml_node *table, const char *where, const char *key,
               bool required, const char **out);

/* [a-z][a-z0-9_]*, 64 bytes at most. */
bool load_name_ok(struct load *l, const struct toml_node *at, const char *where, const char *name);
/* The table of named tables (or values of `kind`) at a root key: number of members, names checked.
 * NULL when absent or wrong. */
struct toml_node *load_section(struct load *l, const char *key, enum toml_kind kind, size_t n_max);
/* The array of tables at a root key. */
struct toml_node *load_tables(struct load *l, const char *key, size_t n_max);

/* The index of a name in an array of n structs of `size` bytes whose first member is the name. */
size_t load_find(const void *items, size_t n, size_t size, const char *name);
/* The same, reporting an unknown one at `at`; INDEX_NONE then. */
size_t load_lookup(struct load *l, const struct toml_node *at, const char *what, const void *items,
                   size_t n, size_t size);

/* Sections, in the order in which they build on each other. */
void load_tree(struct load *l);        /* the whole file as JSON; values that JSON cannot hold */
void load_head(struct load *l);        /* [program] and unknown sections */
void load_factors(struct load *l);     /* [[factor]] */
void load_data(struct load *l);        /* [data] */
void load_stages(struct load *l);      /* [stage.*] */
void load_params(struct load *l);      /* `when` and "$factor" of the stages */
void load_measures(struct load *l);    /* [measure] */
void load_contrasts(struct load *l);   /* [contrast] */
void load_counters(struct load *l);    /* [counter] */
void load_inputs(struct load *l);      /* [[input]] */
void load_outcomes(struct load *l);    /* [outcome] */
void load_table(struct load *l);       /* [table] */
void load_rules(struct load *l);       /* [exclusion] [validity] [pin] [lock] */
void load_forecasts(struct load *l);   /* [forecast] */
void load_instruments(struct load *l); /* [instrument.*] */
void load_apparatus(struct load *l);   /* [apparatus.*] */
void load_run(struct load *l);         /* [run] [run.STAGE] */

/* "stage.metric" of a string node, split; *stage is INDEX_NONE (after an error) when unknown. */
const char *load_metric(struct load *l, const struct toml_node *at, const char *where,
                        size_t *stage);
struct cond_text load_condition(struct load *l, const struct toml_node *table, const char *where);

/* grid.c: cells, conditions and their names. Only after a load without errors. */
void grid_expand(struct program *p);
void grid_check_names(struct load *l); /* after grid_expand() */
/* Sets every member of `over` in params, replacing those of its name. */
void grid_merge(cJSON *params, const cJSON *over);
/* False (and an error at the factors) when the cells are too many. */
bool grid_check_size(struct load *l);

#endif
