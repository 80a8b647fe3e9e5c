/* lost TASK: gives up a task whose accepted result is gone. The daemon refuses it while the
 * result is still what was accepted, or while its disk cannot be read. The task ends as blocked
 * (lost), which the journal, the report and every receipt show. */
#include <stdio.h>

#include "base/json/json.h"
#include "base/terminal.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"

static void say(const cJSON *answer)
{
    terminal_printf(
        stdout,
        "%s: %s is given up as lost: its measures are undetermined, and the report says so\n",
        answer_text(answer, "program", "?"), answer_text(answer, "task", "?"));
}

int cmd_lost(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    cJSON *params = ask_params(o, false);
    json_put_string(params, "task", o->args[0]);
    ask_put_reason(o, params);
    return ask_and_say(o, "lost", params, say, err);
}
