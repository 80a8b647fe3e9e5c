/*
 * unblind [PROGRAM]: opens the sealed scores before the end. It needs a reason, which the journal
 * and every report will show. Repeating it changes nothing, and the answer says so. Counted tasks
 * cannot be retried afterwards.
 */
#include <stdio.h>

#include "base/json/json.h"
#include "base/terminal.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"

static void say(const cJSON *answer)
{
    terminal_printf(stdout, "%s: %s\n", answer_text(answer, "program", "?"),
                    answer_bool(answer, "already")
                        ? "the scores were open already"
                        : "the scores are open; this is in the journal and will be in the report");
}

int cmd_unblind(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    if (o->reason == NULL || o->reason[0] == '\0') {
        return err_set(err, ERR_USAGE,
                       "say why with --reason; the journal and the report record it");
    }
    cJSON *params = ask_params(o, true);
    json_put_string(params, "reason", o->reason);
    return ask_and_say(o, "unblind", params, say, err);
}
