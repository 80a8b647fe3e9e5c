/* Limits of a [run] table that was parsed to JSON. load_run.c reads the same keys from TOML,
 * with their places; test_run_limits.c checks that the two agree. */
#include "prereg/program/run_limits.h"

#include <stdio.h>

#include "base/json/json.h"
#include "base/text.h"

static const char *const NAMES[RUN_LIMIT_NR] = {
    [RUN_MEMORY] = "memory",         [RUN_TIME] = "time",   [RUN_CRASHES] = "crashes",
    [RUN_ATTEMPTS] = "attempts",     [RUN_SETUP] = "setup", [RUN_STEP] = "step",
    [RUN_CHECKPOINT] = "checkpoint", [RUN_EVAL] = "eval"};

/* A limit written as text with a unit, converted by `to`. */
static int read_text(const cJSON *table, const char *key,
                     int (*to)(const char *s, int64_t *out, struct err *err), int64_t *out,
                     struct err *err)
{
    const char *text = NULL;
    int rc = json_opt_string(table, key, &text, err);
    if (rc == 0 && text != NULL) {
        rc = to(text, out, err);
    }
    return rc == 0 ? 0 : err_wrap(err, "%s", key);
}

static int read_memory(const cJSON *table, int64_t *out, struct err *err)
{
    const char *key = NAMES[RUN_MEMORY];
    return cJSON_IsNumber(json_member(table, key))
               ? json_get_int(table, key, 1, JSON_INT_MAX, out, err)
               : read_text(table, key, text_to_bytes, out, err);
}

static int read_deadlines(const cJSON *table, struct run_limits *out, struct err *err)
{
    const cJSON *deadlines = json_member(table, "deadlines");
    int rc = deadlines == NULL || cJSON_IsObject(deadlines)
                 ? 0
                 : err_set(err, ERR_SYNTAX, "deadlines: not a table");
    for (int i = RUN_SETUP; rc == 0 && deadlines != NULL && i < RUN_LIMIT_NR; i++) {
        rc = read_text(deadlines, NAMES[i], text_to_ms, &out->of[i], err);
    }
    return rc;
}

/* Limits that the table does not have keep their value in *out. */
static int read_table(const cJSON *table, struct run_limits *out, struct err *err)
{
    int64_t *of = out->of;
    int rc = read_memory(table, &of[RUN_MEMORY], err);
    if (rc != 0 || (rc = read_text(table, NAMES[RUN_TIME], text_to_ms, &of[RUN_TIME], err)) != 0 ||
        (rc = json_opt_int(table, NAMES[RUN_CRASHES], 0, RUN_BUDGET_MAX, &of[RUN_CRASHES], err)) !=
            0 ||
        (rc = json_opt_int(table, NAMES[RUN_ATTEMPTS], 1, RUN_BUDGET_MAX, &of[RUN_ATTEMPTS],
                           err)) != 0) {
        return rc;
    }
    return read_deadlines(table, out, err);
}

int run_limits_read(const cJSON *run, const char *stage, struct run_limits *out, struct err *err)
{
    const cJSON *own = json_member(run, stage);
    *out = (struct run_limits){0};
    out->of[RUN_CRASHES] = RUN_CRASHES_DEFAULT;
    out->of[RUN_ATTEMPTS] = RUN_ATTEMPTS_DEFAULT;
    int rc = run == NULL ? 0 : read_table(run, out, err);
    if (rc == 0 && own != NULL && read_table(own, out, err) != 0) {
        rc = err_wrap(err, "%s", stage);
    }
    return rc == 0 ? 0 : err_wrap(err, "[run]");
}

bool run_limit_is_narrower(enum run_limit limit, int64_t a, int64_t b)
{
    if (limit == RUN_MEMORY || limit == RUN_TIME) {
        return a != 0 && (b == 0 || a < b);
    }
    if (limit >= RUN_SETUP && (a == 0 || b == 0)) {
        return a != b;
    }
    return a < b;
}

void run_limit_text(enum run_limit limit, int64_t value, char out[RUN_LIMIT_TEXT_SIZE])
{
    const long long v = (long long)value;
    if (limit == RUN_MEMORY && value == 0) {
        (void)snprintf(out, RUN_LIMIT_TEXT_SIZE, "no limit of memory");
    } else if (limit == RUN_MEMORY) {
        (void)snprintf(out, RUN_LIMIT_TEXT_SIZE, "memory %lld bytes", v);
    } else if (limit == RUN_TIME && value == 0) {
        (void)snprintf(out, RUN_LIMIT_TEXT_SIZE, "no limit of time");
    } else if (limit == RUN_TIME) {
        (void)snprintf(out, RUN_LIMIT_TEXT_SIZE, "time %lld ms", v);
    } else if (limit < RUN_SETUP) {
        (void)snprintf(out, RUN_LIMIT_TEXT_SIZE, "%s %lld", NAMES[limit], v);
    } else if (value == 0) {
        (void)snprintf(out, RUN_LIMIT_TEXT_SIZE, "a measured deadline of %s", NAMES[limit]);
    } else {
        (void)snprintf(out, RUN_LIMIT_TEXT_SIZE, "a deadline of %s of %lld ms", NAMES[limit], v);
    }
}
