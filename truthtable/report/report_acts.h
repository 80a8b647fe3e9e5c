/* What was done to a program while it ran: pauses, resumptions, cancellations and retries, from
 * journal.jsonl. One act on many tasks (`preregctl cancel --all`) is one entry with its number. */
#ifndef TRUTHTABLE_REPORT_REPORT_ACTS_H
#define TRUTHTABLE_REPORT_REPORT_ACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

struct report_act {
    const char *time;
    const char *what;   /* "paused", "resumed", "cancelled", "stopped", "retried", "cancel of all
                           begun", "cancel of all ended" */
    const char *first;  /* the first of its tasks; NULL: the program */
    const char *reason; /* NULL: none was given */
    size_t n_tasks;
};

struct report_acts {
    struct report_act *items; /* in order of the journal */
    size_t n;
    size_t cap;
    size_t n_left_out; /* beyond the first ACTS_MAX */
    bool is_stopping;  /* while it is read: `cancel --all` is under way */
};

#define ACTS_MAX ((size_t)200)

/* A journal that is missing has no acts. Texts live in the arena. */
void report_acts_read(struct report_acts *acts, struct arena *a, const char *folder);
void report_acts_release(struct report_acts *acts);

#endif
