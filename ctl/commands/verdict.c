/*
 * verdict [PROGRAM]: prints the verdict, from the daemon or, without one, from the state folder.
 * Its kind is the exit code: 0 an outcome binds, 4 INDETERMINATE, 7 VOID, 1 there is none yet
 * (docs/exit-codes.md).
 */
#include <stdio.h>
#include <string.h>

#include "base/json/json.h"
#include "base/layout/layout.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/local_answers.h"
#include "ctl/text/out.h"
#include "ctl/text/status_text.h"
#include "ctl/text/verdict_text.h"

/* The verdict with the state of the journal above it, or that there is none yet. Where there are
 * several programs, the user had to name this one. */
static void say(const cJSON *answer, bool is_named)
{
    struct term t = term_of_stdout();
    struct strbuf sb = STRBUF_INIT;
    status_history(&sb, answer);
    if (strcmp(answer_text(answer, "state", ""), "computed") == 0) {
        const char *program = is_named ? answer_text(answer, "program", NULL) : NULL;
        verdict_text(&sb, &t, json_member(answer, "verdict"), program);
        verdict_text_runs(&sb, json_member(answer, "runs"));
        strbuf_addf(&sb, "\n%s\n", answer_text(answer, "path", "?"));
    } else {
        strbuf_addf(&sb, "%s has no verdict yet (`preregctl status %s`)\n",
                    answer_text(answer, "program", "?"), answer_text(answer, "program", ""));
    }
    out_text(&sb);
    strbuf_release(&sb);
}

/* Reads the verdict without a daemon. When there is no such program, the error stays that no
 * daemon runs. */
static int read_files(const struct ctl_options *o, cJSON **answer, struct err *err)
{
    struct local_program p;
    struct err why;
    int rc = local_program_find(o, o->n_args > 0 ? o->args[0] : NULL, &p, &why);
    if (rc == 0) {
        rc = local_verdict(&p, answer, err);
    } else {
        rc = rc == ERR_NOT_FOUND ? ERR_NO_DAEMON : err_set(err, rc, "%s", why.msg);
    }
    local_program_release(&p);
    return rc;
}

int cmd_verdict(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    cJSON *answer = NULL;
    int rc = ask(o, "verdict", ask_params(o, true), &answer, err);
    if (rc == ERR_NO_DAEMON) {
        rc = read_files(o, &answer, err);
    }
    /* the daemon has the digest, but could not read the file */
    if (rc == 0 && strcmp(answer_text(answer, "state", ""), "computed") == 0 &&
        !cJSON_IsObject(json_member(answer, "verdict"))) {
        rc = err_set(err, ERR_NOT_FOUND,
                     "%s cannot be read; `preregctl stop` and `preregd serve` write it again",
                     answer_text(answer, "path", LAYOUT_VERDICT));
    }
    if (rc == 0) {
        *code = (enum exit_code)answer_int(answer, "exit_code", EXIT_ANY);
        rc = o->json ? out_json(answer, err) : 0;
    }
    if (rc == 0 && !o->json) {
        say(answer, o->n_args > 0);
    }
    cJSON_Delete(answer);
    return rc;
}
