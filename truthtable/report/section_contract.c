#include <math.h>
#include <string.h>

#include "prereg/describe.h"
#include "prereg/task.h"
#include "truthtable/report/fmt.h"
#include "truthtable/report/sections.h"
#include "truthtable/report/verdict_words.h"

#define FACTS_MAX       ((size_t)24)
#define CONDITIONS_WIDE ((size_t)6) /* up to so many different ones stand as columns */

struct fact_row {
    const char *name;
    double *values; /* [condition]; NAN: unknown */
};

struct contract {
    struct fact_row facts[FACTS_MAX];
    size_t n;
};

static struct fact_row *fact_add(struct contract *k, struct arena *a, const struct program *p,
                                 const char *name)
{
    for (size_t i = 0; i < k->n; i++) {
        if (strcmp(k->facts[i].name, name) == 0) {
            return &k->facts[i];
        }
    }
    if (k->n == FACTS_MAX) {
        return NULL;
    }
    struct fact_row *f = &k->facts[k->n++];
    f->name = name;
    f->values = arena_array(a, p->n_conditions, sizeof(*f->values));
    for (size_t c = 0; c < p->n_conditions; c++) {
        f->values[c] = (double)NAN;
    }
    return f;
}

static void see_condition(struct contract *k, struct arena *a, const struct report_model *m,
                          size_t stage, size_t condition)
{
    const cJSON *facts =
        member(describe_find(m->lock->describe, m->program, condition, stage), "facts");
    const cJSON *fact = NULL;
    cJSON_ArrayForEach(fact, facts)
    {
        struct fact_row *f = cJSON_IsNumber(fact) && fact->string != NULL
                                 ? fact_add(k, a, m->program, fact->string)
                                 : NULL;
        if (f != NULL) {
            f->values[condition] = fact->valuedouble;
        }
    }
}

static const struct fact_row *fact_find(const struct contract *k, const char *name)
{
    for (size_t i = 0; i < k->n; i++) {
        if (strcmp(k->facts[i].name, name) == 0) {
            return &k->facts[i];
        }
    }
    return NULL;
}

static void add_ratio(struct contract *k, struct arena *a, const struct program *p,
                      const char *name, const char *const parts[2])
{
    const struct fact_row *above = fact_find(k, parts[0]);
    const struct fact_row *below = fact_find(k, parts[1]);
    if (above == NULL || below == NULL || fact_find(k, name) != NULL) {
        return;
    }
    struct fact_row *f = fact_add(k, a, p, name);
    for (size_t c = 0; f != NULL && c < p->n_conditions; c++) {
        f->values[c] = above->values[c] / below->values[c];
    }
}

/* K/E of the tokens (model.md, "Counting"); conditions without experts have none. */
static void add_tokens_per_expert(struct contract *k, struct arena *a, const struct report_model *m,
                                  size_t stage)
{
    const struct fact_row *tokens = fact_find(k, "tokens");
    if (tokens == NULL || fact_find(k, "tokens_per_expert") != NULL) {
        return;
    }
    struct fact_row *f = NULL;
    for (size_t c = 0; c < m->program->n_conditions; c++) {
        cJSON *params =
            task_params(m->program, m->lock, m->program->conditions[c].first_cell, stage);
        double experts = member_number(params, "experts");
        double share = member_number(params, "top_k") / experts;
        if (experts > 0 && isfinite(share)) {
            f = f == NULL ? fact_add(k, a, m->program, "tokens_per_expert") : f;
            if (f != NULL) {
                f->values[c] = tokens->values[c] * share;
            }
        }
        cJSON_Delete(params);
    }
}

static bool is_equal(const struct fact_row *f, size_t n_conditions)
{
    for (size_t c = 0; c < n_conditions; c++) {
        double relative = fabs(f->values[c] - f->values[0]) / fmax(fabs(f->values[0]), 1e-300);
        if (!(relative <= 1e-12)) {
            return false;
        }
    }
    return true;
}

/* Not equal, yet within one in a hundred: what a design calls matched. */
static const char *spread_text(struct arena *a, const struct fact_row *f, size_t n_conditions)
{
    if (n_conditions == 1) {
        return "";
    }
    if (is_equal(f, n_conditions)) {
        return "equal";
    }
    double low = (double)INFINITY;
    double high = -(double)INFINITY;
    for (size_t c = 0; c < n_conditions; c++) {
        if (!isfinite(f->values[c])) {
            return "not in all";
        }
        low = fmin(low, f->values[c]);
        high = fmax(high, f->values[c]);
    }
    if (!(low > 0)) {
        return "differs";
    }
    double ratio = high / low;
    return ratio < 1.01
               ? arena_printf(a, "within %s %%", fmt_short(a, (ratio - 1) * 100, 2))
               : arena_printf(a, "differs, up to \xc3\x97\xc2\xa0%s", fmt_short(a, ratio, 3));
}

static const char *fact_label(struct arena *a, const char *name)
{
    char *label = arena_strdup(a, name);
    for (char *c = label; *c != '\0'; c++) {
        *c = *c == '_' ? ' ' : *c;
    }
    return label;
}

static const char *fact_value(struct arena *a, const char *name, double v)
{
    size_t len = strlen(name);
    if (len > 6 && strcmp(name + len - 6, "_bytes") == 0) {
        return fmt_bytes(a, v);
    }
    return isfinite(v) && v == floor(v) && fabs(v) < 1e15 ? fmt_count(a, (int64_t)v)
                                                          : fmt_short(a, v, 4);
}

/* Conditions that agree in every fact stand in one column. */
struct groups {
    size_t first[CONDITIONS_WIDE]; /* the first condition of each */
    size_t n;                      /* over CONDITIONS_WIDE: too many to stand side by side */
};

static bool same_facts(const struct contract *k, size_t a, size_t b)
{
    for (size_t i = 0; i < k->n; i++) {
        double x = k->facts[i].values[a];
        double y = k->facts[i].values[b];
        if (!(x >= y && x <= y) && (isfinite(x) || isfinite(y))) {
            return false;
        }
    }
    return true;
}

static struct groups groups_of(const struct program *p, const struct contract *k)
{
    struct groups g = {.n = 0};
    for (size_t c = 0; c < p->n_conditions && g.n <= CONDITIONS_WIDE; c++) {
        bool known = false;
        for (size_t i = 0; !known && i < g.n; i++) {
            known = same_facts(k, g.first[i], c);
        }
        if (!known && g.n < CONDITIONS_WIDE) {
            g.first[g.n] = c;
        }
        g.n += known ? 0 : 1;
    }
    return g;
}

/* What the conditions of a group have in common: "arch=moe". */
static const char *group_label(struct arena *a, const struct program *p, const struct contract *k,
                               size_t first)
{
    const char *text = "";
    for (size_t f = 0; f < p->n_factors; f++) {
        size_t level = p->conditions[first].levels[f];
        bool common = level != INDEX_NONE;
        for (size_t c = 0; common && c < p->n_conditions; c++) {
            common = p->conditions[c].levels[f] == level || !same_facts(k, first, c);
        }
        if (common) {
            text = arena_printf(a, "%s%s%s=%s", text, text[0] == '\0' ? "" : ",",
                                p->factors[f].name, p->factors[f].levels[level].text);
        }
    }
    return text[0] == '\0' ? "every condition" : text;
}

static void add_wide(struct doc *d, const struct program *p, const struct contract *k,
                     const char *caption)
{
    struct arena *a = &d->arena;
    struct groups g = groups_of(p, k);
    struct doc_column columns[CONDITIONS_WIDE + 2] = {{"Fact", ALIGN_TEXT}};
    for (size_t c = 0; c < g.n; c++) {
        columns[c + 1] = (struct doc_column){group_label(a, p, k, g.first[c]), ALIGN_NUMBER};
    }
    columns[g.n + 1] = (struct doc_column){"Across conditions", ALIGN_TEXT};
    struct doc_table *t = doc_table(d, "held-fixed", caption, columns, g.n + 2);
    for (size_t i = 0; i < k->n; i++) {
        const struct fact_row *f = &k->facts[i];
        struct doc_row *row = doc_row(d, t);
        row->cells[0].text = fact_label(a, f->name);
        for (size_t c = 0; c < g.n; c++) {
            double v = f->values[g.first[c]];
            doc_number(d, &row->cells[c + 1], fact_value(a, f->name, v), v);
        }
        row->cells[g.n + 1].text = spread_text(a, f, p->n_conditions);
        row->tone = is_equal(f, p->n_conditions) && g.n > 1 ? TONE_GOOD : TONE_PLAIN;
    }
}

static void add_long(struct doc *d, const struct program *p, const struct contract *k,
                     const char *caption)
{
    struct arena *a = &d->arena;
    struct doc_column columns[FACTS_MAX + 1] = {{"Condition", ALIGN_TEXT}};
    size_t shown[FACTS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < k->n; i++) {
        if (!is_equal(&k->facts[i], p->n_conditions)) {
            shown[n] = i;
            columns[++n] = (struct doc_column){fact_label(a, k->facts[i].name), ALIGN_NUMBER};
        }
    }
    if (n == 0) {
        return;
    }
    struct doc_table *t = doc_table(d, "held-fixed", caption, columns, n + 1);
    for (size_t c = 0; c < p->n_conditions; c++) {
        struct doc_row *row = doc_row(d, t);
        row->cells[0].text = p->conditions[c].name;
        for (size_t i = 0; i < n; i++) {
            const struct fact_row *f = &k->facts[shown[i]];
            doc_number(d, &row->cells[i + 1], fact_value(a, f->name, f->values[c]), f->values[c]);
        }
    }
}

/* The contract in one line: what is equal and what is not. */
static void add_line(struct doc *d, const struct program *p, const struct contract *k,
                     const char *stage)
{
    struct arena *a = &d->arena;
    const char *equal[FACTS_MAX];
    const char *differs[FACTS_MAX];
    size_t n_equal = 0;
    size_t n_differs = 0;
    for (size_t i = 0; i < k->n; i++) {
        if (is_equal(&k->facts[i], p->n_conditions)) {
            equal[n_equal++] = fact_label(a, k->facts[i].name);
        } else {
            differs[n_differs++] = fact_label(a, k->facts[i].name);
        }
    }
    doc_paragraph(d, "Stage %s. Equal in every condition: %s. Not equal: %s.", stage,
                  n_equal == 0 ? "nothing" : words_join(a, equal, n_equal, ", "),
                  n_differs == 0 ? "nothing" : words_join(a, differs, n_differs, ", "));
}

/* A stage that is the same everywhere needs no table. */
static void add_values(struct doc *d, const struct program *p, const struct contract *k,
                       const char *stage)
{
    struct arena *a = &d->arena;
    const char *values[FACTS_MAX];
    for (size_t i = 0; i < k->n; i++) {
        const struct fact_row *f = &k->facts[i];
        values[i] =
            arena_printf(a, "%s %s", fact_label(a, f->name), fact_value(a, f->name, f->values[0]));
    }
    doc_paragraph(d, "Stage %s: the same in all %zu conditions: %s.", stage, p->n_conditions,
                  words_join(a, values, k->n, ", "));
}

static bool add_stage(struct doc *d, const struct report_model *m, size_t stage)
{
    static const char *const per_total[2] = {"tokens", "params_total"};
    static const char *const per_active[2] = {"tokens", "params_active"};
    const struct program *p = m->program;
    struct arena *a = &d->arena;
    struct contract k = {.n = 0};
    for (size_t c = 0; c < p->n_conditions; c++) {
        see_condition(&k, a, m, stage, c);
    }
    if (k.n == 0) {
        return false;
    }
    add_ratio(&k, a, p, "tokens_per_total_parameter", per_total);
    add_ratio(&k, a, p, "tokens_per_active_parameter", per_active);
    add_tokens_per_expert(&k, a, m, stage);
    const size_t n_groups = groups_of(p, &k).n;
    if (n_groups == 1 && p->n_conditions > 1) {
        add_values(d, p, &k, p->stages[stage].name);
        return true;
    }
    add_line(d, p, &k, p->stages[stage].name);
    const char *caption =
        "As the worker described it when the program was locked. Conditions that agree in every "
        "fact share a column.";
    if (n_groups <= CONDITIONS_WIDE) {
        add_wide(d, p, &k, caption);
    } else {
        add_long(d, p, &k, caption);
    }
    return true;
}

void section_contract(struct doc *d, const struct report_model *m)
{
    doc_section(d, "held-fixed", "What is held fixed");
    bool any = false;
    for (size_t s = 0; s < m->program->n_stages; s++) {
        any = add_stage(d, m, s) || any;
    }
    if (!any) {
        doc_paragraph(d, "Unknown: no worker described itself when the program was locked.");
    }
}
