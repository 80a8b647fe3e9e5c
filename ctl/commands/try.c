/* try GRID.TOML [CELL]: runs a few steps and items of every stage of one cell for each arm
 * (ctl/trial.c), and prints what they took and what the whole program would take. Nothing is kept,
 * no score is shown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/proof.h"
#include "ctl/text/out.h"
#include "ctl/trial.h"
#include "prereg/program/cell_name.h"

#define STEPS_DEFAULT 5
#define ITEMS_DEFAULT 16

static void say_begins(const char *cell, const char *stage)
{
    terminal_printf(stderr, "preregctl: trying %s/%s\n", cell, stage);
}

/* The cell that was named, or one for each arm. */
static int choose_cells(const struct plan_program *p, const char *named, size_t **cells, size_t *n,
                        struct err *err)
{
    if (named == NULL) {
        *cells = try_choose_cells(p, n);
        return 0;
    }
    size_t cell = program_match_cell(p, named);
    if (cell == INDEX_NONE) {
        return err_set(err, ERR_NOT_FOUND, "no cell is called \"%.200s\"; the first is %.200s",
                       named, p->cells[0].name);
    }
    *cells = xcalloc(1, sizeof(**cells));
    (*cells)[0] = cell;
    *n = 1;
    return 0;
}

/* ---- the answer ---- */

/* Puts the total over all cells, from the mean of the cells that were tried: null when a stage
 * is unknown, or when the total exceeds `most`. */
static void put_total(cJSON *answer, const struct plan_program *p, const cJSON *rows,
                      const char *key, double most)
{
    double sum = 0;
    bool known = true;
    for (size_t s = 0; s < p->n_stages; s++) {
        double of_stage = 0;
        size_t n = 0;
        const cJSON *row;
        cJSON_ArrayForEach(row, rows)
        {
            const cJSON *v = json_member(row, key);
            if (strcmp(answer_text(row, "stage", ""), p->stages[s].name) == 0 &&
                cJSON_IsNumber(v)) {
                of_stage += v->valuedouble;
                n++;
            }
        }
        /* a stage that was never done leaves the total unknown */
        known = known && n > 0;
        sum += n > 0 ? of_stage / (double)n * (double)p->n_cells : 0;
    }
    if (known && sum <= most) {
        json_put_number(answer, key, sum);
    } else {
        json_put_null(answer, key);
    }
}

/* Puts the value of the task that needs most; null when one is unknown. */
static void put_most(cJSON *answer, const cJSON *rows, const char *key)
{
    double most = 0;
    bool known = true;
    const cJSON *row;
    cJSON_ArrayForEach(row, rows)
    {
        const cJSON *v = json_member(row, key);
        known = known && cJSON_IsNumber(v);
        most = cJSON_IsNumber(v) && v->valuedouble > most ? v->valuedouble : most;
    }
    json_put(answer, key, known ? cJSON_CreateNumber(most) : cJSON_CreateNull());
}

/* The rows of the try and the estimates for the whole program. */
static cJSON *answer_of(const struct plan_program *p, const struct try_spec *spec,
                        const cJSON *rows)
{
    cJSON *answer = json_object();
    bool ok = true;
    const cJSON *row;
    cJSON_ArrayForEach(row, rows)
    {
        ok = ok && strcmp(answer_text(row, "state", ""), "failed") != 0;
    }
    json_put_bool(answer, "ok", ok);
    json_put_string(answer, "program", p->name);
    json_put_int(answer, "steps", spec->steps);
    json_put_int(answer, "items", spec->items);
    json_put_int(answer, "cells", (int64_t)p->n_cells);
    json_put_int(answer, "tasks", (int64_t)program_n_tasks(p));
    json_put(answer, "tried", json_copy(rows));
    put_total(answer, p, rows, "whole_seconds", TRY_SECONDS_MAX);
    put_most(answer, rows, "whole_peak_bytes");
    put_total(answer, p, rows, "whole_disk_bytes", JSON_INT_MAX);
    return answer;
}

/* ---- text ---- */

/* "1.5 GiB", on the heap; NULL when the member is not a number. */
static char *bytes_text(const cJSON *row, const char *key)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    const cJSON *v = json_member(row, key);
    size_t i = 0;
    if (!cJSON_IsNumber(v)) {
        return NULL;
    }
    double bytes = v->valuedouble;
    while (bytes >= 1024 && i + 1 < ARRAY_LEN(units)) {
        bytes /= 1024;
        i++;
    }
    return xasprintf("%.3g %s", bytes, units[i]);
}

/* Seconds as "2h 5min", on the heap; NULL when the member is not a number. */
static char *span_text(const cJSON *row, const char *key)
{
    char span[48];
    const cJSON *v = json_member(row, key);
    return cJSON_IsNumber(v)
               ? xstrdup(clock_span_text((int64_t)(v->valuedouble * 1000), span, sizeof(span)))
               : NULL;
}

/* Puts a text that this call frees. */
static void put_text(cJSON *row, const char *key, char *text)
{
    json_put_string(row, key, text);
    free(text);
}

/* The words for a state of --json. */
static const char *state_words(const char *state)
{
    static const struct {
        const char *state;
        const char *words;
    } rows[] = {{"left_out", "left out"}, {"cannot_be_measured", "cannot be measured"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].state, state) == 0) {
            return rows[i].words;
        }
    }
    return state;
}

/* The rows as a table; a finished stage has an empty state unless it ran whole. */
static void add_rows(struct strbuf *sb, const struct term *t, const cJSON *rows)
{
    static const struct out_column columns[] = {
        {"cell", "cell", OUT_TEXT},        {"stage", "stage", OUT_TEXT},
        {"tried in", "seconds", OUT_TEXT}, {"time in full", "whole", OUT_TEXT},
        {"peak memory", "peak", OUT_TEXT}, {"may need", "whole_peak", OUT_TEXT},
        {"disk", "disk", OUT_TEXT},        {"disk in full", "whole_disk", OUT_TEXT},
        {"", "state", OUT_TEXT},
    };
    cJSON *shown = json_array();
    const cJSON *row;
    cJSON_ArrayForEach(row, rows)
    {
        cJSON *line = json_object();
        json_put_string(line, "cell", answer_text(row, "cell", "?"));
        json_put_string(line, "stage", answer_text(row, "stage", "?"));
        put_text(line, "seconds", span_text(row, "seconds"));
        put_text(line, "whole", span_text(row, "whole_seconds"));
        put_text(line, "peak", bytes_text(row, "peak_bytes"));
        put_text(line, "whole_peak", bytes_text(row, "whole_peak_bytes"));
        put_text(line, "disk", bytes_text(row, "disk_bytes"));
        put_text(line, "whole_disk", bytes_text(row, "whole_disk_bytes"));
        const char *state = answer_text(row, "state", "?");
        json_put_string(line, "state",
                        strcmp(state, "done") != 0      ? state_words(state)
                        : answer_bool(row, "ran_whole") ? "ran whole"
                                                        : "");
        json_push(shown, line);
    }
    out_table(sb, t, shown, columns, ARRAY_LEN(columns));
    cJSON_Delete(shown);
}

/* Why stages were not done, each reason once however many cells share it. */
static void add_reasons(struct strbuf *sb, const cJSON *rows)
{
    cJSON *said = json_object();
    const cJSON *row;
    cJSON_ArrayForEach(row, rows)
    {
        const char *why = answer_text(row, "why", NULL);
        if (why != NULL && json_member(said, why) == NULL) {
            json_put_bool(said, why, true);
            strbuf_addf(sb, "%s: %s: ", answer_text(row, "stage", "?"),
                        state_words(answer_text(row, "state", "?")));
            out_line(sb, why);
            strbuf_addc(sb, '\n');
        }
    }
    cJSON_Delete(said);
}

/* The table, the reasons for what was not done, and the estimate. */
static void say(const cJSON *answer)
{
    struct term t = term_of_stdout();
    struct strbuf sb = STRBUF_INIT;
    const cJSON *rows = json_member(answer, "tried");
    char *span = span_text(answer, "whole_seconds");
    char *disk = bytes_text(answer, "whole_disk_bytes");
    char *peak = bytes_text(answer, "whole_peak_bytes");
    strbuf_addf(&sb, "%s, at most ", answer_text(answer, "program", "?"));
    strbuf_add_count(&sb, answer_int(answer, "steps", 0), "step", "steps");
    strbuf_adds(&sb, " and ");
    strbuf_add_count(&sb, answer_int(answer, "items", 0), "item", "items");
    strbuf_adds(&sb, " a stage; scores are thrown away\n\n");
    add_rows(&sb, &t, rows);
    strbuf_addc(&sb, '\n');
    add_reasons(&sb, rows);
    strbuf_adds(&sb, "the whole program: ");
    strbuf_add_count(&sb, answer_int(answer, "tasks", 0), "task", "tasks");
    strbuf_addf(&sb,
                ", about %s one after another, %s of memory for the largest, about %s of disk\n",
                span == NULL ? "an unknown time" : span, peak == NULL ? "an unknown amount" : peak,
                disk == NULL ? "an unknown amount" : disk);
    out_text(&sb);
    free(disk);
    free(peak);
    free(span);
    strbuf_release(&sb);
}

/* The lock is built in memory only: task.json needs its digests, and nothing is written. */
static int run(const struct ctl_options *o, const struct proof *proof, enum exit_code *code,
               struct err *err)
{
    const struct plan_program *p = proof->program;
    size_t *cells = NULL;
    struct lock *lock = NULL;
    cJSON *rows = NULL;
    /* options that are 0 were not given */
    struct try_spec spec = {.steps = o->steps > 0 ? o->steps : STEPS_DEFAULT,
                            .items = o->items > 0 ? o->items : ITEMS_DEFAULT,
                            .begins = o->json ? NULL : say_begins};
    int rc = choose_cells(p, o->n_args > 1 ? o->args[1] : NULL, &cells, &spec.n_cells, err);
    spec.cells = cells;
    if (rc != 0 || (rc = lock_build(p, proof->describe.json, NULL, &lock, err)) != 0 ||
        (rc = try_run(p, lock, &spec, &rows, err)) != 0) {
        goto out;
    }
    cJSON *answer = answer_of(p, &spec, rows);
    *code = answer_bool(answer, "ok") ? EXIT_OK : EXIT_ANY;
    if (o->json) {
        rc = out_json(answer, err);
    } else {
        say(answer);
    }
    cJSON_Delete(answer);
out:
    cJSON_Delete(rows);
    lock_free(lock);
    free(cells);
    return rc;
}

int cmd_try(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    struct proof proof;
    const struct trust_ask trust = {.state = o->state, .run = o->run, .all = true};
    *code = EXIT_OK;
    int rc = proof_run(o->args[0], &trust, &proof, err);
    if (!o->json && (rc == 0 || rc == ERR_INVALID)) {
        diag_print(&proof.diag, stderr);
    }
    if (rc == 0) {
        rc = run(o, &proof, code, err);
    }
    proof_release(&proof);
    return rc;
}
