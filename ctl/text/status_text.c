/*
 * Draws one program from the top down: identity, grid, counts, then only those lines that say
 * something now (history, clock, checks, waits, pauses, verdict). Widths of the grid are measured
 * over all cells that are shown before the first line is drawn. Members that an older daemon does
 * not send have fallbacks, so a line is missing rather than wrong.
 */
#include "ctl/text/status_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/machine/gpu_list.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "prereg/program/verdict_kind.h"

struct state_mark {
    const char *state;
    const char *utf8;
    const char *ascii;
};

/* One mark for each state of a task, for UTF-8 and for other terminals. */
static const struct state_mark state_marks[] = {
    {"waiting", "·", "."}, {"ready", "○", "o"}, {"backoff", "↻", "~"}, {"starting", "◔", ">"},
    {"running", "▶", ">"}, {"done", "✔", "+"},  {"blocked", "✖", "x"}, {"never_run", "–", "-"},
};

/* The mark of a state; "?" for one that this version does not know. */
static const char *mark_of(const struct term *t, const char *state)
{
    for (size_t i = 0; i < ARRAY_LEN(state_marks); i++) {
        if (strcmp(state_marks[i].state, state) == 0) {
            return t->utf8 ? state_marks[i].utf8 : state_marks[i].ascii;
        }
    }
    return "?";
}

/* What separates parts of a line. */
static const char *dot(const struct term *t)
{
    return t->utf8 ? " · " : ", ";
}

/* "▶ 45%", "✖ oom", "↻ 3 s": a task in its field of the grid. */
static void task_field(struct strbuf *sb, const struct term *t, const cJSON *task)
{
    const char *state = answer_text(task, "state", "?");
    int64_t done = answer_int(task, "done", 0);
    int64_t total = answer_int(task, "total", 0);
    strbuf_adds(sb, mark_of(t, state));
    if (strcmp(state, "running") == 0 && total > 0) {
        strbuf_addf(sb, " %d%%", (int)(100.0 * (double)done / (double)total));
    } else if (strcmp(state, "running") == 0) {
        strbuf_addf(sb, " %s", answer_text(task, "section", ""));
    } else if (strcmp(state, "blocked") == 0 || strcmp(state, "never_run") == 0) {
        strbuf_addf(sb, " %s", answer_text(task, "cause", "?"));
    }
    int64_t attempts = answer_int(task, "attempts", 0);
    if (attempts > 1) {
        strbuf_addf(sb, " (%lld)", (long long)attempts);
    }
}

/* Text in a style, padded to `width` columns. */
static void add_field(struct strbuf *sb, const struct term *t, enum style style, const char *text,
                      size_t width)
{
    out_styled(sb, t, style, text);
    for (size_t i = text_columns(text); i < width; i++) {
        strbuf_addc(sb, ' ');
    }
}

/* The width of the column of names, over the cells that are shown. */
static size_t grid_name_width(const cJSON *cells, size_t max_cells)
{
    size_t width = 4, n = 0;
    for (const cJSON *cell = cells->child; cell != NULL && n < max_cells; cell = cell->next, n++) {
        size_t columns = text_columns(answer_text(cell, "name", "?"));
        width = columns > width ? columns : width;
    }
    return width;
}

/* The widths of the stages' columns: each as wide as its widest field. The caller frees them. */
static size_t *grid_widths(const struct term *t, const cJSON *stages, const cJSON *cells,
                           size_t max_cells)
{
    size_t n_stages = (size_t)cJSON_GetArraySize(stages);
    size_t *widths = xcalloc(n_stages + 1, sizeof(*widths));
    size_t i = 0;
    for (const cJSON *stage = stages->child; stage != NULL; stage = stage->next) {
        widths[i++] = text_columns(stage->valuestring);
    }
    struct strbuf text = STRBUF_INIT;
    size_t n = 0;
    for (const cJSON *cell = cells->child; cell != NULL && n < max_cells; cell = cell->next, n++) {
        const cJSON *tasks = json_member(cell, "tasks");
        i = 0;
        for (const cJSON *task = tasks ? tasks->child : NULL; task && i < n_stages;
             task = task->next, i++) {
            strbuf_clear(&text);
            task_field(&text, t, task);
            size_t columns = text_columns(text.buf);
            widths[i] = columns > widths[i] ? columns : widths[i];
        }
    }
    strbuf_release(&text);
    return widths;
}

/* The tasks of one cell, after its name. */
static void grid_row(struct strbuf *sb, const struct term *t, const cJSON *cell,
                     const size_t *widths, size_t n_stages)
{
    const cJSON *tasks = json_member(cell, "tasks");
    struct strbuf text = STRBUF_INIT;
    size_t i = 0;
    for (const cJSON *task = tasks ? tasks->child : NULL; task && i < n_stages;
         task = task->next, i++) {
        strbuf_clear(&text);
        task_field(&text, t, task);
        strbuf_adds(sb, "  ");
        add_field(sb, t, out_state_style(answer_text(task, "state", "")), text.buf,
                  i + 1 == n_stages ? 0 : widths[i]);
    }
    strbuf_addc(sb, '\n');
    strbuf_release(&text);
}

/* The grid of at most max_cells cells (0: all), with a line for those that are left out. */
static void status_grid(struct strbuf *sb, const struct term *t, const cJSON *summary,
                        const cJSON *cells, size_t max_cells)
{
    const cJSON *stages = json_member(summary, "stages");
    size_t n_cells = (size_t)cJSON_GetArraySize(cells);
    if (!cJSON_IsArray(stages) || n_cells == 0) {
        return;
    }
    size_t n_stages = (size_t)cJSON_GetArraySize(stages);
    size_t shown = max_cells == 0 || n_cells < max_cells ? n_cells : max_cells;
    size_t name_width = grid_name_width(cells, shown);
    size_t *widths = grid_widths(t, stages, cells, shown);
    add_field(sb, t, STYLE_DIM, "cell", name_width);
    size_t i = 0;
    for (const cJSON *stage = stages->child; stage != NULL; stage = stage->next, i++) {
        strbuf_adds(sb, "  ");
        add_field(sb, t, STYLE_DIM, stage->valuestring, i + 1 == n_stages ? 0 : widths[i]);
    }
    strbuf_addc(sb, '\n');
    size_t n = 0;
    for (const cJSON *cell = cells->child; cell != NULL && n < shown; cell = cell->next, n++) {
        add_field(sb, t, STYLE_NONE, answer_text(cell, "name", "?"), name_width);
        grid_row(sb, t, cell, widths, n_stages);
    }
    int64_t all = answer_int(summary, "n_cells", (int64_t)n_cells);
    if ((int64_t)shown < all) {
        strbuf_adds(sb, "and ");
        strbuf_add_count(sb, all - (int64_t)shown, "more cell", "more cells");
        strbuf_adds(sb, " (--all, or `preregctl cells`)\n");
    }
    free(widths);
}

/* " · 3 running", or nothing for none. */
static void add_count(struct strbuf *sb, const struct term *t, const cJSON *tasks,
                      const char *state, const char *word)
{
    int64_t n = answer_int(tasks, state, 0);
    if (n > 0) {
        char text[64];
        (void)snprintf(text, sizeof(text), "%lld %s", (long long)n, word);
        strbuf_adds(sb, dot(t));
        out_styled(sb, t, out_state_style(state), text);
    }
}

/* " (oom 2, crash 1)": why tasks are blocked or were never run. */
static void add_causes(struct strbuf *sb, const cJSON *causes)
{
    const char *before = " (";
    for (const cJSON *c = causes ? causes->child : NULL; c != NULL; c = c->next) {
        strbuf_addf(sb, "%s%s %lld", before, c->string, (long long)c->valuedouble);
        before = ", ";
    }
    strbuf_adds(sb, before[0] == ',' ? ")" : "");
}

/* Counts that are zero are left out. */
void status_line(struct strbuf *sb, const struct term *t, const cJSON *summary)
{
    const cJSON *tasks = json_member(summary, "tasks");
    int64_t planned = answer_int(tasks, "planned", 0);
    int64_t done = answer_int(tasks, "done", 0);
    char text[64];
    (void)snprintf(text, sizeof(text), "%lld of %lld %s done", (long long)done, (long long)planned,
                   text_plural(planned, "task", "tasks"));
    out_styled(sb, t, done == planned ? STYLE_GREEN : STYLE_NONE, text);
    add_count(sb, t, tasks, "running", "running");
    add_count(sb, t, tasks, "starting", "starting");
    add_count(sb, t, tasks, "queued", "waiting in Slurm");
    add_count(sb, t, tasks, "ready", "ready");
    add_count(sb, t, tasks, "backoff", "in backoff");
    add_count(sb, t, tasks, "waiting", "waiting");
    add_count(sb, t, tasks, "blocked", "blocked");
    add_count(sb, t, tasks, "never_run", "never run");
    add_causes(sb, json_member(summary, "causes"));
    int64_t eta_ms = answer_int(summary, "eta_ms", -1);
    if (strcmp(answer_text(summary, "state", ""), "finished") != 0) {
        char span[48];
        strbuf_adds(sb, dot(t));
        strbuf_adds(sb, eta_ms < 0 ? "time left unknown yet"
                                   : clock_span_text(eta_ms, span, sizeof(span)));
        strbuf_adds(sb, eta_ms < 0 ? "" : " left");
    }
    strbuf_addc(sb, '\n');
}

/* Counted tasks, exclusions, and what is sealed; a warning when the table reads unsealed values. */
static void status_counted(struct strbuf *sb, const struct term *t, const cJSON *summary)
{
    const cJSON *counted = json_member(summary, "counted");
    const cJSON *open = json_member(summary, "open");
    /* sealed as a whole, but the table also reads what is not */
    const bool some_open = answer_bool(summary, "sealed") && cJSON_GetArraySize(open) > 0;
    const long long narrower = answer_int(counted, "narrower", 0);
    strbuf_addf(sb, "counted: %lld of %lld done%s%s%lld excluded of %lld allowed%s",
                (long long)answer_int(counted, "done", 0),
                (long long)answer_int(counted, "planned", 0), dot(t),
                cJSON_IsNull(json_member(counted, "narrower")) ? "up to " : "",
                (long long)answer_int(counted, "excluded", 0),
                (long long)answer_int(counted, "budget", 0), dot(t));
    if (narrower > 0) {
        strbuf_addf(sb, "%lld lost under narrower [run] limits, not excluded%s", narrower, dot(t));
    }
    strbuf_addf(sb, "%s\n",
                answer_bool(summary, "unblinded") ? "UNBLINDED before the end"
                : some_open                       ? "not all scores are sealed"
                : answer_bool(summary, "sealed")  ? "scores are sealed"
                                                  : "scores are open");
    if (some_open) {
        strbuf_adds(sb, "NOT sealed, though the table reads it: ");
        for (const cJSON *name = open->child; name != NULL; name = name->next) {
            strbuf_addf(sb, "%s%s", name == open->child ? "" : ", ",
                        cJSON_IsString(name) ? name->valuestring : "?");
        }
        strbuf_addc(sb, '\n');
    }
}

/* Nothing for a verified history: that is the normal case. */
void status_history(struct strbuf *sb, const cJSON *answer)
{
    const char *history = answer_text(answer, "history", "");
    const char *why = answer_text(answer, "history_why", NULL);
    if (strcmp(history, "checking") == 0 && why != NULL) {
        strbuf_addf(sb, "its journal cannot be checked, verdict and report wait for that: %s\n",
                    why);
    } else if (strcmp(history, "checking") == 0) {
        strbuf_adds(sb, "its journal is being checked: verdict and report wait for that\n");
    } else if (strcmp(history, "unverified") == 0 && why != NULL) {
        strbuf_addf(sb, "UNVERIFIED HISTORY: %s\n", why);
    } else if (strcmp(history, "unverified") == 0) {
        strbuf_adds(sb, "UNVERIFIED HISTORY: rows of the journal were missing, cut off or changed "
                        "(preregd.log says which); what they said rests on the cells' files "
                        "alone\n");
    }
}

/* Words for the daemon's reasons to wait. */
static const struct {
    const char *why;
    const char *words;
} waits[] = {
    {"slots", "wait for a free slot or cores"},
    {"memory", "wait for memory"},
    {"queue", "wait for a place in Slurm"},
    {"priority", "wait behind a program of higher priority"},
    {"gpus", "wait for GPUs"},
    {"dependency", "wait for an earlier stage"},
    {"backoff", "wait before the next attempt"},
    {"paused", "wait because the program is paused"},
    {"disk", "wait for disk space"},
    {"apparatus", "wait until the apparatus check holds"},
};

/* Every result of a check in order, when there are more than `n`. */
static void status_results(struct strbuf *sb, const cJSON *check, int n)
{
    const cJSON *results = json_member(check, "results");
    if (cJSON_GetArraySize(results) <= n) {
        return;
    }
    for (const cJSON *r = results->child; r != NULL; r = r->next) {
        strbuf_adds(sb, "  ");
        changes_add_result(sb, r);
        strbuf_addc(sb, '\n');
    }
}

/* The last result decides "holds"; removed checks show why they are not declared. */
void status_check(struct strbuf *sb, const cJSON *check)
{
    const cJSON *holds = json_member(check, "holds");
    const cJSON *value = json_member(check, "value");
    const cJSON *expected = json_member(check, "expected");
    const cJSON *within = json_member(check, "within");
    const cJSON *first = json_member(check, "first"); /* of a second run, when it is due */
    const char *cause = answer_text(check, "cause", NULL);
    strbuf_addf(sb, "apparatus %s: ", answer_text(check, "name", "?"));
    if (cJSON_IsFalse(json_member(check, "declared"))) {
        strbuf_addf(sb, "%s\n", answer_text(check, "why", "?"));
        status_results(sb, check, 0);
        return;
    }
    strbuf_addf(sb, "%s ", answer_text(check, "metric", "?"));
    if (cJSON_IsNull(holds) && cause != NULL) {
        strbuf_addf(sb, "could not be measured (%s)", cause);
    } else if (cJSON_IsNull(holds)) {
        strbuf_addf(sb, "is not known yet (%s)", answer_text(check, "state", "?"));
    } else {
        strbuf_adds(sb, cJSON_IsTrue(holds) ? "holds" : "DOES NOT HOLD");
    }
    if (cJSON_IsNumber(expected) && cJSON_IsNumber(within)) {
        strbuf_addf(sb, ": expected %.10g within %.10g", expected->valuedouble,
                    within->valuedouble);
    }
    if (cJSON_IsNumber(first)) {
        strbuf_addf(sb, ", and %.10g as the first time", first->valuedouble);
    }
    if (cJSON_IsNumber(value)) {
        strbuf_addf(sb, ", got %.10g", value->valuedouble);
    }
    strbuf_addc(sb, '\n');
    status_results(sb, check, 1);
}

/* A line for each apparatus check. */
static void status_apparatus(struct strbuf *sb, const cJSON *summary)
{
    const cJSON *list = json_member(summary, "apparatus");
    for (const cJSON *a = list ? list->child : NULL; a != NULL; a = a->next) {
        status_check(sb, a);
    }
}

/* A note when the machine's clock cannot be trusted. */
static void status_clock(struct strbuf *sb, const cJSON *summary)
{
    const char *why = answer_text(summary, "clock", NULL);
    if (why != NULL) {
        strbuf_addf(sb, "%s\n", why);
    }
}

void status_gpu(struct strbuf *sb, const cJSON *gpu)
{
    char name[GPU_SHORT_SIZE];
    const cJSON *index = json_member(gpu, "index");
    const char *model = answer_text(gpu, "model", NULL);
    gpu_short_name(answer_text(gpu, "uuid", "?"), name);
    out_line(sb, name);
    if (!cJSON_IsNumber(index)) {
        strbuf_adds(sb, " (not listed now)");
        return;
    }
    strbuf_addf(sb, " (index %lld", (long long)answer_int(gpu, "index", 0));
    strbuf_adds(sb, model == NULL ? "" : ", ");
    out_line(sb, model == NULL ? "" : model);
    strbuf_addc(sb, ')');
}

/* "GPU-4f3a12cd… (index 0, NVIDIA H100): arm=a,seed=1/train, ...": what its attempts hold here. */
static void status_gpus(struct strbuf *sb, const cJSON *summary)
{
    const cJSON *g;
    cJSON_ArrayForEach(g, json_member(summary, "gpus"))
    {
        const cJSON *name;
        const int64_t more =
            answer_int(g, "n_tasks", 0) - cJSON_GetArraySize(json_member(g, "tasks"));
        const char *between = ": ";
        status_gpu(sb, g);
        cJSON_ArrayForEach(name, json_member(g, "tasks"))
        {
            strbuf_adds(sb, between);
            out_line(sb, cJSON_IsString(name) ? name->valuestring : "?");
            between = ", ";
        }
        if (more > 0) {
            strbuf_addf(sb, " and %lld more", (long long)more);
        }
        strbuf_addc(sb, '\n');
    }
}

/* "in Slurm: 3 RUNNING · 12 PENDING, Priority (...)": Slurm's own words. */
static void status_elsewhere(struct strbuf *sb, const struct term *t, const cJSON *summary)
{
    const cJSON *list = json_member(summary, "elsewhere");
    const char *before = "in Slurm: ";
    const cJSON *e;
    cJSON_ArrayForEach(e, list)
    {
        strbuf_addf(sb, "%s%lld %s", before, (long long)answer_int(e, "attempts", 0),
                    answer_text(e, "state", "?"));
        before = dot(t);
    }
    if (cJSON_GetArraySize(list) > 0) {
        strbuf_addc(sb, '\n');
    }
}

/* How many tasks wait, and for what. */
static void status_not_running(struct strbuf *sb, const struct term *t, const cJSON *summary)
{
    const cJSON *list = json_member(summary, "not_running");
    const char *before = "not running: ";
    for (const cJSON *w = list ? list->child : NULL; w != NULL; w = w->next) {
        const char *why = answer_text(w, "why", "?");
        const char *words = why;
        for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
            words = strcmp(waits[i].why, why) == 0 ? waits[i].words : words;
        }
        strbuf_addf(sb, "%s%lld %s", before, (long long)answer_int(w, "tasks", 0), words);
        before = dot(t);
    }
    const char *behind = answer_text(summary, "behind", NULL);
    if (behind != NULL) {
        strbuf_adds(sb, ": ");
        out_line(sb, behind);
    }
    if (list != NULL && list->child != NULL) {
        strbuf_addc(sb, '\n');
    }
    const char *gpus = answer_text(summary, "gpus_why", NULL);
    if (gpus != NULL) {
        strbuf_adds(sb, "the next of them ");
        out_line(sb, gpus);
        strbuf_addc(sb, '\n');
    }
}

/* Its cells are gone; what else there is of it works. */
static void status_removed(struct strbuf *sb, const cJSON *summary)
{
    if (answer_bool(summary, "removed")) {
        strbuf_adds(sb, "its cells were removed; plan, journal, verdict and report are kept\n");
    }
}

/* Why a program whose tasks have all ended gets no verdict yet. */
static void status_refused(struct strbuf *sb, const struct term *t, const cJSON *summary)
{
    const char *why = answer_text(summary, "paused_why", NULL);
    if (why == NULL || strcmp(answer_text(summary, "state", ""), "finishing") != 0) {
        return;
    }
    struct strbuf text = STRBUF_INIT;
    strbuf_addf(&text, "no verdict: %s", why);
    out_styled(sb, t, STYLE_YELLOW, text.buf);
    strbuf_adds(sb, "\n");
    strbuf_release(&text);
}

/* Progress of reading every pinned byte again before the verdict. */
static void status_hashing(struct strbuf *sb, const cJSON *summary)
{
    const cJSON *hashing = json_member(summary, "hashing");
    if (cJSON_IsObject(hashing)) {
        strbuf_addf(sb, "hashing pinned files before the verdict: %lld of %lld MiB\n",
                    (long long)(answer_int(hashing, "done_bytes", 0) >> 20),
                    (long long)(answer_int(hashing, "total_bytes", 0) >> 20));
    }
}

/* Why the program is paused, and what ends the pause: the daemon by itself or the user. */
static void status_paused(struct strbuf *sb, const struct term *t, const cJSON *summary)
{
    const char *by = answer_text(summary, "paused_by", NULL);
    const char *why = answer_text(summary, "paused_why", NULL);
    /* not paused: perhaps it is finishing */
    if (by == NULL) {
        status_hashing(sb, summary);
        status_refused(sb, t, summary);
        return;
    }
    struct strbuf text = STRBUF_INIT;
    strbuf_addf(&text, "paused (%s)%s%s", by, why == NULL ? "" : ": ", why == NULL ? "" : why);
    out_styled(sb, t, STYLE_YELLOW, text.buf);
    if (strcmp(by, "data") == 0) {
        strbuf_adds(sb, "; continues by itself when it is back\n");
    } else if (strcmp(by, "no_space") == 0) {
        strbuf_adds(sb, "; continues by itself when there is room again\n");
    } else if (strcmp(by, "host") == 0 || strcmp(by, "folder") == 0) {
        strbuf_addf(sb, "; is tried again by itself, `preregctl resume %s` does so at once\n",
                    answer_text(summary, "id", ""));
    } else if (strcmp(by, "failures") == 0) {
        const char *id = answer_text(summary, "id", "");
        strbuf_addf(sb,
                    "\n  No cell is given up: `preregctl explain` and `preregctl logs` show more. "
                    "`preregctl resume %s` tries\n  the cells again. If they are expected to fail: "
                    "`preregctl resume --accept-failures %s`.\n",
                    id, id);
    } else if (strcmp(by, "cancel") == 0) {
        strbuf_adds(sb, "; it ends by itself\n");
    } else {
        strbuf_addf(sb, "; `preregctl resume %s` continues\n", answer_text(summary, "id", ""));
    }
    strbuf_release(&text);
}

/* Outcome and path of the verdict, and the state of its report. */
static void status_verdict(struct strbuf *sb, const struct term *t, const cJSON *summary)
{
    const cJSON *verdict = json_member(summary, "verdict");
    if (!cJSON_IsObject(verdict)) {
        return;
    }
    const char *word = verdict_kind_word_of_name(answer_text(verdict, "kind", "?"));
    strbuf_adds(sb, "verdict: ");
    out_styled(sb, t, STYLE_BOLD, answer_text(verdict, "outcome", word));
    strbuf_addf(sb, "  (%s)\n", answer_text(verdict, "path", "?"));
    const char *why = answer_text(summary, "report_why", NULL);
    if (why == NULL) {
        strbuf_addf(sb, "report:  %s\n", answer_text(summary, "report", "is being written"));
    } else {
        strbuf_addf(sb,
                    "report:  %s. The verdict stands; the daemon tries again, `preregctl report "
                    "%s` does so at once\n",
                    why, answer_text(summary, "id", ""));
    }
}

/* What changed or replaced the locked program: amendments, and the programs before and after it. */
static void status_identity(struct strbuf *sb, const cJSON *summary)
{
    long long n = (long long)answer_int(summary, "amendments", 0);
    const char *old = answer_text(summary, "supersedes", NULL);
    const cJSON *by = json_member(summary, "superseded_by");
    if (n > 0) {
        strbuf_addf(sb, "amended %lld time%s, head %.16s (`preregctl diff`)\n", n,
                    n == 1 ? "" : "s", answer_text(summary, "head", "?"));
    }
    if (old != NULL) {
        strbuf_addf(sb, "supersedes %s\n", answer_text(summary, "supersedes_program", old));
    }
    for (const cJSON *id = by == NULL ? NULL : by->child; id != NULL; id = id->next) {
        strbuf_addf(sb, "superseded by %s\n", cJSON_IsString(id) ? id->valuestring : "?");
    }
}

/* Scores that were known before the lock. */
static void status_reused(struct strbuf *sb, const cJSON *summary)
{
    const cJSON *reused = json_member(summary, "reused");
    if (cJSON_IsObject(reused)) {
        strbuf_add_count(sb, answer_int(reused, "cells", 0), "cell is", "cells are");
        strbuf_addf(sb, " reused from a receipt of root %.16s: known before the lock\n",
                    answer_text(reused, "root", "?"));
    }
}

/* The parts in their order; see the head of this file. */
void status_program(struct strbuf *sb, const struct term *t, const cJSON *summary,
                    const cJSON *cells, size_t max_cells)
{
    const char *state = answer_text(summary, "state", "?");
    char span[48];
    out_styled(sb, t, STYLE_BOLD, answer_text(summary, "id", "?"));
    strbuf_adds(sb, "  ");
    out_styled(sb, t, out_state_style(state), state);
    strbuf_addf(sb, "  %s  root %.16s%s\n",
                clock_span_text(answer_int(summary, "elapsed_ms", 0), span, sizeof(span)),
                answer_text(summary, "root", "?"), t->utf8 ? "…" : "...");
    const char *question = answer_text(summary, "question", NULL);
    if (question != NULL) {
        out_styled(sb, t, STYLE_DIM, question);
        strbuf_addc(sb, '\n');
    }
    status_identity(sb, summary);
    status_reused(sb, summary);
    if (cells != NULL) {
        strbuf_addc(sb, '\n');
        status_grid(sb, t, summary, cells, max_cells);
        strbuf_addc(sb, '\n');
    }
    status_line(sb, t, summary);
    status_history(sb, summary);
    status_clock(sb, summary);
    status_counted(sb, t, summary);
    status_apparatus(sb, summary);
    status_elsewhere(sb, t, summary);
    status_gpus(sb, summary);
    status_not_running(sb, t, summary);
    status_removed(sb, summary);
    status_paused(sb, t, summary);
    int64_t garbage = answer_int(summary, "garbage_lines", 0);
    if (garbage > 0) {
        strbuf_adds(sb, "workers wrote ");
        strbuf_add_count(sb, garbage, "line that is not an event", "lines that are not events");
        strbuf_adds(sb, " (`preregctl explain TASK`)\n");
    }
    status_verdict(sb, t, summary);
}

/* Each program that could not be loaded, with the reason and what to do. */
void status_unloaded(struct strbuf *sb, const struct term *t, const cJSON *unloaded)
{
    for (const cJSON *u = unloaded ? unloaded->child : NULL; u != NULL; u = u->next) {
        out_styled(sb, t, STYLE_BOLD, answer_text(u, "id", "?"));
        strbuf_adds(sb, "  ");
        out_styled(sb, t, STYLE_RED, "not loaded");
        strbuf_addf(sb, "  %s\n", answer_text(u, "why", "?"));
        strbuf_adds(sb, "  nothing of it is started; submit it again, or correct that, then "
                        "`preregctl stop` and `preregd serve`\n");
    }
}

/* One line for each program: state, outcome, counts. */
void status_list(struct strbuf *sb, const struct term *t, const cJSON *programs)
{
    for (const cJSON *p = programs ? programs->child : NULL; p != NULL; p = p->next) {
        const char *state = answer_text(p, "state", "?");
        const cJSON *verdict = json_member(p, "verdict");
        out_styled(sb, t, STYLE_BOLD, answer_text(p, "id", "?"));
        strbuf_adds(sb, "  ");
        out_styled(sb, t, out_state_style(state), state);
        strbuf_adds(sb, "  ");
        if (cJSON_IsObject(verdict)) {
            strbuf_addf(sb, "%s  ",
                        answer_text(verdict, "outcome", answer_text(verdict, "kind", "?")));
        }
        status_line(sb, t, p);
    }
}

void status_daemon(struct strbuf *sb, const struct term *t, const cJSON *ping)
{
    const cJSON *slots = json_member(ping, "slots");
    const int64_t n_queued = answer_int(ping, "queued", 0);
    strbuf_addf(sb, "preregd %s, pid %lld%s%s%s%lld of %lld %s used",
                answer_text(ping, "version", "?"), (long long)answer_int(ping, "pid", 0), dot(t),
                answer_text(ping, "state", "?"), dot(t), (long long)answer_int(slots, "used", 0),
                (long long)answer_int(slots, "total", 0),
                text_plural(answer_int(slots, "total", 0), "slot", "slots"));
    if (n_queued > 0) {
        strbuf_addf(sb, ", %lld %s in Slurm", (long long)n_queued,
                    text_plural(n_queued, "attempt", "attempts"));
    }
    strbuf_addc(sb, '\n');
    const char *taken_over = answer_text(ping, "taken_over", NULL);
    if (taken_over != NULL) {
        strbuf_addf(sb, "the state folder was taken over %s\n", taken_over);
    }
}
