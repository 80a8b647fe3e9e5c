/*
 * Checks of a whole plan against what all workers said of their tasks: that what a stage will read
 * is left by the stage it names, and that a target is checked as often in both arms of a
 * contrast. They read answers alone and ask no worker.
 */
#include <string.h>

#include "base/json/json.h"
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
            diag_add(diag, DIAG_ERROR, s->place.line, s->place.column,
                     "stage.%s: reads %s of stage \"%s\", which does not leave it (at %s)", s->name,
                     v->valuestring, wanted->string, r->p->conditions[r->condition].name);
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
