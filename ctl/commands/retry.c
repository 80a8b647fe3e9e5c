/*
 * retry [TASK]: blocked tasks run again with fresh budgets; without TASK, all of them. The daemon
 * refuses it for counted tasks once scores could have been seen, since a retry could then be a
 * choice. Which program is meant must be clear: a retry cannot be undone.
 */
#include <stdio.h>

#include "base/json/json.h"
#include "base/terminal.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"

static void say(const cJSON *answer)
{
    long long n = (long long)answer_int(answer, "tasks", 0);
    terminal_printf(stdout, "%s: %lld task%s will be tried again\n",
                    answer_text(answer, "program", "?"), n, n == 1 ? "" : "s");
}

int cmd_retry(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    cJSON *params = ask_params(o, false);
    if (o->n_args > 0) {
        json_put_string(params, "task", o->args[0]);
    }
    ask_put_reason(o, params);
    return ask_and_say(o, "retry", params, say, err);
}
