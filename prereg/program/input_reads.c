/*
 * Goes through the conditions of the table's inputs in order. What is open is collected once for
 * each name: for the daemon's summary, the report's limits and a warning of `check`.
 */
#include "prereg/program/input_reads.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/program/condition_names.h"

/* ---- the budget ---- */

/* Marks the stages of all measures and facts that one condition reads. */
static void mark_read(struct plan_program *p, const char *text)
{
    for (size_t m = 0; m < p->n_measures; m++) {
        struct plan_stage *s = &p->stages[p->measures[m].stage];
        s->budgeted = s->budgeted || condition_reads_measure(text, p->measures[m].name);
    }
    for (size_t i = 0; i < p->n_stages; i++) {
        struct plan_stage *s = &p->stages[i];
        s->budgeted = s->budgeted || condition_reads_fact_of(text, s->name);
    }
}

void mark_budgeted(struct plan_program *p)
{
    for (size_t i = 0; i < p->n_stages; i++) {
        p->stages[i].budgeted = p->stages[i].sealed;
    }
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        const struct plan_input *in = &p->inputs[p->table_inputs[i]];
        for (size_t l = 0; l < in->n_levels; l++) {
            mark_read(p, in->levels[l].condition.text);
        }
    }
    /* Stages are in topological order: going backwards, a stage is final before those it waits
     * for. */
    for (size_t i = p->n_stages; i-- > 0;) {
        struct plan_stage *s = &p->stages[i];
        s->excludable = s->excludable || s->budgeted;
        for (size_t k = 0; s->excludable && k < s->n_after; k++) {
            p->stages[s->after[k]].excludable = true;
        }
    }
}

/* ---- what is open ---- */

struct open {
    const struct plan_program *p;
    cJSON *names;
    struct diag *diag; /* or NULL */
};

/* Adds a name, and warns at its first reader when there is a list of diagnostics. */
static void found(struct open *o, const struct cond_text *at, const char *name)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, o->names)
    {
        if (strcmp(one->valuestring, name) == 0) {
            return;
        }
    }
    json_push_string(o->names, name);
    if (o->diag != NULL) {
        diag_add(o->diag, DIAG_WARNING, at->place.line, at->place.column,
                 "the table reads %s, which is not sealed while cells run: the outcome can be seen "
                 "coming; count a measure of its stage, or leave it out of the table",
                 name);
    }
}

/* Unsealed measures that the condition reads. */
static void find_measures(struct open *o, const struct cond_text *c)
{
    const struct plan_program *p = o->p;
    for (size_t m = 0; m < p->n_measures; m++) {
        if (!program_stage_is_sealed(p, p->measures[m].stage) &&
            condition_reads_measure(c->text, p->measures[m].name)) {
            char *name = xasprintf("measure %s", p->measures[m].name);
            found(o, c, name);
            free(name);
        }
    }
}

/* fact.STAGE.NAME, and the first argument of ratio() is one. */
static void find_facts(struct open *o, const struct cond_text *c)
{
    for (size_t s = 0; s < o->p->n_stages; s++) {
        const char *stage = o->p->stages[s].name;
        struct lexer lx = {.text = c->text};
        struct condition_name fact;
        while (!program_stage_is_sealed(o->p, s) && condition_next_name(&lx, &fact)) {
            if (fact.root == ROOT_FACT && token_is_word(&fact.of, stage)) {
                char *name =
                    xasprintf("fact.%s.%.*s", stage, (int)fact.field.len, fact.field.start);
                found(o, c, name);
                free(name);
            }
        }
    }
}

static cJSON *look(const struct plan_program *p, struct diag *diag)
{
    struct open o = {.p = p, .names = json_array(), .diag = diag};
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        const struct plan_input *in = &p->inputs[p->table_inputs[i]];
        for (size_t l = 0; l < in->n_levels; l++) {
            find_measures(&o, &in->levels[l].condition);
            find_facts(&o, &in->levels[l].condition);
        }
    }
    return o.names;
}

cJSON *open_reads(const struct plan_program *p)
{
    return look(p, NULL);
}

void open_reads_check(const struct plan_program *p, struct diag *diag)
{
    cJSON_Delete(look(p, diag));
}
