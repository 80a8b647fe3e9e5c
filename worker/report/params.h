/*
 * Strict reading of a stage's parameters: every fault is collected with its key, so that one
 * --describe shows them all, and whatever was not asked for is an error that names the nearest
 * known key.
 *
 * A reader asks for each key once, with range and default, and then calls params_finish(). After a
 * fault the getter returns the default, so reading goes on. Keys of nested tables are reported as
 * "horizon.tokens".
 */
#ifndef WORKER_REPORT_PARAMS_H
#define WORKER_REPORT_PARAMS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define PARAMS_KEYS_MAX 96

struct param_fault {
    char *key;
    char *why;
};

/* Shared by the readers of one set of parameters and its nested tables. */
struct param_faults {
    struct param_fault *items;
    size_t n;
    size_t cap;
};

struct params {
    const cJSON *obj;  /* NULL: absent; every key is then its default */
    const char *table; /* NULL at the top, else the key of this nested table */
    struct param_faults *faults;
    const char *known[PARAMS_KEYS_MAX];
    size_t n_known;
};

void params_init(struct params *p, const cJSON *obj, struct param_faults *faults);
/* Reads the table under `key`, which is optional: see params.obj. */
void params_init_table(struct params *p, struct params *parent, const char *key);
void param_faults_release(struct param_faults *faults);

/* Whether key is there and not null; makes it known. */
bool params_has(struct params *p, const char *key);
/* The raw member or NULL; makes it known. */
const cJSON *params_value(struct params *p, const char *key);
/* Inclusive limits; the number must be whole. */
int64_t params_int(struct params *p, const char *key, int64_t min, int64_t max, int64_t fallback);
/* Inclusive limits. */
double params_number(struct params *p, const char *key, double min, double max, double fallback);
bool params_bool(struct params *p, const char *key, bool fallback);
/* fallback may be NULL. */
const char *params_string(struct params *p, const char *key, const char *fallback);
/* The index in names[n]. */
size_t params_choice(struct params *p, const char *key, const char *const *names, size_t n,
                     size_t fallback);
/* As the getters' faults: key in this table, formatted reason. */
void params_fault(struct params *p, const char *key, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Adds a fault "is required" when key is absent. */
void params_require(struct params *p, const char *key);
/* Every member that was never asked for becomes a fault. Where it is probably a misspelling of a
 * key that is required and absent, it is the only fault of the two. */
void params_finish(struct params *p);

/* 0 without faults; else ERR_USAGE naming the first and how many more. */
int param_faults_result(const struct param_faults *faults, struct err *err) MUST_CHECK;
/* A line of standard error for each; none for a single one, which the result's message says. */
void param_faults_say(const struct param_faults *faults, const char *program);

#endif
