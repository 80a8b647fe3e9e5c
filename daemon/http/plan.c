/*
 * The plan as the page shows it: the texts of grid.toml, and what is held fixed as `check` and the
 * report compute it. Nothing here is a result, so nothing here is sealed.
 */
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "daemon/http/data.h"
#include "truthtable/prove/check.h"

#define ROWS_MAX ((size_t)2000) /* of the table that are listed; it may have 2^18 */

static cJSON *named(const char *name, const char *text)
{
    cJSON *o = json_object();
    json_put_string(o, "name", name);
    json_put_string(o, "text", text);
    return o;
}

static void put_factors(cJSON *o, const struct plan_program *p)
{
    cJSON *list = json_array();
    size_t replicates = 1;
    for (size_t f = 0; f < p->n_factors; f++) {
        const struct plan_factor *factor = &p->factors[f];
        cJSON *one = json_object();
        cJSON *levels = json_array();
        for (size_t l = 0; l < factor->n_levels; l++) {
            json_push_string(levels, factor->levels[l].text);
        }
        replicates *= factor->replicate ? factor->n_levels : 1;
        json_put_string(one, "name", factor->name);
        json_put_bool(one, "replicate", factor->replicate);
        json_put(one, "levels", levels);
        json_push(list, one);
    }
    json_put(o, "factors", list);
    json_put_int(o, "replicates", (int64_t)replicates);
    json_put_int(o, "n_cells", (int64_t)p->n_cells);
}

static void put_stages(cJSON *o, const struct plan_program *p)
{
    cJSON *list = json_array();
    for (size_t s = 0; s < p->n_stages; s++) {
        const struct plan_stage *stage = &p->stages[s];
        cJSON *one = json_object();
        cJSON *after = json_array();
        struct strbuf command = STRBUF_INIT;
        for (size_t i = 0; i < stage->n_command; i++) {
            strbuf_adds(&command, i == 0 ? "" : " ");
            strbuf_add_quoted(&command, stage->command[i]);
        }
        for (size_t i = 0; i < stage->n_after; i++) {
            json_push_string(after, p->stages[stage->after[i]].name);
        }
        json_put_string(one, "name", stage->name);
        json_put_string(one, "command", command.buf);
        json_put(one, "after", after);
        json_put_bool(one, "seals", stage->sealed);
        json_put_bool(one, "counted", stage->counted);
        json_put_int(one, "threads", stage->threads);
        json_push(list, one);
        strbuf_release(&command);
    }
    json_put(o, "stages", list);
}

/* A measure with its floor, the counters, and what the validity of the whole rests on. */
static void put_gates(cJSON *o, const struct plan_program *p)
{
    cJSON *list = json_array();
    struct strbuf text = STRBUF_INIT;
    for (size_t m = 0; m < p->n_measures; m++) {
        const struct plan_measure *measure = &p->measures[m];
        if (measure->has_floor) {
            strbuf_clear(&text);
            strbuf_addf(&text, "%s clears %s", measure->metric_text, measure->floor_text);
            json_push(list, named(measure->name, text.buf));
        }
    }
    for (size_t c = 0; c < p->n_counters; c++) {
        const struct counter *counter = &p->counters[c];
        strbuf_clear(&text);
        strbuf_addf(&text, "counts the measures of %s%s%s", p->contrasts[counter->contrast].name,
                    counter->clears == CLEARS_EVERY_CELL
                        ? " that clear their floor in every cell"
                        : " whose arms clear their floor on average",
                    counter->binds ? "; binds" : "");
        json_push(list, named(counter->name, text.buf));
    }
    for (size_t v = 0; v < p->n_validity; v++) {
        const struct plan_validity *validity = &p->validity[v];
        strbuf_clear(&text);
        strbuf_addf(&text, "%s; else %s", validity->condition.text,
                    validity->on_fail == ON_FAIL_VOID ? "VOID" : "flagged");
        json_push(list, named(validity->name, text.buf));
    }
    json_put(o, "gates", list);
    strbuf_release(&text);
}

static void put_contrasts(cJSON *o, const struct plan_program *p)
{
    cJSON *list = json_array();
    struct strbuf text = STRBUF_INIT;
    for (size_t c = 0; c < p->n_contrasts; c++) {
        const struct plan_contrast *k = &p->contrasts[c];
        strbuf_clear(&text);
        if (k->is_difference) {
            strbuf_addf(&text, "%s - %s", p->contrasts[k->of].name, p->contrasts[k->minus].name);
        } else {
            const struct plan_factor *f = &p->factors[k->factor];
            strbuf_addf(&text, "%s: %s - %s", f->name, f->levels[k->level_a].text,
                        f->levels[k->level_b].text);
            for (size_t i = 0; i < k->n_where; i++) {
                const struct plan_factor *w = &p->factors[k->where[i].factor];
                strbuf_addf(&text, "%s%s = %s", i == 0 ? ", where " : " and ", w->name,
                            w->levels[k->where[i].level].text);
            }
        }
        json_push(list, named(k->name, text.buf));
    }
    json_put(o, "contrasts", list);
    strbuf_release(&text);
}

static void put_table(cJSON *o, const struct plan_program *p)
{
    cJSON *table = json_object();
    cJSON *columns = json_array();
    cJSON *inputs = json_array();
    cJSON *rows = json_array();
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        const struct plan_input *input = &p->inputs[p->table_inputs[i]];
        cJSON *one = json_object();
        cJSON *levels = json_array();
        for (size_t l = 0; l < input->n_levels; l++) {
            json_push(levels, named(input->levels[l].name, input->levels[l].condition.text));
        }
        json_push_string(columns, input->name);
        json_put_string(one, "name", input->name);
        json_put(one, "levels", levels);
        json_push(inputs, one);
    }
    for (size_t k = 0; k < p->n_rows && k < ROWS_MAX; k++) {
        cJSON *row = json_object();
        cJSON *cells = json_array();
        for (size_t i = 0; i < p->n_table_inputs; i++) {
            const struct plan_input *input = &p->inputs[p->table_inputs[i]];
            const size_t level = p->rows[k].levels[i];
            json_push_string(cells, level < input->n_levels ? input->levels[level].name : "*");
        }
        json_put(row, "cells", cells);
        json_put_string(row, "outcome", p->outcomes[p->rows[k].outcome].name);
        json_push(rows, row);
    }
    json_put(table, "columns", columns);
    json_put(table, "inputs", inputs);
    json_put(table, "rows", rows);
    json_put_int(table, "n_rows", (int64_t)p->n_rows);
    json_put(o, "table", table);
}

static void put_outcomes(cJSON *o, const struct plan_program *p)
{
    cJSON *list = json_array();
    for (size_t i = 0; i < p->n_outcomes; i++) {
        cJSON *one = named(p->outcomes[i].name, p->outcomes[i].title);
        json_put_number(one, "prior", p->outcomes[i].prior);
        json_push(list, one);
    }
    json_put(o, "outcomes", list);
}

static bool any_has(const cJSON *conditions, const char *fact)
{
    const cJSON *one = NULL;
    cJSON_ArrayForEach(one, conditions)
    {
        if (cJSON_IsNumber(json_member(one, fact))) {
            return true;
        }
    }
    return false;
}

/* A row for each condition, a column for each fact that is known of any. */
static void put_fixed(cJSON *o, const struct hosted *h)
{
    struct err err;
    const struct plan_program *p = h->bundle->program;
    cJSON *fixed = check_fixed_json(p, h->bundle->lock->describe, &err);
    cJSON *out = json_object();
    cJSON *columns = json_array();
    cJSON *rows = json_array();
    const cJSON *conditions = json_member(fixed, "conditions");
    const cJSON *one = NULL;
    const cJSON *first = cJSON_GetArrayItem(conditions, 0);
    const cJSON *fact = NULL;
    json_push_string(columns, "condition");
    cJSON_ArrayForEach(fact, first)
    {
        if (fact->string != NULL && any_has(conditions, fact->string)) {
            json_push_string(columns, fact->string);
        }
    }
    size_t c = 0;
    cJSON_ArrayForEach(one, conditions)
    {
        cJSON *row = json_array();
        json_push_string(row, c < p->n_conditions ? p->conditions[c].name : "");
        for (const cJSON *col = columns->child->next; col != NULL; col = col->next) {
            char text[JSON_NUMBER_MAX] = "";
            const cJSON *v = json_member(one, col->valuestring);
            if (cJSON_IsNumber(v)) {
                json_number_text(v->valuedouble, text);
            }
            json_push_string(row, text);
        }
        json_push(rows, row);
        c++;
    }
    json_put(out, "columns", columns);
    json_put(out, "rows", rows);
    json_put(o, "held_fixed", out);
    cJSON_Delete(fixed);
}

static cJSON *texts_json(const struct plan_texts *t)
{
    cJSON *list = json_array();
    for (size_t i = 0; i < t->n; i++) {
        json_push_string(list, t->items[i]);
    }
    return list;
}

static void put_scope(cJSON *o, const struct plan_program *p)
{
    const struct plan_scope *s = &p->scope;
    if (!s->declared) {
        json_put_null(o, "scope");
        return;
    }
    cJSON *scope = json_object();
    cJSON *confounds = json_array();
    for (size_t i = 0; i < s->n_confounds; i++) {
        json_push(confounds, named(s->confounds[i].column, s->confounds[i].text));
    }
    json_put(scope, "claims", texts_json(&s->claims));
    json_put(scope, "not_claimed", texts_json(&s->not_claimed));
    json_put(scope, "forward_work", texts_json(&s->forward_work));
    json_put(scope, "confounds", confounds);
    json_put_string(scope, "mechanism", s->mechanism);
    json_put(o, "scope", scope);
}

cJSON *plan_json(const struct hosted *h)
{
    const struct plan_program *p = h->bundle->program;
    cJSON *o = json_object();
    char *lock = path_join(h->folder, LAYOUT_LOCK);
    json_put_string(o, "id", h->id);
    json_put_string(o, "name", p->name);
    json_put_string(o, "question", p->question);
    json_put_string(o, "root", h->bundle->lock->root);
    json_put_string(o, "lock", lock);
    put_factors(o, p);
    put_stages(o, p);
    put_gates(o, p);
    put_contrasts(o, p);
    put_table(o, p);
    put_outcomes(o, p);
    put_fixed(o, h);
    json_put_int(o, "amendments", (int64_t)h->bundle->lock->n_amendments);
    put_scope(o, p);
    free(lock);
    return o;
}
