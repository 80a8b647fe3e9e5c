/*
 * Builds a rerun file from two results, and reads one back into the parts that its writer claims.
 * Rerun and verify build it with the same code, so a file of an honest rerun is reproduced byte for
 * byte. Metrics and artifacts are matched by name; results come from workers, so names may repeat
 * or be many.
 */
#include "ctl/receipt/rerun_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/digest.h"
#include "base/json/json.h"
#include "base/machine/machine.h"
#include "base/xalloc.h"
#include "prereg/task/task_inputs.h"

#define TOOL_MAX   40
#define TIME_MAX   40
#define CELL_BYTES 40 /* of its name in the file's */

/* ---- metrics and artifacts by name ---- */

struct named_value {
    const char *name;
    const cJSON *value;
};

/* The metrics or artifacts of one result. */
struct named_list {
    struct named_value *items; /* in the result's order */
    size_t n;
    size_t cap;
    struct named_value *sorted; /* the same, by name */
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct named_value *)a)->name, ((const struct named_value *)b)->name);
}

static void list_add(struct named_list *l, const char *name, const cJSON *value)
{
    ARRAY_GROW(l->items, l->n, l->cap);
    l->items[l->n++] = (struct named_value){name, value};
}

/* The sorted copy serves searches; `items` keeps the result's order. */
static void list_sort(struct named_list *l)
{
    l->sorted = xcalloc(l->n + 1, sizeof(*l->sorted));
    if (l->n > 0) {
        memcpy(l->sorted, l->items, l->n * sizeof(*l->items));
        qsort(l->sorted, l->n, sizeof(*l->sorted), by_name);
    }
}

/* The value of that name; NULL when there is none. */
static const cJSON *list_find(const struct named_list *l, const char *name)
{
    const struct named_value key = {name, NULL};
    const struct named_value *found =
        l->n == 0 ? NULL : bsearch(&key, l->sorted, l->n, sizeof(*l->sorted), by_name);
    return found == NULL ? NULL : found->value;
}

static void list_release(struct named_list *l)
{
    free(l->items);
    free(l->sorted);
}

/* Every metric by its name; the list is to be released. */
static void list_metrics(struct named_list *l, const cJSON *result)
{
    const cJSON *m;
    cJSON_ArrayForEach(m, json_member(result, "metrics"))
    {
        list_add(l, m->string == NULL ? "" : m->string, m);
    }
    list_sort(l);
}

/* Every artifact's digest by its path; the list is to be released. */
static void list_artifacts(struct named_list *l, const cJSON *result)
{
    const cJSON *a;
    cJSON_ArrayForEach(a, task_artifacts(result))
    {
        const cJSON *path = json_member(a, "path");
        list_add(l, cJSON_IsString(path) ? path->valuestring : "", json_member(a, "sha256"));
    }
    list_sort(l);
}

/* ---- comparing ---- */

/* Whether two values have the same canonical text. Absent values are never the same. */
static bool is_same(const cJSON *a, const cJSON *b)
{
    struct strbuf x = STRBUF_INIT;
    struct strbuf y = STRBUF_INIT;
    struct err ignored;
    bool same = a != NULL && b != NULL && !cJSON_IsNull(a) &&
                json_canonical(a, &x, &ignored) == 0 && json_canonical(b, &y, &ignored) == 0 &&
                x.len == y.len && memcmp(x.buf, y.buf, x.len) == 0;
    strbuf_release(&x);
    strbuf_release(&y);
    return same;
}

/* Metrics are the same with equal values, or without values for the same stated reason. */
static bool is_same_metric(const cJSON *a, const cJSON *b)
{
    const cJSON *value = cJSON_IsObject(a) ? json_member(a, "value") : a;
    return (cJSON_IsNumber(value) || cJSON_IsString(json_member(a, "why"))) && is_same(a, b);
}

typedef bool same_fn(const cJSON *a, const cJSON *b);

/* A copy of the value; null when it is absent. */
static void put_value(cJSON *o, const char *key, const cJSON *value)
{
    json_put(o, key, value == NULL ? cJSON_CreateNull() : json_copy(value));
}

/* One compared entry: name, both values (null when absent), and whether they are the same. */
static void push_pair(cJSON *list, const char *key, const char *name, const cJSON *const sides[2],
                      same_fn *same)
{
    cJSON *o = json_object();
    json_put_string(o, key, name);
    put_value(o, "accepted", sides[0]);
    put_value(o, "rerun", sides[1]);
    json_put_bool(o, "same", same(sides[0], sides[1]));
    json_push(list, o);
}

/* All names of either side: in the order of the accepted result, then the new ones of the rerun. */
static cJSON *compare(const char *key, const struct named_list *was, const struct named_list *now,
                      same_fn *same)
{
    cJSON *list = json_array();
    for (size_t i = 0; i < was->n; i++) {
        const struct named_value *a = &was->items[i];
        push_pair(list, key, a->name, (const cJSON *[2]){a->value, list_find(now, a->name)}, same);
    }
    for (size_t i = 0; i < now->n; i++) {
        const struct named_value *b = &now->items[i];
        if (b->value != NULL && !cJSON_IsNull(b->value) && list_find(was, b->name) == NULL) {
            push_pair(list, key, b->name, (const cJSON *[2]){NULL, b->value}, same);
        }
    }
    return list;
}

/* The names in which two environments differ; a value that either side does not know is skipped. */
static cJSON *differing(const cJSON *accepted, const cJSON *again)
{
    const cJSON *m;
    cJSON *list = json_array();
    cJSON_ArrayForEach(m, accepted)
    {
        const cJSON *other = json_member(again, m->string);
        if (other != NULL && !cJSON_IsNull(m) && !cJSON_IsNull(other) && !is_same(m, other)) {
            json_push_string(list, m->string);
        }
    }
    return list;
}

/* Whether every entry has "same": true; so it is of an empty list. */
static bool all_same(const cJSON *list)
{
    const cJSON *o;
    cJSON_ArrayForEach(o, list)
    {
        if (!cJSON_IsTrue(json_member(o, "same"))) {
            return false;
        }
    }
    return true;
}

/* The comparison of one stage: metrics, artifacts, and whether all are the same. */
static void add_compared(cJSON *o, const struct rerun_stage *s)
{
    struct named_list was = {0};
    struct named_list now = {0};
    list_metrics(&was, s->accepted.result);
    list_metrics(&now, s->again.result);
    cJSON *metrics = compare("name", &was, &now, is_same_metric);
    list_release(&was);
    list_release(&now);
    was = (struct named_list){0};
    now = (struct named_list){0};
    list_artifacts(&was, s->accepted.result);
    list_artifacts(&now, s->again.result);
    cJSON *artifacts = compare("path", &was, &now, is_same);
    list_release(&was);
    list_release(&now);
    json_put_bool(o, "same", all_same(metrics) && all_same(artifacts));
    json_put(o, "metrics", metrics);
    json_put(o, "artifacts", artifacts);
}

/* ---- making a file ---- */

cJSON *rerun_file_begin(const struct rerun_head *head)
{
    cJSON *o = json_object();
    json_put_int(o, "schema", head->schema == 0 ? RERUN_SCHEMA : head->schema);
    json_put_string(o, "tool", head->tool);
    json_put_string(o, "program", head->program);
    json_put_string(o, "root", head->root);
    json_put_string(o, "cell", head->cell);
    json_put_string(o, "time", head->time);
    json_put(o, "stages", json_array());
    return o;
}

void rerun_file_add(cJSON *file, const struct rerun_stage *s)
{
    cJSON *o = json_object();
    cJSON *environment = json_object();
    json_put_string(o, "stage", s->name);
    json_put_string(o, "head", s->head);
    json_put_string(o, "result", s->digest);
    add_compared(o, s);
    put_value(environment, "accepted", s->accepted.environment);
    put_value(environment, "rerun", s->again.environment);
    json_put(environment, "differs", differing(s->accepted.environment, s->again.environment));
    json_put(o, "environment", environment);
    json_push(cJSON_GetObjectItemCaseSensitive(file, "stages"), o);
}

/* Whether any stage gave a metric or an artifact: an empty rerun establishes nothing. */
static bool gave_any(const cJSON *stages)
{
    const cJSON *s;
    cJSON_ArrayForEach(s, stages)
    {
        if (json_member(s, "metrics")->child != NULL ||
            json_member(s, "artifacts")->child != NULL) {
            return true;
        }
    }
    return false;
}

/* The vendor that a processor's name names; NULL if it names none of these, as in some guests. */
static const char *vendor_of(const cJSON *environment)
{
    static const char *const vendors[] = {"AMD", "Intel", "Hygon", "ZHAOXIN", "VIA"};
    const cJSON *cpu = json_member(environment, "cpu");
    for (size_t i = 0; cJSON_IsString(cpu) && i < ARRAY_LEN(vendors); i++) {
        if (strstr(cpu->valuestring, vendors[i]) != NULL) {
            return vendors[i];
        }
    }
    return NULL;
}

/* Whether a stage ran on another instruction set, or on a processor of another vendor. What is not
 * known does not differ. */
static bool ran_elsewhere(const cJSON *stage)
{
    const cJSON *both = json_member(stage, "environment");
    const cJSON *sides[2] = {json_member(both, "accepted"), json_member(both, "rerun")};
    const cJSON *sets[2] = {json_member(sides[0], "instructions"),
                            json_member(sides[1], "instructions")};
    const char *vendors[2] = {vendor_of(sides[0]), vendor_of(sides[1])};
    return (cJSON_IsString(sets[0]) && cJSON_IsString(sets[1]) && !is_same(sets[0], sets[1])) ||
           (vendors[0] != NULL && vendors[1] != NULL && strcmp(vendors[0], vendors[1]) != 0);
}

/* The level of a file whose stages are all there and the same. */
static const char *level_of(const cJSON *file)
{
    const cJSON *s;
    bool elsewhere = json_member(file, "schema")->valuedouble >= 2;
    cJSON_ArrayForEach(s, json_member(file, "stages"))
    {
        elsewhere = elsewhere && ran_elsewhere(s);
    }
    return elsewhere ? RERUN_LEVEL_ELSEWHERE : RERUN_LEVEL;
}

void rerun_file_end(cJSON *file, const struct plan_program *p)
{
    const cJSON *stages = json_member(file, "stages");
    const cJSON *next = stages->child;
    cJSON *left_out = json_array();
    for (size_t i = 0; i < p->n_stages; i++) {
        const cJSON *name = json_member(next, "stage");
        if (cJSON_IsString(name) && strcmp(name->valuestring, p->stages[i].name) == 0) {
            next = next->next;
        } else {
            json_push_string(left_out, p->stages[i].name);
        }
    }
    /* every stage, all the same, and something to compare */
    bool whole = left_out->child == NULL && all_same(stages) && gave_any(stages);
    json_put(file, "left_out", left_out);
    json_put_string(file, "level", whole ? level_of(file) : NULL);
}

static const struct {
    const char *name;
    bool is_text; /* else a number */
} environment_members[] = {{"worker", true},      {"kernel", true},      {"cpu", true},
                           {"blas", true},        {"core", true},        {"threads", false},
                           {"arithmetic", false}, {"instructions", true}};
#define N_FIRST 6 /* of schema 1 */

static bool is_of_type(const cJSON *m, size_t i)
{
    return environment_members[i].is_text ? cJSON_IsString(m) : cJSON_IsNumber(m);
}

/* The core of the BLAS library is derived from the name that the worker reports. */
cJSON *rerun_environment(const cJSON *result, const cJSON *start)
{
    cJSON *all = json_object();
    const cJSON *facts = json_member(result, "facts");
    const cJSON *blas = json_member(facts, "blas");
    const cJSON *threads = json_member(facts, "threads");
    char *core = machine_blas_core(cJSON_IsString(blas) ? blas->valuestring : NULL);
    put_value(all, "worker", json_member(start, "worker"));
    put_value(all, "kernel", json_member(start, "kernel"));
    put_value(all, "cpu", json_member(start, "cpu"));
    put_value(all, "blas", blas);
    json_put_string(all, "core", core);
    put_value(all, "threads", cJSON_IsNumber(threads) ? threads : json_member(start, "threads"));
    put_value(all, "arithmetic", json_member(facts, "arithmetic"));
    put_value(all, "instructions", json_member(facts, "instructions"));
    cJSON *o = rerun_environment_of(all, RERUN_SCHEMA);
    cJSON_Delete(all);
    free(core);
    return o;
}

cJSON *rerun_environment_of(const cJSON *place, int schema)
{
    cJSON *o = json_object();
    const size_t n = schema < 2 ? N_FIRST : ARRAY_LEN(environment_members);
    for (size_t i = 0; i < n; i++) {
        const cJSON *m = json_member(place, environment_members[i].name);
        bool known = is_of_type(m, i) && (!cJSON_IsString(m) || m->valuestring[0] != '\0');
        put_value(o, environment_members[i].name, known ? m : NULL);
    }
    return o;
}

/* ---- reading one ---- */

/* A text of at most max bytes. */
static int get_text(const cJSON *o, const char *key, size_t max, const char **out, struct err *err)
{
    int rc = json_get_string(o, key, out, err);
    return rc == 0 && strlen(*out) > max ? err_set(err, ERR_SYNTAX, "%s is too long", key) : rc;
}

int rerun_file_head(const cJSON *file, struct rerun_head *out, struct err *err)
{
    int64_t schema = 0;
    const cJSON *stages = NULL;
    if (json_get_int(file, "schema", 1, INT32_MAX, &schema, err) != 0) {
        return err->code;
    }
    if (schema > RERUN_SCHEMA) {
        return err_set(err, ERR_VERSION, "the rerun has schema %lld; this version (%s) reads %d",
                       (long long)schema, PREREGD_VERSION, RERUN_SCHEMA);
    }
    out->schema = (int)schema;
    if (get_text(file, "tool", TOOL_MAX, &out->tool, err) != 0 ||
        json_get_string(file, "program", &out->program, err) != 0 ||
        json_get_string(file, "root", &out->root, err) != 0 ||
        json_get_string(file, "cell", &out->cell, err) != 0 ||
        get_text(file, "time", TIME_MAX, &out->time, err) != 0) {
        return err->code;
    }
    return json_get_array(file, "stages", &stages, err);
}

/* The rerun's side of one metric, if it has one. */
static int read_metric(const cJSON *pair, cJSON *metrics, struct err *err)
{
    const char *name = NULL;
    const cJSON *value = json_member(pair, "rerun");
    int rc = json_get_string(pair, "name", &name, err);
    if (rc != 0 || cJSON_IsNull(value)) {
        return rc;
    }
    if (!cJSON_IsObject(value) && !cJSON_IsNumber(value)) {
        return err_set(err, ERR_SYNTAX, "metric \"%.60s\" of the rerun has no value", name);
    }
    json_put(metrics, name, json_copy(value));
    return 0;
}

/* The rerun's side of one artifact, if it has one. */
static int read_artifact(const cJSON *pair, cJSON *artifacts, struct err *err)
{
    const char *path = NULL;
    const char *hex = NULL;
    struct digest d;
    int rc = json_get_string(pair, "path", &path, err);
    if (rc != 0 || (rc = json_opt_string(pair, "rerun", &hex, err)) != 0 || hex == NULL) {
        return rc;
    }
    rc = digest_from_hex(hex, &d, err);
    if (rc == 0) {
        cJSON *a = json_object();
        json_put_string(a, "path", path);
        json_put_string(a, "sha256", hex);
        json_push(artifacts, a);
    }
    return rc;
}

/* Exactly the members of one of the schemas, in their order. */
static int read_environment(const cJSON *stage, const cJSON **out, struct err *err)
{
    const cJSON *both = NULL;
    int rc = json_get_object(stage, "environment", &both, err);
    if (rc != 0 || (rc = json_get_object(both, "rerun", out, err)) != 0) {
        return rc;
    }
    const cJSON *m = (*out)->child;
    for (size_t i = 0; i < ARRAY_LEN(environment_members); i++, m = m->next) {
        if (m == NULL && i == N_FIRST) {
            return 0;
        }
        if (m == NULL || strcmp(m->string, environment_members[i].name) != 0 ||
            !(cJSON_IsNull(m) || is_of_type(m, i))) {
            return err_set(err, ERR_SYNTAX, "environment.rerun has no \"%s\" in its place",
                           environment_members[i].name);
        }
    }
    return m == NULL ? 0
                     : err_set(err, ERR_SYNTAX, "environment.rerun has one more: %.60s", m->string);
}

/* Rebuilds the result that the file claims, in the form of a result.json, so that the same
 * comparison can run over it. */
int rerun_file_stage(const cJSON *stage, struct rerun_stage *out, cJSON **again, struct err *err)
{
    const cJSON *list = NULL;
    const cJSON *pair;
    cJSON *metrics = json_object();
    cJSON *artifacts = json_array();
    *again = json_object();
    json_put(*again, "metrics", metrics);
    json_put(*again, "artifacts", artifacts);
    out->again.result = *again;
    int rc = json_get_string(stage, "stage", &out->name, err);
    if (rc != 0 || (rc = json_get_string(stage, "head", &out->head, err)) != 0 ||
        (rc = json_get_array(stage, "metrics", &list, err)) != 0) {
        return rc;
    }
    cJSON_ArrayForEach(pair, list)
    {
        if ((rc = read_metric(pair, metrics, err)) != 0) {
            return rc;
        }
    }
    if ((rc = json_get_array(stage, "artifacts", &list, err)) != 0) {
        return rc;
    }
    cJSON_ArrayForEach(pair, list)
    {
        if ((rc = read_artifact(pair, artifacts, err)) != 0) {
            return rc;
        }
    }
    return read_environment(stage, &out->again.environment, err);
}

/* ---- names ---- */

/* Characters that a name of a rerun file may have. */
static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("._=,+-", c) != NULL);
}

char *rerun_file_name(const char *cell, const char *time)
{
    struct strbuf out = STRBUF_INIT;
    for (const char *s = cell; *s != '\0' && out.len < CELL_BYTES; s++) {
        strbuf_addc(&out, is_plain(*s) && !(*s == '.' && out.len == 0) ? *s : '_');
    }
    strbuf_addc(&out, '-');
    for (const char *s = time; *s != '\0' && out.len < RERUN_NAME_MAX; s++) {
        if (is_plain(*s) && *s != '-' && *s != '.') {
            strbuf_addc(&out, *s);
        }
    }
    return strbuf_detach(&out);
}

bool rerun_file_is_name(const char *name)
{
    static const char suffix[] = ".json";
    const size_t n = strlen(name);
    const size_t m = sizeof(suffix) - 1;
    if (n <= m || n - m > RERUN_NAME_MAX || name[0] == '.' || strcmp(name + n - m, suffix) != 0) {
        return false;
    }
    for (const char *s = name; *s != '\0'; s++) {
        if (!is_plain(*s)) {
            return false;
        }
    }
    return true;
}
