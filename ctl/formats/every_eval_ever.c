/* every-eval-ever: a JSON file for each cell, in the schema of EvalEval's Every Eval Ever, version
 * 0.3.0. A cell is a model; each measure of the plan with a value is a result. Metrics that the
 * plan does not name are left out, because nothing says whether lower is better. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/formats/writers.h"
#include "truthtable/evaluate/effects.h"

#define EVERY_EVAL_SCHEMA "0.3.0"
#define UNKNOWN_TEXT      "unknown"

/* Where the items came from: the Hub's dataset where the plan names it; else the locked data that
 * the result says it read, by name and digest. */
static cJSON *source_data(const struct receipt_source *s, const struct plan_measure *m, size_t cell)
{
    cJSON *o = json_object();
    cJSON *details = json_object();
    const cJSON *read = NULL;
    cJSON_ArrayForEach(read, json_member(source_task(s, cell, m->stage)->result, "read"))
    {
        if (cJSON_IsString(read)) {
            char *key = xasprintf("sha256.%s", read->string);
            json_put_string(details, key, read->valuestring);
            free(key);
        }
    }
    if (m->hub.dataset != NULL) {
        json_put_string(o, "dataset_name", m->hub.task);
        json_put_string(o, "source_type", "hf_dataset");
        json_put_string(o, "hf_repo", m->hub.dataset);
        if (m->hub.revision != NULL) {
            json_put_string(details, "revision", m->hub.revision);
        }
    } else {
        /* a stage reads one set of items; of more than one the first gives the name */
        const cJSON *first = details->child;
        json_put_string(o, "dataset_name",
                        first != NULL ? first->string + sizeof("sha256.") - 1
                                      : s->program->stages[m->stage].name);
        json_put_string(o, "source_type", "other");
    }
    json_put(o, "additional_details", details);
    return o;
}

static cJSON *metric_config(const struct plan_program *p, const struct plan_measure *m)
{
    cJSON *o = json_object();
    const char *unit = measure_unit(p, m);
    json_put_string(o, "metric_id", m->metric);
    json_put_string(o, "metric_name", m->metric);
    json_put_bool(o, "lower_is_better", m->lower_better);
    json_put_string(o, "score_type", "continuous");
    if (unit != NULL) {
        json_put_string(o, "metric_unit", unit);
    }
    if (measure_is_share(m)) {
        json_put_number(o, "min_score", 0);
        json_put_number(o, "max_score", 1);
    } else { /* which the schema wants of a continuous score */
        json_put_string(o, "min_score", "-Infinity");
        json_put_string(o, "max_score", "Infinity");
    }
    return o;
}

static cJSON *score_details(const struct evidence_value *v)
{
    cJSON *o = json_object();
    cJSON *uncertainty = json_object();
    json_put_number(o, "score", v->value);
    if (v->has_se) {
        cJSON *se = json_object();
        json_put_number(se, "value", v->se);
        json_put(uncertainty, "standard_error", se);
    }
    if (v->has_n) {
        json_put_int(uncertainty, "num_samples", v->n);
    }
    json_put(o, "uncertainty", uncertainty);
    return o;
}

static cJSON *one_result(const struct receipt_source *s, const struct plan_measure *m, size_t cell,
                         const struct evidence_value *v)
{
    const struct source_task *t = source_task(s, cell, m->stage);
    cJSON *o = json_object();
    json_put_string(o, "evaluation_result_id", m->name);
    json_put_string(o, "evaluation_name", s->program->stages[m->stage].name);
    json_put(o, "source_data", source_data(s, m, cell));
    if (t->ended.ms != 0) {
        char time[WALL_TEXT_SIZE];
        clock_wall_text(t->ended, time);
        json_put_string(o, "evaluation_timestamp", time);
    }
    json_put(o, "metric_config", metric_config(s->program, m));
    json_put(o, "score_details", score_details(v));
    return o;
}

/* Of a cell: the model's name is the cell's, below the program's. */
static cJSON *model_info(const struct receipt_source *s, size_t cell)
{
    const struct plan_program *p = s->program;
    cJSON *o = json_object();
    cJSON *details = json_object();
    char *id = xasprintf("%s/%s", s->id, p->cells[cell].name);
    json_put_string(o, "name", p->cells[cell].name);
    json_put_string(o, "id", id);
    json_put_string(details, "deployment_type", UNKNOWN_TEXT);
    json_put_string(details, "model_availability", UNKNOWN_TEXT);
    for (size_t i = 0; i < p->n_factors; i++) {
        char *key = xasprintf("factor.%s", p->factors[i].name);
        json_put_string(details, key, p->factors[i].levels[p->cells[cell].levels[i]].text);
        free(key);
    }
    json_put(o, "additional_details", details);
    free(id);
    return o;
}

/* The workers by stage, as the plan has their commands and the lock their digests. */
static cJSON *eval_library(const struct receipt_source *s)
{
    const struct plan_program *p = s->program;
    cJSON *o = json_object();
    cJSON *details = json_object();
    json_put_string(o, "name", s->imported ? UNKNOWN_TEXT : "preregd");
    json_put_string(o, "version", s->imported || s->tool == NULL ? UNKNOWN_TEXT : s->tool);
    for (size_t i = 0; i < p->n_stages; i++) {
        const char *digest = lock_file_digest(s->lock, p->stages[i].command[0]);
        char *key = xasprintf("worker.%s", p->stages[i].name);
        char *value = xasprintf("%s%s%s", p->stages[i].command[0], digest != NULL ? " sha256:" : "",
                                digest != NULL ? digest : "");
        json_put_string(details, key, value);
        free(value);
        free(key);
    }
    json_put(o, "additional_details", details);
    return o;
}

static cJSON *source_metadata(const struct receipt_source *s)
{
    cJSON *o = json_object();
    cJSON *details = json_object();
    json_put_string(o, "source_name", s->program->name);
    json_put_string(o, "source_type", s->imported ? "documentation" : "evaluation_run");
    json_put_string(o, "source_organization_name", UNKNOWN_TEXT);
    json_put_string(o, "evaluator_relationship", "other");
    json_put_string(details, "lock_root", s->lock->root);
    const cJSON *records = json_member(s->verdict, "records");
    json_put_string(details, "records",
                    cJSON_IsString(records) ? records->valuestring : "executed");
    json_put(o, "additional_details", details);
    return o;
}

static int put_cell(const struct receipt_source *s, const struct format_output *out, size_t cell,
                    size_t *n, struct err *err)
{
    const struct plan_program *p = s->program;
    cJSON *results = json_array();
    for (size_t i = 0; i < p->n_measures; i++) {
        const struct plan_measure *m = &p->measures[i];
        const struct evidence_value v = source_metric(s, cell, m->stage, m->metric);
        if (v.state == VALUE_KNOWN) {
            json_push(results, one_result(s, m, cell, &v));
        } else {
            format_note(out, "%s has no value in some cells: left out there", m->name);
        }
    }
    if (results->child == NULL) {
        cJSON_Delete(results);
        return 0;
    }
    char retrieved[32];
    (void)snprintf(retrieved, sizeof(retrieved), "%lld", (long long)(s->ended.ms / 1000));
    cJSON *o = json_object();
    char *id = xasprintf("%s/%s/%s", p->name, p->cells[cell].name, retrieved);
    json_put_string(o, "schema_version", EVERY_EVAL_SCHEMA);
    json_put_string(o, "evaluation_id", id);
    json_put_string(o, "retrieved_timestamp", retrieved);
    json_put(o, "source_metadata", source_metadata(s));
    json_put(o, "eval_library", eval_library(s));
    json_put(o, "model_info", model_info(s, cell));
    json_put(o, "evaluation_results", results);
    char *stem = format_cell_name(p->cells[cell].name);
    char *name = xasprintf("%s.json", stem);
    int rc = format_put_json(out, name, o, err);
    ++*n;
    free(name);
    free(stem);
    free(id);
    return rc;
}

int write_every_eval_ever(const struct receipt_source *s, const struct format_output *out,
                          struct err *err)
{
    size_t n = 0;
    int rc = 0;
    format_note(out, "who ran it and who made the models is not in a receipt: "
                     "source_organization_name and model_availability say \"unknown\"");
    for (size_t c = 0; rc == 0 && c < s->program->n_cells; c++) {
        rc = put_cell(s, out, c, &n, err);
    }
    return rc == 0 && n == 0
               ? err_set(err, ERR_REFUSED, "no measure has a value: there is nothing to write")
               : rc;
}
