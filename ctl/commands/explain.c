/*
 * explain TASK: why a task is in the state it is in, what it waits for, the rest of its
 * budgets, and every attempt so far. The daemon decides; this file has the words for its reasons. A
 * cell's name instead of a task's is taken for its only task, or answered with the names of its
 * tasks.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/text/out.h"
#include "ctl/text/status_text.h"
#include "prereg/program/cell_name.h"

static const struct out_column attempt_columns[] = {
    {"no", "no", OUT_COUNT},
    {"started", "started", OUT_TEXT},
    {"ended", "ended", OUT_TEXT},
    {"cause", "cause", OUT_TEXT},
    {"reason", "reason", OUT_TEXT},
    {"code", "code", OUT_COUNT},
    {"signal", "signal", OUT_COUNT},
    {"resumed from", "resumed_from", OUT_COUNT},
    {"no events", "garbage_lines", OUT_COUNT},
    {"live", "live", OUT_YES},
};

/* Words for the daemon's reasons ("why"); one that is missing here is printed as it is. */
static const struct {
    const char *why;
    const char *words;
} whys[] = {
    {"done", "its result was verified and accepted"},
    {"dependency", "an earlier stage of its cell has to be done first"},
    {"slots", "it waits for a free slot, or for free cores"},
    {"gpus", "it waits for GPUs of this machine"},
    {"apparatus", "an apparatus check has to hold first"},
    {"grid", "it runs again when every task of the grid has ended"},
    {"unknown", "it is not known at present whether its attempt is still running"},
    {"priority", "a program of higher priority has tasks ready, which start first"},
    {"memory", "its memory does not fit beside what runs now"},
    {"paused", "its program is paused"},
    {"backoff", "its last attempt failed, and the next waits a while"},
    {"running", "an attempt is at work"},
    {"starting", "an attempt is being started"},
    {"queued", "its job has not begun in Slurm"},
    {"queue", "Slurm takes no more of its jobs for now"},
    {"blocked", "it is given up"},
    {"never_run", "it will not be run"},
    {"verdict", "the verdict is out; nothing runs after it"},
    {"disk", "the disk is full"},
};

/* The words for a reason. */
static const char *why_words(const char *why)
{
    for (size_t i = 0; i < ARRAY_LEN(whys); i++) {
        if (strcmp(whys[i].why, why) == 0) {
            return whys[i].words;
        }
    }
    return why;
}

/* One budget, as used and limit; absent when the task has none. */
static void say_budget(struct strbuf *sb, const cJSON *budgets, const char *name, const char *words)
{
    const cJSON *b = json_member(budgets, name);
    if (b != NULL) {
        strbuf_addf(sb, "  %-26s %lld of %lld\n", words, (long long)answer_int(b, "used", 0),
                    (long long)answer_int(b, "limit", 0));
    }
}

/* Why more attempts are listed than the budget above has spent; the one that was accepted spends
 * nothing. */
static void say_uncounted(struct strbuf *sb, const cJSON *answer)
{
    const cJSON *budget = json_member(json_member(answer, "budgets"), "attempts");
    const cJSON *a = NULL;
    int64_t n = -answer_int(budget, "used", 0);
    cJSON_ArrayForEach(a, json_member(answer, "attempt_list"))
    {
        n += !answer_bool(a, "live") &&
             (answer_text(a, "cause", NULL) != NULL ||
              strcmp(answer_text(a, "reason", ""), "never_launched") == 0);
    }
    if (budget != NULL && n > 0) {
        strbuf_addf(sb,
                    "  %-26s %lld below: before a retry or a pause gave fresh budgets, or lost "
                    "without its fault\n",
                    "  not among them", (long long)n);
    }
}

/* The earlier stages that the task waits for, with their states. */
static void say_waits(struct strbuf *sb, const struct term *t, const cJSON *list)
{
    for (const cJSON *w = list->child; w != NULL; w = w->next) {
        const char *state = answer_text(w, "state", "?");
        strbuf_addf(sb, "  waits for %s, which is ", answer_text(w, "stage", "?"));
        out_styled(sb, t, out_state_style(state), state);
        const char *cause = answer_text(w, "cause", NULL);
        strbuf_addf(sb, "%s%s%s\n", cause ? " (" : "", cause ? cause : "", cause ? ")" : "");
    }
}

/* Whether a blocked task may be retried, and why not. */
static void say_retry(struct strbuf *sb, const cJSON *answer)
{
    const char *refusal = answer_text(answer, "retry_refusal", NULL);
    if (answer_bool(answer, "may_retry")) {
        strbuf_adds(sb, "  `preregctl retry` gives it fresh budgets\n");
    } else if (refusal != NULL) {
        strbuf_addf(sb, "  it cannot be tried again: %s\n", refusal);
    }
}

/* Backoff, what is ahead, deadline, progress and stray output: each line only when it applies. */
static void say_times(struct strbuf *sb, const cJSON *answer)
{
    char span[48];
    int64_t not_before_ms = answer_int(answer, "not_before_ms", -1);
    if (not_before_ms >= 0) {
        strbuf_addf(sb, "  next attempt in %s\n",
                    clock_span_text(not_before_ms, span, sizeof(span)));
    }
    const char *behind = answer_text(answer, "behind", NULL);
    if (behind != NULL) {
        strbuf_adds(sb, "  the other program is ");
        out_line(sb, behind);
        strbuf_addc(sb, '\n');
    }
    int64_t left_ms = answer_int(answer, "deadline_left_ms", -1);
    if (left_ms >= 0) {
        strbuf_addf(sb, "  in section %s, %s before it counts as hung\n",
                    answer_text(answer, "section", "?"),
                    clock_span_text(left_ms, span, sizeof(span)));
    }
    int64_t total = answer_int(answer, "total", 0);
    if (total > 0) {
        strbuf_addf(sb, "  %lld of %lld %s done\n", (long long)answer_int(answer, "done", 0),
                    (long long)total, answer_text(answer, "unit", "steps"));
    }
    int64_t garbage = answer_int(answer, "garbage_lines", 0);
    if (garbage > 0) {
        strbuf_adds(sb, "  its worker wrote ");
        strbuf_add_count(sb, garbage, "line that is not an event\n", "lines that are not events\n");
    }
}

/* "attempt 2: Slurm job 12_0 on node n2, GPU-4f3a12cd… (index 0, NVIDIA H100)": nothing for what
 * ran on this machine without GPUs. */
static void say_place(struct strbuf *sb, const cJSON *a)
{
    const char *job = answer_text(a, "job", NULL);
    const char *node = answer_text(a, "node", NULL);
    const cJSON *gpus = json_member(a, "gpus");
    const cJSON *g;
    if (job == NULL && node == NULL && cJSON_GetArraySize(gpus) == 0) {
        return;
    }
    strbuf_addf(sb, "attempt %lld: ", (long long)answer_int(a, "no", 0));
    const char *between = "";
    if (job != NULL || node != NULL) {
        strbuf_adds(sb, job == NULL ? "" : "Slurm job ");
        out_line(sb, job == NULL ? "" : job);
        strbuf_adds(sb, node == NULL ? "" : job == NULL ? "on node " : " on node ");
        out_line(sb, node == NULL ? "" : node);
        between = ", ";
    }
    cJSON_ArrayForEach(g, gpus)
    {
        strbuf_adds(sb, between);
        status_gpu(sb, g);
        between = ", ";
    }
    strbuf_addc(sb, '\n');
}

/* Prints the attempts' endings below the table, for which sentences are too wide. */
static void say_endings(struct strbuf *sb, const cJSON *attempts)
{
    for (const cJSON *a = attempts->child; a != NULL; a = a->next) {
        const char *detail = answer_text(a, "detail", NULL);
        say_place(sb, a);
        if (detail != NULL) {
            strbuf_addf(sb, "attempt %lld: %s\n", (long long)answer_int(a, "no", 0), detail);
        }
    }
}

/* CELL/STAGE, or apparatus/NAME, and "is". */
static void say_name(struct strbuf *sb, const struct term *t, const cJSON *answer)
{
    const cJSON *check = json_member(answer, "apparatus");
    bool of_grid = cJSON_IsString(json_member(answer, "cell"));
    out_styled(sb, t, STYLE_BOLD, of_grid ? answer_text(answer, "cell", "?") : "apparatus");
    strbuf_addf(sb, "/%s is ",
                of_grid ? answer_text(answer, "stage", "?") : answer_text(check, "name", "?"));
}

/* Whether the verdict depends on the task; of an apparatus check, what it demands and blocks. */
static void say_part(struct strbuf *sb, const cJSON *answer)
{
    const cJSON *check = json_member(answer, "apparatus");
    if (!cJSON_IsObject(check)) {
        strbuf_addf(sb, "  %s%s\n",
                    answer_bool(answer, "counted")
                        ? "counted: the verdict depends on it"
                        : "not counted: the verdict does not depend on it",
                    answer_bool(answer, "sealed") ? "; its scores are sealed" : "");
        /* a task lost under limits that others did not have is never excluded */
        const char *narrower = answer_text(answer, "narrower", NULL);
        if (narrower != NULL) {
            strbuf_addf(sb, "  not excluded: blocked under narrower [run] limits: %s\n", narrower);
        }
        return;
    }
    strbuf_adds(sb, "  ");
    status_check(sb, check);
    strbuf_addf(sb,
                "  no evaluation of a sealed stage starts before it holds; it runs stage %s on the "
                "reference model\n",
                answer_text(check, "stage", "?"));
}

/* What the daemon found on disk when it was asked, and by which check. */
static void say_disk(struct strbuf *sb, const struct term *t, const cJSON *answer)
{
    const cJSON *disk = json_member(answer, "on_disk");
    const cJSON *same = json_member(disk, "as_accepted");
    const long long n = answer_int(disk, "artifacts", 0);
    if (!cJSON_IsObject(disk)) {
        return;
    }
    if (cJSON_IsTrue(same)) {
        strbuf_adds(sb, "  on disk now: result.json has the digest that was accepted");
        if (n > 0) {
            strbuf_addf(sb, ", %lld artifact%s of the size it states (not read)", n,
                        n == 1 ? " is" : "s are");
        }
        strbuf_addc(sb, '\n');
        return;
    }
    strbuf_adds(sb, "  ");
    out_styled(sb, t, STYLE_RED, cJSON_IsNull(same) ? "not known now" : "CHANGED ON DISK");
    strbuf_addf(sb, ": %s\n", answer_text(disk, "why", "?"));
}

/* Name, state and reason first, then what explains them, then budgets and attempts. */
static void say(const cJSON *answer)
{
    struct term t = term_of_stdout();
    struct strbuf sb = STRBUF_INIT;
    const char *state = answer_text(answer, "state", "?");
    const char *cause = answer_text(answer, "cause", NULL);
    say_name(&sb, &t, answer);
    out_styled(&sb, &t, out_state_style(state), state);
    strbuf_addf(&sb, "%s%s%s: %s\n", cause ? " (" : "", cause ? cause : "", cause ? ")" : "",
                why_words(answer_text(answer, "why", "?")));
    strbuf_addf(&sb, "  of %s\n", answer_text(answer, "program", "?"));
    const char *text = answer_text(answer, "why_text", NULL);
    say_disk(&sb, &t, answer);
    const cJSON *waits_for = json_member(answer, "waits_for");
    if (waits_for != NULL && waits_for->child != NULL) {
        say_waits(&sb, &t, waits_for);
    } else if (text != NULL) {
        strbuf_addf(&sb, "  %s\n", text);
    }
    say_retry(&sb, answer);
    say_times(&sb, answer);
    say_part(&sb, answer);
    const cJSON *budgets = json_member(answer, "budgets");
    say_budget(&sb, budgets, "crashes", "crashes");
    say_budget(&sb, budgets, "attempts", "attempts");
    say_uncounted(&sb, answer);
    say_budget(&sb, budgets, "no_progress", "restarts without progress");
    const cJSON *attempts = json_member(answer, "attempt_list");
    if (attempts != NULL && attempts->child != NULL) {
        strbuf_addc(&sb, '\n');
        out_table(&sb, &t, attempts, attempt_columns, ARRAY_LEN(attempt_columns));
        say_endings(&sb, attempts);
    }
    out_text(&sb);
    strbuf_release(&sb);
}

/* An error that lists the cell's tasks with their states. */
static int name_tasks(const cJSON *cell, struct err *err)
{
    struct strbuf sb = STRBUF_INIT;
    const char *name = answer_text(cell, "name", "?");
    const cJSON *task = NULL;
    cJSON_ArrayForEach(task, json_member(cell, "tasks"))
    {
        strbuf_addf(&sb, "%s%s/%s (%s)", sb.len == 0 ? "" : ", ", name,
                    answer_text(task, "stage", "?"), answer_text(task, "state", "?"));
    }
    int rc =
        err_set(err, ERR_NOT_FOUND, "%.80s is a cell; name one of its tasks: %s", name, sb.buf);
    strbuf_release(&sb);
    return rc;
}

static int explain_task(const struct ctl_options *o, const char *task, struct err *err)
{
    cJSON *params = ask_params(o, false);
    json_put_string(params, "task", task);
    return ask_and_say(o, "explain", params, say, err);
}

/* Its only task, or an error that names its tasks. */
static int explain_tasks(const struct ctl_options *o, const cJSON *cell, struct err *err)
{
    const cJSON *tasks = json_member(cell, "tasks");
    if (cJSON_GetArraySize(tasks) != 1) {
        return name_tasks(cell, err);
    }
    char *task =
        xasprintf("%s/%s", answer_text(cell, "name", "?"), answer_text(tasks->child, "stage", "?"));
    int rc = explain_task(o, task, err);
    free(task);
    return rc;
}

/* Called when there is no such task: the argument may be a cell. */
static int explain_cell(const struct ctl_options *o, struct err *err)
{
    struct rpc_client *client = NULL;
    struct err ignored;
    cJSON *answer = NULL;
    int rc = ERR_NOT_FOUND;
    if (rpc_open(o->state, &client, &ignored) == 0 &&
        cells_fetch(client, o->program, 0, &answer, &ignored) == 0) {
        const cJSON *cell = NULL;
        cJSON_ArrayForEach(cell, json_member(answer, "cells"))
        {
            if (cell_name_is(answer_text(cell, "name", ""), o->args[0])) {
                rc = explain_tasks(o, cell, err);
            }
        }
    }
    cJSON_Delete(answer);
    rpc_close(client);
    return rc;
}

int cmd_explain(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    int rc = explain_task(o, o->args[0], err);
    /* the message of the first error stays, unless the argument is a cell */
    return rc == ERR_NOT_FOUND ? explain_cell(o, err) : rc;
}
