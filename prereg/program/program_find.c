/* Finds a factor or a level of a program by its name, and answers what a stage is: for the loader
 * and all who read the program after it. */
#include "prereg/program/program.h"

#include <assert.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/program/load.h"

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
