/*
 * --host HOST and $PREREGD_HOST: the same command, run on another machine over ssh and nothing
 * else. Its files, state folder and daemon are those of HOST; output and exit code are its own.
 * docs/many-programs.md says why the command itself is run there.
 */
#ifndef CTL_HOST_H
#define CTL_HOST_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "ctl/ctl.h"

/* Removes `--host HOST` or `--host=HOST` from the words before "--" and puts HOST into *host; NULL:
 * there was none. ERR_USAGE: it is given twice, or without HOST. */
int host_take(int *argc, char **argv, const char **host, struct err *err) MUST_CHECK;

/* What `c` (NULL: submit) does about a host. *host is NULL where it runs here: none is named, or
 * only $PREREGD_HOST names one and the command concerns no state folder. ERR_USAGE, with what to
 * do: the command needs files of this machine, or HOST cannot be a host's name. */
int host_choose(const struct ctl_command *c, const char *given, const char **host,
                struct err *err) MUST_CHECK;

/* Appends the text that ssh gives to the shell of HOST: `argv` (argv[0] is the command's name), run
 * by the preregctl of HOST if it is of `version`. */
void host_script(struct strbuf *out, char *const *argv, const char *version, bool utf8,
                 bool no_colour);

/* Runs it and waits. *code is the exit code of the command on HOST. */
int host_run(const char *host, char *const *argv, enum exit_code *code, struct err *err) MUST_CHECK;

#endif
