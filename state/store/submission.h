/*
 * Program folders that the database does not know. Submitting is one step: it takes effect with
 * row 1 of the journal and the transaction that goes with it. A folder that a crash left before
 * that is not a program: opening the store removes it, `rebuild` skips it.
 */
#ifndef STATE_STORE_SUBMISSION_H
#define STATE_STORE_SUBMISSION_H

#include "state/store/store.h"

enum folder_standing {
    FOLDER_EMPTY,
    FOLDER_UNFINISHED, /* what a submission makes before its row, and nothing else; no attempt */
    FOLDER_ACCEPTED,   /* the same with row 1 of its journal, whole; no attempt */
    FOLDER_RAN,        /* its journal or its cells hold more than that */
    FOLDER_FOREIGN     /* neither journal nor cells, but files that no submission makes */
};

enum folder_standing submission_standing(const char *folder);

/* Removes unfinished submissions. ERR_CORRUPT when the database knows no program (`knows_any`) but
 * a folder holds one: the database was lost. */
int submission_clear(struct store *store, bool knows_any, struct err *err) MUST_CHECK;

#endif
