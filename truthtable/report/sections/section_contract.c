/*
 * The section "What is held fixed": which described facts (parameters, tokens, FLOPs) are equal
 * between conditions and which are not. The words and figures are those of `check`, computed for
 * the plan as it is now; further facts that workers described follow by stage. Conditions that
 * agree in every fact share a column, which keeps tables narrow.
 */
#include <math.h>
#include <string.h>

#include "base/xalloc.h"
#include "prereg/task/describe.h"
#include "truthtable/prove/check.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/row_columns.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

#define FACTS_MAX       ((size_t)40)
#define CONDITIONS_WIDE ((size_t)6) /* up to so many different ones stand as columns */

struct fact_row {
    const char *name;
    const char *label; /* with spaces for underscores */
    double *values;    /* [condition]; NAN: unknown */
};

struct contract_facts {
    struct fact_row facts[FACTS_MAX];
    size_t n;
};

/* A fact's name with spaces for underscores. */
static const char *fact_label(struct arena *a, const char *name)
{
    char *label = arena_strdup(a, name);
    for (char *c = label; *c != '\0'; c++) {
        *c = *c == '_' ? ' ' : *c;
    }
    return label;
}

/* Finds or adds a row of facts; NULL beyond FACTS_MAX. */
static struct fact_row *fact_add(struct contract_facts *k, struct arena *a,
                                 const struct plan_program *p, const char *name)
{
    for (size_t i = 0; i < k->n; i++) {
        if (strcmp(k->facts[i].name, name) == 0) {
            return &k->facts[i];
        }
    }
    /* Further facts are in the lock. */
    if (k->n == FACTS_MAX) {
        return NULL;
    }
    struct fact_row *f = &k->facts[k->n++];
    f->name = name;
    f->label = fact_label(a, name);
    f->values = arena_array(a, p->n_conditions, sizeof(*f->values));
    for (size_t c = 0; c < p->n_conditions; c++) {
        f->values[c] = (double)NAN;
    }
    return f;
}

/* Facts of the model that check's table has under names of its own. */
static bool is_in_check(const char *fact)
{
    static const char *const names[] = {"params_total",
                                        "params_active",
                                        "active_ffn",
                                        "tokens",
                                        "tokens_per_expert",
                                        "flops_per_token",
                                        "steps",
                                        "passes",
                                        "unique_tokens_per_expert"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(fact, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Sets a fact of a condition, if it is a number. */
static void see_fact(struct contract_facts *k, struct arena *a, const struct plan_program *p,
                     size_t condition, const cJSON *fact)
{
    struct fact_row *f = cJSON_IsNumber(fact) && fact->string != NULL && condition < p->n_conditions
                             ? fact_add(k, a, p, fact->string)
                             : NULL;
    if (f != NULL) {
        f->values[condition] = fact->valuedouble;
    }
}

/* Adds what a stage's worker described of one condition. */
static void see_condition(struct contract_facts *k, struct arena *a, const struct report_model *m,
                          size_t stage, size_t condition)
{
    const cJSON *fact = NULL;
    cJSON_ArrayForEach(
        fact, member(describe_find(m->lock->describe, m->program, condition, stage), "facts"))
    {
        if (fact->string != NULL && !is_in_check(fact->string)) {
            see_fact(k, a, m->program, condition, fact);
        }
    }
}

/* What check's table has (check_fixed_json) of every condition. */
static void see_fixed(struct contract_facts *k, struct arena *a, const struct plan_program *p,
                      const cJSON *fixed)
{
    const cJSON *one = NULL;
    size_t condition = 0;
    cJSON_ArrayForEach(one, member(fixed, "conditions"))
    {
        const cJSON *fact = NULL;
        cJSON_ArrayForEach(fact, one)
        {
            see_fact(k, a, p, condition, fact);
        }
        condition++;
    }
}

/* Equal up to rounding; an unknown value is equal to nothing. */
static bool is_equal(const struct fact_row *f, size_t n_conditions)
{
    for (size_t c = 0; c < n_conditions; c++) {
        /* Equal up to the last digits of a double. */
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
    /* Equal first: the other texts describe differences. */
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
    /* A ratio with zero or a negative value says nothing. */
    if (!(low > 0)) {
        return "differs";
    }
    double ratio = high / low;
    return ratio < 1.01
               ? arena_printf(a, "within %s %%", fmt_short(a, (ratio - 1) * 100, 2))
               : arena_printf(a, "differs, up to \xc3\x97\xc2\xa0%s", fmt_short(a, ratio, 3));
}

/* Bytes as such, whole numbers grouped, others with four digits. */
static const char *fact_value(struct arena *a, const char *name, double v)
{
    size_t len = strlen(name);
    if (len > 6 && strcmp(name + len - 6, "_bytes") == 0) {
        return fmt_bytes(a, v);
    }
    return isfinite(v) && v == floor(v) && fabs(v) < 1e15 ? fmt_count(a, (int64_t)v)
                                                          : fmt_short(a, v, 4);
}

/* Conditions that agree in every fact share a column. */
struct groups {
    size_t first[CONDITIONS_WIDE]; /* the first condition of each */
    size_t n;                      /* over CONDITIONS_WIDE: too many for columns */
};

/* Two unknown values agree here. */
static bool same_facts(const struct contract_facts *k, size_t a, size_t b)
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

/* Groups conditions; counting stops once they are too many. */
static struct groups groups_of(const struct plan_program *p, const struct contract_facts *k)
{
    struct groups g = {.n = 0};
    for (size_t c = 0; c < p->n_conditions && g.n <= CONDITIONS_WIDE; c++) {
        bool known = false;
        for (size_t i = 0; !known && i < g.n; i++) {
            known = same_facts(k, g.first[i], c);
        }
        /* Counting goes one beyond the limit, which marks "too many". */
        if (!known && g.n < CONDITIONS_WIDE) {
            g.first[g.n] = c;
        }
        g.n += known ? 0 : 1;
    }
    return g;
}

/* What the conditions of a group have in common: "arch=moe". */
static const char *group_label(struct arena *a, const struct plan_program *p,
                               const struct contract_facts *k, size_t first)
{
    const char *text = "";
    for (size_t f = 0; f < p->n_factors; f++) {
        size_t level = p->conditions[first].levels[f];
        /* A level is the group's if every member of the group has it. */
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

/* The value of a fact in a condition. */
static void show_fact(const struct doc_slot *s, const struct fact_row *f, size_t condition)
{
    const double v = f->values[condition];
    doc_number(s, fact_value(s->arena, f->name, v), v);
}

/* Where facts are rows, a column is about the condition `n`. */
static void fact_cell(const struct doc_slot *s)
{
    show_fact(s, s->row, (size_t)s->column->n);
}

static void spread_cell(const struct doc_slot *s)
{
    s->cell->text = spread_text(s->arena, s->row, (size_t)s->column->n);
}

/* Facts as rows, groups of conditions as columns. */
static void add_wide(struct doc *d, const struct plan_program *p, const struct contract_facts *k,
                     const char *id, const char *caption)
{
    const struct groups g = groups_of(p, k);
    static const struct doc_column fact = ROW_TEXT("Fact", struct fact_row, label);
    struct doc_columns columns = doc_columns(d, &fact, 1);
    for (size_t c = 0; c < g.n; c++) {
        doc_column_add(d, &columns, group_label(&d->arena, p, k, g.first[c]), fact_cell)->n =
            (int)g.first[c];
    }
    doc_columns_add(d, &columns,
                    &(struct doc_column){"Across conditions", ALIGN_TEXT, spread_cell,
                                         .n = (int)p->n_conditions},
                    1);
    struct doc_table *t = doc_table(d, id, caption, columns.items, columns.n);
    for (size_t i = 0; i < k->n; i++) {
        /* Equality is worth a mark only where something differs. */
        const bool equal = is_equal(&k->facts[i], p->n_conditions) && g.n > 1;
        doc_row(d, t, &k->facts[i])->tone = equal ? TONE_GOOD : TONE_PLAIN;
    }
}

/* Where conditions are rows, a column is about a fact. */
struct condition_row {
    const char *name;
    size_t condition;
};

static void condition_cell(const struct doc_slot *s)
{
    show_fact(s, s->column->of, ((const struct condition_row *)s->row)->condition);
}

/* Conditions as rows, and only facts that differ as columns. */
static void add_long(struct doc *d, const struct plan_program *p, const struct contract_facts *k,
                     const char *id, const char *caption)
{
    static const struct doc_column name = ROW_TEXT("Condition", struct condition_row, name);
    struct doc_columns columns = doc_columns(d, &name, 1);
    for (size_t i = 0; i < k->n; i++) {
        const struct fact_row *f = &k->facts[i];
        if (!is_equal(f, p->n_conditions)) {
            doc_column_add(d, &columns, f->label, condition_cell)->of = f;
        }
    }
    /* Everything is equal: the sentence above the table has said so. */
    if (columns.n == 1) {
        return;
    }
    struct doc_table *t = doc_table(d, id, caption, columns.items, columns.n);
    for (size_t c = 0; c < p->n_conditions; c++) {
        doc_row(d, t, &(struct condition_row){p->conditions[c].name, c});
    }
}

/* One sentence: what is equal, what is not, what is unknown. */
static void add_words(struct doc *d, const char *over, const cJSON *words)
{
    const char *equal = words_or_empty(words, "equal");
    const char *differ = words_or_empty(words, "not_equal");
    const char *unknown = words_or_empty(words, "unknown");
    if (equal[0] == '\0' && differ[0] == '\0') {
        return;
    }
    doc_paragraph(d, "%s: equal (the contract): %s. Not equal: %s.%s%s%s", over,
                  equal[0] == '\0' ? "nothing" : equal, differ[0] == '\0' ? "nothing" : differ,
                  unknown[0] == '\0' ? "" : " Not known in all: ", unknown,
                  unknown[0] == '\0' ? "" : ".");
}

/* Chooses the layout by the number of groups. */
static void add_table(struct doc *d, const struct plan_program *p, const struct contract_facts *k,
                      const char *id, const char *caption)
{
    if (groups_of(p, k).n <= CONDITIONS_WIDE) {
        add_wide(d, p, k, id, caption);
    } else {
        add_long(d, p, k, id, caption);
    }
}

/* The same table and the same words as check's, of the plan as it is now. */
static bool add_fixed(struct doc *d, const struct report_model *m)
{
    struct arena *a = &d->arena;
    struct contract_facts k = {.n = 0};
    struct err err = {0};
    cJSON *fixed = check_fixed_json(m->program, m->lock->describe, &err);
    see_fixed(&k, a, m->program, fixed);
    /* Workers from elsewhere may describe nothing. */
    bool any = k.n > 0;
    if (any) {
        const cJSON *contrast = NULL;
        add_words(d, "Over all conditions", fixed);
        cJSON_ArrayForEach(contrast, member(fixed, "contrasts"))
        {
            add_words(d,
                      arena_printf(a, "Between the arms of %s", words_member(contrast, "contrast")),
                      contrast);
        }
        add_table(d, m->program, &k, "held-fixed",
                  "As the worker described it when the program was locked. Conditions that agree "
                  "in every fact share a column.");
    }
    cJSON_Delete(fixed);
    return any;
}

/* A stage that is the same everywhere needs no table. */
static void add_values(struct doc *d, const struct plan_program *p, const struct contract_facts *k,
                       const char *stage)
{
    struct arena *a = &d->arena;
    const char *values[FACTS_MAX];
    for (size_t i = 0; i < k->n; i++) {
        const struct fact_row *f = &k->facts[i];
        values[i] = arena_printf(a, "%s %s", f->label, fact_value(a, f->name, f->values[0]));
    }
    doc_paragraph(d, "Stage %s: the same in all %zu conditions: %s.", stage, p->n_conditions,
                  words_join(a, values, k->n, ", "));
}

/* Facts of a stage beyond those of check's table. False if it described none. */
static bool add_stage(struct doc *d, const struct report_model *m, size_t stage)
{
    const struct plan_program *p = m->program;
    struct contract_facts k = {.n = 0};
    for (size_t c = 0; c < p->n_conditions; c++) {
        see_condition(&k, &d->arena, m, stage, c);
    }
    if (k.n == 0) {
        return false;
    }
    /* One sentence instead of a column of equal values. */
    if (groups_of(p, &k).n == 1 && p->n_conditions > 1) {
        add_values(d, p, &k, p->stages[stage].name);
    } else {
        add_table(d, p, &k, "described",
                  arena_printf(&d->arena, "What else the worker of %s described.",
                               p->stages[stage].name));
    }
    return true;
}

/* Stages without a description are left out; if there is none at all, the section says so. */
void section_contract(struct doc *d, const struct report_model *m)
{
    doc_section(d, "held-fixed", "What is held fixed");
    bool any = add_fixed(d, m);
    for (size_t s = 0; s < m->program->n_stages; s++) {
        any = add_stage(d, m, s) || any;
    }
    if (!any) {
        doc_paragraph(d, "Unknown: no worker described itself when the program was locked.");
    }
}
