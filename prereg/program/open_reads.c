/*
 * Goes through the conditions of the table's inputs in order and collects each unsealed name once,
 * for the daemon's summary, the report's limits and a warning of `check`.
 */
#include "prereg/program/open_reads.h"

#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/xalloc.h"
#include "prereg/program/input_reads.h"

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
        const char *at = c->text;
        size_t n = 0;
        for (const char *fact; !program_stage_is_sealed(o->p, s) &&
                               (fact = condition_next_fact_of(&at, stage, &n)) != NULL;) {
            char *name = xasprintf("fact.%s.%.*s", stage, (int)n, fact);
            found(o, c, name);
            free(name);
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
