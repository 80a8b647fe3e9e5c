/*
 * FOLDER/heartbeat: one line "<sequence> <boot id> <host> <job>", replaced by rename(2) while its
 * writer lives. The reader compares sequences against its own monotonic clock: neither the writer's
 * clock nor the file's times decide anything, since clocks of two hosts differ.
 *
 * Only a higher sequence is a sign of life. A lower one is an old copy that a network file system
 * still had, and a file that cannot be read says nothing.
 */
#ifndef DAEMON_SHIM_HEARTBEAT_H
#define DAEMON_SHIM_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

#define HEARTBEAT_PERIOD_MS 10000 /* between two writes */

struct heartbeat {
    int64_t sequence; /* from 1 */
    char boot_id[40];
    char host[256]; /* as the queue that started it calls its node; else the host's own name */
    char job[128];  /* of the queue that started it; "-": none */
};

/* Fills boot_id, host and job ("-" for NULL or "") with those of this process; sequence 0. Words
 * keep no blank: '?' replaces what would break the line. */
void heartbeat_init(struct heartbeat *h, const char *job);
/* Writes the next sequence. Not synced: it has no meaning after a loss of power. */
int heartbeat_write(const char *folder, struct heartbeat *h, struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND: not visible here (yet). ERR_CORRUPT: not such a line. */
int heartbeat_read(const char *folder, struct heartbeat *out, struct err *err) MUST_CHECK;
/* The line of `h`, and back; for other files of this form. */
char *heartbeat_format(const struct heartbeat *h) __attribute__((returns_nonnull));
int heartbeat_parse(const char *line, struct heartbeat *out, struct err *err) MUST_CHECK;

/* What a reader has seen of one heartbeat. All zero: nothing yet. */
struct heartbeat_watch {
    int64_t sequence;      /* the highest; 0: none */
    struct mono_time when; /* it was first seen, by our clock */
    bool moved;            /* it was seen to rise: the writer lived while we watched */
};

/* Returns true if `h` is news: the first sequence seen, or a higher one. */
bool heartbeat_note(struct heartbeat_watch *w, const struct heartbeat *h, struct mono_time now);
/* How long it has not moved while it was watched; -1: never seen. */
int64_t heartbeat_still_ms(const struct heartbeat_watch *w, struct mono_time now);

#endif
