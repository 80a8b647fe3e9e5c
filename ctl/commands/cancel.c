/*
 * cancel TASK|CELL, --all: gives up what has not ended. The daemon records it with the reason; a
 * cancelled task leaves its measures undetermined, and a cancellation cannot be taken back. So
 * nothing is the default: one of an argument and --all must be given, and not both.
 */
#include <stdio.h>
#include <string.h>

#include "base/json/json.h"
#include "base/terminal.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"

/* How many tasks were cancelled; none is not an error. */
static void say(const cJSON *answer)
{
    long long n = (long long)answer_int(answer, "tasks", 0);
    terminal_printf(stdout, "%s: ", answer_text(answer, "program", "?"));
    if (n == 0) {
        terminal_printf(stdout, "nothing to cancel: every task of it has ended\n");
    } else {
        terminal_printf(stdout, "%lld task%s cancelled; the report will say so\n", n,
                        n == 1 ? "" : "s");
    }
}

/* Asks to cancel the argument as `what` ("task" or "cell"), or everything when `what` is NULL. */
static int cancel(const struct ctl_options *o, const char *what, struct err *err)
{
    cJSON *params = ask_params(o, false);
    if (what != NULL) {
        json_put_string(params, what, o->args[0]);
    }
    ask_put_reason(o, params);
    return ask_and_say(o, "cancel", params, say, err);
}

int cmd_cancel(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    if ((o->n_args == 0) != o->all) {
        return err_set(err, ERR_USAGE,
                       "say what to cancel: `preregctl cancel CELL/STAGE` (a task), `preregctl "
                       "cancel CELL` or `preregctl cancel --all`; `preregctl cells` lists both");
    }
    if (o->n_args == 0) {
        return cancel(o, NULL, err);
    }
    /* A task has a slash before its stage, but so may a level's text: try a task first, then a
     * cell. */
    int rc = strchr(o->args[0], '/') != NULL ? cancel(o, "task", err) : ERR_NOT_FOUND;
    if (rc == ERR_NOT_FOUND) {
        rc = cancel(o, "cell", err);
    }
    if (rc == ERR_NOT_FOUND) {
        const struct err why = *err;
        (void)err_set(err, rc,
                      "%.180s; `preregctl cancel --all -p PROGRAM` cancels a whole program",
                      why.msg);
    }
    return rc;
}
