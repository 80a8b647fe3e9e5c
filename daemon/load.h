/* Loads at the start what the store holds: every program with its bundle, its rows, and the
 * attempts without a recorded end. */
#ifndef DAEMON_LOAD_H
#define DAEMON_LOAD_H

#include "daemon/shell.h"

struct live_list {
    struct core_live *items; /* attempts not ended */
    size_t n;
    size_t cap;
    struct core_end *ends; /* how the last attempts of blocked tasks ended */
    size_t n_ends;
    size_t cap_ends;
};

/* Fills the mirror of h from the store, and `live`. h->bundle is there. */
int load_mirror(struct store *store, struct hosted *h, const struct store_program *row,
                struct live_list *live, struct err *err) MUST_CHECK;

/* All programs. One whose folder cannot be read is logged and left out: it stays as it is in the
 * store, and is loaded when it is submitted again or the daemon starts the next time. */
int load_all(struct shell *sh, struct err *err) MUST_CHECK;
/* One entry for each id: the latest reason. */
void load_note_unloaded(struct shell *sh, const char *id, const char *name, const struct err *why);
/* Removes its entry, since it was loaded after all; no-op without one. */
void load_forget_unloaded(struct shell *sh, const char *id);

/* Starts a job that checks a journal too long for the store to have checked it whole. Verdict and
 * report wait for the job, also while the journal cannot be read. Call it before the program is
 * added, which may ask for either. */
int load_check_journal(struct shell *sh, struct hosted *h, struct err *err) MUST_CHECK;
/* Ends the waits for a journal that could not be read, some of which are minutes long. */
void load_close_checks(struct shell *sh);

/* Reads origin.json: where a program was submitted from. The caller frees it. */
int load_origin(const char *folder, char **origin, struct err *err) MUST_CHECK;
int load_save_origin(const char *folder, const char *origin, struct err *err) MUST_CHECK;

#endif
