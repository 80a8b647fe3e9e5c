/*
 * What a task asks of its worker is its resolved parameters, hashed in canonical JSON. Stages that
 * name none of the factors in question are skipped: their parameters cannot distinguish the cells,
 * and resolving parameters is the expensive part. Stages are in topological order, so one pass over
 * `after` gives everything that comes before a stage.
 */
#include "truthtable/evidence/task_params.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"

/* Whether a string "$factor" is anywhere below `v`. */
static bool names_factor(const cJSON *v, const char *factor)
{
    if (cJSON_IsString(v)) {
        return v->valuestring[0] == '$' && strcmp(v->valuestring + 1, factor) == 0;
    }
    const cJSON *m;
    cJSON_ArrayForEach(m, v)
    {
        if (names_factor(m, factor)) {
            return true;
        }
    }
    return false;
}

/* Whether some level's own parameters (`when`) replace this key, so that it does not hold in every
 * cell. */
static bool when_replaces(const struct plan_stage *s, const char *key)
{
    const cJSON *factor;
    cJSON_ArrayForEach(factor, s->when)
    {
        const cJSON *level;
        cJSON_ArrayForEach(level, factor)
        {
            if (json_member(level, key) != NULL) {
                return true;
            }
        }
    }
    return false;
}

/* "Always" needs a parameter that no level's own parameters replace. */
bool asked_always(const struct plan_stage *s, const char *factor)
{
    const cJSON *m;
    cJSON_ArrayForEach(m, s->params)
    {
        if (names_factor(m, factor) && !when_replaces(s, m->string)) {
            return true;
        }
    }
    return false;
}

/* A level's own parameters under `when` count as mentioning the factor. */
bool asked_mentions(const struct plan_stage *s, const char *factor)
{
    return json_member(s->when, factor) != NULL || names_factor(s->params, factor) ||
           names_factor(s->when, factor);
}

/* Depends on the cell only through its levels; a line per stage keeps stages apart. */
struct digest asked_digest(const struct plan_program *p, const struct stage_set *stages,
                           size_t cell)
{
    struct strbuf text = STRBUF_INIT;
    for (size_t s = 0; s < p->n_stages; s++) {
        if (stage_set_has(stages, s)) {
            struct err err;
            cJSON *params = program_task_params(p, s, cell);
            if (json_canonical(params, &text, &err) !=
                0) { /* parameters that JSON cannot express are unique to their cell */
                strbuf_addf(&text, "%zu", cell);
            }
            strbuf_addc(&text, '\n');
            cJSON_Delete(params);
        }
    }
    struct digest d = digest_bytes(text.buf, text.len);
    strbuf_release(&text);
    return d;
}

/* Includes the stage itself. */
struct stage_set *asked_before(const struct plan_program *p)
{
    struct stage_set *before = xcalloc(p->n_stages, sizeof(*before));
    for (size_t s = 0; s < p->n_stages; s++) {
        stage_set_add(&before[s], s);
        for (size_t i = 0; i < p->stages[s].n_after; i++) {
            stage_set_unite(&before[s], &before[p->stages[s].after[i]]);
        }
    }
    return before;
}

struct asked_cell {
    struct digest asked;
    size_t condition;
    size_t cell;
};

/* Cells of one condition together, equal tasks adjacent, the first cell first. */
static int by_asked(const void *a, const void *b)
{
    const struct asked_cell *x = a;
    const struct asked_cell *y = b;
    if (x->condition != y->condition) {
        return (x->condition > y->condition) - (x->condition < y->condition);
    }
    const int order = memcmp(x->asked.bytes, y->asked.bytes, sizeof(x->asked.bytes));
    return order != 0 ? order : (x->cell > y->cell) - (x->cell < y->cell);
}

/* Only cells of one condition are compared: replicates. */
static bool same_asked(const struct asked_cell *a, const struct asked_cell *b)
{
    return a->condition == b->condition && digest_equal(&a->asked, &b->asked);
}

/* A plan without a replicate factor that matters has nothing to compare. */
bool asked_telling(const struct plan_program *p, const struct stage_set *stages,
                   struct stage_set *telling)
{
    *telling = (struct stage_set){0};
    bool mentioned = false;
    bool always = true;
    for (size_t f = 0; f < p->n_factors; f++) {
        const struct plan_factor *factor = &p->factors[f];
        bool taken = !factor->replicate || factor->n_levels < 2;
        for (size_t s = 0; s < p->n_stages && factor->replicate; s++) {
            const bool here = stage_set_has(stages, s);
            const bool names = asked_mentions(&p->stages[s], factor->name);
            mentioned = mentioned || names;
            taken = taken || (here && asked_always(&p->stages[s], factor->name));
            if (here && names) {
                stage_set_add(telling, s);
            }
        }
        always = always && taken;
    }
    return mentioned && !always;
}

/* Sorting by digest finds all groups in n log n; the sort is stable through the cell's number. */
size_t *asked_twins(const struct plan_program *p, const struct stage_set *telling,
                    struct arena *arena)
{
    struct asked_cell *all = xcalloc(p->n_cells, sizeof(*all));
    size_t *twins = arena_array(arena, p->n_cells, sizeof(*twins));
    bool found = false;
    for (size_t c = 0; c < p->n_cells; c++) {
        all[c] = (struct asked_cell){
            .asked = asked_digest(p, telling, c), .condition = p->cells[c].condition, .cell = c};
    }
    qsort(all, p->n_cells, sizeof(*all), by_asked);
    for (size_t i = 0, first = 0; i < p->n_cells; i++) {
        first = same_asked(&all[first], &all[i]) ? first : i;
        twins[all[i].cell] = all[first].cell;
        found = found || first != i;
    }
    free(all);
    return found ? twins : NULL;
}
