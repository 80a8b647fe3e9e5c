/* Spans of [run]s for each task, and what follows from them. The rows of a [run] are few, those of
 * tasks are many: a task has two numbers. */
#include "state/journal/run_record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/program/run_limits.h"
#include "state/journal/line.h"

#define NO_LIMITS   UINT32_MAX
#define NAMES_SHOWN 8

/* Limits are numbered in the order in which they stood; a [run] that changes none of them (its
 * slots, say) has the number of the one before. */
struct task_span {
    uint32_t first; /* NO_LIMITS: no attempt since it was last retried or revived */
    uint32_t last;
};

struct run_answer { /* of the last question about a stage: most tasks have the same answer */
    struct task_span span;
    char *text; /* NULL: not narrower */
};

struct run_record {
    const struct plan_program *program;
    size_t n_tasks;
    struct task_span *spans;
    struct run_limits *limits; /* [number * n_stages + stage] */
    size_t n_limits;
    size_t cap_limits;
    bool too_many;
    struct run_record_seen seen;
    cJSON *list;     /* as run_record_json() has it */
    uint32_t *n_had; /* [stage * n_limits + number]: tasks that have had it; NULL: not counted */
    struct run_answer *found; /* [stage] */
    size_t n_found;           /* stages; 0: not counted */
};

struct run_record *run_record_create(const struct plan_program *p)
{
    struct run_record *r = xcalloc(1, sizeof(*r));
    r->program = p;
    r->n_tasks = p == NULL ? 0 : program_n_tasks(p);
    r->spans = xcalloc(r->n_tasks + 1, sizeof(*r->spans));
    for (size_t i = 0; i < r->n_tasks; i++) {
        r->spans[i].first = NO_LIMITS;
    }
    r->list = json_array();
    return r;
}

/* What was counted holds no longer. */
static void forget(struct run_record *r)
{
    for (size_t s = 0; s < r->n_found; s++) { /* the program may be gone */
        free(r->found[s].text);
    }
    free(r->n_had);
    free(r->found);
    r->n_had = NULL;
    r->found = NULL;
    r->n_found = 0;
}

void run_record_free(struct run_record *r)
{
    if (r != NULL) {
        cJSON_Delete(r->list);
        free(r->spans);
        free(r->limits);
        forget(r);
        free(r);
    }
}

/* ---- rows ---- */

static int add_limits(struct run_record *r, const cJSON *run, struct err *err)
{
    const struct plan_program *p = r->program;
    int rc = 0;
    if (p == NULL || r->too_many) {
        return 0;
    }
    if (r->n_limits == r->cap_limits) {
        r->cap_limits = r->cap_limits == 0 ? 2 : r->cap_limits * 2;
        r->limits = xreallocarray(r->limits, r->cap_limits * p->n_stages, sizeof(*r->limits));
    }
    struct run_limits *now = r->limits + r->n_limits * p->n_stages;
    const struct run_limits *before = r->n_limits == 0 ? NULL : now - p->n_stages;
    for (size_t s = 0; rc == 0 && s < p->n_stages; s++) {
        rc = run_limits_read(run, p->stages[s].name, &now[s], err);
    }
    if (rc == 0 && (before == NULL || memcmp(before, now, p->n_stages * sizeof(*now)) != 0)) {
        r->too_many = r->n_limits == RUN_CHANGES_MAX;
        r->n_limits += !r->too_many;
    }
    return rc;
}

int run_record_set(struct run_record *r, int64_t row, const cJSON *run, struct err *err)
{
    assert(r != NULL);
    cJSON *o = json_object();
    forget(r);
    json_put_int(o, "row", row);
    json_put(o, "run", run == NULL ? json_object() : json_copy(run));
    json_put_int(o, "blocked", 0);
    json_put(o, "first", json_array());
    json_push(r->list, o);
    return add_limits(r, run, err);
}

static cJSON *last_run(const struct run_record *r)
{
    return r->list->child == NULL ? NULL : r->list->child->prev; /* cJSON: the last one */
}

static void note_blocked(struct run_record *r, const cJSON *line, const struct state_row *row)
{
    cJSON *run = last_run(r);
    const cJSON *task = json_member(line, "task");
    const char *cell = cJSON_GetStringValue(json_member(task, "cell"));
    const char *stage = cJSON_GetStringValue(json_member(task, "stage"));
    if (run == NULL || cell == NULL || stage == NULL) {
        return;
    }
    cJSON *n = cJSON_GetObjectItemCaseSensitive(run, "blocked");
    cJSON *first = cJSON_GetObjectItemCaseSensitive(run, "first");
    cJSON_SetNumberValue(n, n->valuedouble + 1);
    if (n->valuedouble <= NAMES_SHOWN) {
        char *name = xasprintf("%s/%s (%s)", cell, stage, cause_name(row->after.cause));
        json_push_string(first, name);
        free(name);
    }
}

void run_record_take(struct run_record *r, const cJSON *line, const struct state_row *row)
{
    assert(r != NULL && line != NULL && row != NULL);
    if (row->apparatus != NULL) {
        return;
    }
    if (row->after.state == TASK_BLOCKED && row->from != TASK_BLOCKED) {
        note_blocked(r, line, row);
    }
    if (row->task >= r->n_tasks || r->n_limits == 0) {
        return;
    }
    forget(r);
    struct task_span *span = &r->spans[row->task];
    const uint32_t now = (uint32_t)r->n_limits - 1;
    if (row->kind == ROW_TASK_RETRIED || row->kind == ROW_TASK_REVIVED) {
        span->first = NO_LIMITS;
    } else if (row->kind == ROW_ATTEMPT_STARTED || row->kind == ROW_ATTEMPT_ENDED) {
        span->first = span->first == NO_LIMITS ? now : span->first;
        span->last = now;
    }
}

/* ---- what follows ---- */

static void count_had(struct run_record *r)
{
    const size_t n_stages = r->program->n_stages;
    r->n_had = xcalloc(n_stages * r->n_limits + 1, sizeof(*r->n_had));
    r->found = xcalloc(n_stages, sizeof(*r->found));
    r->n_found = n_stages;
    for (size_t s = 0; s < n_stages; s++) {
        r->found[s].span.first = NO_LIMITS;
    }
    /* Begins and ends first, then their running sum: a span costs the same however long. */
    for (size_t i = 0; i < r->n_tasks; i++) {
        const struct task_span *span = &r->spans[i];
        uint32_t *had = r->n_had + i % n_stages * r->n_limits;
        if (span->first == NO_LIMITS) {
            continue;
        }
        had[span->first]++;
        if (span->last + 1 < r->n_limits) {
            had[span->last + 1]--; /* wraps below 0 and back in the sum */
        }
    }
    for (size_t i = 0; i < n_stages * r->n_limits; i++) {
        r->n_had[i] += i % r->n_limits == 0 ? 0 : r->n_had[i - 1];
    }
}

struct extremes { /* of one limit */
    bool has_set;
    bool has_unset; /* 0: no limit, measured */
    int64_t low;    /* of those that are set */
    int64_t high;
};

static void see(struct extremes *e, int64_t value)
{
    if (value == 0) {
        e->has_unset = true;
        return;
    }
    e->low = !e->has_set || value < e->low ? value : e->low;
    e->high = !e->has_set || value > e->high ? value : e->high;
    e->has_set = true;
}

/* Of all pairs, the one that shows the most; false: no own one is narrower. */
static bool find_narrower(enum run_limit limit, const struct extremes *own,
                          const struct extremes *others, int64_t pair[2])
{
    const int64_t own_values[2] = {own->low, 0};
    const int64_t others_values[2] = {0, others->high};
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < 2; k++) {
            const bool there = (i == 0 ? own->has_set : own->has_unset) &&
                               (k == 0 ? others->has_unset : others->has_set);
            if (there && run_limit_is_narrower(limit, own_values[i], others_values[k])) {
                pair[0] = own_values[i];
                pair[1] = others_values[k];
                return true;
            }
        }
    }
    return false;
}

static void add_pair(struct strbuf *text, enum run_limit limit, const int64_t pair[2])
{
    char own[RUN_LIMIT_TEXT_SIZE];
    char others[RUN_LIMIT_TEXT_SIZE];
    run_limit_text(limit, pair[0], own);
    run_limit_text(limit, pair[1], others);
    strbuf_addf(text, "%s%s, others of its stage had %s", text->len == 0 ? "" : "; ", own, others);
}

/* Returns what run_record_narrower() says of such a task: heap memory, or NULL. */
static char *compare(const struct run_record *r, size_t stage, const struct task_span *span)
{
    const size_t n_stages = r->program->n_stages;
    const uint32_t *had = r->n_had + stage * r->n_limits;
    struct strbuf text = STRBUF_INIT;
    for (int limit = 0; limit < RUN_LIMIT_NR; limit++) {
        struct extremes own = {0};
        struct extremes others = {0};
        int64_t pair[2];
        for (size_t i = 0; i < r->n_limits; i++) {
            const bool is_own = i >= span->first && i <= span->last;
            const int64_t value = r->limits[i * n_stages + stage].of[limit];
            if (is_own) {
                see(&own, value);
            }
            if (had[i] > (is_own ? 1U : 0U)) {
                see(&others, value);
            }
        }
        if (find_narrower((enum run_limit)limit, &own, &others, pair)) {
            add_pair(&text, (enum run_limit)limit, pair);
        }
    }
    char *kept = text.len == 0 ? NULL : xstrdup(text.buf);
    strbuf_release(&text);
    return kept;
}

const char *run_record_narrower(struct run_record *r, size_t task, enum cause cause)
{
    assert(r != NULL && task < r->n_tasks);
    const struct task_span *span = &r->spans[task];
    if (!cause_is_mechanical(cause) || r->n_limits < 2 || span->first == NO_LIMITS) {
        return NULL;
    }
    if (r->too_many) {
        return "the limits of [run] were changed more than 1000 times";
    }
    if (r->n_had == NULL) {
        count_had(r);
    }
    const size_t stage = task % r->program->n_stages;
    struct run_answer *found = &r->found[stage];
    if (found->span.first != span->first || found->span.last != span->last) {
        free(found->text);
        *found = (struct run_answer){*span, compare(r, stage, span)};
    }
    return found->text;
}

cJSON *run_record_json(const struct run_record *r)
{
    assert(r != NULL);
    return json_copy(r->list);
}

struct run_record_seen *run_record_seen(struct run_record *r)
{
    assert(r != NULL);
    return &r->seen;
}

/* ---- lines ---- */

/* The journal's lines are canonical, so a member is found in the text; most lines need not be
 * parsed. */
static bool is_wanted(int64_t row, const char *text, bool every_task)
{
    return row == 1 || strstr(text, "\"event\":\"run_settings\"") != NULL ||
           strstr(text, "\"state\":\"blocked\"") != NULL ||
           (every_task && strstr(text, "\"task\":{") != NULL);
}

static int take_settings(struct run_record *r, int64_t row, const cJSON *line, struct err *err)
{
    const char *text = NULL;
    cJSON *run = NULL;
    int rc = json_get_string(line, "detail", &text, err);
    if (rc != 0 || (rc = json_parse(text, strlen(text), &run, err)) != 0) {
        return rc;
    }
    rc = run_record_set(r, row, run, err);
    cJSON_Delete(run);
    return rc;
}

int run_record_take_line(struct run_record *r, int64_t row, const char *text, bool every_task,
                         struct err *err)
{
    assert(r != NULL && text != NULL);
    struct state_row parsed;
    cJSON *line = NULL;
    if (!is_wanted(row, text, every_task)) {
        return 0;
    }
    int rc = json_parse(text, strlen(text), &line, err);
    if (rc != 0 || (rc = line_to_row(line, 1, &parsed, err)) != 0) {
        goto out;
    }
    if (parsed.kind == ROW_SUBMITTED) {
        rc = run_record_set(r, row, json_member(line, "run"), err);
    } else if (parsed.kind == ROW_RUN_SETTINGS) {
        rc = take_settings(r, row, line, err);
    } else if (row_kind_is_of_task(parsed.kind)) {
        run_record_take(r, line, &parsed);
    }
out:
    cJSON_Delete(line);
    return rc == 0 ? 0 : err_wrap(err, "row %lld of the journal", (long long)row);
}
