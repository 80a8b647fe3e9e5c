/*
 * The messages of a stream that may still be asked for: texts with rising numbers, the oldest of
 * which are dropped. A text is rendered once and shared by everyone who sends it.
 *
 * Invariants: numbers rise; every message above `floor` is here; at most RING_MESSAGES_MAX messages
 * and, but for a single larger one, RING_BYTES_MAX bytes. Pure but for memory.
 */
#ifndef DAEMON_HTTP_RING_H
#define DAEMON_HTTP_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#define RING_MESSAGES_MAX 64
#define RING_BYTES_MAX    ((size_t)4 * 1024 * 1024)

struct shared_text {
    unsigned refs;
    size_t len;
    char *data;
};

/* Takes the bytes over and empties `text`; one reference, the caller's. */
struct shared_text *shared_text_make(struct strbuf *text) __attribute__((returns_nonnull));
struct shared_text *shared_text_ref(struct shared_text *t); /* returns t */
void shared_text_unref(struct shared_text *t);              /* NULL is fine */

struct ring {
    struct {
        uint64_t no;
        struct shared_text *text;
    } items[RING_MESSAGES_MAX];
    size_t first;
    size_t n;
    size_t bytes;
    uint64_t floor;
};

/* Empty: everything up to `floor` is taken for known. */
void ring_init(struct ring *r, uint64_t floor);
void ring_release(struct ring *r);
/* Takes the reference over. Requires a number above all before. */
void ring_push(struct ring *r, uint64_t no, struct shared_text *text);
/* Whether one who has everything up to `no` can go on from here. */
bool ring_reaches(const struct ring *r, uint64_t no);
/* The first message above `no`, borrowed, and its number; NULL: there is none. */
struct shared_text *ring_next(const struct ring *r, uint64_t no, uint64_t *its_no);

#endif
