/*
 * resume [PROGRAM]: continues after a pause, whatever it was for. --accept-failures blocks the
 * tasks that paused the program for failing alike, instead of trying them again; no stage pauses
 * the program for that any more.
 */
#include <stdio.h>

#include "base/json/json.h"
#include "base/terminal.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"

static void say(const cJSON *answer)
{
    terminal_printf(stdout, "%s: %s: going on\n", answer_text(answer, "program", "?"),
                    answer_text(answer, "state", "?"));
}

int cmd_resume(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    cJSON *params = ask_params(o, true);
    if (o->accept_failures) {
        json_put_bool(params, "accept_failures", true);
    }
    ask_put_reason(o, params);
    return ask_and_say(o, "resume", params, say, err);
}
