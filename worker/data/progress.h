/*
 * The progress of long work, on standard error: a bar that is redrawn where that is a terminal,
 * else a line every ten seconds, so that short work prints nothing. Never on standard output.
 */
#ifndef WORKER_DATA_PROGRESS_H
#define WORKER_DATA_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

enum progress_unit {
    PROGRESS_BYTES, /* shown in MB */
    PROGRESS_THINGS,
};

struct progress {
    const char *what; /* lives as long as the work */
    enum progress_unit unit;
    double total;
    bool terminal;
    int columns;
    int64_t start_ns;
    int64_t shown_ns;
    bool drawn; /* a bar is on the terminal's line */
};

/* Draws nothing yet. */
void progress_start(struct progress *p, const char *what, enum progress_unit unit, double total);
/* `done` of the total; cheap enough for every document. */
void progress_set(struct progress *p, double done);
/* Removes the bar. Also after an error. */
void progress_end(struct progress *p);

/* The text of the bar or line: "what  45 %  21.3 MB/s  ETA 12 s"; bar_width 0: no bar. */
void progress_text(const struct progress *p, double done, double seconds, int bar_width, char *out,
                   int size);

#endif
