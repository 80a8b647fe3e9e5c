/*
 * The decision, in the numbered steps of docs/truth-table.md ("The decision"). They run in this
 * order and none looks back. VOID comes before the table: over the exclusion budget, with an
 * apparatus check that did not hold again, or with a voiding validity that fails or is unknown,
 * rows are not consulted. What is decided is written by verdict_file.c.
 */
#include "truthtable/evaluate/verdict.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"
#include "prereg/task/task_cause.h"
#include "truthtable/condition/table_rows.h"
#include "truthtable/evaluate/verdict_file.h"

/* Step 5: more counted tasks are lost than the budget allows. Versions up to 586ab2d^ (2026-11-23)
 * gave one task the plural, and such a sentence is compared as they wrote it. */
static bool over_budget(struct table_verdict *v, const struct coverage *c)
{
    assert(c->n_excluded <= c->counted.planned);
    if (!coverage_over_budget(c)) {
        return false;
    }
    v->why =
        arena_printf(&v->arena, "%zu counted %s lost, the exclusion budget is %zu", c->n_excluded,
                     text_plural((int64_t)c->n_excluded, "task is", "tasks are"), c->budget);
    v->why_before =
        arena_printf(&v->arena, "%zu counted tasks are lost, the exclusion budget is %zu",
                     c->n_excluded, c->budget);
    return true;
}

/* Step 6: the first validity, in the order of the plan, that voids and does not hold or is not
 * known. Conditions on timings never void: they would make the verdict depend on a machine. */
static bool validity_voids(struct table_verdict *v, const struct table_evaluation *ev)
{
    const struct plan_program *p = ev->rules->program;
    for (size_t i = 0; i < p->n_validity; i++) {
        const char *why = "undetermined";
        if (p->validity[i].on_fail != ON_FAIL_VOID || p->validity[i].timing) {
            continue;
        }
        assert(ev->rules->validity[i] != NULL);
        const enum truth t = evaluation_truth(ev, ev->rules->validity[i], TRUTH_UNKNOWN, &why);
        if (t == TRUTH_FALSE) {
            v->why = arena_printf(&v->arena, "validity %s failed", p->validity[i].name);
            return true;
        }
        if (t == TRUTH_UNKNOWN) {
            v->why =
                arena_printf(&v->arena, "validity %s is unknown: %s", p->validity[i].name, why);
            return true;
        }
    }
    return false;
}

/* Step 5: the second run of a check did not score what the first one did, or was not made. The
 * instrument may have changed while the scores were taken. */
static bool apparatus_voids(struct table_verdict *v, const struct evidence *e)
{
    const size_t i = evidence_failed_check(e);
    if (i == INDEX_NONE) {
        return false;
    }
    const char *cause = e->checks[i].cause == NULL ? "" : e->checks[i].cause;
    const char *name = e->program->apparatus[e->program->apparatus[i].first].name;
    v->why = strcmp(cause, cause_name(CAUSE_APPARATUS)) == 0
                 ? arena_printf(&v->arena,
                                "apparatus check %s did not score after the last evaluation what "
                                "it had scored before the first",
                                name)
                 : arena_printf(&v->arena,
                                "apparatus check %s was not run again after the last evaluation "
                                "(%s)",
                                name, cause);
    return true;
}

/* Steps 5 to 8: exactly one of the three kinds; `why` is set for all but a bound outcome. */
static void decide(struct table_verdict *v, const struct table_evaluation *ev,
                   const struct coverage *c, const struct evidence *e)
{
    v->outcome = INDEX_NONE;
    /* 5 and 6. What had to hold for the comparison to be one does not. */
    if (over_budget(v, c) || apparatus_voids(v, e) || validity_voids(v, ev)) {
        v->kind = VERDICT_VOID;
        return;
    }
    /* 7. All rows that fire name one outcome: it binds. */
    v->outcome = evaluation_outcome(ev);
    if (v->outcome != INDEX_NONE) {
        assert(v->outcome < ev->rules->program->n_outcomes && ev->n_fired > 0);
        v->kind = VERDICT_BOUND;
        return;
    }
    /* 8. No row fires, or they disagree: nothing binds. */
    v->kind = VERDICT_INDETERMINATE;
    v->why = ev->n_fired == 0 ? "no row of the table fires"
                              : "the rows that fire lead to different outcomes";
}

/* Steps 2 to 8, then what is written of them. */
static void judge(struct table_verdict *v, const struct evidence *e, const struct rules *rules,
                  const char *const digests[2])
{
    struct coverage coverage;
    struct table_reading reading;
    struct table_evaluation ev;
    /* 2. What was lost, and which losses are excluded. */
    coverage_init(&coverage, e, &v->arena);
    /* 3. One score per measure and cell. */
    reading_of_evidence(&reading, e, rules, &coverage, &v->arena);
    /* 4. Gates and counters, contrasts, inputs, rows. */
    evaluation_run(&ev, rules, &reading, &v->arena);
    decide(v, &ev, &coverage, e);
    v->file = verdict_file_create(v, &ev, &coverage, e, digests);
}

int verdict_compute(const struct evidence *e, const char *root, const char *head,
                    struct table_verdict *out, struct err *err)
{
    struct rules rules;
    struct diag diag;
    const char *const digests[2] = {root, head};
    assert(e->program != NULL && root != NULL && head != NULL);
    *out = (struct table_verdict){.outcome = INDEX_NONE};
    arena_init(&out->arena);
    diag_init(&diag, e->program->path);
    int rc = rules_compile(e->program, &rules, &diag, err);
    /* 1. The table has one row for every combination. Imported and replayed programs may never have
     * been checked, and a table with a hole could fire no row at all. */
    if (rc == 0) {
        rc = table_is_total(e->program, err);
    }
    if (rc == 0) {
        judge(out, e, &rules, digests);
    }
    rules_release(&rules);
    diag_release(&diag);
    return rc;
}

void verdict_release(struct table_verdict *v)
{
    assert(v != NULL);
    verdict_file_free(v->file);
    arena_release(&v->arena);
    *v = (struct table_verdict){.outcome = INDEX_NONE};
}

const char *verdict_word(const struct table_verdict *v, const struct plan_program *p)
{
    assert(v != NULL && p != NULL && (v->kind != VERDICT_BOUND || v->outcome < p->n_outcomes));
    return v->kind == VERDICT_BOUND ? p->outcomes[v->outcome].name : verdict_kind_word(v->kind);
}
