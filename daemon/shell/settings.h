/*
 * STATE/serve.toml: what the daemon of this state folder offers to others. Read once, when it
 * starts; a file that is wrong keeps it from starting, so nothing is opened by mistake.
 *
 *   [serve]
 *   readers = ["lab"]                 groups whose members may read
 *   folder = "/srv/lab/preregd"       where they find the socket
 *   [http]
 *   listen = "127.0.0.1:0"            the live page is on, there (docs/page.md)
 *   [notify]
 *   command = ["/path", "argument"]   run with one JSON object on its standard input
 */
#ifndef DAEMON_SHELL_SETTINGS_H
#define DAEMON_SHELL_SETTINGS_H

#include "base/err.h"
#include "daemon/rpc/loopback.h"
#include "daemon/rpc/readers.h"

struct settings_http { /* the live page (daemon/http) */
    bool on;
    struct loopback_address at;
};

#define SETTINGS_COMMAND_MAX 64

struct settings {
    struct rpc_readers readers;
    struct settings_http http;
    char **notify; /* the command and its arguments, ended by NULL; NULL: none */
};

/* Without the file nothing is offered. ERR_REFUSED: others may write to it, or it is not the
 * user's; ERR_INVALID names the place and what was expected. Always valid to release. */
int settings_read(const char *state, struct settings *out, struct err *err) MUST_CHECK;
void settings_release(struct settings *s);

#endif
