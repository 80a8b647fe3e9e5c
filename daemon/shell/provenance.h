/*
 * provenance.json: what depends on time, attempts or machines, beside a verdict that does not.
 * Collected on the loop from the store (provenance_collect), finished and written off the loop
 * (start.json and result.json of the attempts say where they ran).
 */
#ifndef DAEMON_SHELL_PROVENANCE_H
#define DAEMON_SHELL_PROVENANCE_H

#include "daemon/shell/shell.h"

struct provenance_attempt {
    uint32_t task;
    struct attempt_row row;
};

struct provenance {
    const struct hosted *hosted;
    const struct bundle *bundle;
    struct provenance_attempt *attempts; /* by task, then number */
    size_t n_attempts;
    size_t cap_attempts;
    struct task_row *rows; /* of every task, those of apparatus checks last */
    size_t n_checks;       /* there may be more of them by the time that it is written */
    struct digest journal_head;
    int64_t journal_rows;
    bool unverified_history;
    cJSON *unblindings; /* texts */
    cJSON *takeovers;   /* likewise */
    cJSON *timing;      /* validity that rests on timings */
    cJSON *runs;        /* what [run] was (state/journal/run_record.h) */
};

/* On the loop. Release *out also after an error. */
int provenance_collect(struct shell *sh, const struct hosted *h, struct provenance *out,
                       struct err *err) MUST_CHECK;
/* Off the loop. The caller holds a reference to p->bundle. */
int provenance_write(const struct provenance *p, const char *path, struct err *err) MUST_CHECK;
void provenance_release(struct provenance *p);

#endif
