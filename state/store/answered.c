/* Reads the journal for attempts that a lifted pause for failures has answered. Called when a
 * program with live attempts is loaded; most lines are skipped by their text alone. */
#include "state/store/answered.h"

#include <assert.h>
#include <string.h>

#include "base/json/json.h"
#include "prereg/program/stage_set.h"
#include "state/store/internal.h"

struct answering {
    uint32_t program;
    uint32_t n_stages;
    struct store_answer *answers;
    size_t n;
    unsigned paused;
    struct stage_set accepted; /* stages of which a result was accepted */
};

/* Program rows have the pauses, the two others begin an attempt and accept a result. Lines are
 * canonical JSON, so a member is written in one way only; a text that holds the same characters
 * costs time alone. */
static bool may_matter(const char *line)
{
    return strstr(line, "\"status\":{") != NULL || strstr(line, "\"result\":{") != NULL ||
           strstr(line, "\"event\":\"attempt_started\"") != NULL;
}

static void take_status(struct answering *w, const struct program_row *now)
{
    const bool lifted = (w->paused & PAUSE_FAILURES) != 0 && (now->paused & PAUSE_FAILURES) == 0;
    w->paused = now->paused;
    for (size_t i = 0; lifted && i < w->n; i++) {
        struct store_answer *a = &w->answers[i];
        a->answered |= a->begun && !stage_set_has(&w->accepted, a->task % w->n_stages);
    }
}

static void take_row(struct answering *w, const struct state_row *row)
{
    if (!row_kind_is_of_task(row->kind)) {
        take_status(w, &row->status);
        return;
    }
    if (row->apparatus != NULL) {
        return;
    }
    if (row->has_result) {
        stage_set_add(&w->accepted, row->task % w->n_stages);
    }
    for (size_t i = 0; row->kind == ROW_ATTEMPT_STARTED && i < w->n; i++) {
        struct store_answer *a = &w->answers[i];
        a->begun |= a->task == row->task && a->attempt_no == row->attempt.no;
    }
}

static int take_line(void *ctx, int64_t seq, const char *line, struct err *err)
{
    struct answering *w = ctx;
    struct state_row row;
    cJSON *json = NULL;
    if (!may_matter(line)) {
        return 0;
    }
    int rc = json_parse(line, strlen(line), &json, err);
    if (rc == 0) {
        rc = line_to_row(json, w->program, &row, err);
    }
    if (rc == 0 && row.kind != ROW_SUBMITTED) {
        take_row(w, &row);
    }
    cJSON_Delete(json);
    return rc == 0 ? 0 : err_wrap(err, "journal row %lld", (long long)seq);
}

int store_answered(struct store *store, uint32_t program, uint32_t n_stages,
                   struct store_answer *answers, size_t n, struct err *err)
{
    assert(store != NULL && n_stages > 0 && (answers != NULL || n == 0));
    struct answering w = {.program = program, .n_stages = n_stages, .answers = answers, .n = n};
    return n == 0 ? 0 : store_journal(store, program, 1, take_line, &w, err);
}
