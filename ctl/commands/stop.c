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

static void say_with(const cJSON *answer, const char *one, const char *many)
{
    const int64_t n = answer_int(answer, "attempts", 0);
    terminal_printf(stdout, "preregd is stopping; %lld %s running%s\n", (long long)n,
                    text_plural(n, "attempt was", "attempts were"),
                    n == 0 ? "" : text_plural(n, one, many));
}

static void say_left(const cJSON *answer)
{
    say_with(answer, ": it goes on, and the next preregd adopts it",
             ": they go on, and the next preregd adopts them");
}

static void say_killed(const cJSON *answer)
{
    say_with(answer, ": it gets time to checkpoint, and is ended",
             ": they get time to checkpoint, and are ended");
}

int cmd_stop(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    cJSON *params = json_object();
    json_put_bool(params, "kill", o->kill);
    return ask_and_say(o, "stop", params, o->kill ? say_killed : say_left, err);
}
