/*
 * Checks of a whole plan against what all workers said of their tasks: that what a stage will read
 * is left by the stage it names, that a target is checked as often in both arms of a contrast, that
 * metrics exist, and that items and memory are as planned. They read answers alone and ask no
 * worker.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/task/describe.h"

#define RESOLUTION_FACT "target_resolution"
#define TARGET_METRIC   "target_step"

static bool lists(const cJSON *array, const char *name)
{
    const cJSON *v = NULL;
    cJSON_ArrayForEach(v, array)
    {
        if (cJSON_IsString(v) && strcmp(v->valuestring, name) == 0) {
            return true;
        }
    }
    return false;
}

static size_t stage_named(const struct plan_program *p, const char *name)
{
    for (size_t s = 0; s < p->n_stages; s++) {
        if (strcmp(p->stages[s].name, name) == 0) {
            return s;
        }
    }
    return INDEX_NONE;
}

/* A task that reads. */
struct reader {
    const struct plan_program *p;
    const cJSON *json;
    size_t condition;
    const struct plan_stage *stage;
};

/* The fraction of the horizon in the path of a snapshot's file, as prereg-train names it: up to the
 * next slash. Empty: another file. */
static const char *snapshot_fraction(const char *path)
{
    static const char folder[] = "snapshot/";
    return strncmp(path, folder, sizeof(folder) - 1) == 0 ? path + sizeof(folder) - 1 : "";
}

/* One list of "reads"; false after a fault. A stage that does not describe is not judged. */
static bool check_list(const struct reader *r, const cJSON *wanted, struct diag *diag)
{
    const struct plan_stage *s = r->stage;
    size_t giving = stage_named(r->p, wanted->string);
    const cJSON *answer =
        giving == INDEX_NONE ? NULL : describe_find(r->json, r->p, r->condition, giving);
    const cJSON *v = NULL;
    if (answer == NULL) {
        return true;
    }
    cJSON_ArrayForEach(v, wanted)
    {
        if (!lists(json_member(answer, "artifacts"), v->valuestring)) {
            const char *fraction = snapshot_fraction(v->valuestring);
            diag_add(diag, DIAG_ERROR, s->place.line, s->place.column,
                     "stage.%s: reads %s of stage \"%s\", which does not leave it%s%.*s (at %s)",
                     s->name, v->valuestring, wanted->string,
                     fraction[0] == '\0' ? "" : "; add to its snapshots: ",
                     (int)strcspn(fraction, "/"), fraction, r->p->conditions[r->condition].name);
            return false;
        }
    }
    return true;
}

void describe_check_reads(const struct plan_program *p, const cJSON *json, struct diag *diag)
{
    for (size_t s = 0; s < p->n_stages; s++) {
        bool right = true;
        for (size_t c = 0; right && c < p->n_conditions; c++) {
            const cJSON *answer = describe_find(json, p, c, s);
            const cJSON *reads = answer == NULL ? NULL : json_member(answer, "reads");
            const cJSON *list = NULL;
            cJSON_ArrayForEach(list, reads)
            {
                const struct reader r = {p, json, c, &p->stages[s]};
                right = right && check_list(&r, list, diag);
            }
        }
    }
}

static bool reads_target(const struct plan_program *p, size_t stage)
{
    for (size_t i = 0; i < p->n_measures; i++) {
        if (p->measures[i].stage == stage && strcmp(p->measures[i].metric, TARGET_METRIC) == 0) {
            return true;
        }
    }
    return false;
}

/* The cell at level b of a contrast's factor that is otherwise `cell`; INDEX_NONE where `cell` is
 * not at level a. */
static size_t partner(const struct plan_program *p, const struct plan_contrast *k, size_t cell)
{
    size_t index = 0;
    if (k->is_difference || p->cells[cell].levels[k->factor] != k->level_a) {
        return INDEX_NONE;
    }
    for (size_t i = 0; i < p->n_factors; i++) {
        size_t level = i == k->factor ? k->level_b : p->cells[cell].levels[i];
        index = index * p->factors[i].n_levels + level;
    }
    return index;
}

/* The first pair of cells whose targets are checked at another interval. */
static void check_resolution(const struct plan_program *p, const cJSON *json, size_t stage,
                             const struct plan_contrast *k, struct diag *diag)
{
    for (size_t cell = 0; cell < p->n_cells; cell++) {
        double a = 0;
        double b = 0;
        size_t other = partner(p, k, cell);
        if (other == INDEX_NONE || other >= p->n_cells) {
            continue;
        }
        size_t ca = p->cells[cell].condition;
        size_t cb = p->cells[other].condition;
        if (!describe_fact(describe_find(json, p, ca, stage), RESOLUTION_FACT, &a) ||
            !describe_fact(describe_find(json, p, cb, stage), RESOLUTION_FACT, &b) || a == b) {
            continue;
        }
        diag_add(diag, DIAG_WARNING, k->place.line, k->place.column,
                 "contrast.%s: stage \"%s\" looks for its target every %.15g steps at %s and every "
                 "%.15g at %s: give both the same eval_every",
                 k->name, p->stages[stage].name, a, p->conditions[ca].name, b,
                 p->conditions[cb].name);
        return;
    }
}

void describe_check_resolution(const struct plan_program *p, const cJSON *json, struct diag *diag)
{
    for (size_t s = 0; s < p->n_stages; s++) {
        for (size_t k = 0; reads_target(p, s) && k < p->n_contrasts; k++) {
            check_resolution(p, json, s, &p->contrasts[k], diag);
        }
    }
}

/* Reports a metric that is not among `metrics`, with the nearest name that is. */
static void check_metric(const cJSON *metrics, const char *metric, struct place at,
                         const char *where, struct diag *diag)
{
    size_t n = (size_t)cJSON_GetArraySize(metrics);
    const char **known = xcalloc(n, sizeof(*known));
    bool found = false;
    n = 0;
    for (const cJSON *m = metrics->child; m != NULL; m = m->next) {
        known[n++] = m->valuestring;
        found = found || strcmp(m->valuestring, metric) == 0;
    }
    if (!found) {
        const char *near = text_nearest(metric, known, n);
        diag_add(diag, DIAG_ERROR, at.line, at.column,
                 "%s: its stage yields no metric \"%s\"%s%s%s", where, metric,
                 near == NULL ? "" : "; did you mean \"", near == NULL ? "" : near,
                 near == NULL ? "" : "\"?");
    }
    free(known);
}

/* The metrics a stage says it yields, at the first condition that says so; NULL when none does. */
static const cJSON *metrics_of(const struct plan_program *p, const cJSON *json, size_t stage)
{
    for (size_t c = 0; c < p->n_conditions; c++) {
        const cJSON *answer = describe_find(json, p, c, stage);
        const cJSON *metrics = answer == NULL ? NULL : json_member(answer, "metrics");
        if (cJSON_IsArray(metrics)) {
            return metrics;
        }
    }
    return NULL;
}

void describe_check_metrics(const struct plan_program *p, const cJSON *json, struct diag *diag)
{
    for (size_t i = 0; i < p->n_measures; i++) {
        const struct plan_measure *m = &p->measures[i];
        const cJSON *metrics = metrics_of(p, json, m->stage);
        if (metrics != NULL) {
            char where[96];
            (void)snprintf(where, sizeof(where), "measure.%s", m->name);
            check_metric(metrics, m->metric, m->metric_place, where, diag);
        }
    }
    for (size_t i = 0; i < p->n_apparatus; i++) {
        const struct plan_apparatus *a = &p->apparatus[i];
        const cJSON *metrics = a->first == INDEX_NONE ? metrics_of(p, json, a->stage) : NULL;
        if (metrics != NULL) {
            char where[96];
            (void)snprintf(where, sizeof(where), "apparatus.%s", a->name);
            check_metric(metrics, strchr(a->metric_text, '.') + 1, a->place, where, diag);
        }
    }
}

/* Reports the first condition whose stage scores another number of items. */
static void check_items(const struct plan_program *p, const cJSON *json,
                        const struct plan_measure *m, struct diag *diag)
{
    const bool of_group = strchr(m->metric, ':') != NULL;
    for (size_t c = 0; c < p->n_conditions; c++) {
        double items = 0;
        if (!describe_fact(describe_find(json, p, c, m->stage), "items", &items)) {
            continue;
        }
        if (of_group ? (double)m->items > items : (double)m->items != items) {
            diag_add(diag, DIAG_ERROR, m->items_place.line, m->items_place.column,
                     "measure.%s: %lld items, and stage \"%s\" scores %.15g (at %s)", m->name,
                     (long long)m->items, p->stages[m->stage].name, items, p->conditions[c].name);
            return;
        }
    }
}

void describe_check_items(const struct plan_program *p, const cJSON *json, struct diag *diag)
{
    for (size_t i = 0; i < p->n_measures; i++) {
        const struct plan_measure *m = &p->measures[i];
        if (m->has_items && json == NULL) {
            diag_add(diag, DIAG_NOTE, m->items_place.line, m->items_place.column,
                     "the items of measures were not checked: no worker was asked (--no-run)");
            return;
        }
        if (m->has_items) {
            check_items(p, json, m, diag);
        }
    }
}

/* What the stage cannot do without, at the condition that needs most; 0 when no worker says. */
static double memory_needed(const struct plan_program *p, const cJSON *json, size_t stage,
                            size_t *at)
{
    double most = 0;
    for (size_t c = 0; c < p->n_conditions; c++) {
        const cJSON *answer = describe_find(json, p, c, stage);
        double needed = 0;
        if (!describe_fact(answer, "memory_least_bytes", &needed)) {
            (void)describe_fact(answer, "memory_bytes", &needed);
        }
        if (needed > most) {
            most = needed;
            *at = c;
        }
    }
    return most;
}

void describe_check_memory(const struct plan_program *p, const cJSON *json, double machine_bytes,
                           struct diag *diag)
{
    const double mib = 0x1p20;
    for (size_t i = 0; i < p->n_stages; i++) {
        const struct plan_stage *s = &p->stages[i];
        size_t c = 0;
        double needed = memory_needed(p, json, i, &c);
        double allowed = (double)s->run.memory_bytes;
        if (allowed > 0 && needed > allowed) {
            diag_add(diag, DIAG_ERROR, s->run.memory_place.line, s->run.memory_place.column,
                     "[run] memory: stage \"%s\" needs at least %.1f MiB (at %s) and may use %.1f "
                     "MiB; allow more",
                     s->name, ceil(needed / mib * 10) / 10, p->conditions[c].name, allowed / mib);
        } else if (machine_bytes > 0 && needed > machine_bytes) {
            diag_add(diag, DIAG_ERROR, s->place.line, s->place.column,
                     "stage.%s: needs at least %.1f MiB (at %s), and this machine has %.1f MiB",
                     s->name, ceil(needed / mib * 10) / 10, p->conditions[c].name,
                     machine_bytes / mib);
        }
    }
}
