/*
 * What the server asks of the one who decides what a request means, and how that one reaches the
 * clients later. Neither knows the other: daemon/serve.c connects them.
 */
#ifndef DAEMON_RPC_HANDLER_H
#define DAEMON_RPC_HANDLER_H

#include <cjson/cJSON.h>

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "daemon/rpc/schema.h"

/* One request. The handler sets the last three. */
struct server_call {
    uint64_t connection;
    bool reader;         /* it may only ask for what rpc_method_is_for_readers() allows */
    bool later;          /* answer_later() follows */
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

/* What a handler may do between requests; all of it on the loop. */
struct server_replies {
    void *ctx;
    /* Answers a request whose answer was deferred; does nothing when the connection is gone. result
     * and why are borrowed; exactly one of them is not NULL. */
    void (*answer)(void *ctx, uint64_t connection, const cJSON *result, const struct err *why);
    /* A program's rows were committed: subscribers get an event within a quarter of a second. */
    void (*note_change)(void *ctx);
};

#endif
