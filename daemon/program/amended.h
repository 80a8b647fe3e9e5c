/*
 * The amendments of a hosted program: STATE/programs/<id>/amendments (docs/amendments.md).
 *
 * Order: 0000.toml (what was submitted), NNNN.toml, NNNN.json, each synced; then the journal's row
 * `amended`, which makes it take effect; then grid.toml. So a crash leaves the old program or the
 * new one; prereg/amend/amend_heal.h finds out which when the daemon starts. The pump retries a row
 * whose commit failed: until it is committed the program is the old one and h->amending waits.
 */
#ifndef DAEMON_PROGRAM_AMENDED_H
#define DAEMON_PROGRAM_AMENDED_H

#include "daemon/program/hosted.h"
#include "state/store/store.h"

struct amend_prepared {    /* waits for its signature; forgotten with the daemon */
    cJSON *amendment;      /* whole but for its signature */
    struct strbuf text;    /* of grid.toml */
    struct bundle *bundle; /* its program; the lock is the one before */
    struct core_amendment core;
    struct core_apparatus *checks; /* as they will be: apparatus_amended() */
    uint32_t n_checks;
    int n_results; /* how many results of checks existed */
};

void amend_prepared_free(struct amend_prepared *p); /* NULL is fine */

/* Writes the files of p, whose amendment is whole now. */
int amended_write(const char *folder, const struct amend_prepared *p, struct err *err) MUST_CHECK;
/* grid.toml of an amendment that took effect while it could not be written: tried every few
 * seconds, before a resume and before the next amendment. */
int amended_catch_up(struct hosted *h, struct err *err) MUST_CHECK;
/* Removes what amended_write wrote, because the row was refused. */
void amended_take_back(const char *folder, uint32_t number);
/* Within the transaction of its row: records the checks of h->amending in the store. */
int amended_commit(struct store *store, const struct hosted *h, struct err *err) MUST_CHECK;
/* The row is committed: h->amending is the program now, and grid.toml becomes its text. */
void amended_take_effect(struct hosted *h);

/* The head that the verdict was computed with: later amendments do not change it. */
int amended_verdict_head(struct store *store, const struct hosted *h, char head[DIGEST_HEX_SIZE],
                         struct err *err) MUST_CHECK;

#endif
