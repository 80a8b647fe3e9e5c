/*
 * The amendments of a hosted program: STATE/programs/<id>/amendments (docs/amendments.md).
 *
 * Order: 0000.toml (what was submitted), NNNN.toml, NNNN.json, each synced; then the journal's row
 * `amended`, which makes it take effect; then grid.toml. So a crash leaves the old program or the
 * new one: files without a row are put aside when the daemon starts, a grid.toml that is still the
 * one before is replaced then.
 */
#ifndef DAEMON_AMENDED_H
#define DAEMON_AMENDED_H

#include "daemon/shell.h"

struct amend_prepared {    /* waits for its signature; forgotten with the daemon */
    cJSON *amendment;      /* whole but for its signature */
    struct strbuf text;    /* of grid.toml */
    struct bundle *bundle; /* its program; the lock is the one before */
    struct core_amendment core;
};

void amend_prepared_free(struct amend_prepared *p); /* NULL is fine */

/* Before the bundle is loaded: `head` is what the store has. ERR_LOCK: amendments that took effect
 * are missing or do not follow. */
int amended_heal(const char *folder, const char *head, struct err *err) MUST_CHECK;

/* Writes the files of p, whose amendment is whole now. */
int amended_write(const char *folder, const struct amend_prepared *p, struct err *err) MUST_CHECK;
/* Takes back what amended_write wrote, as the row was refused. */
void amended_take_back(const char *folder, uint32_t number);
/* The row is committed: grid.toml becomes the amended one. */
int amended_put_in_place(const char *folder, uint32_t number, struct err *err) MUST_CHECK;

/* The head that the verdict was computed with: later amendments do not change it. */
int amended_verdict_head(struct store *store, const struct hosted *h, char head[DIGEST_HEX_SIZE],
                         struct err *err) MUST_CHECK;

#endif
