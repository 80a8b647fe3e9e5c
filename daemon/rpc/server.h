/*
 * The socket: connections of this user, and of readers, one request at a time each, everything
 * bounded (docs/rpc.md). A server_handler decides what a request means.
 *
 *   reading ──line──► answering ──► writing ──► reading ...
 *                         └─subscribe─► subscribed ──end of the program──► writing
 */
#ifndef DAEMON_RPC_SERVER_H
#define DAEMON_RPC_SERVER_H

#include <uv.h>

#include "base/err.h"
#include "daemon/rpc/handler.h"
#include "daemon/rpc/readers.h"

struct server;

/* Listens at STATE/preregd.sock. *out is set also on error: close and free it. */
int server_open(uv_loop_t *loop, const char *state, const struct server_handler *handler,
                struct server **out, struct err *err) MUST_CHECK;
/* Also listens for readers, at readers->folder/preregd.sock; its texts must outlive the server. */
int server_open_readers(struct server *s, const struct rpc_readers *readers,
                        struct err *err) MUST_CHECK;
/* Instead of RPC_IDLE_MS, for the connections from now on. */
void server_set_idle(struct server *s, uint64_t ms);
void server_close(struct server *s);
void server_free(struct server *s); /* after the loop has run dry; NULL is fine */

/* A program's rows were committed: subscribers get an event within a quarter of a second. */
void server_note_change(struct server *s);

/* How to answer later; valid as long as the server. */
struct server_replies server_replies(struct server *s);

/* Recreates a socket file that was deleted or replaced; called every few seconds. */
void server_check_socket(struct server *s);

#endif
