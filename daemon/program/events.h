/*
 * What a worker reports: lines of events.jsonl, ingested by byte offset (worker-protocol.md).
 *
 * Fed with whole or partial text; only whole lines count, so a torn last line is simply not there
 * yet. Values of curve points are not read here at all (invariant 8).
 */
#ifndef DAEMON_PROGRAM_EVENTS_H
#define DAEMON_PROGRAM_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "state/rows.h"

#define EVENTS_UNIT_SIZE 16

struct events_said {
    size_t n_bytes;       /* consumed: up to the end of the last whole line */
    enum section section; /* the last one named, or SECTION_NR */
    bool progressed;
    int64_t done;
    int64_t total; /* -1 unknown */
    char unit[EVENTS_UNIT_SIZE];
    int64_t checkpoint;   /* or -1 */
    int64_t resumed_from; /* or -1 */
    int64_t malformed;
};

/* Reads the whole lines of text. A line over LAYOUT_EVENTS_LINE_MAX, whole or not, breaks the
 * protocol: it counts as more than CORE_MALFORMED_MAX malformed ones and everything is consumed. */
void events_take(const char *text, size_t len, struct events_said *out);

#endif
