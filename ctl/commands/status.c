/*
 * status [PROGRAM]: asks the daemon once, or again and again with --watch, and draws the answer
 * (status_text.c). On a terminal --watch redraws the screen; elsewhere it prints a line per program
 * when something changed. Without a daemon the error says what can be read from the state folder.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/terminal.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/load.h"
#include "ctl/local_answers.h"
#include "ctl/text/out.h"
#include "ctl/text/status_text.h"
#include "daemon/rpc/owner.h"

/* Whether a program is drawn with its grid: it was named, is the only one, or still runs. */
static bool is_drawn_whole(const struct ctl_options *o, const cJSON *programs, const cJSON *summary)
{
    return o->n_args > 0 || cJSON_GetArraySize(programs) == 1 ||
           strcmp(answer_text(summary, "state", ""), "finished") != 0;
}

/* Fetches the cells of a program into its summary. */
static int add_cells(const struct ctl_options *o, struct rpc_client *client, cJSON *summary,
                     struct err *err)
{
    cJSON *cells = NULL;
    int64_t max = o->all ? 0 : (int64_t)STATUS_CELLS_DEFAULT;
    int rc = cells_fetch(client, answer_text(summary, "id", NULL), max, &cells, err);
    if (rc == 0) {
        json_put(summary, "cells", cJSON_DetachItemFromObjectCaseSensitive(cells, "cells"));
    }
    cJSON_Delete(cells);
    return rc;
}

/* Whether a process holds the state folder: then the message already names it and what to do. */
static bool is_held(const struct ctl_options *o)
{
    struct rpc_owner owner;
    struct err ignored;
    char *state = NULL;
    const bool held =
        load_state_folder(o->state, &state, &ignored) == 0 && rpc_owner_find(state, &owner);
    free(state);
    return held;
}

/* Extends the error of a missing daemon by what is in the state folder: what runs only a daemon
 * knows, but what has ended can be read without one. */
static int say_what_lies_there(const struct ctl_options *o, struct err *err)
{
    struct err why = *err;
    size_t n = 0;
    size_t n_finished = 0;
    local_count(o, &n, &n_finished);
    return n == 0 || is_held(o)
               ? why.code
               : err_set(err, why.code,
                         "%s; %zu of %zu programs there have their verdict, which `preregctl "
                         "verdict`, `report`, `diff` and `export` read without one",
                         why.msg, n_finished, n);
}

/* Asks once: the answer of `status`, with "cells" in every program that is drawn whole. */
static int look(const struct ctl_options *o, cJSON **answer, struct err *err)
{
    struct rpc_client *client = NULL;
    cJSON *params = ask_params(o, true);
    int rc = rpc_open(o->state, &client, err);
    if (rc == 0) {
        rc = rpc_call(client, "status", params, answer, err);
    } else if (rc == ERR_NO_DAEMON) {
        rc = say_what_lies_there(o, err);
    }
    cJSON *programs = rc == 0 ? cJSON_GetObjectItemCaseSensitive(*answer, "programs") : NULL;
    /* one more question for each program that is drawn with its grid */
    for (cJSON *p = programs ? programs->child : NULL; p != NULL && rc == 0; p = p->next) {
        rc = is_drawn_whole(o, programs, p) ? add_cells(o, client, p, err) : 0;
    }
    if (rc != 0) {
        cJSON_Delete(*answer);
        *answer = NULL;
    }
    cJSON_Delete(params);
    rpc_close(client);
    return rc;
}

/* Programs with their cells first, then a list of the others. */
static void draw(const struct ctl_options *o, const struct term *t, const cJSON *answer,
                 struct strbuf *sb)
{
    const cJSON *programs = json_member(answer, "programs");
    const cJSON *unloaded = json_member(answer, "unloaded");
    status_daemon(sb, t, json_member(answer, "daemon"));
    status_unloaded(sb, t, unloaded);
    if (programs == NULL || programs->child == NULL) {
        if (unloaded != NULL && unloaded->child != NULL) {
            return;
        }
        strbuf_adds(sb, "no programs; `preregd submit grid.toml` starts one\n");
        return;
    }
    for (const cJSON *p = programs->child; p != NULL; p = p->next) {
        const cJSON *cells = json_member(p, "cells");
        if (cells != NULL) {
            strbuf_addc(sb, '\n');
            status_program(sb, t, p, cells, o->all ? 0 : STATUS_CELLS_DEFAULT);
        }
    }
    /* programs without "cells" are listed, one line each */
    cJSON *rest = json_array();
    for (const cJSON *p = programs->child; p != NULL; p = p->next) {
        if (json_member(p, "cells") == NULL) {
            json_push(rest, json_copy(p));
        }
    }
    strbuf_adds(sb, rest->child != NULL ? "\n" : "");
    status_list(sb, t, rest);
    cJSON_Delete(rest);
}

/* Whether there is nothing left to watch. */
static bool all_finished(const cJSON *answer)
{
    const cJSON *programs = json_member(answer, "programs");
    for (const cJSON *p = programs ? programs->child : NULL; p != NULL; p = p->next) {
        if (strcmp(answer_text(p, "state", ""), "finished") != 0) {
            return false;
        }
    }
    return true;
}

/* What --watch writes where it cannot redraw: a line for each program, without the time, which
 * would always change. */
static void draw_lines(const struct term *t, const cJSON *answer, struct strbuf *sb)
{
    const cJSON *programs = json_member(answer, "programs");
    status_list(sb, t, programs);
}

/* Prints one answer of --watch; outside a terminal only when it differs from the one before. */
static int show(const struct ctl_options *o, const struct term *t, const cJSON *answer,
                struct strbuf *before, struct err *err)
{
    struct strbuf now = STRBUF_INIT;
    int rc = 0;
    if (o->json) {
        rc = json_line(answer, &now, err);
        strbuf_addc(&now, '\n');
    } else if (t->is_terminal) {
        strbuf_adds(&now, "\033[H\033[J"); /* home, clear below */
        draw(o, t, answer, &now);
    } else {
        draw_lines(t, answer, &now);
    }
    if (rc == 0 && (t->is_terminal || strcmp(now.buf, before->buf) != 0)) {
        if (o->json) {
            out_data(&now);
        } else {
            out_text(&now);
        }
        rc = out_flush(err);
    }
    strbuf_release(before);
    *before = now;
    return rc;
}

/* Errors during a restart of the daemon: --watch waits for it instead of ending. */
static bool is_away(int rc)
{
    return rc == ERR_NO_DAEMON || rc == ERR_IO;
}

/* Repeats look() until every program has finished. An error before the first answer ends it;
 * later the daemon may restart. */
static int watch(const struct ctl_options *o, struct err *err)
{
    struct term t = term_of_stdout();
    struct strbuf before = STRBUF_INIT;
    bool over = false;
    bool seen = false;
    bool away = false;
    int rc = 0;
    while (rc == 0 && !over) {
        cJSON *answer = NULL;
        rc = look(o, &answer, err);
        /* reported once, then silence until it is back */
        if (seen && is_away(rc)) {
            if (!away) {
                terminal_printf(stderr, "%s; waiting for it\n", err->msg);
            }
            away = true;
            rc = 0;
        } else if (rc == 0) {
            seen = true;
            away = false;
            json_put_int(answer, "schema", 1);
            rc = show(o, &t, answer, &before, err);
            over = all_finished(answer);
        }
        cJSON_Delete(answer);
        if (rc == 0 && !over) {
            rc = out_wait(o->interval_ms, err);
        }
    }
    strbuf_release(&before);
    return rc;
}

/* Without --watch: one question, one answer. */
int cmd_status(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    if (o->watch) {
        return watch(o, err);
    }
    cJSON *answer = NULL;
    int rc = look(o, &answer, err);
    if (rc == 0 && o->json) {
        rc = out_json(answer, err);
    } else if (rc == 0) {
        struct term t = term_of_stdout();
        struct strbuf sb = STRBUF_INIT;
        draw(o, &t, answer, &sb);
        out_text(&sb);
        strbuf_release(&sb);
    }
    cJSON_Delete(answer);
    return rc;
}
