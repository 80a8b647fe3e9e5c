/* Reads the acts on a program from its journal, line by line: only lines that can be one are
 * parsed. Called once by report_model.c. */
#include "truthtable/report/report_acts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"

#define STOPPING       128 /* of status.paused: `cancel --all` is under way (docs/scheduler.md) */
#define SAME_ACT_BYTES ((size_t)16) /* "2026-11-23T17:16": acts of the same minute are one */

/* A text of a row, or NULL. */
static const char *text_of_member(const cJSON *o, const char *key)
{
    return cJSON_GetStringValue(json_member(o, key));
}

/* The causes that only a person's command gives. */
static bool is_by_person(const char *cause)
{
    return cause != NULL && (strcmp(cause, "cancelled") == 0 || strcmp(cause, "stopped") == 0);
}

/* A pause and a resumption, unless they are begin and end of `cancel --all`, which has rows of the
 * same kind. */
static const char *pause_of(struct report_acts *acts, const char *event, const cJSON *row)
{
    struct err ignored;
    int64_t now = 0;
    if (json_get_int(json_member(row, "status"), "paused", 0, INT32_MAX, &now, &ignored) != 0) {
        return event;
    }
    const bool was_stopping = acts->is_stopping;
    /* The bit is set at the begin of `cancel --all` and cleared at its end. */
    acts->is_stopping = (now & STOPPING) != 0;
    if (was_stopping == acts->is_stopping) {
        return event;
    }
    return acts->is_stopping ? "cancel of all begun" : "cancel of all ended";
}

/* What the row says was done; NULL: nothing by anyone. */
static const char *act_of(struct report_acts *acts, const char *event, const cJSON *row,
                          const cJSON *task)
{
    const char *cause =
        text_of_member(task, strcmp(event, "task_ending") == 0 ? "ending" : "cause");
    if (strcmp(event, "paused") == 0 || strcmp(event, "resumed") == 0) {
        return pause_of(acts, event, row);
    }
    if (strcmp(event, "task_retried") == 0) {
        return "retried";
    }
    const bool ends = strcmp(event, "task_ended") == 0 || strcmp(event, "task_ending") == 0;
    return ends && is_by_person(cause) ? cause : NULL;
}

/* Equal texts, or both absent. */
static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Joins acts on many tasks by one command: the same act, reason and minute. */
static void add_act(struct report_acts *acts, struct arena *a, const struct report_act *act)
{
    struct report_act *last = acts->n > 0 ? &acts->items[acts->n - 1] : NULL;
    if (last != NULL && act->first != NULL && last->first != NULL &&
        strcmp(last->what, act->what) == 0 && same_text(last->reason, act->reason) &&
        strncmp(last->time, act->time, SAME_ACT_BYTES) == 0) {
        last->n_tasks++;
        return;
    }
    /* A table of thousands of acts would hide the rest of the report. */
    if (acts->n == ACTS_MAX) {
        acts->n_left_out++;
        return;
    }
    ARRAY_GROW(acts->items, acts->n, acts->cap);
    acts->items[acts->n++] =
        (struct report_act){.time = arena_strdup(a, act->time),
                            .what = arena_strdup(a, act->what),
                            .first = act->first == NULL ? NULL : arena_strdup(a, act->first),
                            .reason = act->reason == NULL ? NULL : arena_strdup(a, act->reason),
                            .n_tasks = act->n_tasks};
}

/* One row of the journal that may be an act. */
static void take_row(struct report_acts *acts, struct arena *a, const cJSON *row)
{
    const cJSON *task = json_member(row, "task");
    const char *event = text_of_member(row, "event");
    const char *time = text_of_member(row, "time");
    const char *what = event == NULL ? NULL : act_of(acts, event, row, task);
    if (what == NULL || time == NULL) {
        return;
    }
    const char *cell = text_of_member(task, "cell");
    const char *stage = text_of_member(task, "stage");
    char *name = task == NULL ? NULL
                              : xasprintf("%s/%s", cell == NULL ? "apparatus" : cell,
                                          stage == NULL ? "?" : stage);
    const struct report_act act = {.time = time,
                                   .what = what,
                                   .first = name,
                                   .reason = text_of_member(row, "detail"),
                                   .n_tasks = name == NULL ? 0 : 1};
    add_act(acts, a, &act);
    free(name);
}

/* Before anything is parsed: a journal has a row for everything, and few of them are acts. */
static bool may_be_act(const char *line)
{
    static const char *const marks[] = {"\"event\":\"paused\"", "\"event\":\"resumed\"",
                                        "\"event\":\"task_retried\"", "\"event\":\"task_ended\"",
                                        "\"event\":\"task_ending\""};
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        if (strstr(line, marks[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* A journal may have millions of rows; memory holds one line. */
void report_acts_read(struct report_acts *acts, struct arena *a, const char *folder)
{
    char *line = NULL;
    size_t cap = 0;
    char *path = path_join(folder, LAYOUT_JOURNAL);
    FILE *file = file_kind_at(path) == FILE_REGULAR ? fopen(path, "re") : NULL;
    *acts = (struct report_acts){0};
    for (ssize_t n; file != NULL && (n = getline(&line, &cap, file)) > 0;) {
        struct err ignored;
        cJSON *row = NULL;
        if (may_be_act(line) && json_parse(line, (size_t)n, &row, &ignored) == 0) {
            take_row(acts, a, row);
            cJSON_Delete(row);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    free(line);
    free(path);
}

void report_acts_release(struct report_acts *acts)
{
    free(acts->items);
    *acts = (struct report_acts){0};
}
