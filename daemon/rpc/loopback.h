/* Addresses of this machine alone: where the live page may listen. Pure. */
#ifndef DAEMON_RPC_LOOPBACK_H
#define DAEMON_RPC_LOOPBACK_H

#include <stdbool.h>

#include "base/err.h"

struct loopback_address {
    char host[48]; /* "127.0.0.1", "::1" */
    int port;      /* 0: any */
};

/* "127.0.0.1:0", "[::1]:8080", "localhost:0". ERR_USAGE says what was expected, and what to do for
 * another machine. */
int loopback_parse(const char *text, struct loopback_address *out, struct err *err) MUST_CHECK;
/* Whether `name` is an IPv4 address of 127.0.0.0/8. */
bool loopback_is_v4(const char *name);

#endif
