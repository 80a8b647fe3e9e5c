/*
 * The live streams (text/event-stream): every message is rendered once and sent to all tabs that
 * want it. A program that a tab watches has a topic: what its tasks looked like, and a ring of what
 * changed since, from which a tab that comes back is brought up to date.
 *
 * Nothing is rendered while no tab has a stream, and of a program none while no tab watches it; at
 * most four times a second otherwise. A tab that reads slowly holds one shared message and misses
 * those that the ring drops, after which it gets everything again.
 */
#ifndef DAEMON_HTTP_STREAMS_H
#define DAEMON_HTTP_STREAMS_H

#include "daemon/http/internal.h"

struct streams *streams_create(struct http *h) __attribute__((returns_nonnull));
void streams_close(struct streams *s);
void streams_free(struct streams *s); /* after the loop has run dry; NULL is fine */

/* Makes r->subscriber, or a reply that refuses. params: program, last. */
void streams_add(struct page_request *r, const cJSON *params);
/* Queues the stream's response. */
enum MHD_Result streams_queue(struct subscriber *sub);
/* Ends a stream: it is removed once libmicrohttpd has ended its request. */
void streams_drop(struct subscriber *sub);
void streams_drop_all(struct streams *s);
void streams_remove(struct subscriber *sub);

void streams_note_change(struct streams *s);
size_t streams_count(const struct streams *s);

#endif
