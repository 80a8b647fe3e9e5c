/*
 * The section "Attempts and resumes": what each cell took, every attempt that ended early, acts of
 * persons, and changes of [run]. All of it comes from provenance.json. Of an imported program the
 * section about its files takes its place.
 */
#include <math.h>
#include <string.h>

#include "base/xalloc.h"
#include "prereg/program/run_change.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/json_columns.h"
#include "truthtable/report/sections/row_columns.h"
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

/* Sums what is known; an attempt that was lost with its machine has no usage. */
static void add_number(double *sum, double v)
{
    if (isfinite(v)) {
        *sum += v;
    }
}

/* Adds all attempts of a task to its cell's effort. */
static void add_task(struct effort *e, const cJSON *task)
{
    const cJSON *attempt = NULL;
    cJSON_ArrayForEach(attempt, member(task, "attempts"))
    {
        e->attempts++;
        e->resumed += is_resumed(attempt) ? 1 : 0;
        e->failed += attempt_is_lost(attempt) ? 1 : 0;
        add_number(&e->cpu_ms, member_number(attempt, "user_ms"));
        add_number(&e->cpu_ms, member_number(attempt, "system_ms"));
        add_number(&e->wall_ms, attempt_wall_ms(attempt));
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
    static const struct doc_column columns[] = {
        ROW_TEXT("Cell", struct effort, cell),
        ROW_FIGURE("Attempts", row_cell_tally, struct effort, attempts),
        ROW_FIGURE("Resumed", row_cell_tally, struct effort, resumed),
        ROW_FIGURE("Ended early", row_cell_faults, struct effort, failed),
        ROW_FIGURE("Wall time", row_cell_span, struct effort, wall_ms),
        ROW_FIGURE("Processor time", row_cell_span, struct effort, cpu_ms),
        ROW_FIGURE("Peak memory", row_cell_bytes, struct effort, peak_bytes),
    };
    struct doc_table *t =
        doc_table(d, "attempts",
                  "Attempts and resumes of every cell, all stages together. Resumed attempts "
                  "went on from a checkpoint or from the items already scored.",
                  columns, ARRAY_LEN(columns));
    struct effort *efforts = efforts_of(&d->arena, m);
    for (size_t i = 0; i < m->program->n_cells; i++) {
        efforts[i].cell = m->program->cells[i].name;
        (void)doc_row(d, t, &efforts[i]);
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

/* A task, and one of its attempts. */
struct early_row {
    struct json_row task;
    const char *no;
    const char *cause;
    const char *how;
};

/* Attempts without a result, with their cause and the task's final state. */
static void add_ended_early(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        JSON_TEXT("Cell", "cell"),
        JSON_TEXT("Stage", "stage"),
        ROW_FIGURE("No.", row_cell_text, struct early_row, no),
        ROW_TEXT("Cause", struct early_row, cause),
        ROW_TEXT("How it ended", struct early_row, how),
        JSON_TEXT("Task, in the end", "end"),
    };
    struct doc_table *t = NULL;
    const cJSON *task = NULL;
    cJSON_ArrayForEach(task, member(m->provenance, "tasks"))
    {
        const cJSON *attempt = NULL;
        cJSON_ArrayForEach(attempt, member(task, "attempts"))
        {
            if (!attempt_is_lost(attempt)) {
                continue;
            }
            if (t == NULL) {
                t = doc_table(d, "attempts-ended-early",
                              "Every attempt that did not end with a result.", columns,
                              ARRAY_LEN(columns));
            }
            const struct early_row row = {{.of = task},
                                          words_count(&d->arena, attempt, "no"),
                                          member_text(attempt, "cause"),
                                          how_it_ended(&d->arena, attempt)};
            (void)doc_row(d, t, &row);
        }
    }
    if (t == NULL) {
        doc_paragraph(d, "No attempt ended early.");
    }
}

struct act_row {
    const char *time;
    const char *what;
    const char *to;
    const char *reason; /* or NULL */
};

/* What an act was done to: the program, a task, or a task and others. */
static const char *what_of(struct arena *a, const struct report_act *act)
{
    if (act->first == NULL) {
        return "the program";
    }
    return act->n_tasks <= 1 ? act->first
                             : arena_printf(a, "%s and %s", act->first,
                                            fmt_plural(a, (int64_t)act->n_tasks - 1, "other task",
                                                       "other tasks"));
}

/* What persons did while the program ran, of tasks that are missing above. Adds nothing where a run
 * was left alone. */
static void add_acts(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        ROW_TEXT("Time", struct act_row, time),
        ROW_TEXT("What was done", struct act_row, what),
        ROW_TEXT("To", struct act_row, to),
        ROW_TEXT("Reason", struct act_row, reason),
    };
    struct arena *a = &d->arena;
    if (m->acts.n == 0) {
        return;
    }
    struct doc_table *t = doc_table(
        d, "acts",
        "Every cancellation, retry, pause and resumption, by the journal. What has no reason was "
        "done by a person who gave none.",
        columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < m->acts.n; i++) {
        const struct report_act *act = &m->acts.items[i];
        const struct act_row row = {act->time, act->what, what_of(a, act), act->reason};
        (void)doc_row(d, t, &row);
    }
    if (m->acts.n_left_out > 0) {
        doc_paragraph(d, "%s in the journal, not in this table.",
                      fmt_plural(a, (int64_t)m->acts.n_left_out, "act more is", "acts more are"));
    }
}

typedef void part_fn(const cJSON *change, struct strbuf *out);

/* The text that one of run_change_*() writes, in the arena. */
static const char *text_of(struct arena *a, part_fn *part, const cJSON *run)
{
    struct strbuf text = STRBUF_INIT;
    part(run, &text);
    const char *kept = text.len == 0 ? FMT_NONE : arena_strdup(a, text.buf);
    strbuf_release(&text);
    return kept;
}

static void settings_cell(const struct doc_slot *s)
{
    s->cell->text = text_of(s->arena, run_change_settings, json_of(s));
}

static void blocked_cell(const struct doc_slot *s)
{
    json_cell_count(s);
    s->cell->tone = member_number(json_of(s), s->column->key) > 0 ? TONE_WARN : TONE_PLAIN;
}

static void tasks_cell(const struct doc_slot *s)
{
    s->cell->text = text_of(s->arena, run_change_tasks, json_of(s));
}

/* One row for each [run] that was in force. */
static void add_run_list(struct doc *d, const cJSON *runs)
{
    static const struct doc_column columns[] = {
        JSON_COUNT("From row", "row"),
        COLUMN("[run]", ALIGN_TEXT, settings_cell),
        {"Blocked", ALIGN_NUMBER, blocked_cell, "blocked", 0, NULL},
        COLUMN("Which", ALIGN_TEXT, tasks_cell),
    };
    struct doc_table *t = doc_table(d, "runs",
                                    "Every [run] that was in force, from which row of the "
                                    "journal on, and the tasks that were blocked under it, "
                                    "those that were tried again later among them.",
                                    columns, ARRAY_LEN(columns));
    json_rows(d, t, runs);
}

static void narrower_cell(const struct doc_slot *s)
{
    json_cell_text(s);
    s->cell->tone = TONE_BAD;
}

/* Tasks that were lost under limits narrower than those of their siblings. */
static void add_narrower(struct doc *d, const cJSON *tasks)
{
    static const struct doc_column columns[] = {
        JSON_TEXT("Cell", "cell"),
        JSON_TEXT("Stage", "stage"),
        JSON_TEXT("Cause", "cause"),
        {"Limits", ALIGN_TEXT, narrower_cell, "narrower", 0, NULL},
    };
    struct doc_table *t = NULL;
    const cJSON *task = NULL;
    cJSON_ArrayForEach(task, tasks)
    {
        if (member_text(task, "narrower") == NULL) {
            continue;
        }
        if (t == NULL) {
            t = doc_table(
                d, "narrower",
                "Tasks that were lost under narrower limits than others of their stage had. That "
                "is a person's choice: they are not excluded, and what they measure is "
                "undetermined.",
                columns, ARRAY_LEN(columns));
        }
        doc_row(d, t, &(struct json_row){.of = task});
    }
}

/* Every [run] that was in force, and what was blocked under it: [run] is not locked, and its limits
 * can end a chosen task. One entry means that it never changed. */
static void add_runs(struct doc *d, const struct report_model *m)
{
    const cJSON *runs = member(m->provenance, "runs");
    if (runs != NULL && cJSON_GetArraySize(runs) > 1) {
        add_run_list(d, runs);
        add_narrower(d, member(m->provenance, "tasks"));
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
    blocks_campaign(d, m);
    add_cells(d, m);
    add_ended_early(d, m);
    add_acts(d, m);
    add_runs(d, m);
}
