/*
 * The socket: connections of this user only, one request at a time each, everything bounded
 * (docs/rpc.md). answer.h decides what a request means.
 *
 *   reading ──line──► answering ──► writing ──► reading ...
 *                         └─subscribe─► subscribed ──end of the program──► writing
 */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

#include <cjson/cJSON.h>

#include "daemon/shell.h"

struct server;

/* Listens at STATE/preregd.sock. *out is set also on error: close and free it. */
int server_open(struct shell *sh, struct server **out, struct err *err) MUST_CHECK;
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
