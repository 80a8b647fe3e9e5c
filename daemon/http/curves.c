/*
 * Curves for the page. The loop copies what the job needs to know of the plan; the job reads the
 * points of the stage's tasks, and groups them.
 *
 * Grouping: the steps of an arm are its groups while there are no more of them than points were
 * asked for, else equal stretches of all steps are. A group has the mean of its cells' means and
 * the least and greatest value of any, so that thinning hides no excursion.
 */
#include "daemon/http/curves.h"

#include <string.h>

#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/answers/answer.h"
#include "daemon/http/curve_groups.h"
#include "truthtable/evidence/curve_events.h"

#define POINTS      400 /* of an arm, and of all arms together at most POINTS_ALL */
#define POINTS_ALL  20000
#define POINTS_FEW  100 /* but of an arm at least these */
#define METRICS_MAX ((size_t)64)
#define NAMED_TASKS ((size_t)3) /* with points, of a stage: their names are the stage's */
/* Points of all cells together, while each has KEPT_CELL; beyond its share a cell is thinned. */
#define KEPT_MAX  ((size_t)1 << 20)
#define KEPT_CELL ((size_t)1024)

struct curves_question {
    char *text;       /* what is asked, for kept.h */
    uint64_t version; /* of the program */
    bool final;
    int64_t began_ns;
    char *folder;  /* of the program */
    char **stages; /* one, or all for a list */
    bool *sealed;
    size_t n_stages;
    char *metric; /* NULL: a list of what there is */
    size_t n_points;
    bool with_cells;
    struct {
        char *name;
        char *folder;
        size_t arm;
    } * cells;
    size_t n_cells;
    char **arms;
    size_t n_arms;
};

bool curves_are_sealed(const struct hosted *h, size_t stage)
{
    return program_stage_is_sealed(h->bundle->program, stage) && !h->status.unsealed &&
           !h->status.unblinded;
}

static void free_question(void *question)
{
    struct curves_question *q = question;
    for (size_t i = 0; i < q->n_stages; i++) {
        free(q->stages[i]);
    }
    for (size_t i = 0; i < q->n_cells; i++) {
        free(q->cells[i].name);
        free(q->cells[i].folder);
    }
    for (size_t i = 0; i < q->n_arms; i++) {
        free(q->arms[i]);
    }
    free(q->stages);
    free(q->sealed);
    free(q->cells);
    free(q->arms);
    free(q->folder);
    free(q->metric);
    free(q->text);
    free(q);
}

/* ---- a list of the metrics ---- */

struct metric_names {
    char *items[METRICS_MAX];
    size_t n;
    bool any; /* the task had points */
};

static void take_name(void *ctx, const char *name, double x, double y)
{
    struct metric_names *names = ctx;
    (void)x;
    (void)y;
    names->any = true;
    for (size_t i = 0; i < names->n; i++) {
        if (strcmp(names->items[i], name) == 0) {
            return;
        }
    }
    if (names->n < METRICS_MAX) {
        names->items[names->n++] = xstrdup(name);
    }
}

static void list_stage(const struct page_job *j, size_t stage, cJSON *list)
{
    const struct curves_question *q = j->question;
    struct metric_names names = {.n = 0};
    size_t n_tasks = 0;
    for (size_t c = 0; c < q->n_cells && n_tasks < NAMED_TASKS && !page_job_is_stopped(j); c++) {
        char *task = layout_task(q->folder, q->cells[c].folder, q->stages[stage]);
        names.any = false;
        (void)curve_events_read_task(task, take_name, &names);
        n_tasks += names.any;
        free(task);
    }
    for (size_t i = 0; i < names.n; i++) {
        cJSON *o = json_object();
        json_put_string(o, "stage", q->stages[stage]);
        json_put_string(o, "metric", names.items[i]);
        json_put_null(o, "unit");
        json_put_bool(o, "sealed", q->sealed[stage]);
        json_push(list, o);
        free(names.items[i]);
    }
}

static int list_read(struct page_job *j, struct err *err)
{
    struct curves_question *q = j->question;
    cJSON *o = json_object();
    cJSON *list = json_array();
    (void)err;
    q->began_ns = clock_mono_ns();
    for (size_t s = 0; s < q->n_stages; s++) {
        list_stage(j, s, list);
    }
    json_put(o, "metrics", list);
    reply_json(&j->reply, o);
    cJSON_Delete(o);
    return 0;
}

/* ---- one metric ---- */

struct wanted_curve {
    const char *metric;
    struct curve_points *points;
    size_t share; /* of the points that are kept */
};

static void take_point(void *ctx, const char *name, double x, double y)
{
    const struct wanted_curve *w = ctx;
    if (strcmp(name, w->metric) == 0) {
        curve_points_add(w->points, x, y);
        if (w->points->n >= w->share) {
            curve_points_thin(w->points);
        }
    }
}

static int curves_read(struct page_job *j, struct err *err)
{
    struct curves_question *q = j->question;
    struct curve_cell *cells = xcalloc(q->n_cells + 1, sizeof(*cells));
    cJSON *o = json_object();
    cJSON *arms = json_array();
    cJSON *singles = json_array();
    const size_t share = KEPT_MAX / (q->n_cells + 1);
    (void)err;
    q->began_ns = clock_mono_ns();
    for (size_t c = 0; c < q->n_cells && !page_job_is_stopped(j); c++) {
        struct wanted_curve w = {.metric = q->metric,
                                 .points = &cells[c].points,
                                 .share = share > KEPT_CELL ? share : KEPT_CELL};
        char *task = layout_task(q->folder, q->cells[c].folder, q->stages[0]);
        cells[c].arm = q->cells[c].arm;
        (void)curve_events_read_task(task, take_point, &w);
        free(task);
    }
    for (size_t a = 0; a < q->n_arms; a++) {
        cJSON *arm = curve_arm_json(cells, q->n_cells, a, q->n_points);
        if (arm != NULL) {
            json_put_string(arm, "name", q->arms[a]);
            json_push(arms, arm);
        }
    }
    for (size_t c = 0; c < q->n_cells; c++) {
        if (q->with_cells && cells[c].points.n > 0) {
            cJSON *one = json_object();
            json_put_string(one, "name", q->cells[c].name);
            json_put_string(one, "arm", q->arms[q->cells[c].arm]);
            json_put(one, "points", curve_points_json(&cells[c].points, q->n_points));
            json_push(singles, one);
        }
        curve_points_release(&cells[c].points);
    }
    json_put_string(o, "stage", q->stages[0]);
    json_put_string(o, "metric", q->metric);
    json_put_string(o, "x", "step");
    json_put(o, "arms", arms);
    json_put(o, "cells", singles);
    reply_json(&j->reply, o);
    cJSON_Delete(o);
    free(cells);
    return 0;
}

/* ---- the question ---- */

/* stage: INDEX_NONE, all of them. */
static struct curves_question *ask(const struct hosted *h, size_t stage)
{
    const struct plan_program *p = h->bundle->program;
    struct curves_question *q = xcalloc(1, sizeof(*q));
    q->folder = xstrdup(h->folder);
    q->stages = xcalloc(p->n_stages, sizeof(*q->stages));
    q->sealed = xcalloc(p->n_stages, sizeof(*q->sealed));
    q->cells = xcalloc(p->n_cells, sizeof(*q->cells));
    q->arms = xcalloc(p->n_conditions, sizeof(*q->arms));
    for (size_t s = 0; s < p->n_stages; s++) {
        if (stage == INDEX_NONE || s == stage) {
            q->sealed[q->n_stages] = curves_are_sealed(h, s);
            q->stages[q->n_stages++] = xstrdup(p->stages[s].name);
        }
    }
    for (size_t c = 0; c < p->n_cells; c++) {
        q->cells[c].name = xstrdup(p->cells[c].name);
        q->cells[c].folder = xstrdup(p->cells[c].folder);
        q->cells[c].arm = p->cells[c].condition;
    }
    for (size_t k = 0; k < p->n_conditions; k++) {
        q->arms[k] = xstrdup(p->conditions[k].name);
    }
    q->n_cells = p->n_cells;
    q->n_arms = p->n_conditions;
    return q;
}

static int find_stage(const struct hosted *h, const cJSON *params, size_t *stage,
                      const char **metric, struct err *err)
{
    const char *name = NULL;
    *stage = INDEX_NONE;
    *metric = NULL;
    if (json_opt_string(params, "stage", &name, err) != 0 ||
        json_opt_string(params, "metric", metric, err) != 0) {
        return err->code;
    }
    if ((name == NULL) != (*metric == NULL)) {
        return err_set(err, ERR_USAGE, "stage and metric belong together");
    }
    if (name != NULL && (*stage = program_find_stage(h->bundle->program, name)) == INDEX_NONE) {
        return err_set(err, ERR_NOT_FOUND, "%.80s has no stage \"%.60s\"", h->id, name);
    }
    return 0;
}

static void keep(struct page_job *j)
{
    const struct curves_question *q = j->question;
    kept_add(&j->http->kept,
             &(struct kept_new){.question = q->text,
                                .bytes = j->reply.body.buf,
                                .len = j->reply.body.len,
                                .version = q->version,
                                .final = q->final,
                                .began_ns = q->began_ns},
             clock_mono_ns());
}

/* From what is kept, or by a job that reads the points. */
static void answer(struct page_request *r, const struct hosted *h, struct curves_question *q)
{
    struct http *http = r->http;
    q->began_ns = clock_mono_ns();
    q->version = h->version;
    q->final = h->status.verdict && !h->status.removed;
    q->text = xasprintf("%u %zu %d %s\n%s", h->no, q->n_points, q->with_cells,
                        q->metric == NULL ? "" : q->stages[0], q->metric == NULL ? "" : q->metric);
    const struct kept_answer *kept =
        kept_find(&http->kept, q->text, q->version, q->final, q->began_ns);
    if (kept != NULL) {
        strbuf_add(&r->reply.body, kept->bytes, kept->len);
        r->ready = true;
        free_question(q);
        return;
    }
    struct page_job *j = page_job_new(q->metric == NULL ? list_read : curves_read);
    j->question = q;
    j->free_question = free_question;
    j->keep = keep;
    page_job_start(r, j);
}

void curves_serve(struct page_request *r, const cJSON *params)
{
    struct hosted *h = NULL;
    struct err err;
    size_t stage = INDEX_NONE;
    const char *metric = NULL;
    int64_t points = 0;
    int64_t with_cells = 0;
    int rc = answer_find_program(r->http->shell, params, &h, &err);
    rc = rc == 0 ? find_stage(h, params, &stage, &metric, &err) : rc;
    rc = rc == 0 ? json_opt_int(params, "points", 1, JSON_INT_MAX, &points, &err) : rc;
    rc = rc == 0 ? json_opt_int(params, "cells", 0, 1, &with_cells, &err) : rc;
    if (rc != 0) {
        reply_error(&r->reply, &err);
        r->ready = true;
        return;
    }
    if (metric != NULL && curves_are_sealed(h, stage)) {
        reply_refuse(&r->reply, MHD_HTTP_CONFLICT, "sealed",
                     "sealed until the verdict: a counted measure reads this stage");
        r->ready = true;
        return;
    }
    struct curves_question *q = ask(h, stage);
    const size_t fair = POINTS_ALL / (q->n_arms + 1);
    q->metric = metric == NULL ? NULL : xstrdup(metric);
    q->n_points = points > 0          ? (size_t)points
                  : fair > POINTS     ? POINTS
                  : fair < POINTS_FEW ? POINTS_FEW
                                      : fair;
    q->with_cells = with_cells == 1;
    answer(r, h, q);
}
