/*
 * The section "Design and coverage": the factors, and an account of everything that was planned.
 * Counts are the verdict's; causes by stage come from provenance.json. Planned = done + blocked +
 * never run holds in every row, so nothing can be lost silently.
 */
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/json_columns.h"
#include "truthtable/report/sections/row_columns.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

/* The "no record" column exists only for records from elsewhere. */
static void add_counts(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        JSON_LABEL("Counted in"),
        JSON_COUNT("Planned", "planned"),
        JSON_COUNT("Done", "done"),
        JSON_COUNT("Blocked", "blocked"),
        JSON_COUNT("Never run", "never_run"),
        JSON_COUNT("Excluded", "excluded"),
        JSON_COUNT("Budget", "budget"),
        JSON_COUNT("Of them reused", "reused"), /* not shown where nothing is */
        JSON_COUNT("No record", "pending"),     /* last: not shown where every task has one */
    };
    static const struct {
        const char *key;
        const char *label;
    } rows[] = {{"tasks", "Tasks (cell \xc3\x97 stage)"},
                {"records", "Records (a measure of a cell)"},
                {"counted", "Counted tasks (of stages that counted measures read)"}};
    const cJSON *coverage = member(m->verdict, "coverage");
    /* Only records from elsewhere may say nothing of a task that is over. */
    /* "pending" after the end means that no record was given. */
    const bool gaps = member(member(coverage, "tasks"), "pending") != NULL;
    const bool reused = member(coverage, "reused") != NULL;
    struct doc_table *t = doc_table(
        d, "coverage",
        gaps ? "Planned = done + blocked + never run + no record. Nothing that was planned is left "
               "out of these counts."
             : "Planned = done + blocked + never run. Nothing that was planned is left out of "
               "these counts.",
        columns,
        ARRAY_LEN(columns) - (gaps     ? 0
                              : reused ? 1
                                       : 2));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct json_row row = {.label = rows[i].label, .of = member(coverage, rows[i].key)};
        (void)doc_row(d, t, &row);
    }
}

struct ends { /* of the tasks of one stage */
    const char *stage;
    size_t planned;
    size_t done;
    size_t blocked;
    size_t never_run;
    size_t no_record;   /* of imported programs */
    const char *causes; /* "12 not_measurable, 1 oom" */
};

/* How many of the tasks have this stage and, under `key`, this text. */
static size_t count_tasks(const cJSON *tasks, const char *stage, const char *key, const char *text)
{
    size_t n = 0;
    const cJSON *task = NULL;
    cJSON_ArrayForEach(task, tasks)
    {
        const char *of = member_text(task, "stage");
        const char *is = member_text(task, key);
        n += of != NULL && is != NULL && strcmp(of, stage) == 0 && strcmp(is, text) == 0 ? 1 : 0;
    }
    return n;
}

/* In the order of their first task; a cause already named is not named again. */
static const char *stage_causes(struct arena *a, const cJSON *tasks, const char *stage)
{
    const char *text = "";
    const char *seen = ",";
    const cJSON *task = NULL;
    cJSON_ArrayForEach(task, tasks)
    {
        const char *why = member_text(task, "cause");
        if (why == NULL || strcmp(words_member(task, "stage"), stage) != 0 ||
            strstr(seen, arena_printf(a, ",%s,", why)) != NULL) {
            continue;
        }
        seen = arena_printf(a, "%s%s,", seen, why);
        text = arena_printf(a, "%s%s%zu \xc3\x97 %s", text, text[0] == '\0' ? "" : ", ",
                            count_tasks(tasks, stage, "cause", why), why);
    }
    return text;
}

/* The ends of a stage's tasks, with their causes in words. */
static struct ends stage_ends(struct arena *a, const cJSON *tasks, const char *stage)
{
    struct ends ends = {
        .stage = stage,
        .done = count_tasks(tasks, stage, "end", "done"),
        .blocked = count_tasks(tasks, stage, "end", "blocked"),
        .never_run = count_tasks(tasks, stage, "end", "never_run"),
        .no_record = count_tasks(tasks, stage, "end", "no_record"),
        .causes = stage_causes(a, tasks, stage),
    };
    if (ends.no_record > 0) {
        ends.causes = arena_printf(a, "%s%s%zu without a record", ends.causes,
                                   ends.causes[0] == '\0' ? "" : ", ", ends.no_record);
    }
    return ends;
}

/* Left out if provenance.json lists no tasks. */
static void add_stages(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        ROW_TEXT("Stage", struct ends, stage),
        ROW_FIGURE("Planned", row_cell_tally, struct ends, planned),
        ROW_FIGURE("Done", row_cell_tally, struct ends, done),
        ROW_FIGURE("Blocked", row_cell_faults, struct ends, blocked),
        ROW_FIGURE("Never run", row_cell_faults, struct ends, never_run),
        ROW_TEXT("Causes", struct ends, causes),
    };
    const struct plan_program *p = m->program;
    const cJSON *tasks = member(m->provenance, "tasks");
    if (member_count(m->provenance, "tasks") == 0) {
        return;
    }
    struct arena *a = &d->arena;
    struct doc_table *t = doc_table(
        d, "coverage-by-stage", "Tasks by stage, and the causes of those that did not end done.",
        columns, ARRAY_LEN(columns));
    for (size_t s = 0; s < p->n_stages; s++) {
        struct ends ends = stage_ends(a, tasks, p->stages[s].name);
        ends.planned = p->n_cells;
        (void)doc_row(d, t, &ends);
    }
}

struct factor_row {
    const char *name;
    const char *levels;
    const char *role;
};

/* The factors with their levels, and what the grid amounts to. */
static void add_design(struct doc *d, const struct plan_program *p)
{
    static const struct doc_column columns[] = {
        ROW_TEXT("Factor", struct factor_row, name),
        ROW_TEXT("Levels", struct factor_row, levels),
        ROW_TEXT("Role", struct factor_row, role),
    };
    struct doc_table *t = doc_table(
        d, "design",
        arena_printf(
            &d->arena, "The design: %s in %s, %s of each.",
            fmt_plural(&d->arena, (int64_t)p->n_cells, "cell", "cells"),
            fmt_plural(&d->arena, (int64_t)p->n_conditions, "condition", "conditions"),
            fmt_plural(&d->arena,
                       (int64_t)(p->n_cells / (p->n_conditions == 0 ? 1 : p->n_conditions)),
                       "replicate", "replicates")),
        columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < p->n_factors; i++) {
        const struct plan_factor *f = &p->factors[i];
        const char **names = arena_array(&d->arena, f->n_levels + 1, sizeof(*names));
        for (size_t k = 0; k < f->n_levels; k++) {
            names[k] = f->levels[k].text;
        }
        const struct factor_row row = {f->name, words_join(&d->arena, names, f->n_levels, ", "),
                                       f->replicate ? "replicate" : "factor"};
        (void)doc_row(d, t, &row);
    }
}

/* What was planned, then what became of it. */
void section_coverage(struct doc *d, const struct report_model *m)
{
    doc_section(d, "coverage", "Design and coverage");
    add_design(d, m->program);
    add_counts(d, m);
    add_stages(d, m);
}
