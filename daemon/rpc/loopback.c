/* Reads a loopback address with its port; what other machines could reach is an error. */
#include "daemon/rpc/loopback.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

bool loopback_is_v4(const char *name)
{
    struct in_addr a;
    return inet_pton(AF_INET, name, &a) == 1 && (ntohl(a.s_addr) >> 24) == 127;
}

/* The port behind a colon; -1. */
static int port_of(const char *text)
{
    int64_t port = 0;
    struct err ignored;
    if (text[0] != ':' || text[1] < '0' || text[1] > '9' || strlen(text) > 6 ||
        text_to_int(text + 1, 0, 65535, &port, &ignored) != 0) {
        return -1;
    }
    return (int)port;
}

int loopback_parse(const char *text, struct loopback_address *out, struct err *err)
{
    const bool v6 = strncmp(text, "[::1]", 5) == 0;
    const size_t n = v6 ? 5 : strcspn(text, ":");
    const int port = port_of(text + n);
    *out = (struct loopback_address){.port = port};
    if (v6) {
        (void)snprintf(out->host, sizeof(out->host), "::1");
    } else if (n == strlen("localhost") && strncasecmp(text, "localhost", n) == 0) {
        (void)snprintf(out->host, sizeof(out->host), "127.0.0.1");
    } else if (n < sizeof(out->host)) {
        memcpy(out->host, text, n);
    }
    if (port < 0 || (!v6 && !loopback_is_v4(out->host))) {
        return err_set(
            err, ERR_USAGE,
            "\"%.60s\": expected a loopback address and a port, such as 127.0.0.1:0 (0: "
            "any free port) or [::1]:8080; from another machine use `ssh -L` (`preregctl "
            "open` prints it)",
            text);
    }
    return 0;
}
