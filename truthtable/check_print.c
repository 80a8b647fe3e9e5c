/* The report of check, for people and as JSON. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "truthtable/check.h"

#define ROWS_TOLD_MAX 64 /* rows that are spelled out for people; counts beyond */

static const char *reach_name(enum reach r)
{
    switch (r) {
    case REACH_WITNESSED: return "witnessed";
    case REACH_IMPOSSIBLE: return "impossible";
    case REACH_NOT_SHOWN: break;
    }
    return "not shown";
}

static void print_table(const struct check_report *r, struct strbuf *out)
{
    const struct table_proof *t = &r->table;
    strbuf_addf(out, "Table: %llu combinations of levels, %zu rows, %llu holes, %llu clashes\n",
                (unsigned long long)t->n_combinations, r->program->n_rows,
                (unsigned long long)t->n_holes, (unsigned long long)t->n_clashes);
    if (!t->states_counted) {
        strbuf_adds(out, "  partial states: too many to count\n");
        return;
    }
    strbuf_addf(out, "  partial states: %llu, of which %llu end INDETERMINATE\n",
                (unsigned long long)t->n_partial, (unsigned long long)t->n_indeterminate);
    for (size_t i = 0; i < t->n_listed; i++) {
        strbuf_addf(out, "    %s\n", t->indeterminate[i]);
    }
    if (t->n_indeterminate > t->n_listed) {
        strbuf_addf(out, "    and %llu more\n",
                    (unsigned long long)(t->n_indeterminate - t->n_listed));
    }
}

static void print_row(const struct check_report *r, size_t row, struct strbuf *out)
{
    const struct program *p = r->program;
    strbuf_addf(out, "  row %zu (", row + 1);
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        const struct input *in = &p->inputs[p->table_inputs[i]];
        strbuf_addf(out, "%s%s", i > 0 ? ", " : "", in->levels[p->rows[row].levels[i]].name);
    }
    strbuf_addf(out, ") -> %s: %s", p->outcomes[p->rows[row].outcome].name,
                reach_name(r->rows[row].reach));
    if (r->rows[row].reach == REACH_WITNESSED) {
        strbuf_adds(out, r->rows[row].alone ? ", alone" : ", with others");
    }
    strbuf_adds(out, "\n");
}

static void print_reach(const struct check_report *r, struct strbuf *out)
{
    const struct program *p = r->program;
    size_t n[3] = {0};
    strbuf_addf(out, "\nReach (%llu made-up complete sets of records)\n",
                (unsigned long long)r->n_trials);
    for (size_t k = 0; k < p->n_rows; k++) {
        n[r->rows[k].reach]++;
        if (k < ROWS_TOLD_MAX) {
            print_row(r, k, out);
        }
    }
    strbuf_addf(out, "  rows: %zu witnessed, %zu impossible, %zu not shown\n", n[REACH_WITNESSED],
                n[REACH_IMPOSSIBLE], n[REACH_NOT_SHOWN]);
    for (size_t o = 0; o < p->n_outcomes; o++) {
        const struct outcome_proof *proof = &r->outcomes[o];
        strbuf_addf(out, "  outcome %s: %s", p->outcomes[o].name, reach_name(proof->reach));
        if (proof->reach == REACH_WITNESSED) {
            strbuf_addf(out, "%s, by %s", proof->binds ? ", binding" : ", never alone",
                        proof->scores);
        }
        strbuf_adds(out, "\n");
    }
    strbuf_adds(out, "  scores are means of the conditions in their order:");
    for (size_t c = 0; c < p->n_conditions && c < 8; c++) {
        strbuf_addf(out, " %s", p->conditions[c].name);
    }
    strbuf_adds(out, p->n_conditions > 8 ? " ...\n" : "\n");
}

static void print_measures(const struct check_report *r, struct strbuf *out)
{
    const struct program *p = r->program;
    strbuf_adds(out, "\nFloors and resolution\n");
    for (size_t m = 0; m < p->n_measures; m++) {
        const struct measure *me = &p->measures[m];
        strbuf_addf(out, "  %s: floor ", me->name);
        strbuf_adds(out, me->has_floor ? me->floor_text : "none");
        if (isfinite(r->measures[m].floor_above_chance)) {
            strbuf_addf(out, ", %.2f binomial standard errors above chance %g",
                        r->measures[m].floor_above_chance, me->chance);
        } else if (me->has_floor) {
            strbuf_adds(out, me->has_chance && me->has_items
                                 ? ", above a chance of 0 or 1: no standard error"
                                 : ", chance or items unknown");
        }
        if (isfinite(r->measures[m].detectable)) {
            strbuf_addf(out, "; detects no difference under %.4f at 80 %% power (%zu cells an arm)",
                        r->measures[m].detectable, r->measures[m].cells_per_arm);
        }
        strbuf_adds(out, me->counted ? "\n" : "; not counted\n");
    }
    strbuf_addf(out, "\nPriors sum to %.6g; %.6g is left for none of them\n", r->prior_sum,
                r->prior_remainder);
}

/* Three significant digits and a unit letter for what is large. */
static void number_cell(double v, char cell[16])
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P"};
    size_t unit = 0;
    if (!isfinite(v)) {
        (void)snprintf(cell, 16, "unknown");
        return;
    }
    while (fabs(v) >= 1e6 && unit < 5) {
        v /= 1000;
        unit++;
    }
    if (unit == 0 && fabs(v) >= 1e5) {
        v /= 1000;
        unit = 1;
    }
    (void)snprintf(cell, 16, floor(v) == v ? "%.0f%s" : "%.5g%s", v, units[unit]);
}

static bool all_unknown(const struct check_report *r)
{
    for (size_t c = 0; c < r->program->n_conditions; c++) {
        for (size_t k = 0; k < FIXED_NR; k++) {
            if (isfinite(r->fixed[c].values[k])) {
                return false;
            }
        }
    }
    return true;
}

static void print_fixed_rows(const struct check_report *r, struct strbuf *out)
{
    const struct program *p = r->program;
    size_t width = strlen("condition");
    for (size_t c = 0; c < p->n_conditions; c++) {
        size_t n = text_columns(p->conditions[c].name);
        width = n > width ? n : width;
    }
    strbuf_addf(out, "  %-*s", (int)width, "condition");
    for (size_t k = 0; k < FIXED_NR; k++) {
        strbuf_addf(out, "  %17s", fixed_column_name((enum fixed_column)k));
    }
    for (size_t c = 0; c < p->n_conditions && c < ROWS_TOLD_MAX; c++) {
        size_t pad = width - text_columns(p->conditions[c].name);
        strbuf_addf(out, "\n  %s%*s", p->conditions[c].name, (int)pad, "");
        for (size_t k = 0; k < FIXED_NR; k++) {
            char cell[16];
            number_cell(r->fixed[c].values[k], cell);
            strbuf_addf(out, "  %17s", cell);
        }
    }
    strbuf_adds(out, p->n_conditions > ROWS_TOLD_MAX ? "\n  ...\n" : "\n");
}

static void print_fixed(const struct check_report *r, struct strbuf *out)
{
    strbuf_adds(out, "\nWhat is held fixed\n");
    if (all_unknown(r)) {
        strbuf_adds(out, "  unknown: the workers were not asked, or do not say\n");
        return;
    }
    print_fixed_rows(r, out);
    strbuf_addf(out, "  equal (the contract): %s\n",
                r->fixed_equal[0] ? r->fixed_equal : "nothing");
    strbuf_addf(out, "  not equal: %s\n", r->fixed_differ[0] ? r->fixed_differ : "nothing");
    if (r->fixed_unknown[0] != '\0') {
        strbuf_addf(out, "  unknown: %s\n", r->fixed_unknown);
    }
}

static void add_amount(struct strbuf *out, const char *what, double v, const char *unit)
{
    if (isfinite(v)) {
        strbuf_addf(out, ", %s %.3g%s", what, v, unit);
    } else {
        strbuf_addf(out, ", %s unknown", what);
    }
}

static void print_plan(const struct check_report *r, struct strbuf *out)
{
    strbuf_addf(out, "\nPlan: %zu cells, %zu tasks", r->plan.n_cells, r->plan.n_tasks);
    add_amount(out, "FLOPs", r->plan.flops, "");
    add_amount(out, "disk", r->plan.disk_bytes / (1024.0 * 1024.0 * 1024.0), " GiB");
    add_amount(out, "time one after another", r->plan.seconds / 3600, " h");
    strbuf_adds(out, "\n");
}

void check_print(const struct check_report *r, struct strbuf *out)
{
    print_table(r, out);
    print_reach(r, out);
    print_measures(r, out);
    print_fixed(r, out);
    print_plan(r, out);
}

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

static cJSON *reach_json(const struct check_report *r)
{
    const struct program *p = r->program;
    cJSON *o = json_object();
    cJSON *rows = json_array();
    cJSON *outcomes = json_array();
    json_put_int(o, "trials", (int64_t)r->n_trials);
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

static cJSON *measures_json(const struct check_report *r)
{
    const struct program *p = r->program;
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

static cJSON *fixed_json(const struct check_report *r)
{
    const struct program *p = r->program;
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
    json_put_string(o, "equal", r->fixed_equal);
    json_put_string(o, "not_equal", r->fixed_differ);
    json_put_string(o, "unknown", r->fixed_unknown);
    return o;
}

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
    json_put(o, "fixed", fixed_json(r));
    json_put_int(plan, "cells", (int64_t)r->plan.n_cells);
    json_put_int(plan, "tasks", (int64_t)r->plan.n_tasks);
    json_put_number(plan, "petaflops", r->plan.flops / 1e15); /* beyond 2^53 as a whole number */
    json_put_number(plan, "disk_bytes", r->plan.disk_bytes);
    json_put_number(plan, "seconds", r->plan.seconds);
    json_put(o, "plan", plan);
    return o;
}
