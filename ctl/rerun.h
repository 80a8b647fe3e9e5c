/*
 * Training and scoring one cell again, outside the counted data (docs/rerun.md): from the lock as
 * it was amended when each result was accepted, with the workers that STATE/objects holds, from the
 * beginning. Nothing of the program's own files is touched; the daemon is not asked.
 */
#ifndef CTL_RERUN_H
#define CTL_RERUN_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/files/digest.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"

/* ---- the source of a rerun (rerun_source.c) ---- */

struct rerun_accepted { /* a stage's accepted result */
    bool done;
    struct digest digest; /* of result.json */
    char *folder;         /* of its attempt */
    cJSON *result;
    char head[DIGEST_HEX_SIZE]; /* of the plan that its worker was given */
};

struct rerun_source {
    char *state;
    char *folder;                 /* STATE/programs/<id> */
    char *origin;                 /* where grid.toml was submitted from */
    struct plan_program *program; /* as amended by `head` */
    struct lock *lock;
    struct rerun_accepted *accepted; /* one for each stage */
    size_t n_stages;
    size_t cell;
};

/* What the user asked for. */
struct rerun_ask {
    const char *state;   /* NULL: as rpc_state_folder() */
    const char *program; /* NULL: the only one or the newest */
    const char *cell;
};

/* Opens a program of the state folder for one of its cells. ERR_REFUSED while scores are sealed, or
 * when nothing of the cell is done; ERR_CORRUPT: an accepted result is not what it was. Always
 * valid to release. */
int rerun_source_open(struct rerun_source *src, const struct rerun_ask *ask,
                      struct err *err) MUST_CHECK;
/* Switches program and lock to those of a head, and verifies plan, data and pinned files against
 * them; ERR_LOCK names what differs. */
int rerun_source_at(struct rerun_source *src, const char *head, struct err *err) MUST_CHECK;
void rerun_source_release(struct rerun_source *src);

/* ---- running it (rerun.c) ---- */

struct rerun_spec {
    const char *stage; /* up to this one alone, with what it comes after; NULL: all that is done */
    const char *out;   /* the folder that everything is put into; NULL: the program's reruns/ */
    bool keep;         /* the workers' folders as well */
    void (*begins)(const char *stage); /* told of each; or NULL */
};

struct rerun_made {
    cJSON *file; /* ctl/receipt/rerun_file.h */
    char *path;  /* where it was written */
    char *kept;  /* the workers' folder, or NULL */
};

/* Runs the chosen stages and writes the rerun file. ERR_REFUSED: stopped by a signal; ERR_LOCK:
 * something is not what was locked; ERR_PROTOCOL, ERR_OTHER: a worker gave no result. Nothing is
 * left behind then. *made is always valid to release. */
int rerun_run(struct rerun_source *src, const struct rerun_spec *spec, struct rerun_made *made,
              struct err *err) MUST_CHECK;
void rerun_made_release(struct rerun_made *made);

#endif
