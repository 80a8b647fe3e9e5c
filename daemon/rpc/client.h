/*
 * A blocking client of preregd's socket, for preregctl and `preregd submit`. One connection, one
 * request at a time. No libuv. Errors of the daemon come back as the same ERR_* code and message.
 */
#ifndef DAEMON_RPC_CLIENT_H
#define DAEMON_RPC_CLIENT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct rpc_client;

/* STATE: $PREREGD_STATE (refused when empty), else $XDG_STATE_HOME/preregd, else
 * ~/.local/state/preregd; absolute. The caller frees *out. Nothing is created. */
int rpc_state_folder(char **out, struct err *err) MUST_CHECK;

/* Connects to STATE/preregd.sock; state_folder NULL: rpc_state_folder(). ERR_NO_DAEMON when no
 * process listens: the message names the one that holds the folder, or says how to start one.
 * ERR_REFUSED when the socket belongs to another user, unless the folder is that user's, too, and
 * only that user can write to it: then what is not for readers is refused when it is called. */
int rpc_open(const char *state_folder, struct rpc_client **out, struct err *err) MUST_CHECK;
/* The same, but does not find out who holds the folder: for callers that retry until a daemon
 * answers. */
int rpc_try_open(const char *state_folder, struct rpc_client **out, struct err *err) MUST_CHECK;
void rpc_close(struct rpc_client *c); /* NULL is fine */

/* How long to wait for the next line; default 60 s. 0: for ever (subscribe). */
void rpc_set_timeout(struct rpc_client *c, int64_t timeout_ms);

/* One call. params is borrowed and may be NULL. On success *result is the response's `result`
 * (cJSON_Delete it). After ERR_TIMEOUT, ERR_PROTOCOL, ERR_IO or ERR_NO_DAEMON the connection is
 * unusable: close it. */
int rpc_call(struct rpc_client *c, const char *method, const cJSON *params, cJSON **result,
             struct err *err) MUST_CHECK;

/* For each event line of a stream; returning false ends the call with ERR_NONE and a NULL result
 * (close the client then). */
struct rpc_listener {
    bool (*on_event)(const cJSON *event, void *context);
    void *context;
};

/* As rpc_call, for `subscribe`: events go to the listener until the response arrives. */
int rpc_call_stream(struct rpc_client *c, const char *method, const cJSON *params,
                    const struct rpc_listener *listener, cJSON **result,
                    struct err *err) MUST_CHECK;

/* Starts `preregd serve` in the background (its own session, output to STATE/preregd.log) from the
 * folder of this executable, and waits until it answers. */
int rpc_start_daemon(const char *state_folder, struct err *err) MUST_CHECK;

#endif
