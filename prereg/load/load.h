/*
 * Inside of program_load(): typed reading of the TOML tree, every fault to one list of diagnostics.
 *
 * A section reader takes what it can and goes on; nothing here stops at the first fault. Messages
 * begin with the dotted path of what they are about ("measure.mmlu.floor: ..."). Readers leave *out
 * alone when the key is absent or wrong, and return whether they set it.
 */
#ifndef PREREG_LOAD_LOAD_H
#define PREREG_LOAD_LOAD_H

#include "prereg/load/toml.h"
#include "prereg/program/names.h"
#include "prereg/program/program.h"

struct load {
    struct plan_program *p;
    struct diag *diag;
    const struct toml_node *root;
};

/* The place of a value, and of its key, for the structs of program.h. */
struct place load_place(const struct toml_node *n);
struct place load_key_place(const struct toml_node *n);
/* At the value, at its key. */
void load_error(struct load *l, const struct toml_node *at, const char *fmt, ...) PRINTF_LIKE(3, 4);
void load_error_key(struct load *l, const struct toml_node *at, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
void load_warn(struct load *l, const struct toml_node *at, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* A section or key of the whole file that is not there. */
void load_missing(struct load *l, const char *text);

/* The index of a name, reported at the node with the nearest known one when it is none of them:
 * of a string value, of a node's key. */
size_t load_lookup(struct load *l, const struct toml_node *at, struct names names);
size_t load_lookup_key(struct load *l, const struct toml_node *at, struct names names);

/* The known name that is most like this one; NULL when none is. */
const char *load_nearest(const char *name, struct names names);

/* Every key of the table must be one of `known`. */
void load_check_keys(struct load *l, const struct toml_node *table, const char *const *known,
                     size_t n_known);

/* TOML_FLOAT also takes whole numbers. */
bool load_is(struct load *l, const struct toml_node *n, enum toml_kind kind);
/* A member that must be of this kind: NULL (and an error) when it is not; NULL when absent, which
 * is an error for load_need() alone. `table` may be NULL: then every member is absent. */
struct toml_node *load_member(struct load *l, const struct toml_node *table, const char *key,
                              enum toml_kind kind);
struct toml_node *load_need(struct load *l, const struct toml_node *table, const char *key,
                            enum toml_kind kind);

bool load_bool(struct load *l, const struct toml_node *table, const char *key, bool *out);
/* Within range[0]..range[1], both included. */
bool load_int(struct load *l, const struct toml_node *table, const char *key,
              const int64_t range[2], int64_t *out);
bool load_number(struct load *l, const struct toml_node *table, const char *key, double *out);
/* One of the words (the last is NULL); *out is its index. */
bool load_word(struct load *l, const struct toml_node *table, const char *key,
               const char *const *words, size_t *out);
/* A string that is not empty. */
bool load_text(struct load *l, const struct toml_node *table, const char *key, bool required,
               const char **out);

/* A duration as text: "300s", "5min", "2h". */
bool load_ms(struct load *l, const struct toml_node *table, const char *key, int64_t *out);

/* Whether `name`, the node's key or its string, is [a-z][a-z0-9_]*, 64 bytes at most; else an
 * error. */
bool load_name_ok(struct load *l, const struct toml_node *at, const char *name);
/* The table at a root key, with names for keys and members of `kind`: others are reported and taken
 * out. NULL when absent or no table. */
struct toml_node *load_section(struct load *l, const char *key, enum toml_kind kind, size_t n_max);
/* The array of tables at a root key. */
struct toml_node *load_tables(struct load *l, const char *key, size_t n_max);

/* Sections, in the order in which they build on each other. */
void load_tree(struct load *l);        /* the whole file as JSON; values that JSON cannot hold */
void load_head(struct load *l);        /* [program] and unknown sections */
void load_factors(struct load *l);     /* [[factor]] */
void load_data(struct load *l);        /* [data] */
void load_stages(struct load *l);      /* [stage.*] */
void load_params(struct load *l);      /* `when` and "$factor" of the stages */
void load_measures(struct load *l);    /* [measure] */
void load_contrasts(struct load *l);   /* [contrast] */
void load_same_work(struct load *l);   /* [[same_work]] */
void load_reuse(struct load *l);       /* [reuse] */
void load_counters(struct load *l);    /* [counter] */
void load_inputs(struct load *l);      /* [[input]] */
void load_outcomes(struct load *l);    /* [outcome] */
void load_table(struct load *l);       /* [table] */
void load_exclusion(struct load *l);   /* [exclusion] */
void load_validity(struct load *l);    /* [validity] */
void load_pin(struct load *l);         /* [pin] */
void load_lock_rule(struct load *l);   /* [lock] */
void load_release(struct load *l);     /* [release] */
void load_forecasts(struct load *l);   /* [forecast] */
void load_instruments(struct load *l); /* [instrument.*] */
void load_scope(struct load *l);       /* [scope], after the forecasts */
void load_apparatus(struct load *l);   /* [apparatus.*] */
void load_run(struct load *l);         /* [run] [run.STAGE] */
void load_slurm(struct load *l, const struct toml_node *run); /* [run.slurm], for load_run() */

/* "stage.metric" as written at a string node, split; *stage is INDEX_NONE (after an error) when
 * unknown. NULL when it has no such form. */
const char *load_metric(struct load *l, const struct toml_node *at, const char *text,
                        size_t *stage);
/* A value that names a level of f, compared as text, so that 2e-3 finds 0.002; INDEX_NONE after an
 * error. */
size_t load_level(struct load *l, const struct plan_factor *f, const struct toml_node *n);
/* The factor that a key names, never a replicate; INDEX_NONE after an error. */
size_t load_compared_factor(struct load *l, const struct toml_node *m);
/* where = { FACTOR = LEVEL, ... }, not of the factor `compared`. Returns how many are in *out. */
size_t load_settings(struct load *l, const struct toml_node *table, size_t compared,
                     struct plan_setting **out);
/* The member "condition". */
struct cond_text load_condition(struct load *l, const struct toml_node *table);

#endif
