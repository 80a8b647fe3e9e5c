/* Reads a verified receipt into struct receipt_source: plan and lock, verdict, provenance, and what
 * each task gave. Nothing is judged here: the receipt was verified before. */
#include "ctl/formats/source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "ctl/receipt/plan.h"
#include "prereg/amend/amendment.h"
#include "truthtable/evidence/curve_events.h"

#define CURVES_MAX 256 /* names of one task: a worker that makes up more is not drawn */

/* ---- tasks ---- */

/* The task that a record names; NULL for none of the plan's. */
static struct source_task *task_named(const struct receipt_source *s, const cJSON *o)
{
    const cJSON *cell = json_member(o, "cell");
    const cJSON *stage = json_member(o, "stage");
    if (!cJSON_IsString(cell) || !cJSON_IsString(stage)) {
        return NULL;
    }
    const size_t c = program_find_cell(s->program, cell->valuestring);
    const size_t k = program_find_stage(s->program, stage->valuestring);
    return c == INDEX_NONE || k == INDEX_NONE ? NULL : &s->tasks[c * s->program->n_stages + k];
}

static const char *member_text(const cJSON *o, const char *key)
{
    const cJSON *m = json_member(o, key);
    return cJSON_IsString(m) ? m->valuestring : NULL;
}

/* A line of records.jsonl; the number of its accepted attempt is remembered in `accepted`. */
static int take_line(struct receipt_source *s, const char *text, size_t len, double *accepted,
                     struct err *err)
{
    cJSON *line = NULL;
    cJSON *result = NULL;
    int rc = tree_parse(text, len, false, &s->arena, &line, err);
    struct source_task *t = rc == 0 ? task_named(s, line) : NULL;
    if (t == NULL) {
        return rc;
    }
    const char *own = member_text(line, "result");
    const cJSON *attempt = json_member(line, "attempt");
    t->cause = member_text(line, "cause");
    accepted[t - s->tasks] = cJSON_IsNumber(attempt) ? attempt->valuedouble : -1;
    if (own != NULL && (rc = tree_parse(own, strlen(own), true, &s->arena, &result, err)) == 0) {
        t->result = result;
    }
    return rc;
}

static int read_executed(struct receipt_source *s, double *accepted, struct err *err)
{
    struct receipt_lines lines;
    const char *text = NULL;
    size_t len = 0;
    int rc = lines_open(&lines, &s->files, RECEIPT_RECORDS, RECEIPT_LINE_MAX, err);
    while (rc == 0 && (rc = lines_next(&lines, &text, &len, err)) == 0 && text != NULL) {
        rc = take_line(s, text, len, accepted, err);
    }
    lines_release(&lines);
    return rc;
}

/* Records without an end are of tasks that are done, as evidence reads them. */
static int read_imported(struct receipt_source *s, struct err *err)
{
    cJSON *file = NULL;
    const cJSON *r = NULL;
    int rc = files_read_tree(&s->files, RECEIPT_GIVEN, &s->arena, &file, err);
    if (rc != 0) {
        return rc;
    }
    cJSON_ArrayForEach(r, json_member(file, "records"))
    {
        struct source_task *t = task_named(s, r);
        const char *end = member_text(r, "end");
        if (t != NULL) {
            t->result = end == NULL || strcmp(end, "done") == 0 ? r : NULL;
            t->cause = member_text(r, "cause");
        }
    }
    return 0;
}

/* The accepted attempts, and when each ended. */
static void join_attempts(struct receipt_source *s, const double *accepted)
{
    const cJSON *o = NULL;
    cJSON_ArrayForEach(o, json_member(s->provenance, "tasks"))
    {
        struct source_task *t = task_named(s, o);
        const cJSON *a = NULL;
        cJSON_ArrayForEach(a, json_member(o, "attempts"))
        {
            const cJSON *no = json_member(a, "no");
            const char *ended = member_text(a, "ended");
            if (t != NULL && t->result != NULL && cJSON_IsNumber(no) &&
                no->valuedouble == accepted[t - s->tasks]) {
                t->attempt = a;
                (void)!(ended != NULL && clock_wall_parse(ended, &t->ended));
            }
        }
        if (t != NULL && t->ended.ms > s->ended.ms) {
            s->ended = t->ended;
        }
    }
}

static int read_tasks(struct receipt_source *s, struct err *err)
{
    const size_t n = program_n_tasks(s->program);
    double *accepted = xcalloc(n + 1, sizeof(*accepted));
    s->tasks = xcalloc(n + 1, sizeof(*s->tasks));
    int rc = s->imported ? read_imported(s, err) : read_executed(s, accepted, err);
    if (rc == 0) {
        join_attempts(s, accepted);
    }
    if (s->ended.ms == 0) {
        s->ended = lock_made_at(s->lock);
    }
    free(accepted);
    return rc;
}

/* ---- the whole ---- */

static int read_tree(struct receipt_source *s, const char *name, const cJSON **out, struct err *err)
{
    cJSON *tree = NULL;
    int rc = files_read_tree(&s->files, name, &s->arena, &tree, err);
    *out = tree;
    return rc;
}

int source_open(struct receipt_source *s, const char *receipt, const char *program_folder,
                struct err *err)
{
    const cJSON *statement = NULL;
    *s = (struct receipt_source){.program_folder = program_folder};
    arena_init(&s->arena);
    int rc = files_open(&s->files, receipt, err);
    if (rc != 0 || (rc = plan_read(&s->files, RECEIPT_GRID, &s->program, err)) != 0 ||
        (rc = lock_read_amended(receipt, &s->lock, err)) != 0 ||
        (rc = read_tree(s, RECEIPT_VERDICT, &s->verdict, err)) != 0 ||
        (rc = read_tree(s, RECEIPT_PROVENANCE, &s->provenance, err)) != 0 ||
        (rc = read_tree(s, RECEIPT_STATEMENT, &statement, err)) != 0) {
        return err_wrap(err, "read the receipt");
    }
    s->id = lock_program_id(s->lock);
    s->imported = files_have(&s->files, RECEIPT_IMPORTED);
    s->tool = member_text(json_member(json_member(statement, "predicate"), "tool"), "version");
    return read_tasks(s, err);
}

void source_release(struct receipt_source *s)
{
    free(s->tasks);
    free(s->id);
    lock_free(s->lock);
    program_free(s->program);
    files_release(&s->files);
    arena_release(&s->arena);
    *s = (struct receipt_source){.files = {.fd = -1}};
}

const struct source_task *source_task(const struct receipt_source *s, size_t cell, size_t stage)
{
    return &s->tasks[cell * s->program->n_stages + stage];
}

struct evidence_value source_metric(const struct receipt_source *s, size_t cell, size_t stage,
                                    const char *metric)
{
    const cJSON *metrics = json_member(source_task(s, cell, stage)->result, "metrics");
    return evidence_value_of(json_member(metrics, metric));
}

/* ---- curves ---- */

static struct source_curve *curve_named(struct source_curves *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(c->items[i].name, name) == 0) {
            return &c->items[i];
        }
    }
    if (c->n == CURVES_MAX) {
        return NULL;
    }
    ARRAY_GROW(c->items, c->n, c->cap);
    c->items[c->n] = (struct source_curve){.name = xstrdup(name)};
    return &c->items[c->n++];
}

static void take_curve_point(void *ctx, const char *name, double x, double y)
{
    struct source_curve *c = x >= 0 && x <= (double)JSON_INT_MAX ? curve_named(ctx, name) : NULL;
    if (c != NULL) {
        curve_points_add(&c->points, round(x), y);
    }
}

void source_read_curves(const struct receipt_source *s, size_t cell, size_t stage,
                        struct source_curves *out)
{
    *out = (struct source_curves){0};
    if (s->program_folder != NULL) {
        char *path = layout_task(s->program_folder, s->program->cells[cell].folder,
                                 s->program->stages[stage].name);
        (void)curve_events_read_task(path, take_curve_point, out);
        free(path);
    }
}

void source_curves_release(struct source_curves *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->items[i].name);
        curve_points_release(&c->items[i].points);
    }
    free(c->items);
    *c = (struct source_curves){0};
}
