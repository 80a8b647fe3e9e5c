/*
 * The RPC between preregd and its clients: methods, limits, the envelope.
 * docs/rpc.md describes every message. Shared by the daemon and the blocking client; no I/O here.
 *
 * Request   {"schema":1,"id":N,"method":M,"params":{...}}
 * Response  {"schema":1,"id":N,"ok":true,"result":{...}}
 *           {"schema":1,"id":N,"ok":false,"error":{"code":-14,"name":"refused","message":...}}
 * Event     {"schema":1,"id":N,"event":{...}}     before the response of `subscribe` only
 * One JSON object a line. No message holds a value of a sealed stage (invariant 8).
 */
#ifndef DAEMON_RPC_SCHEMA_H
#define DAEMON_RPC_SCHEMA_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

#define RPC_SCHEMA         1
#define RPC_REQUEST_MAX    ((size_t)1024 * 1024)      /* one line, newline included */
#define RPC_RESPONSE_MAX   ((size_t)16 * 1024 * 1024) /* one line, newline included */
#define RPC_CLIENTS_MAX    64                         /* more get ERR_BUSY and are closed */
#define RPC_READERS_MAX    16                         /* the same, of readers */
#define RPC_IDLE_MS        30000 /* a half-sent request or an unread response for longer: closed */
#define RPC_CELLS_PAGE_MAX 1000  /* cells of one `cells` response */

/* A new method: here, in schema.c's table, in answer.c's table, and in docs/rpc.md. */
enum rpc_method {
    RPC_PING,
    RPC_SUBMIT,
    RPC_STATUS,
    RPC_CELLS,
    RPC_EXPLAIN,
    RPC_LOGS,
    RPC_RETRY,
    RPC_CANCEL,
    RPC_PAUSE,
    RPC_RESUME,
    RPC_UNBLIND,
    RPC_VERDICT,
    RPC_REPORT,
    RPC_SUBSCRIBE,
    RPC_STOP,
    RPC_AMEND,
    RPC_LOST,
    RPC_PROGRAMS,
    RPC_DISK,
    RPC_REMOVE,
    RPC_PAGE,
    RPC_METHOD_NR
};

struct rpc_request {
    int64_t id;
    enum rpc_method method;
    const cJSON *params; /* an object, or NULL; belongs to the parsed message */
};

/* The method's name in requests; "?" for RPC_METHOD_NR. */
const char *rpc_method_name(enum rpc_method m);
/* Whether members of the readers' groups may call it: it changes nothing, and its answer holds
 * neither a sealed score nor a worker's output. */
bool rpc_method_is_for_readers(enum rpc_method m);
enum rpc_method rpc_method_from_name(const char *name); /* RPC_METHOD_NR when unknown */
const char *rpc_error_name(int code);                   /* "usage"; "other" for those without one */

/* Reads one request line (without its newline). *message owns what out points to and is NULL on
 * error; out->id is the request's id whenever that much could be read, else 0. */
int rpc_request_parse(const char *line, size_t len, cJSON **message, struct rpc_request *out,
                      struct err *err) MUST_CHECK;

/* Each appends one line with its newline. result and event are borrowed. A result that would not
 * fit RPC_RESPONSE_MAX becomes an ERR_RANGE error response. */
void rpc_write_request(struct strbuf *out, int64_t id, const char *method, const cJSON *params);
void rpc_write_result(struct strbuf *out, int64_t id, const cJSON *result);
void rpc_write_event(struct strbuf *out, int64_t id, const cJSON *event);
void rpc_write_error(struct strbuf *out, int64_t id, const struct err *why);

#endif
