/*
 * Runs the proofs of `preregctl check` in the order in which they use each other's results:
 * witnesses and impossible rows (check_reach) before unused levels (check_use), described facts
 * (check_fixed) before the plan's cost (check_plan). If conditions do not compile, the table is
 * still checked, because its rows need only the names of levels; the user then sees all errors at
 * once.
 */
#include "truthtable/prove/check.h"

#include "truthtable/prove/check_parts.h"

int check_run(const struct plan_program *p, const cJSON *describe, struct check_report *out,
              struct diag *diag, struct err *err)
{
    struct rules rules;
    *out = (struct check_report){.program = p};
    arena_init(&out->arena);
    int rc = rules_compile(p, &rules, diag, err);
    if (rc == 0) {
        check_table(out, diag);
        check_reach(out, &rules, diag);
        check_use(out, &rules, diag);
        check_measures(out, &rules);
        check_fixed(out, &rules, describe);
        check_scope(out, diag);
        check_budget(out, describe, diag);
        check_plan(out, describe, NULL);
    }
    if (rc != 0) { /* all faults at once: the table's need no conditions */
        check_table_alone(p, diag);
        *out = (struct check_report){.program = p, .arena = out->arena};
    }
    rules_release(&rules);
    return rc;
}

/* Parses one condition for its errors. */
static void check_condition(const struct cond_text *text, const struct plan_program *p,
                            enum cond_use use, struct fact_table *facts, struct diag *diag)
{
    if (text->text[0] != '\0') {
        (void)cond_parse(text, p, use, facts, diag);
    }
}

void check_conditions(const struct plan_program *p, bool forecasts, struct diag *diag)
{
    struct arena arena;
    struct fact_table facts = {.arena = &arena};
    arena_init(&arena);
    for (size_t i = 0; i < p->n_inputs; i++) {
        for (size_t l = 0; l < p->inputs[i].n_levels; l++) {
            check_condition(&p->inputs[i].levels[l].condition, p, COND_USE_INPUT, &facts, diag);
        }
    }
    for (size_t i = 0; i < p->n_validity; i++) {
        check_condition(&p->validity[i].condition, p, COND_USE_VALIDITY, &facts, diag);
    }
    for (size_t i = 0; forecasts && i < p->n_instruments; i++) {
        if (p->instruments[i].trigger.text != NULL) {
            check_condition(&p->instruments[i].trigger, p, COND_USE_VALIDITY, &facts, diag);
        }
    }
    for (size_t i = 0; forecasts && i < p->n_forecasts; i++) {
        check_condition(&p->forecasts[i].condition, p, COND_USE_FORECAST, &facts, diag);
    }
    arena_release(&arena);
}

void check_table_alone(const struct plan_program *p, struct diag *diag)
{
    struct check_report r = {.program = p};
    arena_init(&r.arena);
    check_table(&r, diag);
    check_release(&r);
}

/* Compiles the rules only for the layout of contrasts; none of the proofs runs. */
cJSON *check_fixed_json(const struct plan_program *p, const cJSON *describe, struct err *err)
{
    struct rules rules;
    struct diag diag;
    struct check_report r = {.program = p};
    cJSON *o = NULL;
    arena_init(&r.arena);
    diag_init(&diag, p->path);
    if (rules_compile(p, &rules, &diag, err) == 0) {
        check_fixed(&r, &rules, describe);
        check_scope(&r, &diag);
        o = check_fixed_object(&r);
    }
    rules_release(&rules);
    diag_release(&diag);
    check_release(&r);
    return o;
}
