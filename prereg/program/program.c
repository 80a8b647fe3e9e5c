/* What can be asked of a loaded program: its parts by name, what a stage is, and the plan that a
 * lock covers. */
#include "prereg/program/program.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/program/names.h"

void program_free(struct plan_program *p)
{
    if (p == NULL) {
        return;
    }
    cJSON_Delete(p->tree);
    cJSON_Delete(p->empty_object);
    arena_release(&p->arena);
    free(p);
}

size_t program_find_stage(const struct plan_program *p, const char *name)
{
    return names_find(names_stages(p), name);
}

size_t program_find_measure(const struct plan_program *p, const char *name)
{
    return names_find(names_measures(p), name);
}

size_t program_find_contrast(const struct plan_program *p, const char *name)
{
    return names_find(names_contrasts(p), name);
}

size_t program_find_apparatus(const struct plan_program *p, const char *name)
{
    for (size_t i = 0; i < p->n_apparatus; i++) {
        if (strcmp(p->apparatus[i].name, name) == 0) {
            return i;
        }
    }
    return INDEX_NONE;
}

size_t program_find_outcome(const struct plan_program *p, const char *name)
{
    return names_find(names_outcomes(p), name);
}

size_t program_find_factor(const struct plan_program *p, const char *name)
{
    return names_find(names_factors(p), name);
}

/* By text first; a number is found in any notation ("2e-3" finds 0.002). */
size_t program_find_level(const struct plan_factor *f, const char *text)
{
    for (size_t i = 0; i < f->n_levels; i++) {
        if (strcmp(f->levels[i].text, text) == 0) {
            return i;
        }
    }
    struct err err;
    double v = 0;
    char number[JSON_NUMBER_MAX];
    if (text_to_double(text, &v, &err) != 0) {
        return INDEX_NONE;
    }
    json_number_text(v, number);
    for (size_t i = 0; i < f->n_levels; i++) {
        if (cJSON_IsNumber(f->levels[i].value) && strcmp(f->levels[i].text, number) == 0) {
            return i;
        }
    }
    return INDEX_NONE;
}

size_t program_n_tasks(const struct plan_program *p)
{
    return p->n_cells * p->n_stages;
}

bool program_stage_is_sealed(const struct plan_program *p, size_t stage)
{
    assert(stage < p->n_stages);
    return p->stages[stage].sealed;
}

bool program_stage_is_counted(const struct plan_program *p, size_t stage)
{
    assert(stage < p->n_stages);
    return p->stages[stage].counted;
}

bool program_stage_is_budgeted(const struct plan_program *p, size_t stage)
{
    assert(stage < p->n_stages);
    return p->stages[stage].budgeted;
}

bool program_stage_is_excludable(const struct plan_program *p, size_t stage)
{
    assert(stage < p->n_stages);
    return p->stages[stage].excludable;
}

/* The sections whose order a report shows, as arrays, because RFC 8785 sorts keys. Stages are in
 * the order in which they run. */
static cJSON *covered_order(const struct plan_program *p)
{
    static const char *const sections[] = {"measure",  "contrast",   "counter",  "outcome",
                                           "validity", "instrument", "forecast", "apparatus"};
    cJSON *order = json_object();
    cJSON *stages = json_array();
    for (size_t i = 0; i < p->n_stages; i++) {
        json_push_string(stages, p->stages[i].name);
    }
    json_put(order, "stage", stages);
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        const cJSON *section = json_member(p->tree, sections[i]);
        if (section == NULL) {
            continue;
        }
        cJSON *names = json_array();
        for (const cJSON *m = section->child; m != NULL; m = m->next) {
            json_push_string(names, m->string);
        }
        json_put(order, sections[i], names);
    }
    return order;
}

cJSON *program_covered(const struct plan_program *p)
{
    cJSON *plan = json_object();
    for (const cJSON *m = p->tree->child; m != NULL; m = m->next) {
        if (strcmp(m->string, "run") != 0) {
            json_put(plan, m->string, json_copy(m));
        }
    }
    json_put(plan, "order", covered_order(p));
    return plan;
}

bool program_same_run(const struct plan_program *a, const struct plan_program *b)
{
    return json_equal(a->run.covered, b->run.covered);
}

int program_canonical(const struct plan_program *p, struct strbuf *out, struct err *err)
{
    cJSON *plan = program_covered(p);
    int rc = json_canonical(plan, out, err);
    cJSON_Delete(plan);
    return rc;
}
