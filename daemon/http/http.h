/*
 * The live page: a read-only HTTP server on the daemon's loop, for its owner's browser and scrapers
 * (docs/page.md). Off unless asked for: without http_open() no socket, handle or timer exists.
 *
 * Ownership: one struct http, made and freed by daemon/serve.c, used on the loop's thread alone.
 * What it answers about programs is asked of the handler that answers the RPC, as a reader asks it
 * (daemon/answers); jobs read files off the loop and answer by a request's number, so that a
 * request may be gone by then.
 *
 * Invariants:
 * - Nothing but the page's own files and /healthz is answered without the token (guard.h).
 * - Nothing changes by a request; methods are GET and HEAD.
 * - No answer has a sealed score, a metric of a sealed stage or one of its curves (invariant 8).
 * - Connections, header blocks, their time, streams and jobs are bounded; what is beyond is shed,
 *   and RPC and scheduling go on.
 * - libmicrohttpd runs on no thread of its own: it has one descriptor and one timer of the loop.
 */
#ifndef DAEMON_HTTP_HTTP_H
#define DAEMON_HTTP_HTTP_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "daemon/http/guard.h"
#include "daemon/rpc/handler.h"
#include "daemon/rpc/loopback.h"
#include "daemon/shell/shell.h"

struct http;

/* Numbers of requests, in the place of a connection's: those of the RPC's socket never get there.
 */
#define HTTP_ID_BASE (UINT64_C(1) << 63)

/* Listens at the address, which may have port 0: then the port of the last time is tried first; and
 * at http.sock in the folder of the RPC's socket. `handler` is copied. *out is set also on error:
 * close and free it. One that is closed may be in *out: it is freed with the new one. */
int http_open(struct shell *sh, const struct server_handler *handler,
              const struct loopback_address *at, struct http **out, struct err *err) MUST_CHECK;
bool http_is_open(const struct http *h); /* NULL: false */
void http_close(struct http *h);         /* NULL is fine; idempotent */
void http_free(struct http *h);          /* after the loop has run dry; NULL is fine */

/* NULL is fine. A program's rows were committed: streams get what changed within a quarter of a
 * second. */
void http_note_change(struct http *h);
/* Answers a request of this room that the handler deferred; one that is gone is ignored. */
void http_answer(struct http *h, uint64_t id, const cJSON *result, const struct err *why);

/* {"url","port","socket","token"}; the url has the token in its fragment. */
cJSON *http_describe(const struct http *h);
/* Another token from now on: every session and every stream ends. */
int http_renew_token(struct http *h, struct err *err) MUST_CHECK;

#endif
