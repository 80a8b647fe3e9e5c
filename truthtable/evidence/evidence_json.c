/*
 * Evidence from parsed JSON: a worker's result.json and the records of records.json. A malformed
 * value becomes a value without a number and a reason, so that one bad metric costs one value; a
 * malformed record is an error with its index. The file itself is read in evidence_text.c.
 */
#include <math.h>
#include <string.h>

#include "base/files/digest.h"
#include "base/json/json.h"
#include "base/text.h"
#include "prereg/task/task_cause.h"
#include "prereg/task/task_inputs.h"
#include "truthtable/evidence/evidence.h"

#define RECORDS_SCHEMA 1

/* A value without a number, and the reason. */
static struct evidence_value null_value(const char *why)
{
    return (struct evidence_value){.state = VALUE_NULL, .why = why};
}

/* ">4864" or "<0.2" */
static struct evidence_value bound_value(const char *text, const char *why)
{
    struct evidence_value v = {.state = VALUE_CENSORED, .why = why};
    struct err err;
    v.bound_above = text[0] == '>';
    if ((text[0] != '>' && text[0] != '<') || text_to_double(text + 1, &v.bound, &err) != 0) {
        return null_value("the bound is not readable");
    }
    return v;
}

/* A text, or NULL for anything else. */
static const char *string_member(const cJSON *obj, const char *key)
{
    const cJSON *m = json_member(obj, key);
    return cJSON_IsString(m) ? m->valuestring : NULL;
}

/* Optional numbers beside a value: absent or null is fine, anything else must be a number. */
static bool side_number(const cJSON *obj, const char *key, bool *has, double *out)
{
    const cJSON *m = json_member(obj, key);
    if (m == NULL || cJSON_IsNull(m)) {
        return true;
    }
    *has = true;
    *out = m->valuedouble;
    return cJSON_IsNumber(m) && isfinite(*out);
}

/* Reads the n of a value or a bound; false when it is not a count. */
static bool read_n(const cJSON *obj, struct evidence_value *v)
{
    double n = 0;
    if (!side_number(obj, "n", &v->has_n, &n) ||
        (v->has_n && (n < 1 || n != floor(n) || n > 9e15))) {
        return false;
    }
    v->n = (int64_t)n;
    return true;
}

/* {"value", "n", "se", "why", "bound"}: either a number or a bound. An n or se that is malformed
 * spoils the value, because gates rest on n. */
static struct evidence_value object_value(const cJSON *obj)
{
    struct evidence_value v = {.state = VALUE_KNOWN};
    const cJSON *value = json_member(obj, "value");
    const char *why = string_member(obj, "why");
    if (value == NULL) {
        return null_value("the record has no value");
    }
    if (cJSON_IsNull(value)) {
        const char *bound = string_member(obj, "bound");
        if (bound == NULL) {
            return null_value(why != NULL ? why : "null or NaN, without a reason");
        }
        v = bound_value(bound, why);
        return read_n(obj, &v) ? v : null_value("n is not a count");
    }
    if (!cJSON_IsNumber(value)) {
        return null_value("not a number");
    }
    if (string_member(obj, "bound") != NULL) {
        return null_value("both a value and a bound");
    }
    v.value = value->valuedouble;
    if (!read_n(obj, &v)) {
        return null_value("n is not a count");
    }
    if (!side_number(obj, "se", &v.has_se, &v.se) || v.se < 0) {
        return null_value("se is not a number from 0 up");
    }
    return v;
}

/* NaN cannot be written in JSON and is read as null. */
struct evidence_value evidence_value_of(const cJSON *m)
{
    if (m == NULL) {
        return (struct evidence_value){.state = VALUE_MISSING};
    }
    if (cJSON_IsNumber(m)) {
        return (struct evidence_value){.state = VALUE_KNOWN, .value = m->valuedouble};
    }
    if (cJSON_IsObject(m)) {
        return object_value(m);
    }
    return null_value(cJSON_IsNull(m) ? "null or NaN, without a reason" : "not a number");
}

typedef void add_fn(struct evidence *e, size_t cell, size_t stage, const char *name,
                    const struct evidence_value *v);

/* Adds every member of "metrics" or "facts" as a value of the task. */
static int add_members(struct evidence *e, size_t task, const cJSON *obj, const char *key,
                       add_fn *add, struct err *err)
{
    const cJSON *members = json_member(obj, key);
    if (members == NULL) {
        return 0;
    }
    if (!cJSON_IsObject(members)) {
        return err_set(err, ERR_PROTOCOL, "\"%s\" is not an object", key);
    }
    size_t n_stages = e->program->n_stages;
    for (const cJSON *m = members->child; m != NULL; m = m->next) {
        struct evidence_value v = evidence_value_of(m);
        add(e, task / n_stages, task % n_stages, m->string, &v);
    }
    return 0;
}

/* Marks a result from an earlier receipt; one lock reuses of one receipt alone. */
static void note_reused(struct evidence *e, size_t task, const cJSON *result)
{
    const char *root = string_member(json_member(result, "reused"), "root");
    if (root != NULL) {
        e->tasks[task].reused = true;
        e->reused_root = e->reused_root != NULL ? e->reused_root : arena_strdup(&e->arena, root);
    }
}

/* A fingerprint of all metrics and of the digests of all artifacts; 0 without an artifact. copies.c
 * compares it. */
static uint64_t print_of(const cJSON *result)
{
    const cJSON *artifacts = task_artifacts(result);
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    uint64_t print = 0;
    for (const cJSON *a = artifacts == NULL ? NULL : artifacts->child; a != NULL; a = a->next) {
        const char *path = string_member(a, "path");
        const char *sha256 = string_member(a, "sha256");
        strbuf_addf(&text, "%s  %s\n", sha256 == NULL ? "" : sha256, path == NULL ? "" : path);
    }
    if (text.len > 0 && json_canonical(json_member(result, "metrics"), &text, &ignored) == 0) {
        const struct digest d = digest_bytes(text.buf, text.len);
        memcpy(&print, d.bytes, sizeof(print));
    }
    strbuf_release(&text);
    return print;
}

/* The fingerprint is taken before values are added, from the result as it is. */
int evidence_add_result(struct evidence *e, size_t cell, size_t stage, const cJSON *result,
                        struct err *err)
{
    if (!cJSON_IsObject(result) || json_member(result, "metrics") == NULL) {
        return err_set(err, ERR_PROTOCOL, "a result is an object with \"metrics\"");
    }
    size_t task = cell * e->program->n_stages + stage;
    e->tasks[task].print = print_of(result);
    note_reused(e, task, result);
    int rc = add_members(e, task, result, "metrics", evidence_add_metric, err);
    return rc != 0 ? rc : add_members(e, task, result, "facts", evidence_add_fact, err);
}

/* "end" is "done" if it is missing; other ends need a cause of the closed list, which decides what
 * may be excluded. */
static int record_end(const cJSON *record, enum task_end *end, const char **cause, struct err *err)
{
    const char *text = "done";
    *cause = NULL;
    int rc = json_opt_string(record, "end", &text, err);
    if (rc != 0 || (rc = json_opt_string(record, "cause", cause, err)) != 0) {
        return rc;
    }
    if (strcmp(text, "done") == 0) {
        *end = TASK_END_DONE;
        return 0;
    }
    *end = strcmp(text, "blocked") == 0 ? TASK_END_BLOCKED : TASK_END_NEVER_RUN;
    if (*end == TASK_END_NEVER_RUN && strcmp(text, "never_run") != 0) {
        return err_set(err, ERR_SYNTAX, "\"end\" is \"%.40s\", not done, blocked or never_run",
                       text);
    }
    const enum cause known = *cause == NULL ? CAUSE_NR : cause_from_name(*cause);
    if (known == CAUSE_NR || known == CAUSE_NONE) {
        return err_set(err, ERR_SYNTAX, "a task that is %s needs a \"cause\" of the closed list",
                       text);
    }
    return 0;
}

/* A cause decides what is excluded, so two different ones are an error rather than the last one
 * winning. */
static bool ends_alike(const struct evidence_task *t, enum task_end end, const char *cause)
{
    return t->end == end && (end == TASK_END_DONE || strcmp(t->cause, cause) == 0);
}

/* Records come cell by cell, so the last cell is tried first. */
static size_t find_cell(struct evidence *e, const char *name)
{
    const struct plan_program *p = e->program;
    if (e->last_cell < p->n_cells && strcmp(p->cells[e->last_cell].name, name) == 0) {
        return e->last_cell;
    }
    e->last_cell = program_find_cell(p, name);
    return e->last_cell;
}

/* A task may have several records, which add values, as long as they agree on its end. */
int evidence_add_record(struct evidence *e, const cJSON *record, struct err *err)
{
    const struct plan_program *p = e->program;
    const char *cell_name = NULL;
    const char *stage_name = NULL;
    const char *cause = NULL;
    const char *narrower = NULL;
    enum task_end end = TASK_END_DONE;
    int rc = json_get_string(record, "cell", &cell_name, err);
    if (rc != 0 || (rc = json_get_string(record, "stage", &stage_name, err)) != 0 ||
        (rc = record_end(record, &end, &cause, err)) != 0 ||
        (rc = json_opt_string(record, "narrower", &narrower, err)) != 0) {
        return rc;
    }
    size_t cell = find_cell(e, cell_name);
    size_t stage = program_find_stage(p, stage_name);
    if (cell == INDEX_NONE || stage == INDEX_NONE) {
        return err_set(err, ERR_NOT_FOUND, "the program has no %s \"%.80s\"",
                       cell == INDEX_NONE ? "cell" : "stage",
                       cell == INDEX_NONE ? cell_name : stage_name);
    }
    const struct evidence_task *task = &e->tasks[cell * p->n_stages + stage];
    /* The first record of a task sets its end; others must agree. */
    if (task->end != TASK_END_PENDING && !ends_alike(task, end, cause)) {
        return err_set(err, ERR_SYNTAX, "%s %s ends in two ways", cell_name, stage_name);
    }
    evidence_set_task(e, cell, stage, end, cause);
    if (end != TASK_END_DONE && narrower != NULL) {
        evidence_set_narrower(e, cell, stage, narrower);
    }
    size_t index = cell * p->n_stages + stage;
    rc = add_members(e, index, record, "metrics", evidence_add_metric, err);
    return rc != 0 ? rc : add_members(e, index, record, "facts", evidence_add_fact, err);
}

/* Records of another program are refused by name before any of them is read. */
int evidence_check_head(const struct evidence *e, const cJSON *head, const char **label,
                        struct err *err)
{
    int64_t schema = 0;
    const char *name = NULL;
    *label = "imported";
    int rc = json_get_int(head, "schema", 0, 1000, &schema, err);
    if (rc == 0 && schema != RECORDS_SCHEMA) {
        return err_set(err, ERR_VERSION, "records of schema %lld; this reads %d", (long long)schema,
                       RECORDS_SCHEMA);
    }
    if (rc != 0 || (rc = json_get_string(head, "program", &name, err)) != 0) {
        return rc;
    }
    if (strcmp(name, e->program->name) != 0) {
        return err_set(err, ERR_INVALID, "records of program \"%.64s\", not of \"%s\"", name,
                       e->program->name);
    }
    return json_opt_string(head, "label", label, err);
}

/* For records in memory; evidence_text.c reads files. */
int evidence_read_records(struct evidence *e, const cJSON *records, struct err *err)
{
    const char *label = NULL;
    const cJSON *list = NULL;
    int rc = evidence_check_head(e, records, &label, err);
    if (rc != 0 || (rc = json_get_array(records, "records", &list, err)) != 0) {
        return rc;
    }
    size_t i = 0;
    for (const cJSON *r = list->child; r != NULL; r = r->next, i++) {
        if (evidence_add_record(e, r, err) != 0) {
            return err_wrap(err, "record %zu", i);
        }
    }
    e->label = arena_strdup(&e->arena, label);
    return 0;
}
