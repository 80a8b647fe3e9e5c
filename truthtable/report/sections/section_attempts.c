/*
 * The section "Attempts and resumes": what each cell took, every attempt that ended early, acts of
 * persons, and changes of [run]. All of it comes from provenance.json. Of an imported program the
 * section about its files takes its place.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/json_fields.h"
#include "truthtable/report/sections/row_fields.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

struct effort { /* what one cell took, all stages and attempts together */
    const char *cell;
    size_t attempts;
    size_t resumed;
    size_t failed;
    double cpu_ms;
    double wall_ms;
    double peak_bytes;
};

/* Whether the attempt continued from a checkpoint or from items already scored. */
static bool is_resumed(const cJSON *attempt)
{
    const cJSON *from = member(attempt, "resumed_from");
    return from != NULL && !cJSON_IsNull(from);
}

/* Whether the attempt ended without a result. */
static bool has_cause(const cJSON *attempt)
{
    const char *cause = member_text(attempt, "cause");
    return cause != NULL && cause[0] != '\0' && strcmp(cause, "done") != 0;
}

/* Sums what is known; an attempt that was lost with its machine has no usage. */
static void add_number(double *sum, double v)
{
    if (isfinite(v)) {
        *sum += v;
    }
}

/* By the wall clock, which may have jumped: NAN when it ran backwards. */
static double wall_ms(const cJSON *attempt)
{
    const char *started = member_text(attempt, "started");
    const char *ended = member_text(attempt, "ended");
    struct wall_time from;
    struct wall_time to;
    if (started == NULL || ended == NULL || !clock_wall_parse(started, &from) ||
        !clock_wall_parse(ended, &to) || to.ms < from.ms) {
        return (double)NAN;
    }
    return (double)(to.ms - from.ms);
}

/* Adds all attempts of a task to its cell's effort. */
static void add_task(struct effort *e, const cJSON *task)
{
    const cJSON *attempt = NULL;
    cJSON_ArrayForEach(attempt, member(task, "attempts"))
    {
        e->attempts++;
        e->resumed += is_resumed(attempt) ? 1 : 0;
        e->failed += has_cause(attempt) ? 1 : 0;
        add_number(&e->cpu_ms, member_number(attempt, "user_ms"));
        add_number(&e->cpu_ms, member_number(attempt, "system_ms"));
        add_number(&e->wall_ms, wall_ms(attempt));
        e->peak_bytes = fmax(e->peak_bytes, member_number(attempt, "max_rss_bytes"));
    }
}

/* One pass over the tasks, which are in the order of the cells. */
static struct effort *efforts_of(struct arena *a, const struct report_model *m)
{
    struct effort *efforts = arena_array(a, m->program->n_cells, sizeof(*efforts));
    size_t near = 0;
    const cJSON *task = NULL;
    cJSON_ArrayForEach(task, member(m->provenance, "tasks"))
    {
        size_t cell = report_cell_near(m, near, member_text(task, "cell"));
        if (cell != INDEX_NONE) {
            add_task(&efforts[cell], task);
            near = cell;
        }
    }
    return efforts;
}

/* A row for each cell. Zero usage means "not measured" and is printed as an em dash. */
static void add_cells(struct doc *d, const struct report_model *m)
{
    /* An early end deserves attention even if the task succeeded later. */
    static const struct doc_field fields[] = {
        ROW_TEXT("Cell", struct effort, cell),
        ROW_FIGURE("Attempts", row_field_tally, struct effort, attempts),
        ROW_FIGURE("Resumed", row_field_tally, struct effort, resumed),
        ROW_FIGURE("Ended early", row_field_faults, struct effort, failed),
        ROW_FIGURE("Wall time", row_field_span, struct effort, wall_ms),
        ROW_FIGURE("Processor time", row_field_span, struct effort, cpu_ms),
        ROW_FIGURE("Peak memory", row_field_bytes, struct effort, peak_bytes),
    };
    struct doc_table *t =
        doc_table_of(d, "attempts",
                     "Attempts and resumes of every cell, all stages together. Resumed attempts "
                     "went on from a checkpoint or from the items already scored.",
                     fields, ARRAY_LEN(fields));
    struct effort *efforts = efforts_of(&d->arena, m);
    for (size_t i = 0; i < m->program->n_cells; i++) {
        efforts[i].cell = m->program->cells[i].name;
        (void)doc_row_of(d, t, fields, &efforts[i]);
    }
}

/* A signal takes precedence: a process that was killed has no exit code of its own. */
static const char *how_it_ended(struct arena *a, const cJSON *attempt)
{
    double code = member_number(attempt, "code");
    double signal = member_number(attempt, "signal");
    if (isfinite(signal) && signal > 0) {
        return arena_printf(a, "signal %.0f", signal);
    }
    return isfinite(code) ? arena_printf(a, "exit code %.0f", code) : "no exit seen";
}

/* The object of a row is a task, its part an attempt. */
static void attempt_no(struct doc *d, struct doc_cell *cell, const void *row,
                       const struct doc_field *field)
{
    cell->text = words_count(&d->arena, ((const struct json_row *)row)->part, field->key);
}

static void attempt_cause(struct doc *d, struct doc_cell *cell, const void *row,
                          const struct doc_field *field)
{
    (void)d;
    cell->text = member_text(((const struct json_row *)row)->part, field->key);
}

static void attempt_end(struct doc *d, struct doc_cell *cell, const void *row,
                        const struct doc_field *field)
{
    (void)field;
    cell->text = how_it_ended(&d->arena, ((const struct json_row *)row)->part);
}

/* Attempts without a result, with their cause and the task's final state. */
static void add_ended_early(struct doc *d, const struct report_model *m)
{
    static const struct doc_field fields[] = {
        FIELD_TEXT("Cell", "cell"),
        FIELD_TEXT("Stage", "stage"),
        {"No.", ALIGN_NUMBER, attempt_no, "no", 0, NULL},
        {"Cause", ALIGN_TEXT, attempt_cause, "cause", 0, NULL},
        FIELD_OWN("How it ended", ALIGN_TEXT, attempt_end),
        FIELD_TEXT("Task, in the end", "end"),
    };
    struct doc_table *t = NULL;
    const cJSON *task = NULL;
    cJSON_ArrayForEach(task, member(m->provenance, "tasks"))
    {
        const cJSON *attempt = NULL;
        cJSON_ArrayForEach(attempt, member(task, "attempts"))
        {
            if (!has_cause(attempt)) {
                continue;
            }
            if (t == NULL) {
                t = doc_table_of(d, "attempts-ended-early",
                                 "Every attempt that did not end with a result.", fields,
                                 ARRAY_LEN(fields));
            }
            doc_row_of(d, t, fields, &(struct json_row){.of = task, .part = attempt});
        }
    }
    if (t == NULL) {
        doc_paragraph(d, "No attempt ended early.");
    }
}

/* Says why nothing is known, where nothing is. */
void section_attempts(struct doc *d, const struct report_model *m)
{
    if (m->imported != NULL) {
        section_imported(d, m);
        return;
    }
    doc_section(d, "attempts", "Attempts and resumes");
    if (member_count(m->provenance, "tasks") == 0) {
        doc_paragraph(
            d, m->provenance == NULL
                   ? "Not known: there is no provenance.json beside the verdict."
                   : "None on record: these results were imported or replayed, not run here.");
        return;
    }
    add_cells(d, m);
    add_ended_early(d, m);
    section_acts(d, m);
    section_runs(d, m);
}
