/*
 * What the page reads from strangers, as pure functions: Host, Origin, tokens, cookies, paths and
 * queries. No I/O and no libmicrohttpd here, so that all of it is tested and fuzzed by itself.
 *
 * Invariants: nothing is accepted that was not recognized whole; a text of any length and any bytes
 * may be given; a value that is handed on is UTF-8 without control characters; secrets are compared
 * in a time that depends on their length alone.
 */
#ifndef DAEMON_HTTP_GUARD_H
#define DAEMON_HTTP_GUARD_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define GUARD_URI_MAX    ((size_t)4096)
#define GUARD_TOKEN_SIZE 44 /* 32 bytes as base64url, and NUL */
#define GUARD_COOKIE_MAX 64 /* of its value */

/* ---- who asks ---- */

/* Whether `host`, as a Host header has it, is of this machine: localhost, NAME.localhost,
 * 127.0.0.0/8 or [::1], with any port or none. */
bool guard_host_is_local(const char *host);
/* The same of an Origin: http:// or https:// and such a host, nothing behind it. */
bool guard_origin_is_local(const char *origin);

/* Whether both texts are the same, in a time that depends on the length of `known` alone. */
bool guard_same_secret(const char *given, const char *known);
/* Whether an Authorization header is "Bearer TOKEN". */
bool guard_is_bearer(const char *header, const char *token);
/* Whether a Cookie header has a cookie `name` of that value. */
bool guard_has_cookie(const char *header, const char *name, const char *value);
/* Whether `text` has the form of a token: what is read from the state folder is checked, too. */
bool guard_is_token(const char *text);
/* 32 random bytes as a token. */
void guard_write_token(const unsigned char bytes[32], char out[GUARD_TOKEN_SIZE]);
/* The cookie of a token: its name tells the daemons of one machine apart, because browsers share
 * cookies between ports; its value does not give the token away. */
void guard_cookie_of(const char *token, char name[24], char value[GUARD_COOKIE_MAX + 1]);

/* ---- what for ---- */

enum route {
    ROUTE_PAGE, /* one of the page's own files */
    ROUTE_HEALTH,
    ROUTE_SESSION,
    ROUTE_METRICS,
    ROUTE_STREAM,
    ROUTE_REPORT, /* `rest` is ID/PATH */
    ROUTE_STATUS,
    ROUTE_CELLS,
    ROUTE_EXPLAIN,
    ROUTE_LOGS,
    ROUTE_VERDICT,
    ROUTE_DISK,
    ROUTE_TAIL,
    ROUTE_FILES,
    ROUTE_PLAN,
    ROUTE_CURVES,
    ROUTE_MACHINE,
    ROUTE_NR /* unknown */
};

struct guard_target {
    enum route route;
    char *path;    /* decoded, without the query */
    char *rest;    /* ROUTE_REPORT: what follows /report/, NULL for others */
    cJSON *params; /* the query's, an object of strings and whole numbers */
};

/* Reads a request's target: path and query. ERR_NOT_FOUND for what is not served, ERR_USAGE names
 * what is wrong with the query. guard_target_release() in any case. */
int guard_target_parse(const char *uri, struct guard_target *out, struct err *err) MUST_CHECK;
void guard_target_release(struct guard_target *t);
/* Whether a route may be asked for without a token. */
bool guard_route_is_open(enum route r);

/* ---- from where it goes on ---- */

/* The stream's Last-Event-ID, "EPOCH-N". False when it is of another epoch, or is not one. */
bool guard_event_id(const char *text, const char *epoch, uint64_t *out);

#endif
