/*
 * Writes the report of check as JSON, for `--json` and as the "proof" of a lock. Nothing is
 * computed here: NaN becomes null, and ctl/ words the result for people. A lock keeps these
 * members, so renaming one changes a file format.
 */
#include <math.h>

#include "base/json/json.h"
#include "truthtable/prove/check.h"
#include "truthtable/prove/check_parts.h"

/* The words of the format, not for display. */
static const char *reach_name(enum reach r)
{
    switch (r) {
    case REACH_WITNESSED: return "witnessed";
    case REACH_IMPOSSIBLE: return "impossible";
    case REACH_NOT_SHOWN: break;
    }
    return "not shown";
}

/* Counts of partial states are null where there are too many to enumerate. */
static cJSON *table_json(const struct check_report *r)
{
    const struct table_proof *t = &r->table;
    cJSON *o = json_object();
    cJSON *listed = json_array();
    json_put_int(o, "combinations", (int64_t)t->n_combinations);
    json_put_int(o, "rows", (int64_t)r->program->n_rows);
    json_put_int(o, "holes", (int64_t)t->n_holes);
    json_put_int(o, "clashes", (int64_t)t->n_clashes);
    if (t->states_counted) {
        json_put_int(o, "partial_states", (int64_t)t->n_partial);
        json_put_int(o, "indeterminate_states", (int64_t)t->n_indeterminate);
    } else {
        json_put_null(o, "partial_states");
        json_put_null(o, "indeterminate_states");
    }
    for (size_t i = 0; i < t->n_listed; i++) {
        json_push_string(listed, t->indeterminate[i]);
    }
    json_put(o, "indeterminate", listed);
    return o;
}

/* Witnesses and proofs, by row and by outcome. */
static cJSON *reach_json(const struct check_report *r)
{
    const struct plan_program *p = r->program;
    cJSON *o = json_object();
    cJSON *rows = json_array();
    cJSON *outcomes = json_array();
    json_put_int(o, "trials", (int64_t)r->n_trials);
    json_put_int(o, "proofs", (int64_t)r->n_proofs);
    json_put_bool(o, "proofs_ended_early", r->proofs_ended);
    for (size_t k = 0; k < p->n_rows; k++) {
        json_push_string(rows, r->rows[k].alone ? "witnessed alone" : reach_name(r->rows[k].reach));
    }
    for (size_t i = 0; i < p->n_outcomes; i++) {
        cJSON *one = json_object();
        json_put_string(one, "name", p->outcomes[i].name);
        json_put_string(one, "reach", reach_name(r->outcomes[i].reach));
        json_put_bool(one, "binds", r->outcomes[i].binds);
        json_put_string(one, "scores", r->outcomes[i].scores);
        json_push(outcomes, one);
    }
    json_put(o, "rows", rows);
    json_put(o, "outcomes", outcomes);
    return o;
}

/* What each measure can resolve. */
static cJSON *measures_json(const struct check_report *r)
{
    const struct plan_program *p = r->program;
    cJSON *list = json_array();
    for (size_t m = 0; m < p->n_measures; m++) {
        cJSON *o = json_object();
        json_put_string(o, "name", p->measures[m].name);
        json_put_number(o, "floor_above_chance", r->measures[m].floor_above_chance);
        json_put_number(o, "detectable_difference", r->measures[m].detectable);
        json_push(list, o);
    }
    return list;
}

/* Which columns are equal, differ or are unknown, as one text each. */
static void put_words(cJSON *o, const struct fixed_words *w)
{
    json_put_string(o, "equal", w->equal);
    json_put_string(o, "not_equal", w->differ);
    json_put_string(o, "unknown", w->unknown);
}

/* The columns that [scope] declares as confounds or should. */
static cJSON *confounds_json(const struct check_report *r)
{
    cJSON *list = json_array();
    for (size_t k = 0; k < FIXED_NR; k++) {
        const struct fixed_difference *d = &r->differences[k];
        if (!r->confounds[k].declared && !d->differs) {
            continue;
        }
        cJSON *one = json_object();
        json_put_string(one, "column", fixed_column_key((enum fixed_column)k));
        json_put_string(one, "name", fixed_column_name((enum fixed_column)k));
        json_put_bool(one, "declared", r->confounds[k].declared);
        if (d->differs || !d->unknown) {
            json_put_bool(one, "differs", d->differs);
        } else {
            json_put_null(one, "differs");
        }
        json_put_string(one, "contrast",
                        d->differs ? r->program->contrasts[d->contrast].name : NULL);
        json_put_number(one, "ratio", d->differs ? d->ratio : (double)NAN);
        json_push(list, one);
    }
    return list;
}

/* Differences of contrasts have no arms and are left out of "contrasts". */
cJSON *check_fixed_object(const struct check_report *r)
{
    const struct plan_program *p = r->program;
    cJSON *o = json_object();
    cJSON *conditions = json_array();
    for (size_t c = 0; c < p->n_conditions; c++) {
        cJSON *one = json_object();
        json_put_string(one, "condition", p->conditions[c].name);
        for (size_t k = 0; k < FIXED_NR; k++) {
            json_put_number(one, fixed_column_name((enum fixed_column)k), r->fixed[c].values[k]);
        }
        json_push(conditions, one);
    }
    json_put(o, "conditions", conditions);
    put_words(o, &r->fixed_words);
    cJSON *contrasts = json_array();
    for (size_t k = 0; k < p->n_contrasts; k++) {
        if (r->fixed_contrasts[k].equal != NULL) {
            cJSON *one = json_object();
            json_put_string(one, "contrast", p->contrasts[k].name);
            put_words(one, &r->fixed_contrasts[k]);
            json_push(contrasts, one);
        }
    }
    json_put(o, "contrasts", contrasts);
    if (p->scope.declared) {
        json_put(o, "confounds", confounds_json(r));
    }
    return o;
}

/* FLOPs are written in units of 10^15, since JSON's integers end at 2^53. */
cJSON *check_json(const struct check_report *r)
{
    cJSON *o = json_object();
    cJSON *priors = json_object();
    cJSON *plan = json_object();
    json_put_int(o, "schema", 1);
    json_put(o, "table", table_json(r));
    json_put(o, "reach", reach_json(r));
    json_put(o, "measures", measures_json(r));
    json_put_number(priors, "sum", r->prior_sum);
    json_put_number(priors, "remainder", r->prior_remainder);
    json_put(o, "priors", priors);
    json_put(o, "fixed", check_fixed_object(r));
    json_put_int(plan, "cells", (int64_t)r->plan.n_cells);
    json_put_int(plan, "tasks", (int64_t)r->plan.n_tasks);
    if (r->plan.n_other_names > 0) {
        json_put_int(plan, "other_names", (int64_t)r->plan.n_other_names);
    }
    if (r->plan.n_reused > 0) {
        json_put_int(plan, "reused", (int64_t)r->plan.n_reused);
    }
    json_put_number(plan, "petaflops", r->plan.flops / 1e15); /* beyond 2^53 as a whole number */
    json_put_number(plan, "disk_bytes", r->plan.disk_bytes);
    json_put_number(plan, "seconds", r->plan.seconds);
    json_put(o, "plan", plan);
    return o;
}
