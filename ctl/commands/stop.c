/*
 * stop: ends the daemon. Attempts continue under their shims and are adopted by the next daemon;
 * with --kill they get time to checkpoint and are ended. The answer arrives before the daemon
 * exits, so its number of attempts is that of the moment of the question. A daemon with cancelled
 * jobs of Slurm exits once Slurm has been asked to end them.
 */
#include <stdio.h>

#include "base/json/json.h"
#include "base/terminal.h"
#include "base/text.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"

static void say(const cJSON *answer)
{
    const int64_t n = answer_int(answer, "attempts", 0);
    terminal_printf(stdout, "preregd is stopping; %lld %s running\n", (long long)n,
                    text_plural(n, "attempt was", "attempts were"));
}

int cmd_stop(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    cJSON *params = json_object();
    json_put_bool(params, "kill", o->kill);
    return ask_and_say(o, "stop", params, say, err);
}
