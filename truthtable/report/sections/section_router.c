/*
 * The section "Router health": the facts about routers that workers reported, cell by cell, for
 * programs that train mixtures of experts. It shows raw facts; the router instrument reads them.
 * Programs without routers do not get the section.
 */
#include <math.h>
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/figures_router.h"
#include "truthtable/report/sections/row_columns.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

#define PREFIX      "router"
#define PREFIX_LEN  (sizeof(PREFIX) - 1)
#define COLUMNS_MAX ((size_t)10)

/* The facts of a stage that speak of a router, in the order in which results name them; those of
 * single layers ("router_load:3") are left to the results. */
struct router_facts {
    const char *names[COLUMNS_MAX];
    size_t n;
};

/* Adds the name of a router fact, once. */
static void see_fact(struct router_facts *facts, const char *name)
{
    if (name == NULL || strncmp(name, PREFIX, PREFIX_LEN) != 0 || strchr(name, ':') != NULL ||
        facts->n == COLUMNS_MAX) {
        return;
    }
    for (size_t i = 0; i < facts->n; i++) {
        if (strcmp(facts->names[i], name) == 0) {
            return;
        }
    }
    facts->names[facts->n++] = name;
}

/* Only facts that some cell has a number for: a program of dense models has none.
 */
static struct router_facts facts_of(const struct report_model *m, size_t stage)
{
    struct router_facts facts = {.n = 0};
    for (size_t c = 0; c < m->program->n_cells; c++) {
        const cJSON *fact = NULL;
        cJSON_ArrayForEach(fact, member(m->results[c * m->program->n_stages + stage], "facts"))
        {
            if (fact->string != NULL && isfinite(report_fact(m, c, stage, fact->string, NULL))) {
                see_fact(&facts, fact->string);
            }
        }
    }
    return facts;
}

/* A row is a cell of the grid in a stage. */
struct router_row {
    const struct report_model *model;
    const char *name;
    size_t cell;
    size_t stage;
};

/* The fact that the column's key names. */
static double fact_of(const struct router_row *row, const char *key)
{
    return report_fact(row->model, row->cell, row->stage, key, NULL);
}

static void fact_cell(const struct doc_slot *s)
{
    const double v = fact_of(s->row, s->column->key);
    doc_number(s, fmt_short(s->arena, v, 5), v);
}

/* Whether the cell has a router: some fact of one. */
static bool has_router(const struct router_row *row, const struct router_facts *facts)
{
    bool any = false;
    for (size_t i = 0; i < facts->n; i++) {
        any = any || isfinite(fact_of(row, facts->names[i]));
    }
    return any;
}

/* A fact that is the same in every cell carries nothing to fit: the paper's singular design. */
static const char *constant_facts(struct arena *a, const struct report_model *m, size_t stage,
                                  const struct router_facts *facts)
{
    const char *constant[COLUMNS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < facts->n; i++) {
        double low = (double)INFINITY;
        double high = -(double)INFINITY;
        for (size_t c = 0; c < m->program->n_cells; c++) {
            double v = report_fact(m, c, stage, facts->names[i], NULL);
            low = isfinite(v) ? fmin(low, v) : low;
            high = isfinite(v) ? fmax(high, v) : high;
        }
        /* One cell alone counts as constant, too. */
        if (low >= high) {
            constant[n++] = facts->names[i];
        }
    }
    return n == 0 ? NULL : words_join(a, constant, n, " and ");
}

/* What the columns mean, for those that are known (model.md, "router health"). */
static const char *glossary(struct arena *a, const struct router_facts *facts)
{
    static const struct {
        const char *name;
        const char *meaning;
    } known[] = {
        {"router_load", "load: the largest expert's share of the assignments times the number of "
                        "experts (1 is even)"},
        {"router_occupancy", "occupancy: the smallest expert's share times the number of experts"},
        {"router_entropy", "entropy: of the mean routing, as a share of the maximum"},
        {"router_effective", "effective: experts in use, by the entropy"},
        {"router_dead", "dead: experts with less than 1 % of the load"},
        {"router_z", "z: mean squared log-sum-exp of the router's logits"},
        {"router_same", "same: held-out tokens whose first choice outlives one update, as a share"},
        {"router_kills", "kills: experts re-initialised"},
        {"router_dropped", "dropped: assignments over the capacity, as a share"},
        {"router_anneal", "anneal: balance weight at the end over that at the start"},
    };
    const char *text = "";
    for (size_t i = 0; i < facts->n; i++) {
        for (size_t k = 0; k < ARRAY_LEN(known); k++) {
            if (strcmp(facts->names[i], known[k].name) == 0) {
                text =
                    arena_printf(a, "%s%s%s", text, text[0] == '\0' ? " " : "; ", known[k].meaning);
            }
        }
    }
    return text[0] == '\0' ? text : arena_printf(a, "%s.", text);
}

/* *any: whether the section was opened by an earlier stage. */
static void add_stage(struct doc *d, const struct report_model *m, size_t stage, bool *any)
{
    struct router_facts facts = facts_of(m, stage);
    if (facts.n == 0) {
        return;
    }
    static const struct doc_column cell = ROW_TEXT("Cell", struct router_row, name);
    struct arena *a = &d->arena;
    struct doc_columns columns = doc_columns(d, &cell, 1);
    for (size_t i = 0; i < facts.n; i++) {
        const char *name = facts.names[i];
        const char *title = name[PREFIX_LEN] == '_' ? name + PREFIX_LEN + 1 : name;
        doc_column_add(d, &columns, title, fact_cell)->key = name;
    }
    /* The heading is added with the first table. */
    if (!*any) {
        doc_section(d, "router-health", "Router health");
        *any = true;
    }
    struct doc_table *t = doc_table(
        d, "router-health",
        arena_printf(a, "What the routers of the mixtures did, as the workers report it.%s",
                     glossary(a, &facts)),
        columns.items, columns.n);
    size_t without_router = 0;
    size_t without_result = 0;
    for (size_t c = 0; c < m->program->n_cells; c++) {
        const struct router_row row = {m, m->program->cells[c].name, c, stage};
        if (has_router(&row, &facts)) {
            (void)doc_row(d, t, &row);
        } else {
            bool is_done = m->results[c * m->program->n_stages + stage] != NULL;
            without_router += is_done ? 1 : 0;
            without_result += is_done ? 0 : 1;
        }
    }
    if (without_router > 0) {
        doc_paragraph(d, "%s no router and are not in this table.",
                      fmt_plural(a, (int64_t)without_router, "cell has", "cells have"));
    }
    if (without_result > 0) {
        doc_paragraph(d, "%s no result of %s: what their routers did is not known.",
                      fmt_plural(a, (int64_t)without_result, "cell has", "cells have"),
                      m->program->stages[stage].name);
    }
    const char *constant = constant_facts(a, m, stage, &facts);
    if (constant != NULL) {
        doc_paragraph(d,
                      "The same in every cell: %s. Such a column has no variance that a model "
                      "could be fitted to.",
                      constant);
    }
    figures_router(d, m, stage);
}

/* Every stage is asked, since any worker may report such facts. */
void section_router(struct doc *d, const struct report_model *m)
{
    bool any = false;
    for (size_t s = 0; s < m->program->n_stages; s++) {
        add_stage(d, m, s, &any);
    }
}
