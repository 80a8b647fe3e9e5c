/*
 * The files that the Slurm executor writes for its jobs and reads of them, on a file system that
 * the nodes share. Blocking; runs off the loop. What another machine wrote is listed before it is
 * opened (base/files/shared_dir.h), and absent only means: not visible here now.
 *
 * Of an attempt: `spec` (what its shim runs), `job` (name and index: how it is found again after a
 * restart), `fenced`. Beside the attempts: `current-attempt`. Of a batch, in jobs/ beside cells/:
 * NAME.sh and NAME.list, which an array's script reads.
 */
#ifndef DAEMON_EXECUTOR_SLURM_FOLDER_H
#define DAEMON_EXECUTOR_SLURM_FOLDER_H

#include "base/strbuf.h"
#include "daemon/executor/slurm/event.h"
#include "daemon/shim/unfit.h"

struct slurm_member { /* one attempt of a batch */
    char *folder;     /* absolute, without links */
    char id[UUID_TEXT_SIZE];
    uint32_t no;
    uint32_t index;
    struct strbuf spec;
    bool spec_is_there; /* an earlier daemon wrote it: the file is what counts */
};

struct slurm_batch {
    char name[UUID_TEXT_SIZE];
    bool is_array;
    const char *jobs; /* the folder */
    const char *shim;
    const char *const *setup;
    size_t n_setup;
    struct slurm_member *members; /* by index */
    size_t n_members;
};

/* Writes all files of the batch, synced: afterwards it may be submitted. */
int slurm_batch_write(const struct slurm_batch *b, struct err *err) MUST_CHECK;
/* JOBS/NAME.sh. For free(). */
char *slurm_batch_script(const char *jobs, const char *name) __attribute__((returns_nonnull));
/* Removes its files, once all of its attempts have ended. */
void slurm_batch_remove(const char *jobs, const char *name);
/* Removes the files of batches whose attempts have all ended or been fenced off: a daemon that died
 * has left them. */
void slurm_batch_sweep(const char *jobs);

struct slurm_sight { /* of an attempt's folder, as slurm_event.files */
    bool listed;
    bool launched;
    bool refused;
    int64_t beat;
    bool is_unfit; /* its node did not begin it (shim/unfit.h) */
    struct unfit unfit;
    bool has_end;
    struct attempt_end end;
};
void slurm_folder_look(const char *folder, const char *id, struct slurm_sight *out);

struct slurm_job_hint {
    enum slurm_hint kind;
    char name[UUID_TEXT_SIZE];
    uint32_t index; /* SLURM_INDEX_NONE: a single job */
};
void slurm_folder_hint(const char *folder, struct slurm_job_hint *out);

/* What its shim, or else its job, has said last, on one line: why it has not begun. "" where
 * nothing is there. */
void slurm_folder_words(const char *folder, char *out, size_t size);

/* A shim that comes late gives up. */
int slurm_folder_fence(const char *folder, struct err *err) MUST_CHECK;

#endif
