/*
 * The socket: connections of this user, and of readers, one request at a time each, everything
 * bounded (docs/rpc.md). A server_handler decides what a request means.
 *
 *   reading ──line──► answering ──► writing ──► reading ...
 *                         └─subscribe─► subscribed ──end of the program──► writing
 */
#ifndef DAEMON_RPC_SERVER_H
#define DAEMON_RPC_SERVER_H

#include <cjson/cJSON.h>

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "daemon/rpc/readers.h"
#include "daemon/rpc/schema.h"

struct server;

/* One request. The handler sets the last three. */
struct server_call {
    uint64_t connection;
    bool reader;         /* it may only ask for what rpc_method_is_for_readers() allows */
    bool later;          /* server_answer() follows */
    uint32_t subscribed; /* the number of the program whose changes the client receives */
    bool stop;           /* stop serving once the answer is written */
};

/* What a subscriber receives: the event, then the result, or the error, that ends the subscription.
 * NULL, NULL and false: nothing new. */
struct server_news {
    cJSON *event;
    cJSON *result;
    bool failed;
    struct err why;
};

struct server_handler {
    void *ctx;
    /* *result is the caller's; NULL when the answer comes later, or for a subscription. */
    int (*request)(void *ctx, struct server_call *call, const struct rpc_request *request,
                   cJSON **result, struct err *err);
    /* *seen: the version that was sent last, UINT64_MAX before the first. */
    void (*news)(void *ctx, uint32_t program, uint64_t *seen, struct server_news *out);
    void (*stop)(void *ctx);
};

/* Listens at STATE/preregd.sock. *out is set also on error: close and free it. */
int server_open(uv_loop_t *loop, const char *state, const struct server_handler *handler,
                struct server **out, struct err *err) MUST_CHECK;
/* Also listens for readers, at readers->folder/preregd.sock; its texts must outlive the server. */
int server_open_readers(struct server *s, const struct rpc_readers *readers,
                        struct err *err) MUST_CHECK;
void server_close(struct server *s);
void server_free(struct server *s); /* after the loop has run dry; NULL is fine */

/* A program's rows were committed: subscribers get an event within a quarter of a second. */
void server_note_change(struct server *s);

/* Answers a request whose answer was deferred; does nothing when the connection is gone. result and
 * why are borrowed; exactly one of them is not NULL. */
void server_answer(struct server *s, uint64_t connection, const cJSON *result,
                   const struct err *why);

/* Recreates a socket file that was deleted or replaced; called every few seconds. */
void server_check_socket(struct server *s);

#endif
