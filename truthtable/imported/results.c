/*
 * Reads a results file of lm-evaluation-harness into entries, checking what the file says twice:
 * item counts in several places, groups against the sum of their tasks, "groups" against "results".
 * A key is "metric,filter" from 0.4 on and "metric" in 0.3; standard errors are keys of their own.
 * Names and counts have limits, because files come from elsewhere.
 */
#include "truthtable/imported/results.h"

#include <assert.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "truthtable/imported/eval_log.h"

#define STDERR      "_stderr"
#define NAME_MAX_OF 256 /* bytes of a key: longer ones cannot be metrics */

static const char *const not_metrics[] = {"alias",        "name",    "sample_len",
                                          "sample_count", "samples", " "};

/* Keys beside the metrics of an entry, of any version. */
static bool is_metric_key(const char *key)
{
    for (size_t i = 0; i < sizeof(not_metrics) / sizeof(not_metrics[0]); i++) {
        if (strcmp(key, not_metrics[i]) == 0) {
            return false;
        }
    }
    return key[0] != '\0';
}

/* "exact_match_stderr,strict-match" into its three parts. */
struct key_parts {
    const char *name;
    const char *filter;
    bool is_stderr;
};

/* "name[_stderr][,filter]"; without a comma the filter is "none". */
static struct key_parts split_key(struct arena *a, const char *key)
{
    const char *comma = strchr(key, ',');
    size_t len = comma == NULL ? strlen(key) : (size_t)(comma - key);
    const size_t tail = strlen(STDERR);
    struct key_parts parts = {.filter = comma == NULL ? "none" : comma + 1};
    /* "exact_match_stderr,strict-match": the suffix precedes the comma. */
    if (len > tail && strncmp(key + len - tail, STDERR, tail) == 0) {
        parts.is_stderr = true;
        len -= tail;
    }
    parts.name = arena_strndup(a, key, len);
    return parts;
}

/* A linear search: an entry has a few metrics. */
static struct results_metric *find_metric(const struct results_entry *e, const char *name,
                                          const char *filter)
{
    for (size_t i = 0; i < e->n_metrics; i++) {
        if (strcmp(e->metrics[i].name, name) == 0 && strcmp(e->metrics[i].filter, filter) == 0) {
            return &e->metrics[i];
        }
    }
    return NULL;
}

const struct results_metric *results_metric(const struct results_entry *e, const char *name,
                                            const char *filter)
{
    return find_metric(e, name, filter);
}

/* A standard error is a number, "N/A", or nothing; 0.0 for a score inside (0, 1) is a known fault
 * of some versions and counts as absent. */
static int take_stderr(struct results_metric *m, const cJSON *v, struct err *err)
{
    if (cJSON_IsNull(v) || (cJSON_IsString(v) && strcmp(v->valuestring, "N/A") == 0)) {
        return 0;
    }
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0)) {
        return err_set(err, ERR_SYNTAX, "\"%s\" is not a standard error", v->string);
    }
    m->has_se = v->valuedouble > 0 || !m->has_value || !(m->value > 0 && m->value < 1);
    m->se = v->valuedouble;
    return 0;
}

/* null is a metric without a number. */
static int take_value(struct results_metric *m, const cJSON *v, struct err *err)
{
    if (cJSON_IsNull(v)) {
        return 0;
    }
    if (!cJSON_IsNumber(v)) {
        return err_set(err, ERR_SYNTAX, "\"%s\" is not a number", v->string);
    }
    m->has_value = true;
    m->value = v->valuedouble;
    return 0;
}

/* Values first: a standard error belongs to a metric that is there. */
static int take_metrics(struct imported_results *r, struct results_entry *e, const cJSON *obj,
                        struct err *err)
{
    int rc = 0;
    const size_t n = (size_t)cJSON_GetArraySize(obj);
    if (n > 2 * RESULTS_METRICS_MAX) {
        return err_set(err, ERR_RANGE, "more than %d metrics", RESULTS_METRICS_MAX);
    }
    e->metrics = arena_array(&r->arena, n + 1, sizeof(*e->metrics));
    /* Pass 0 takes values, pass 1 standard errors, whatever their order in the file. */
    for (int pass = 0; pass < 2; pass++) {
        for (const cJSON *v = obj->child; rc == 0 && v != NULL; v = v->next) {
            if (!is_metric_key(v->string)) {
                continue;
            }
            if (strlen(v->string) > NAME_MAX_OF) {
                return err_set(err, ERR_RANGE, "a key of more than %d bytes", NAME_MAX_OF);
            }
            struct key_parts parts = split_key(&r->arena, v->string);
            struct results_metric *m = find_metric(e, parts.name, parts.filter);
            if (pass == 0 && !parts.is_stderr && m != NULL) {
                rc = err_set(err, ERR_CORRUPT, "\"%s\" and \"%s\" are one metric", m->key,
                             v->string);
            } else if (pass == 0 && !parts.is_stderr) {
                m = &e->metrics[e->n_metrics++];
                *m = (struct results_metric){
                    .key = v->string, .name = parts.name, .filter = parts.filter};
                rc = take_value(m, v, err);
            } else if (pass == 1 && parts.is_stderr && m == NULL) {
                rc = err_set(err, ERR_SYNTAX, "\"%s\" has no score beside it", v->string);
            } else if (pass == 1 && parts.is_stderr) {
                rc = take_stderr(m, v, err);
            }
        }
    }
    return rc;
}

/* One of the places that give the number of items; all must agree. */
static int take_count(struct results_entry *e, const cJSON *obj, const char *key, struct err *err)
{
    int64_t n = 0;
    if (json_member(obj, key) == NULL || cJSON_IsNull(json_member(obj, key))) {
        return 0;
    }
    int rc = json_get_int(obj, key, 0, RESULTS_ITEMS_MAX, &n, err);
    /* Two places that disagree: one of them is wrong, and nothing says which. */
    if (rc == 0 && e->has_n && e->n != n) {
        return err_set(err, ERR_CORRUPT, "\"%s\" is %lld, elsewhere in the file it is %lld items",
                       key, (long long)n, (long long)e->n);
    }
    e->has_n = e->has_n || rc == 0;
    e->n = n;
    return rc;
}

/* The members of a group, as "group_subtasks" lists them; an empty list is a task's. */
static int take_members(struct imported_results *r, struct results_entry *e, struct err *err)
{
    const cJSON *list = json_member(json_member(r->json, "group_subtasks"), e->task);
    if (list == NULL || (cJSON_IsArray(list) && list->child == NULL)) {
        return 0;
    }
    if (!cJSON_IsArray(list)) {
        return err_set(err, ERR_SYNTAX, "\"group_subtasks\" of %.80s is not a list", e->task);
    }
    e->members = arena_array(&r->arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof(*e->members));
    for (const cJSON *v = list->child; v != NULL; v = v->next) {
        if (!cJSON_IsString(v)) {
            return err_set(err, ERR_SYNTAX, "\"group_subtasks\" of %.80s names no task", e->task);
        }
        e->members[e->n_members++] = v->valuestring;
    }
    return 0;
}

/* One task or group of "results". */
static int take_entry(struct imported_results *r, struct results_entry *e, const cJSON *obj,
                      struct err *err)
{
    const cJSON *counts = json_member(json_member(r->json, "n-samples"), obj->string);
    *e = (struct results_entry){.task = obj->string};
    e->config = json_member(json_member(r->json, "configs"), obj->string);
    if (!cJSON_IsObject(obj)) {
        return err_set(err, ERR_SYNTAX, "is not an object");
    }
    int rc = take_metrics(r, e, obj, err);
    if (rc != 0 ||
        (cJSON_IsObject(counts) && (rc = take_count(e, counts, "effective", err)) != 0) ||
        (rc = take_count(e, obj, "sample_len", err)) != 0 ||
        (rc = take_count(e, obj, "samples", err)) != 0) {
        return rc;
    }
    return take_members(r, e, err);
}

static int by_task(const void *a, const void *b)
{
    const struct results_entry *const *x = a;
    const struct results_entry *const *y = b;
    return strcmp((*x)->task, (*y)->task);
}

/* Sorted pointers, for results_find(); the entries stay in the file's order. */
static void index_entries(struct imported_results *r)
{
    r->by_task = arena_array(&r->arena, r->n_entries + 1, sizeof(*r->by_task));
    for (size_t i = 0; i < r->n_entries; i++) {
        r->by_task[i] = &r->entries[i];
    }
    qsort(r->by_task, r->n_entries, sizeof(*r->by_task), by_task);
}

/* Binary search in the sorted pointers. */
const struct results_entry *results_find(const struct imported_results *r, const char *task)
{
    const struct results_entry key = {.task = task};
    const struct results_entry *of = &key;
    const struct results_entry **found =
        bsearch(&of, r->by_task, r->n_entries, sizeof(*r->by_task), by_task);
    return found == NULL ? NULL : *found;
}

/* ---- groups ---- */

#define GROUP_DEPTH_MAX  16
#define GROUP_VISITS_MAX 16384 /* a list that names its tasks over and over */

struct leaves {
    const struct imported_results *r;
    const struct results_entry **list;
    size_t n;
    size_t n_visits;
};

/* Collects the leaves below an entry. Depth and visits are limited: a file may list a group within
 * itself. */
static int add_leaves(struct leaves *l, const struct results_entry *e, int depth, struct err *err)
{
    int rc = 0;
    if (depth > GROUP_DEPTH_MAX || ++l->n_visits > GROUP_VISITS_MAX) {
        return err_set(err, ERR_REFUSED, "group %.80s contains itself", e->task);
    }
    for (size_t i = 0; rc == 0 && i < e->n_members; i++) {
        const struct results_entry *m = results_find(l->r, e->members[i]);
        rc = m != NULL ? add_leaves(l, m, depth + 1, err)
                       : err_set(err, ERR_REFUSED, "group %.80s names %.80s, which has no entry",
                                 e->task, e->members[i]);
    }
    if (rc != 0 || e->n_members > 0) {
        return rc;
    }
    for (size_t i = 0; i < l->n; i++) {
        /* A task may be in several groups; it counts once. */
        if (l->list[i] == e) {
            return 0;
        }
    }
    l->list[l->n++] = e;
    return 0;
}

int results_leaves(struct imported_results *r, const struct results_entry *of,
                   const struct results_entry ***leaves, size_t *n, struct err *err)
{
    struct leaves l = {.r = r};
    l.list = arena_array(&r->arena, r->n_entries + 1, sizeof(*l.list));
    int rc = add_leaves(&l, of, 0, err);
    *leaves = l.list;
    *n = l.n;
    return rc;
}

/* A group has as many items as its leaves. */
static int count_group(struct imported_results *r, struct results_entry *e, struct err *err)
{
    const struct results_entry **leaves = NULL;
    size_t n = 0;
    int64_t sum = 0;
    struct err unclear;
    /* A group that cannot be resolved is refused only if the map asks for it. */
    if (results_leaves(r, e, &leaves, &n, &unclear) != 0) {
        return 0; /* said where the group is asked for */
    }
    for (size_t i = 0; i < n; i++) {
        if (!leaves[i]->has_n) {
            return 0;
        }
        sum += leaves[i]->n;
    }
    if (e->has_n && e->n != sum) {
        return err_set(err, ERR_CORRUPT, "%.80s: %lld items, its tasks have %lld", e->task,
                       (long long)e->n, (long long)sum);
    }
    e->has_n = true;
    e->n = sum;
    return 0;
}

/* After every change of a task's count. */
static int count_groups(struct imported_results *r, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->n_entries; i++) {
        rc = r->entries[i].n_members > 0 ? count_group(r, &r->entries[i], err) : 0;
    }
    return rc;
}

/* Samples may tell how many items a task had; the file did not. */
int results_set_count(struct imported_results *r, const struct results_entry *task, int64_t n,
                      struct err *err)
{
    struct results_entry *e = &r->entries[task - r->entries];
    assert(!e->has_n && e->n_members == 0);
    e->has_n = true;
    e->n = n;
    return count_groups(r, err);
}

/* ---- the file ---- */

/* "groups" repeats figures of "results"; both must be equal. */
static int compare_groups(const struct imported_results *r, struct err *err)
{
    const cJSON *group = NULL;
    const cJSON *again = NULL;
    cJSON_ArrayForEach(group, json_member(r->json, "groups"))
    {
        const cJSON *said = json_member(json_member(r->json, "results"), group->string);
        cJSON_ArrayForEach(again, group)
        {
            const cJSON *v = again->string == NULL ? NULL : json_member(said, again->string);
            if (cJSON_IsNumber(v) && cJSON_IsNumber(again) &&
                v->valuedouble != again->valuedouble) {
                return err_set(err, ERR_CORRUPT, "groups.%.80s: \"%s\" is %.17g, in results %.17g",
                               group->string, again->string, again->valuedouble, v->valuedouble);
            }
        }
    }
    return 0;
}

/* config.limit: a number of items, or a share of them below 1. */
static int take_limit(struct imported_results *r, struct err *err)
{
    const cJSON *limit = json_member(json_member(r->json, "config"), "limit");
    if (limit == NULL || cJSON_IsNull(limit)) {
        return 0;
    }
    if (!cJSON_IsNumber(limit) || !(limit->valuedouble > 0)) {
        return err_set(err, ERR_SYNTAX, "config.limit is not a number above 0");
    }
    r->has_limit = true;
    r->limit = limit->valuedouble;
    return 0;
}

/* Entries first; groups need all of them. */
static int take_all(struct imported_results *r, struct err *err)
{
    const cJSON *list = NULL;
    int rc = json_get_object(r->json, "results", &list, err);
    if (rc != 0) {
        return err_wrap(
            err, "not a results file of lm-evaluation-harness, a log of Inspect, or a file of "
                 "Every Eval Ever");
    }
    const size_t n = (size_t)cJSON_GetArraySize(list);
    /* Before anything is allocated by the number. */
    if (n > RESULTS_TASKS_MAX) {
        return err_set(err, ERR_RANGE, "more than %d tasks", RESULTS_TASKS_MAX);
    }
    r->entries = arena_array(&r->arena, n + 1, sizeof(*r->entries));
    for (const cJSON *v = list->child; rc == 0 && v != NULL; v = v->next) {
        rc = take_entry(r, &r->entries[r->n_entries], v, err);
        r->n_entries++;
        if (rc != 0) {
            (void)err_wrap(err, "results.%.80s", v->string);
        }
    }
    index_entries(r);
    if (rc != 0 || (rc = count_groups(r, err)) != 0 || (rc = compare_groups(r, err)) != 0) {
        return rc;
    }
    return take_limit(r, err);
}

static void start(struct imported_results *r, const char *path)
{
    *r = (struct imported_results){.shape = {.checked = STRBUF_INIT}};
    arena_init(&r->arena);
    r->path = arena_strdup(&r->arena, path);
}

/* Messages begin with the path, then the entry, then the key. */
static int finish(struct imported_results *r, int rc, struct err *err)
{
    if (rc != 0 || (rc = shape_results(&r->json, &r->shape, err)) != 0 ||
        (rc = take_all(r, err)) != 0) {
        return err_wrap(err, "%s", r->path);
    }
    return 0;
}

int results_parse(struct imported_results *r, const char *text, size_t len, const char *path,
                  struct err *err)
{
    start(r, path);
    return finish(r, json_parse_lax(text, len, &r->json, err), err);
}

/* The digest is of the very bytes that were parsed. */
static int read_text(struct imported_results *r, const char *path, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = file_read(path, RESULTS_BYTES_MAX, &text, err);
    if (rc == 0) {
        rc = results_parse(r, text.buf, text.len, path, err);
        r->digest = digest_bytes(text.buf, text.len);
        r->n_bytes = (int64_t)text.len;
    }
    strbuf_release(&text);
    return rc;
}

/* A file that can only be a log of Inspect, which may be larger than memory. */
static int read_eval_log(struct imported_results *r, int fd, const char *path, struct err *err)
{
    start(r, path);
    int rc = finish(r, eval_log_read(fd, &r->json, err), err);
    if (rc == 0 && r->shape.format == NULL) {
        rc = err_set(err, ERR_SYNTAX, "%s: a zip file that is not a log of Inspect", path);
    }
    char *same = xasprintf("/proc/self/fd/%d", fd); /* not what has the name by now */
    rc = rc == 0 ? digest_file(same, &r->digest, &r->n_bytes, err) : rc;
    free(same);
    return rc;
}

int results_read(struct imported_results *r, const char *path, struct err *err)
{
    *r = (struct imported_results){.shape = {.checked = STRBUF_INIT}};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int rc = fd >= 0 && eval_log_is(fd) ? read_eval_log(r, fd, path, err) : read_text(r, path, err);
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc;
}

/* Everything handed out becomes invalid. */
void results_release(struct imported_results *r)
{
    cJSON_Delete(r->json);
    shape_release(&r->shape);
    arena_release(&r->arena);
    *r = (struct imported_results){.shape = {.checked = STRBUF_INIT}};
}
