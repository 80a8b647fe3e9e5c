/*
 * cells [PROGRAM]: every task of every cell, a row each; apparatus checks follow the grid. With
 * --json the answer is the daemon's, cells with their tasks inside. The names printed are those
 * that `explain`, `logs`, `retry` and `cancel` take.
 */
#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/text/out.h"

static const struct out_column columns[] = {
    {"task", "task", OUT_TEXT},       {"state", "state", OUT_STATE},
    {"cause", "cause", OUT_TEXT},     {"attempts", "attempts", OUT_COUNT},
    {"section", "section", OUT_TEXT}, {"done", "done", OUT_COUNT},
    {"of", "total", OUT_COUNT},       {"unit", "unit", OUT_TEXT},
    {"left", "eta_ms", OUT_SPAN},
};

/* Adds the apparatus checks, which belong to no cell, after the grid's rows. */
static void add_checks(cJSON *rows, const cJSON *checks)
{
    for (const cJSON *check = checks ? checks->child : NULL; check != NULL; check = check->next) {
        cJSON *row = json_copy(check);
        char *name = xasprintf("apparatus/%s", answer_text(check, "name", "?"));
        json_put_string(row, "task", name);
        free(name);
        json_push(rows, row);
    }
}

/* One row for each task, under the name that `explain` and `logs` take. */
static cJSON *rows_of(const cJSON *answer)
{
    cJSON *rows = json_array();
    const cJSON *cells = json_member(answer, "cells");
    for (const cJSON *cell = cells ? cells->child : NULL; cell != NULL; cell = cell->next) {
        const cJSON *tasks = json_member(cell, "tasks");
        for (const cJSON *task = tasks ? tasks->child : NULL; task != NULL; task = task->next) {
            cJSON *row = json_copy(task);
            char *name =
                xasprintf("%s/%s", answer_text(cell, "name", "?"), answer_text(task, "stage", "?"));
            json_put_string(row, "task", name);
            free(name);
            json_push(rows, row);
        }
    }
    add_checks(rows, json_member(answer, "apparatus"));
    return rows;
}

/* The text and --json differ: JSON has cells with their tasks inside, the text one row for each
 * task. */
int cmd_cells(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    struct rpc_client *client = NULL;
    cJSON *answer = NULL;
    int rc = rpc_open(o->state, &client, err);
    if (rc == 0) {
        rc = cells_fetch(client, o->n_args > 0 ? o->args[0] : NULL, 0, &answer, err);
    }
    rpc_close(client);
    if (rc == 0 && o->json) {
        rc = out_json(answer, err);
    } else if (rc == 0) {
        struct term t = term_of_stdout();
        struct strbuf sb = STRBUF_INIT;
        cJSON *rows = rows_of(answer);
        out_table(&sb, &t, rows, columns, ARRAY_LEN(columns));
        out_text(&sb);
        strbuf_release(&sb);
        cJSON_Delete(rows);
    }
    cJSON_Delete(answer);
    return rc;
}
