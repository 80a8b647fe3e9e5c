/*
 * Explains rows of the table one by one for `preregctl check --explain`. A report keeps only the
 * number of the trial that witnessed a row, so the records are rebuilt from that number and
 * evaluated. This is possible because a trial depends on nothing but the program and its number.
 */
#include "truthtable/prove/check_explain.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "truthtable/condition/table_rows.h"
#include "truthtable/evaluate/evaluation.h"
#include "truthtable/prove/check_parts.h"

#define FIRES_WITH_MAX 8
#define CONDITIONS_MAX 3 /* earlier levels whose conditions are spelled out */

enum explain_kind { KIND_ALONE, KIND_WITH_OTHERS, KIND_IMPOSSIBLE, KIND_NOT_SHOWN, KIND_NR };

struct explaining {
    const struct check_report *report;
    struct rules rules;
    size_t *row_of;    /* [combination]; NULL: the table is not whole */
    uint64_t n_states; /* partial states each row fires in; 0: too many */
};

/* The four kinds a row is counted under. */
static enum explain_kind kind_of(const struct row_proof *row)
{
    if (row->reach == REACH_WITNESSED) {
        return row->alone ? KIND_ALONE : KIND_WITH_OTHERS;
    }
    return row->reach == REACH_IMPOSSIBLE ? KIND_IMPOSSIBLE : KIND_NOT_SHOWN;
}

static const struct plan_input *input_of(const struct plan_program *p, size_t table_input)
{
    return &p->inputs[p->table_inputs[table_input]];
}

/* The row of each combination, for the question which inputs a row needs. Left out for tables with
 * holes, and for huge ones. */
static void map_rows(struct explaining *x)
{
    const struct check_report *r = x->report;
    const struct plan_program *p = r->program;
    const struct table_proof *t = &r->table;
    if (t->n_combinations > TABLE_COMBINATIONS_MAX || t->n_holes > 0 || t->n_clashes > 0) {
        return;
    }
    x->row_of = xcalloc((size_t)t->n_combinations, sizeof(*x->row_of));
    for (size_t k = 0; k < p->n_rows; k++) {
        x->row_of[table_combination_of(p, p->rows[k].levels)] = k;
    }
}

/* A row fires in every state in which each of its levels is possible: 2^(levels - 1) sets of an
 * input hold one of its levels. The state of the row's levels alone is not partial. */
static uint64_t states_of_a_row(const struct plan_program *p)
{
    size_t bits = 0;
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        bits += input_of(p, i)->n_levels - 1;
    }
    return bits < 53 ? (UINT64_C(1) << bits) - 1 : 0;
}

/* The inputs whose levels change the outcome while all others keep the row's levels. */
static cJSON *needs_json(const struct explaining *x, const struct plan_row *row)
{
    const struct plan_program *p = x->report->program;
    if (x->row_of == NULL) {
        return cJSON_CreateNull();
    }
    cJSON *needs = json_array();
    size_t *levels = xcalloc(p->n_table_inputs, sizeof(*levels));
    memcpy(levels, row->levels, p->n_table_inputs * sizeof(*levels));
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        bool same = true;
        for (size_t l = 0; l < input_of(p, i)->n_levels; l++) {
            levels[i] = l;
            same =
                same && p->rows[x->row_of[table_combination_of(p, levels)]].outcome == row->outcome;
        }
        levels[i] = row->levels[i];
        if (!same) {
            json_push_string(needs, input_of(p, i)->name);
        }
    }
    free(levels);
    return needs;
}

/* "magnitude decisive (contrast.arch.max_abs >= 4)"; a later level holds only where those before it
 * do not. */
static void add_level(struct strbuf *sb, const struct plan_input *in, size_t level)
{
    strbuf_addf(sb, "%s %s (%s", in->name, in->levels[level].name,
                in->levels[level].condition.text);
    for (size_t l = 0; l < level && l < CONDITIONS_MAX; l++) {
        strbuf_addf(sb, ", not %s", in->levels[l].condition.text);
    }
    strbuf_adds(sb, level > CONDITIONS_MAX ? ", ...)" : ")");
}

/* The conditions that contradict each other, in words, for an impossible row. */
static void put_why(cJSON *o, const struct check_report *r, const struct row_proof *row)
{
    const struct plan_program *p = r->program;
    struct strbuf sb = STRBUF_INIT;
    size_t n = 0;
    if (row->conflict == INDEX_NONE) {
        json_put_null(o, "why");
        return;
    }
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        size_t level = r->conflicts[row->conflict].levels[i];
        if (level != INDEX_NONE) {
            strbuf_adds(&sb, n++ > 0 ? " and " : "");
            add_level(&sb, input_of(p, i), level);
        }
    }
    strbuf_adds(&sb, n == 1 ? " never holds" : " never hold together");
    json_put_string(o, "why", sb.buf);
    strbuf_release(&sb);
}

/* The witness again: its scores, and what else it fires. */
static void put_witness(cJSON *o, const struct explaining *x, size_t row)
{
    struct arena arena;
    struct table_reading reading;
    struct table_evaluation ev;
    cJSON *others = json_array();
    arena_init(&arena);
    search_make(&reading, &x->rules, x->report->rows[row].witness, &arena);
    evaluation_run(&ev, &x->rules, &reading, &arena);
    for (size_t i = 0; i < ev.n_fired && cJSON_GetArraySize(others) < FIRES_WITH_MAX; i++) {
        if (ev.fired[i] != row) {
            json_push_number(others, (double)ev.fired[i] + 1);
        }
    }
    json_put_string(o, "scores", search_scores(&reading, &x->rules, &arena));
    json_put(o, "fires_with", others);
    arena_release(&arena);
}

/* The members of one element of "rows", in the order that the header lists. */
static cJSON *row_json(const struct explaining *x, size_t k)
{
    static const char *const words[KIND_NR] = {"witnessed alone", "witnessed", "impossible",
                                               "not shown"};
    const struct check_report *r = x->report;
    const struct plan_program *p = r->program;
    const struct plan_row *row = &p->rows[k];
    cJSON *o = json_object();
    cJSON *levels = json_array();
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        json_push_string(levels, input_of(p, i)->levels[row->levels[i]].name);
    }
    json_put_int(o, "row", (int64_t)k + 1);
    json_put(o, "levels", levels);
    json_put_string(o, "outcome", p->outcomes[row->outcome].name);
    json_put_string(o, "reach", words[kind_of(&r->rows[k])]);
    if (r->rows[k].reach == REACH_WITNESSED) {
        put_witness(o, x, k);
    } else {
        json_put_null(o, "scores");
        json_put(o, "fires_with", json_array());
    }
    if (x->n_states > 0) {
        json_put_int(o, "states", (int64_t)x->n_states);
    } else {
        json_put_null(o, "states");
    }
    json_put(o, "needs", needs_json(x, row));
    put_why(o, r, &r->rows[k]);
    return o;
}

/* Rows are counted in full, but described only up to per_kind of each kind. */
cJSON *check_explain(const struct check_report *r, size_t per_kind)
{
    static const char *const names[KIND_NR] = {"witnessed_alone", "witnessed", "impossible",
                                               "not_shown"};
    const struct plan_program *p = r->program;
    struct explaining x = {.report = r, .n_states = states_of_a_row(p)};
    size_t n[KIND_NR] = {0};
    struct diag diag;
    struct err err;
    cJSON *o = json_object();
    cJSON *rows = json_array();
    diag_init(&diag, p->path);
    map_rows(&x);
    /* it compiled for the report */
    if (rules_compile(p, &x.rules, &diag, &err) == 0) {
        for (size_t k = 0; k < p->n_rows; k++) {
            if (n[kind_of(&r->rows[k])]++ < per_kind) {
                json_push(rows, row_json(&x, k));
            }
        }
    }
    json_put_int(o, "total", (int64_t)p->n_rows);
    for (size_t i = 0; i < KIND_NR; i++) {
        json_put_int(o, names[i], (int64_t)n[i]);
    }
    json_put(o, "rows", rows);
    rules_release(&x.rules);
    diag_release(&diag);
    free(x.row_of);
    return o;
}
