/*
 * pause [PROGRAM]: starts nothing more; running attempts continue. The pause is journalled with its
 * --reason and holds until `resume`, also over a restart of the daemon. Without PROGRAM the daemon
 * chooses, as for every command (see `preregctl help`).
 */
#include <stdio.h>

#include "base/terminal.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"

static void say(const cJSON *answer)
{
    terminal_printf(stdout, "%s: %s: nothing more will be started; what runs continues\n",
                    answer_text(answer, "program", "?"), answer_text(answer, "state", "?"));
}

int cmd_pause(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    cJSON *params = ask_params(o, true);
    ask_put_reason(o, params);
    return ask_and_say(o, "pause", params, say, err);
}
