/*
 * The mixed model: every cell is a row, fixed terms are factors and facts, and one factor gives a
 * random intercept; there is one fit for each response. Rows with a missing value are dropped and
 * listed, as lme4 does. A singular fit is a finding, not a failure: the instrument names the
 * columns without variance, those that are combinations of others, and a variance at its boundary.
 * mixed.h computes, this file declares and reports.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/program/same_work.h"
#include "truthtable/instruments/instrument_work.h"
#include "truthtable/instruments/mixed.h"

#define INTERCEPT "intercept"
/* A factor may have as many levels as there are cells: beyond these limits a fit would use up the
 * memory and time of all instruments. */
#define NUMBERS_MAX ((size_t)1 << 22) /* columns times cells */
#define STEP_MAX    1.4e8             /* (groups + columns) columns^2, of one step of the search */

struct column {
    const char *name;      /* "lr[0.002]", "fact.train.router_load" */
    const char *of;        /* the term as declared */
    struct number *values; /* by cell */
};

struct mixed_terms {
    const struct work *w;
    const cJSON *spec;
    struct column *columns; /* the intercept first */
    size_t n;
    size_t random; /* factor */
    size_t cap;
};

struct mixed_sum { /* over fits */
    enum truth singular, any_singular, deficient, boundary;
    size_t n_singular, n_open, n_fitted;
    struct spread rows, theta, marginal, conditional;
    const char *why;
};

/* Adds a column of unknown values; the array grows in the arena. */
static struct column *add_column(struct mixed_terms *m, const char *name, const char *of)
{
    if (m->n == m->cap) {
        size_t cap = m->cap == 0 ? 8 : 2 * m->cap;
        struct column *columns = arena_array(m->w->arena, cap, sizeof(*columns));
        if (m->n > 0) {
            memcpy(columns, m->columns, m->n * sizeof(*columns));
        }
        /* The old array stays in the arena. */
        m->columns = columns;
        m->cap = cap;
    }
    struct column *c = &m->columns[m->n++];
    *c = (struct column){.name = name,
                         .of = of,
                         .values = arena_array(m->w->arena, m->w->p->n_cells, sizeof(*c->values))};
    return c;
}

/* A category: a column of 0 and 1 for every level but the first. */
static void add_factor(struct mixed_terms *m, size_t factor)
{
    const struct plan_program *p = m->w->p;
    const struct plan_factor *f = &p->factors[factor];
    /* The first level is the reference, as in R. */
    for (size_t l = 1; l < f->n_levels; l++) {
        struct column *c =
            add_column(m, arena_printf(m->w->arena, "%s[%s]", f->name, f->levels[l].text), f->name);
        for (size_t i = 0; i < p->n_cells; i++) {
            c->values[i] = number_point(p->cells[i].levels[factor] == l ? 1 : 0);
        }
    }
}

/* A fact as a number; a bound is not a value that can be fitted. */
static struct number fact_value(const struct evidence_value *v)
{
    switch (v->state) {
    case VALUE_KNOWN: return number_point(v->value);
    case VALUE_NULL: return number_unknown(v->why != NULL ? v->why : "null");
    case VALUE_CENSORED: return number_unknown("known only as a bound");
    case VALUE_DOUBLED: return number_unknown("recorded more than once");
    case VALUE_MISSING: break;
    }
    return number_unknown("not recorded");
}

/* "fact.STAGE.NAME": a column of what each cell's task reported. */
static void add_fact(struct mixed_terms *m, const char *term)
{
    const struct plan_program *p = m->w->p;
    const char *dot = strchr(term + strlen("fact."), '.');
    char *stage_name = xstrndup(term + strlen("fact."), (size_t)(dot - term) - strlen("fact."));
    size_t stage = program_find_stage(p, stage_name);
    struct column *c = add_column(m, term, term);
    for (size_t i = 0; i < p->n_cells; i++) {
        /* Facts of a failed attempt do not count. */
        bool done = m->w->e->tasks[i * p->n_stages + stage].end == TASK_END_DONE;
        c->values[i] = done ? fact_value(evidence_fact(m->w->e, i, stage, dot + 1))
                            : number_unknown("its task is not done");
    }
    free(stage_name);
}

/* How many columns the fixed terms make, before any is allocated. */
static size_t count_columns(const struct mixed_terms *m)
{
    size_t n = 1;
    const cJSON *term = NULL;
    cJSON_ArrayForEach(term, json_member(m->spec, "fixed"))
    {
        size_t factor = program_find_factor(m->w->p, term->valuestring);
        n += factor == INDEX_NONE ? 1 : m->w->p->factors[factor].n_levels - 1;
    }
    return n;
}

/* NULL: small enough to be fitted. */
static const char *too_large(const struct mixed_terms *m)
{
    size_t n = count_columns(m);
    size_t groups = m->w->p->factors[m->random].n_levels;
    /* As doubles: the product may exceed any integer. */
    double step = ((double)groups + (double)n) * (double)n * (double)n;
    if (n <= NUMBERS_MAX / m->w->p->n_cells && step <= STEP_MAX) {
        return NULL;
    }
    return arena_printf(m->w->arena,
                        "the fixed terms make %zu columns over %zu cells, with %zu groups: more "
                        "than is fitted here",
                        n, m->w->p->n_cells, groups);
}

/* The intercept, then the terms in the order declared: of columns that depend on each other, the
 * later one is dropped. */
static void make_columns(struct mixed_terms *m)
{
    struct column *one = add_column(m, INTERCEPT, INTERCEPT);
    for (size_t i = 0; i < m->w->p->n_cells; i++) {
        one->values[i] = number_point(1);
    }
    const cJSON *term = NULL;
    cJSON_ArrayForEach(term, json_member(m->spec, "fixed"))
    {
        if (strncmp(term->valuestring, "fact.", strlen("fact.")) == 0) {
            add_fact(m, term->valuestring);
        } else {
            add_factor(m, program_find_factor(m->w->p, term->valuestring));
        }
    }
}

struct rows {
    size_t *cells; /* [row]: the first of its work that has every value */
    size_t n;
    const size_t *of; /* [cell that does the work]: 1 + the row; 0: none */
    cJSON *dropped;
};

/* The cell that does a cell's work of the response's stage. */
static size_t work_of(const struct mixed_terms *m, size_t response, size_t cell)
{
    const struct plan_program *p = m->w->p;
    return program_worker_of(p, cell * p->n_stages + p->measures[response].stage) / p->n_stages;
}

/* The first column without a value in the cell, or NULL. */
static const struct column *missing_column(const struct mixed_terms *m, size_t cell)
{
    for (size_t c = 0; c < m->n; c++) {
        if (!number_is_point(&m->columns[c].values[cell])) {
            return &m->columns[c];
        }
    }
    return NULL;
}

/* Why a cell is dropped; NULL when it is a row. A work under several names is one row: a score that
 * counted twice would make every error too small. */
static const char *why_dropped(const struct mixed_terms *m, size_t response, size_t cell,
                               const struct rows *r)
{
    const struct plan_program *p = m->w->p;
    const size_t work = work_of(m, response, cell);
    const struct number *y = &work_score(m->w, response, cell)->value;
    if (r->of[work] > 0) {
        return arena_printf(m->w->arena, "one work with %s",
                            p->cells[r->cells[r->of[work] - 1]].name);
    }
    /* The response first: without it the columns do not matter. */
    if (point_why(y) != NULL) {
        return arena_printf(m->w->arena, "%s: %s", p->measures[response].name, point_why(y));
    }
    const struct column *c = missing_column(m, cell);
    return c == NULL ? NULL
                     : arena_printf(m->w->arena, "%s: %s", c->name, point_why(&c->values[cell]));
}

/* [cell that does the work]: its names are in more than one group. */
static bool *find_ungrouped(const struct mixed_terms *m, size_t response, struct arena *a)
{
    const struct plan_cell *cells = m->w->p->cells;
    bool *ungrouped = arena_array(a, m->w->p->n_cells, sizeof(*ungrouped));
    for (size_t i = 0; i < m->w->p->n_cells; i++) {
        const size_t work = work_of(m, response, i);
        ungrouped[work] =
            ungrouped[work] || cells[i].levels[m->random] != cells[work].levels[m->random];
    }
    return ungrouped;
}

/* The rows of one response, and the cells that were dropped with their reasons. */
static struct rows keep_rows(const struct mixed_terms *m, size_t response, struct arena *a)
{
    const struct plan_program *p = m->w->p;
    const bool *ungrouped = find_ungrouped(m, response, a);
    size_t *of = arena_array(a, p->n_cells, sizeof(*of));
    struct rows r = {arena_array(a, p->n_cells, sizeof(size_t)), 0, of, json_array()};
    for (size_t i = 0; i < p->n_cells; i++) {
        const size_t work = work_of(m, response, i);
        const char *why =
            ungrouped[work]
                ? arena_printf(m->w->arena,
                               "one work under several levels of %s, which groups the rows",
                               p->factors[m->random].name)
                : why_dropped(m, response, i, &r);
        if (why == NULL) {
            r.cells[r.n++] = i;
            of[work] = r.n;
            continue;
        }
        cJSON *o = json_object();
        json_put_string(o, "cell", p->cells[i].name);
        json_put_string(o, "why", why);
        json_push(r.dropped, o);
    }
    return r;
}

/* A row's columns are the means over the names of its work, as none of them speaks for the others:
 * a dense model that is one work under three budgets has a third of each. */
static void fill_columns(const struct mixed_terms *m, const struct rows *r, size_t response,
                         double *x)
{
    size_t *n_names = xcalloc(r->n, sizeof(*n_names));
    for (size_t i = 0; i < m->w->p->n_cells; i++) {
        const size_t row = r->of[work_of(m, response, i)];
        if (row == 0 || missing_column(m, i) != NULL) {
            continue;
        }
        n_names[row - 1]++;
        for (size_t c = 0; c < m->n; c++) {
            x[(row - 1) * m->n + c] += m->columns[c].values[i].lo;
        }
    }
    for (size_t i = 0; i < r->n * m->n; i++) {
        x[i] /= (double)n_names[i / m->n];
    }
    free(n_names);
}

/* The arrays that mixed_model_fit() expects, row by row. */
static struct mixed_data data_of(const struct mixed_terms *m, const struct rows *r, size_t response,
                                 struct arena *a)
{
    double *x = arena_array(a, r->n * m->n, sizeof(*x));
    double *y = arena_array(a, r->n, sizeof(*y));
    size_t *group = arena_array(a, r->n, sizeof(*group));
    for (size_t i = 0; i < r->n; i++) {
        y[i] = work_score(m->w, response, r->cells[i])->value.lo;
        group[i] = m->w->p->cells[r->cells[i]].levels[m->random];
    }
    fill_columns(m, r, response, x);
    return (struct mixed_data){.x = x,
                               .y = y,
                               .group = group,
                               .n = r->n,
                               .p = m->n,
                               .n_groups = m->w->p->factors[m->random].n_levels};
}

/* Varies over the cells that have it, but not over the rows that are left. */
static bool constant_by_dropping(const struct mixed_terms *m, size_t column,
                                 const struct mixed_data *rows)
{
    const struct number *values = m->columns[column].values;
    struct spread all = {0};
    struct spread left = {0};
    for (size_t i = 0; i < m->w->p->n_cells; i++) {
        if (number_is_point(&values[i])) {
            spread_add(&all, values[i].lo, NULL);
        }
    }
    for (size_t i = 0; i < rows->n; i++) {
        spread_add(&left, rows->x[i * m->n + column], NULL);
    }
    return all.lo < all.hi && rows->n > 0 && !(left.lo < left.hi);
}

/* Coefficients; those of columns that were not fitted are null. */
static cJSON *terms_json(const struct mixed_terms *m, const struct mixed_fit *fit)
{
    cJSON *list = json_array();
    for (size_t c = 0; c < m->n; c++) {
        bool shown = fit->why == NULL && fit->kept[c];
        cJSON *o = json_object();
        json_put_string(o, "name", m->columns[c].name);
        json_put_number(o, "beta", shown ? fit->beta[c] : (double)NAN);
        json_put_number(o, "se", shown ? fit->se[c] : (double)NAN);
        json_put_bool(o, "estimable", fit->kept != NULL && fit->kept[c]);
        json_push(list, o);
    }
    return list;
}

/* Why the fit is singular, with the columns involved. */
static cJSON *reasons_json(const struct mixed_terms *m, const struct mixed_fit *fit)
{
    static const char *const names[] = {[MIXED_NO_VARIANCE] = "no_variance",
                                        [MIXED_ALIASED] = "aliased",
                                        [MIXED_BOUNDARY_THETA] = "boundary"};
    cJSON *list = json_array();
    for (size_t i = 0; i < fit->n_reasons; i++) {
        const struct mixed_reason *r = &fit->reasons[i];
        cJSON *o = json_object();
        cJSON *of = json_array();
        json_put_string(o, "kind", names[r->kind]);
        json_put_string(o, "term",
                        r->kind == MIXED_BOUNDARY_THETA ? NULL : m->columns[r->column].name);
        for (size_t k = 0; r->kind == MIXED_ALIASED && k < r->n_of; k++) {
            json_push_string(of, m->columns[r->of[k]].name);
        }
        json_put(o, "of", of);
        json_push(list, o);
    }
    return list;
}

/* A fit that could not be made may still be known to be singular. */
static enum truth is_singular(const struct mixed_fit *fit)
{
    if (fit->n_reasons > 0) {
        return TRUTH_TRUE;
    }
    return fit->why == NULL ? TRUTH_FALSE : TRUTH_UNKNOWN;
}

/* Variances and R2; null without a fit. */
static void put_fit(cJSON *o, const struct mixed_fit *fit)
{
    bool ok = fit->why == NULL;
    const struct {
        const char *key;
        double v;
    } figures[] = {{"sigma_b", fit->sigma_b},
                   {"sigma_e", fit->sigma_e},
                   {"theta", fit->theta},
                   {"loglik", fit->loglik},
                   {"r2_marginal", fit->r2_marginal},
                   {"r2_conditional", fit->r2_conditional}};
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        json_put_number(o, figures[i].key, ok ? figures[i].v : (double)NAN);
    }
    put_truth(o, "singular", is_singular(fit));
}

/* `why` is that of the fit, with its response. */
static void add_up(struct mixed_sum *s, const struct mixed_fit *fit, size_t n_rows, const char *why)
{
    bool deficient = false;
    bool boundary = false;
    enum truth singular = is_singular(fit);
    for (size_t i = 0; i < fit->n_reasons; i++) {
        bool at_zero = fit->reasons[i].kind == MIXED_BOUNDARY_THETA;
        /* A boundary is a matter of variances, not of columns. */
        boundary = boundary || at_zero;
        deficient = deficient || !at_zero;
    }
    s->singular = truth_and(s->singular, singular);
    s->any_singular = truth_or(s->any_singular, singular);
    /* The columns are judged even where nothing could be fitted. */
    s->deficient = truth_and(s->deficient, deficient          ? TRUTH_TRUE
                                           : fit->why == NULL ? TRUTH_FALSE
                                                              : TRUTH_UNKNOWN);
    s->boundary = truth_and(s->boundary, fit->why == NULL ? truth_of(boundary) : TRUTH_UNKNOWN);
    s->n_singular += singular == TRUTH_TRUE ? 1 : 0;
    bool ok = fit->why == NULL;
    s->n_fitted += ok ? 1 : 0;
    s->n_open += singular == TRUTH_UNKNOWN ? 1 : 0;
    s->why = s->why != NULL || ok ? s->why : why;
    spread_add(&s->rows, (double)n_rows, NULL);
    spread_add(&s->theta, ok ? fit->theta : (double)NAN, why);
    spread_add(&s->marginal, ok ? fit->r2_marginal : (double)NAN, why);
    spread_add(&s->conditional, ok ? fit->r2_conditional : (double)NAN, why);
}

/* One response. A failed fit still reports its columns, its dropped rows and its reasons. */
static cJSON *fit_json(const struct mixed_terms *m, size_t response, struct mixed_sum *sum)
{
    struct arena arena; /* of this fit alone: there may be many responses */
    struct mixed_fit fit = {0};
    arena_init(&arena);
    struct rows rows = keep_rows(m, response, &arena);
    struct mixed_data data = data_of(m, &rows, response, &arena);
    (void)mixed_model_fit(&data, &arena, &fit); /* what failed is fit.why */
    cJSON *o = json_object();
    cJSON *constant = json_array();
    json_put_string(o, "response", m->w->p->measures[response].name);
    json_put_int(o, "n", (int64_t)rows.n);
    json_put_int(o, "n_groups", (int64_t)fit.n_groups);
    json_put(o, "terms", terms_json(m, &fit));
    put_fit(o, &fit);
    json_put(o, "reasons", reasons_json(m, &fit));
    json_put(o, "dropped", rows.dropped);
    for (size_t c = 1; c < m->n; c++) {
        if (constant_by_dropping(m, c, &data)) {
            json_push_string(constant, m->columns[c].name);
        }
    }
    json_put(o, "constant_by_dropping", constant);
    json_put_string(o, "why", fit.why);
    add_up(sum, &fit, rows.n,
           arena_printf(m->w->arena, "%s: %s", m->w->p->measures[response].name,
                        fit.why == NULL ? "fitted" : fit.why));
    arena_release(&arena);
    return o;
}

/* What was declared, and the columns it became. */
static void put_model(const struct instrument_entry *t, const struct mixed_terms *m)
{
    cJSON *columns = json_array();
    json_put_string(t->json, "random", m->w->p->factors[m->random].name);
    json_put(t->json, "response", json_copy(json_member(m->spec, "response")));
    json_put(t->json, "fixed", json_copy(json_member(m->spec, "fixed")));
    for (size_t c = 1; c < m->n; c++) {
        cJSON *o = json_object();
        json_put_string(o, "name", m->columns[c].name);
        json_put_string(o, "of", m->columns[c].of);
        json_push(columns, o);
    }
    json_put(t->json, "columns", columns);
}

/* The fields that forecasts may read. */
static void answer(struct instrument_entry *t, const struct mixed_sum *s)
{
    entry_truth(t, "singular", s->singular, s->why);
    entry_truth(t, "any_singular", s->any_singular, s->why);
    entry_truth(t, "rank_deficient", s->deficient, s->why);
    entry_truth(t, "boundary", s->boundary, s->why);
    entry_number(t, "n_singular", s->why != NULL ? (double)NAN : (double)s->n_singular, s->why);
    entry_number(t, "min_rows", spread_low(&s->rows), spread_why(&s->rows));
    entry_number(t, "max_theta", spread_high(&s->theta), spread_why(&s->theta));
    entry_number(t, "min_r2_marginal", spread_low(&s->marginal), spread_why(&s->marginal));
    entry_number(t, "max_r2_marginal", spread_high(&s->marginal), spread_why(&s->marginal));
    entry_number(t, "min_r2_conditional", spread_low(&s->conditional), spread_why(&s->conditional));
    entry_number(t, "max_r2_conditional", spread_high(&s->conditional),
                 spread_why(&s->conditional));
}

/* How many fits are singular, and the range of R2. */
static const char *sentence(const struct instrument_entry *t, const struct mixed_sum *s, size_t n)
{
    struct arena *a = t->w->arena;
    double low = spread_low(&s->marginal);
    double high = spread_high(&s->marginal);
    const char *text = arena_printf(a, "%zu of %zu fits %s singular", s->n_singular, n,
                                    s->n_singular == 1 ? "is" : "are");
    if (s->n_open > 0) {
        text = arena_printf(a, "%s, of %zu it is not known", text, s->n_open);
    }
    if (s->deficient == TRUTH_TRUE) {
        text = arena_printf(a, "%s; columns carry no variance of their own in every fit", text);
    }
    if (isfinite(low)) {
        text = arena_printf(a, "%s; marginal R2 %.4g to %.4g", text, low, high);
    } else {
        text = arena_printf(a, "%s; %zu not fitted, the first is %s", text, n - s->n_fitted,
                            spread_why(&s->marginal));
    }
    return arena_printf(a, "%s.", text);
}

/* Nothing is fitted: the instrument says why, and so does every field. */
static void refuse(struct instrument_entry *t, const char *why)
{
    size_t n = 0;
    const struct instrument_field *known = instrument_fields(INSTRUMENT_MIXED, &n);
    for (size_t i = 0; i < n; i++) {
        if (known[i].is_truth) {
            entry_truth(t, known[i].name, TRUTH_UNKNOWN, why);
        } else {
            entry_number(t, known[i].name, (double)NAN, why);
        }
    }
    /* The entry was begun with why = null. */
    cJSON_DeleteItemFromObjectCaseSensitive(t->json, "why");
    json_put_string(t->json, "why", why);
}

/* Size is checked before any column exists, because the product of levels may be huge. */
void instrument_mixed(struct instrument_entry *t)
{
    struct mixed_terms m = {.w = t->w, .spec = t->spec->spec};
    struct mixed_sum sum = {.singular = TRUTH_TRUE,
                            .any_singular = TRUTH_FALSE,
                            .deficient = TRUTH_TRUE,
                            .boundary = TRUTH_TRUE};
    m.random = program_find_factor(t->w->p, json_member(m.spec, "random")->valuestring);
    const char *why = too_large(&m);
    if (why == NULL) {
        make_columns(&m);
    } else {
        refuse(t, why);
    }
    put_model(t, &m);
    cJSON *fits = json_array();
    struct measure_list responses = work_measures(t->w, m.spec, "response");
    for (size_t i = 0; why == NULL && i < responses.n; i++) {
        json_push(fits, fit_json(&m, responses.items[i], &sum));
    }
    json_put(t->json, "fits", fits);
    if (why == NULL) {
        answer(t, &sum);
    }
    entry_words(t->json,
                arena_printf(t->w->arena,
                             "Linear mixed model by REML, cells as rows, with a random intercept "
                             "for each level of %s; a fit for each response.",
                             t->w->p->factors[m.random].name),
                why == NULL ? sentence(t, &sum, responses.n) : NULL);
}
