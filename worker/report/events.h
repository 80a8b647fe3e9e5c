/*
 * What a running worker says: one JSON line per write(2), appended to the file named by
 * PREREG_EVENTS. Without that variable (a run by hand) notes go to standard error and nothing else
 * is written. Never holds a score (invariant 8).
 *
 * The first failure to write is kept and later calls do nothing; the owner asks for it with
 * events_result().
 */
#ifndef WORKER_REPORT_EVENTS_H
#define WORKER_REPORT_EVENTS_H

#include <stdint.h>

#include "base/err.h"
#include "worker/report/environment.h"

enum event_section { SECTION_SETUP, SECTION_STEP, SECTION_CHECKPOINT, SECTION_EVAL, SECTION_NR };

struct events {
    int fd; /* -1: PREREG_EVENTS is not set */
    enum event_section section;
    int64_t last_progress_ns;
    struct err fault; /* code 0: none */
};

/* ERR_IO and the like when PREREG_EVENTS names a file that cannot be opened for appending. */
int events_open(struct events *ev, struct err *err) MUST_CHECK;
void events_close(struct events *ev);
/* The first write that failed, or 0. */
int events_result(const struct events *ev, struct err *err) MUST_CHECK;

/* What this attempt computes with, said before anything that can fail: one that ends without a
 * result has nowhere else to say it. */
void events_environment(struct events *ev, const struct worker_environment *env);
/* Says so only when the section changes. */
void events_section(struct events *ev, enum event_section section);
/* At most two lines a second, except the first and the last (done == total). */
void events_progress(struct events *ev, int64_t done, int64_t total, const char *unit);
/* One value of a curve (a loss, say) at a step. Not finite: null. */
void events_point(struct events *ev, int64_t step, const char *name, double value);
/* seconds: from its beginning until it was on the disk; stall: of these, how long the work waited.
 */
void events_checkpoint(struct events *ev, int64_t step, const char *path, double seconds,
                       double stall);
void events_resumed(struct events *ev, int64_t step);
/* A sentence for the user, cut off at 1023 bytes. */
void events_note(struct events *ev, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
