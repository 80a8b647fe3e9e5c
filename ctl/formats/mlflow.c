/* mlflow: a file store of MLflow, mlruns/EXPERIMENT/RUN. The program is the experiment, each cell a
 * run: its levels and its stages' parameters are params, results are metrics, curves metrics with
 * steps. Identifiers follow from the root and the cell's name, so the same receipt gives the same
 * bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/formats/writers.h"

#define MLFLOW_VALUE_MAX 6000 /* bytes of a param or tag */
#define MLFLOW_FINISHED  3    /* RunStatus */
#define MLFLOW_FAILED    4

struct mlflow_run {
    const struct receipt_source *s;
    const struct format_output *out;
    size_t cell;
    char folder[128]; /* mlruns/EXPERIMENT/RUN */
    struct wall_time started;
    struct wall_time ended; /* 0: not known */
    bool done;              /* all its tasks */
};

/* One file of a run: `kind` is params, metrics or tags. */
static int put_run_file(const struct mlflow_run *r, const char *kind, const char *key,
                        const struct strbuf *text, struct err *err)
{
    char *name = format_file_name(key, ": ");
    char *path = xasprintf("%s/%s/%s", r->folder, kind, name);
    int rc = format_put(r->out, path, text, err);
    free(path);
    free(name);
    return rc;
}

/* A param or tag: a text as it is, anything else as JSON. */
static int put_value(const struct mlflow_run *r, const char *kind, const char *key,
                     const cJSON *value, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = 0;
    if (cJSON_IsString(value)) {
        strbuf_adds(&text, value->valuestring);
    } else {
        rc = json_line(value, &text, err);
    }
    if (text.len > MLFLOW_VALUE_MAX) {
        format_note(r->out, "%s is longer than MLflow's %d bytes: left out", key, MLFLOW_VALUE_MAX);
    } else if (rc == 0) {
        rc = put_run_file(r, kind, key, &text, err);
    }
    strbuf_release(&text);
    return rc;
}

static int put_text(const struct mlflow_run *r, const char *key, const char *text, struct err *err)
{
    cJSON *v = cJSON_CreateString(text);
    int rc = put_value(r, "tags", key, v, err);
    cJSON_Delete(v);
    return rc;
}

/* "TIMESTAMP VALUE STEP" */
static void add_metric_line(struct strbuf *sb, struct wall_time t, double value, int64_t step)
{
    char number[JSON_NUMBER_MAX];
    json_number_text(value, number);
    strbuf_addf(sb, "%lld %s %lld\n", (long long)t.ms, number, (long long)step);
}

/* The metrics or facts of a result, as `kind`/STAGE.NAME. */
static int put_values(const struct mlflow_run *r, const char *kind, size_t stage,
                      const cJSON *values, struct err *err)
{
    const struct source_task *t = source_task(r->s, r->cell, stage);
    const struct wall_time time = t->ended.ms != 0 ? t->ended : r->s->ended;
    const cJSON *one = NULL;
    int rc = 0;
    cJSON_ArrayForEach(one, values)
    {
        const struct evidence_value v = evidence_value_of(one);
        if (rc == 0 && v.state == VALUE_KNOWN) {
            struct strbuf line = STRBUF_INIT;
            char *key = xasprintf("%s.%s", r->s->program->stages[stage].name, one->string);
            add_metric_line(&line, time, v.value, 0);
            rc = put_run_file(r, kind, key, &line, err);
            free(key);
            strbuf_release(&line);
        }
    }
    return rc;
}

static int put_curves(const struct mlflow_run *r, size_t stage, struct err *err)
{
    const struct source_task *t = source_task(r->s, r->cell, stage);
    struct source_curves curves;
    int rc = 0;
    source_read_curves(r->s, r->cell, stage, &curves);
    for (size_t i = 0; rc == 0 && i < curves.n; i++) {
        const struct curve_points *c = &curves.items[i].points;
        struct strbuf lines = STRBUF_INIT;
        char *key = xasprintf("%s.%s", r->s->program->stages[stage].name, curves.items[i].name);
        for (size_t k = 0; k < c->n; k++) {
            add_metric_line(&lines, t->ended.ms != 0 ? t->ended : r->s->ended, c->ys[k],
                            (int64_t)c->xs[k]);
        }
        rc = put_run_file(r, "metrics/curves", key, &lines, err);
        free(key);
        strbuf_release(&lines);
    }
    source_curves_release(&curves);
    return rc;
}

/* What the plan asks of a stage in this cell. */
static int put_params(const struct mlflow_run *r, size_t stage, struct err *err)
{
    cJSON *params = program_task_params(r->s->program, stage, r->cell);
    const cJSON *v = NULL;
    int rc = 0;
    cJSON_ArrayForEach(v, params)
    {
        char *key = xasprintf("%s.%s", r->s->program->stages[stage].name, v->string);
        rc = rc == 0 ? put_value(r, "params", key, v, err) : rc;
        free(key);
    }
    cJSON_Delete(params);
    return rc;
}

static int put_stage(struct mlflow_run *r, size_t stage, struct err *err)
{
    const struct source_task *t = source_task(r->s, r->cell, stage);
    const cJSON *started = json_member(t->attempt, "started");
    struct wall_time time = {0};
    char *key = xasprintf("preregd.task.%s", r->s->program->stages[stage].name);
    if (cJSON_IsString(started) && clock_wall_parse(started->valuestring, &time) &&
        (r->started.ms == 0 || time.ms < r->started.ms)) {
        r->started = time;
    }
    r->ended = t->ended.ms > r->ended.ms ? t->ended : r->ended;
    r->done = r->done && t->result != NULL;
    int rc = put_text(r, key,
                      t->result != NULL  ? "done"
                      : t->cause != NULL ? t->cause
                                         : "not done",
                      err);
    free(key);
    if (rc != 0 || (rc = put_params(r, stage, err)) != 0 ||
        (rc = put_values(r, "metrics", stage, json_member(t->result, "metrics"), err)) != 0 ||
        (rc = put_values(r, "metrics/facts", stage, json_member(t->result, "facts"), err)) != 0) {
        return rc;
    }
    return put_curves(r, stage, err);
}

/* A line of meta.yaml. */
static void add_meta(struct strbuf *sb, const char *key, const char *text)
{
    strbuf_addf(sb, "%s: ", key);
    yaml_add_string(sb, text);
    strbuf_addc(sb, '\n');
}

static int put_meta(const struct mlflow_run *r, const char *experiment, struct err *err)
{
    struct strbuf sb = STRBUF_INIT;
    const char *id = strrchr(r->folder, '/') + 1;
    char *artifacts = xasprintf("%s/artifacts", r->folder);
    char *path = xasprintf("%s/meta.yaml", r->folder);
    add_meta(&sb, "artifact_uri", artifacts);
    add_meta(&sb, "run_id", id);
    add_meta(&sb, "run_uuid", id);
    add_meta(&sb, "run_name", r->s->program->cells[r->cell].name);
    add_meta(&sb, "experiment_id", experiment);
    add_meta(&sb, "lifecycle_stage", "active");
    add_meta(&sb, "user_id", "");
    add_meta(&sb, "source_name", "");
    add_meta(&sb, "source_version", "");
    add_meta(&sb, "entry_point_name", "");
    strbuf_addf(&sb, "start_time: %lld\n",
                (long long)(r->started.ms != 0 ? r->started.ms : r->s->ended.ms));
    strbuf_addf(&sb, "end_time: %lld\n",
                (long long)(r->ended.ms != 0 ? r->ended.ms : r->s->ended.ms));
    strbuf_addf(&sb, "source_type: 4\nstatus: %d\ntags: []\n",
                r->done ? MLFLOW_FINISHED : MLFLOW_FAILED);
    int rc = format_put(r->out, path, &sb, err);
    free(path);
    free(artifacts);
    strbuf_release(&sb);
    return rc;
}

/* Without one of these MLflow does not take a folder for a run. */
static int make_folders(const struct mlflow_run *r, struct err *err)
{
    static const char *const names[] = {"params", "metrics", "artifacts"};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(names); i++) {
        char *path = xasprintf("%s/%s", r->folder, names[i]);
        rc = format_make_folder(r->out, path, err);
        free(path);
    }
    return rc;
}

static int put_run(const struct receipt_source *s, const struct format_output *out,
                   const char *experiment, size_t cell, struct err *err)
{
    const struct plan_program *p = s->program;
    const cJSON *outcome = json_member(s->verdict, "outcome");
    struct mlflow_run r = {.s = s, .out = out, .cell = cell, .done = true};
    char hex[DIGEST_HEX_SIZE];
    char *named = xasprintf("%s %s", s->lock->root, p->cells[cell].name);
    const struct digest d = digest_bytes(named, strlen(named));
    digest_hex(&d, hex);
    free(named);
    (void)snprintf(r.folder, sizeof(r.folder), "mlruns/%s/%.32s", experiment, hex);
    int rc = make_folders(&r, err);
    rc = rc == 0 ? put_text(&r, "mlflow.runName", p->cells[cell].name, err) : rc;
    rc = rc == 0 ? put_text(&r, "preregd.root", s->lock->root, err) : rc;
    if (rc == 0 && cJSON_IsString(outcome)) {
        rc = put_text(&r, "preregd.outcome", outcome->valuestring, err);
    }
    for (size_t i = 0; rc == 0 && i < p->n_factors; i++) {
        const struct plan_factor *f = &p->factors[i];
        cJSON *level = cJSON_CreateString(f->levels[p->cells[cell].levels[i]].text);
        rc = put_value(&r, "params", f->name, level, err);
        cJSON_Delete(level);
    }
    for (size_t k = 0; rc == 0 && k < p->n_stages; k++) {
        rc = put_stage(&r, k, err);
    }
    return rc == 0 ? put_meta(&r, experiment, err) : rc;
}

static int put_experiment(const struct receipt_source *s, const struct format_output *out,
                          const char *experiment, struct err *err)
{
    struct strbuf sb = STRBUF_INIT;
    char *folder = xasprintf("mlruns/%s", experiment);
    char *path = xasprintf("%s/meta.yaml", folder);
    add_meta(&sb, "artifact_location", folder);
    add_meta(&sb, "experiment_id", experiment);
    add_meta(&sb, "lifecycle_stage", "active");
    add_meta(&sb, "name", s->id);
    strbuf_addf(&sb, "creation_time: %lld\nlast_update_time: %lld\n",
                (long long)lock_made_at(s->lock).ms, (long long)s->ended.ms);
    int rc = format_put(out, path, &sb, err);
    free(path);
    free(folder);
    strbuf_release(&sb);
    return rc;
}

int write_mlflow(const struct receipt_source *s, const struct format_output *out, struct err *err)
{
    char experiment[17];
    (void)snprintf(experiment, sizeof(experiment), "%.16s", s->lock->root);
    if (s->program_folder == NULL) {
        format_note(out, "a receipt holds no curves: name the program itself to have them");
    }
    format_note(out, "no artifacts: weights and items are not in a receipt; every point has the "
                     "time at which its task ended, or that of the lock");
    int rc = put_experiment(s, out, experiment, err);
    for (size_t c = 0; rc == 0 && c < s->program->n_cells; c++) {
        rc = put_run(s, out, experiment, c, err);
    }
    return rc;
}
