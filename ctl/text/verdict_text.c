/*
 * From the answer down to what it rests on: outcome, inputs, effects, counters, gates, coverage.
 * Gates may be a million, so they are summed as they pass: a row for each measure, and the first
 * few that are undetermined. Text from records and imported files passes out_line().
 */
#include "ctl/text/verdict_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "prereg/program/run_change.h"
#include "truthtable/evaluate/effect_lines.h"
#include "truthtable/evaluate/verdict_file.h"

#define UNKNOWN_SHOWN 8

/* "4, 8, 12, 16" or "decisive, small". */
static char *joined(const cJSON *array)
{
    struct strbuf sb = STRBUF_INIT;
    for (const cJSON *v = array ? array->child : NULL; v != NULL; v = v->next) {
        strbuf_adds(&sb, v == array->child ? "" : ", ");
        if (cJSON_IsString(v)) {
            strbuf_adds(&sb, v->valuestring);
        } else if (cJSON_IsNumber(v)) {
            char number[JSON_NUMBER_MAX];
            json_number_text(v->valuedouble, number);
            strbuf_adds(&sb, number);
        }
    }
    return strbuf_detach(&sb);
}

#define COPIES "not independent: "

/* Notes on replicates that are copies of each other, before everything that rests on them. */
static void add_copies(struct strbuf *sb, const cJSON *verdict)
{
    const cJSON *note = NULL;
    cJSON_ArrayForEach(note, json_member(verdict, "notes"))
    {
        if (cJSON_IsString(note) && strncmp(note->valuestring, COPIES, strlen(COPIES)) == 0) {
            out_line(sb, note->valuestring);
            strbuf_addc(sb, '\n');
        }
    }
}

/* Scores that were known before the lock: the same for every outcome. */
static void add_reused(struct strbuf *sb, const cJSON *verdict)
{
    const cJSON *reused = json_member(json_member(verdict, "coverage"), "reused");
    if (cJSON_IsObject(reused)) {
        strbuf_add_count(sb, answer_int(reused, "cells", 0), "cell was", "cells were");
        strbuf_addf(sb,
                    " reused from a receipt of root %.16s: known before this program was locked\n",
                    answer_text(reused, "root", "?"));
    }
}

/* What keeps the data from an outcome, and which command shows more; of `program` where others may
 * have cells of the same name. Imported records have no tasks to explain. */
static void add_errors(struct strbuf *sb, const cJSON *verdict, const char *program)
{
    const char *task = effect_error_task(verdict);
    effect_error_lines(verdict, "", sb);
    if (json_member(verdict, "records") != NULL) {
        strbuf_adds(sb, "`--json` shows every figure\n");
    } else if (task != NULL) {
        strbuf_adds(sb, "`preregctl explain ");
        out_line(sb, task);
        if (program != NULL) {
            strbuf_adds(sb, " --program ");
            out_line(sb, program);
        }
        strbuf_adds(sb, "` shows more\n");
    } else {
        strbuf_adds(sb, "`preregctl report` shows every figure\n");
    }
}

/* Outcome, why, the rows that fired, and how surprising the outcome is under its prior. */
static void add_headline(struct strbuf *sb, const struct term *t, const cJSON *verdict,
                         const char *program)
{
    add_copies(sb, verdict);
    add_reused(sb, verdict);
    const char *outcome = answer_text(verdict, "outcome", "no outcome");
    const char *title = answer_text(verdict, "title", NULL);
    out_styled(sb, t, STYLE_BOLD, outcome);
    strbuf_adds(sb, title ? "  " : "");
    out_line(sb, title ? title : "");
    strbuf_addc(sb, '\n');
    const char *why = answer_text(verdict, "why", NULL);
    if (why != NULL) {
        out_line(sb, why);
        strbuf_addc(sb, '\n');
    }
    /* no outcome binds: the errors behind it are shown at once */
    if (title == NULL) {
        add_errors(sb, verdict, program);
    }
    const cJSON *fired = json_member(verdict, "rows_fired");
    if (fired != NULL && fired->child != NULL) {
        char *rows = joined(fired);
        strbuf_addf(sb, "rows fired: %s\n", rows);
        free(rows);
    }
    /* how surprising the outcome was for its authors */
    const cJSON *prior = json_member(verdict, "prior");
    const cJSON *bits = json_member(verdict, "surprisal_bits");
    if (cJSON_IsNumber(prior) && cJSON_IsNumber(bits)) {
        char figure[32];
        (void)snprintf(figure, sizeof(figure), "%.6g", bits->valuedouble);
        strbuf_addf(sb, "prior %.6g, surprisal %s %s\n", prior->valuedouble, figure,
                    strcmp(figure, "1") == 0 ? "bit" : "bits");
    }
}

/* Each input's level, or the levels that are still possible, and why. */
static void add_inputs(struct strbuf *sb, const struct term *t, const cJSON *verdict)
{
    static const struct out_column columns[] = {
        {"input", "name", OUT_TEXT},
        {"level", "level", OUT_TEXT},
        {"possible", "possible", OUT_TEXT},
        {"why", "why", OUT_TEXT},
    };
    const cJSON *inputs = json_member(verdict, "inputs");
    cJSON *rows = json_array();
    for (const cJSON *i = inputs ? inputs->child : NULL; i != NULL; i = i->next) {
        cJSON *row = json_object();
        char *possible = joined(json_member(i, "possible"));
        json_put_string(row, "name", answer_text(i, "name", NULL));
        json_put_string(row, "level", answer_text(i, "level", NULL));
        json_put_string(row, "possible", possible);
        json_put_string(row, "why", answer_text(i, "why", NULL));
        free(possible);
        json_push(rows, row);
    }
    if (rows->child != NULL) {
        strbuf_addc(sb, '\n');
        out_table(sb, t, rows, columns, ARRAY_LEN(columns));
    }
    cJSON_Delete(rows);
}

/* The effects that the inputs read; every other figure is in the JSON and in the report. */
static void add_effects(struct strbuf *sb, const cJSON *verdict)
{
    if (cJSON_GetArraySize(json_member(verdict, "effects")) > 0) {
        strbuf_adds(sb, "\nwhat the inputs read:\n");
        effect_lines(verdict, EFFECTS_SHOWN, "  ", sb);
    }
}

/* Each counter's value, or its range while gates are undetermined. */
static void add_counters(struct strbuf *sb, const cJSON *verdict)
{
    const cJSON *counters = json_member(verdict, "counters");
    for (const cJSON *c = counters ? counters->child : NULL; c != NULL; c = c->next) {
        const cJSON *low = cJSON_GetArrayItem(c, 0);
        const cJSON *high = cJSON_GetArrayItem(c, 1);
        strbuf_addf(sb, "%scounter %s = ", c == counters->child ? "\n" : "", c->string);
        if (!cJSON_IsNumber(low) || !cJSON_IsNumber(high)) {
            strbuf_adds(sb, "unknown\n");
            continue;
        }
        /* a counter is a range while gates are undetermined */
        strbuf_addf(sb, low->valuedouble < high->valuedouble ? "%g to %g\n" : "%g\n",
                    low->valuedouble, high->valuedouble);
    }
}

/* The gates of one measure, summed. */
struct gate_sum {
    char *measure; /* NULL: none yet */
    int64_t n, cleared, unknown;
    double low, high;
    double margin; /* the best gate's, in standard errors */
    bool has_margin;
    double floor;
    bool has_floor;
};

/* All gates, met one by one: a row for each measure, and why gates are open. */
struct gates {
    cJSON *rows;
    struct gate_sum sum;
    struct strbuf open; /* lines, of the first */
    int n_open;
};

/* Range of the scores, best margin, and how many gates clear or are unknown. */
static void gate_add(struct gate_sum *sum, const cJSON *gate)
{
    const cJSON *score = json_member(gate, "score");
    const cJSON *z = json_member(gate, "z");
    const cJSON *floor = json_member(gate, "floor");
    if (cJSON_IsNumber(score)) {
        /* no gate before this one had a score */
        bool first = sum->n == sum->unknown;
        sum->low = first || score->valuedouble < sum->low ? score->valuedouble : sum->low;
        sum->high = first || score->valuedouble > sum->high ? score->valuedouble : sum->high;
    }
    if (cJSON_IsNumber(z) && (!sum->has_margin || z->valuedouble > sum->margin)) {
        sum->margin = z->valuedouble;
        sum->has_margin = true;
    }
    sum->n++;
    sum->cleared += cJSON_IsTrue(json_member(gate, "cleared"));
    sum->unknown += !cJSON_IsNumber(score);
    sum->has_floor = cJSON_IsNumber(floor);
    sum->floor = sum->has_floor ? floor->valuedouble : 0;
}

/* The table's row of one measure. */
static cJSON *gate_row(const struct gate_sum *sum)
{
    cJSON *row = json_object();
    char text[64];
    (void)snprintf(text, sizeof(text), "%lld of %lld", (long long)sum->cleared, (long long)sum->n);
    json_put_string(row, "measure", sum->measure);
    json_put(row, "floor", sum->has_floor ? cJSON_CreateNumber(sum->floor) : cJSON_CreateNull());
    json_put_string(row, "cleared", text);
    if (sum->unknown < sum->n) {
        json_put_number(row, "low", sum->low);
        json_put_number(row, "high", sum->high);
    }
    if (sum->has_margin) {
        (void)snprintf(text, sizeof(text), "%+.1f", sum->margin);
        json_put_string(row, "margin", text);
    }
    json_put_int(row, "unknown", sum->unknown);
    return row;
}

/* Starts without gates; to be released. */
static void gates_init(struct gates *g)
{
    *g = (struct gates){.rows = json_array()};
    strbuf_init(&g->open);
}

/* Also of an unfinished row. */
static void gates_release(struct gates *g)
{
    cJSON_Delete(g->rows);
    strbuf_release(&g->open);
    free(g->sum.measure);
}

/* Ends the row of the measure so far. */
static void gates_end_row(struct gates *g)
{
    if (g->sum.measure != NULL) {
        json_push(g->rows, gate_row(&g->sum));
        free(g->sum.measure);
    }
    g->sum = (struct gate_sum){0};
}

/* Adds a gate. Gates are ordered by measure, so another measure ends the row. */
static void gates_add(struct gates *g, const cJSON *gate)
{
    const char *measure = answer_text(gate, "measure", "?");
    const char *why = answer_text(gate, "why", NULL);
    if (g->sum.measure == NULL || strcmp(g->sum.measure, measure) != 0) {
        gates_end_row(g);
        g->sum.measure = xstrdup(measure);
    }
    gate_add(&g->sum, gate);
    if (why != NULL && g->n_open++ < UNKNOWN_SHOWN) {
        strbuf_addf(&g->open, "undetermined: %s of %s: ", measure, answer_text(gate, "cell", "?"));
        out_line(&g->open, why);
        strbuf_addc(&g->open, '\n');
    }
}

/* The table of measures, then the first gates that are undetermined, with why. */
static void add_gates(struct strbuf *sb, const struct term *t, struct gates *g)
{
    static const struct out_column columns[] = {
        {"measure", "measure", OUT_TEXT},
        {"floor", "floor", OUT_NUMBER},
        {"lowest", "low", OUT_NUMBER},
        {"highest", "high", OUT_NUMBER},
        {"best in sigma", "margin", OUT_TEXT},
        {"unknown", "unknown", OUT_COUNT},
        {"cells that clear", "cleared", OUT_TEXT},
    };
    gates_end_row(g);
    if (g->rows->child != NULL) {
        strbuf_addc(sb, '\n');
        out_table(sb, t, g->rows, columns, ARRAY_LEN(columns));
        strbuf_adds(sb, "best in sigma: how far the best cell is above the floor, in binomial "
                        "standard errors\n");
    }
    if (g->n_open > 0) {
        strbuf_addf(sb, "\n%s", g->open.buf);
    }
    if (g->n_open > UNKNOWN_SHOWN) {
        strbuf_addf(sb, "and %d more (`preregctl verdict --json`)\n", g->n_open - UNKNOWN_SHOWN);
    }
}

/* What was planned, and what became of it. */
static void add_coverage(struct strbuf *sb, const cJSON *verdict)
{
    const cJSON *coverage = json_member(verdict, "coverage");
    const cJSON *tasks = json_member(coverage, "tasks");
    const cJSON *counted = json_member(coverage, "counted");
    if (tasks == NULL) {
        return;
    }
    strbuf_addc(sb, '\n');
    strbuf_add_count(sb, answer_int(tasks, "planned", 0), "task planned", "tasks planned");
    strbuf_addf(sb, " = %lld done + %lld blocked + %lld never run\n",
                (long long)answer_int(tasks, "done", 0), (long long)answer_int(tasks, "blocked", 0),
                (long long)answer_int(tasks, "never_run", 0));
    if (answer_int(tasks, "pending", 0) > 0) {
        strbuf_add_count(sb, answer_int(tasks, "pending", 0), "of them has no record",
                         "of them have no record");
        strbuf_addc(sb, '\n');
    }
    strbuf_add_count(sb, answer_int(counted, "planned", 0), "counted task planned",
                     "counted tasks planned");
    strbuf_addf(sb, ", %lld excluded of %lld allowed\n",
                (long long)answer_int(counted, "excluded", 0),
                (long long)answer_int(counted, "budget", 0));
}

#define NARROWER_SHOWN 8

/* Tasks that a person's choice of [run] limits ended: no cancellation would show it. */
static void add_narrower(struct strbuf *sb, const cJSON *verdict)
{
    const cJSON *task = NULL;
    int n = 0;
    cJSON_ArrayForEach(task, json_member(verdict, "undetermined"))
    {
        const char *limits = answer_text(task, "narrower", NULL);
        if (limits == NULL || n++ >= NARROWER_SHOWN) {
            continue;
        }
        strbuf_adds(sb, n == 1 ? "\n" : "");
        strbuf_adds(sb, "not excluded, lost by a person's choice: ");
        out_line(sb, answer_text(task, "cell", "?"));
        strbuf_addf(sb, "/%s (%s: ", answer_text(task, "stage", "?"),
                    answer_text(task, "end", "?"));
        out_line(sb, answer_text(task, "cause", "?"));
        strbuf_adds(sb, "): ");
        out_line(sb, limits);
        strbuf_addc(sb, '\n');
    }
    if (n > NARROWER_SHOWN) {
        strbuf_addf(sb, "and %d more (`preregctl verdict --json`)\n", n - NARROWER_SHOWN);
    }
}

void verdict_text_runs(struct strbuf *sb, const cJSON *runs)
{
    const cJSON *run = NULL;
    cJSON_ArrayForEach(run, runs)
    {
        struct strbuf line = STRBUF_INIT;
        run_change_line(run, &line);
        strbuf_adds(sb, run == runs->child ? "\n" : "");
        out_line(sb, line.buf);
        strbuf_addc(sb, '\n');
        strbuf_release(&line);
    }
}

/* The whole text, after the gates were added. */
static void add_all(struct strbuf *sb, const struct term *t, const cJSON *verdict,
                    const char *program, struct gates *g)
{
    add_headline(sb, t, verdict, program);
    add_inputs(sb, t, verdict);
    add_effects(sb, verdict);
    add_counters(sb, verdict);
    add_gates(sb, t, g);
    add_coverage(sb, verdict);
    add_narrower(sb, verdict);
}

void verdict_text(struct strbuf *sb, const struct term *t, const cJSON *verdict,
                  const char *program)
{
    struct gates g;
    const cJSON *gate = NULL;
    gates_init(&g);
    cJSON_ArrayForEach(gate, json_member(verdict, "gates"))
    {
        gates_add(&g, gate);
    }
    add_all(sb, t, verdict, program, &g);
    gates_release(&g);
}

void verdict_text_of(struct strbuf *sb, const struct term *t, const struct table_verdict *v)
{
    struct gates g;
    struct arena arena;
    gates_init(&g);
    arena_init(&arena);
    for (size_t i = 0; i < verdict_n_gates(v); i++) {
        arena_clear(&arena);
        gates_add(&g, verdict_gate(v, i, &arena));
    }
    add_all(sb, t, verdict_summary(v), NULL, &g);
    arena_release(&arena);
    gates_release(&g);
}

int verdict_print_json(const struct table_verdict *v, cJSON *answer, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = verdict_pretty_in(v, answer, &text, err);
    strbuf_addc(&text, '\n');
    if (rc == 0) {
        out_data(&text);
    }
    strbuf_release(&text);
    return rc;
}
