/*
 * help [COMMAND]: the usage of one command or of all, drawn from the tables of commands and
 * options, so that it cannot differ from what is parsed.
 */
#include "ctl/ctl.h"

int cmd_help(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    const struct ctl_command *c = NULL;
    if (o->n_args > 0) {
        c = ctl_find_command(o->args[0]);
        if (c == NULL) {
            return err_set(err, ERR_USAGE, "no command %s", o->args[0]);
        }
    }
    ctl_print_help(c);
    return 0;
}
