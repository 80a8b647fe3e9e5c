/*
 * Getting an attempt's folder ready: the lock is checked (invariant 3), the worker's object and the
 * accepted results that it reads too, the disk has room; then task.json, an empty events.jsonl and
 * the shim's spec. Blocking; runs off the loop.
 */
#ifndef DAEMON_PROGRAM_PREPARE_H
#define DAEMON_PROGRAM_PREPARE_H

#include "daemon/program/gpu_grant.h"
#include "daemon/program/hosted.h"
#include "daemon/program/inputs.h"
#include "prereg/task/task.h"
#include "state/ownership/work_owner.h"

struct prepare {
    const char *state;     /* STATE */
    struct hosted *hosted; /* its folder, id and pins are used */
    struct job *job;       /* that this runs in; leaves its lane once the lock is checked */
    struct bundle *bundle; /* a reference of the job's own */
    uint32_t task;
    size_t stage;    /* the task's when this began: an amendment may give a check another */
    bool cells_used; /* cells.h, when this began */
    struct accepted_list inputs; /* accepted results of the stages it needs, as journalled */
    uint32_t no;
    const char *id;
    const char *folder; /* of the attempt */
    int64_t grace_ms;
    enum executor_kind executor;    /* where it will run */
    const struct work_owner *owner; /* of the daemon; NULL: not checked */
    bool shared;                    /* hosts share the state folder */
    const char *shim;               /* prereg-shim, which accepts the result of another name */
    struct gpu_grant gpus;          /* what its placement names, as of when this began */
};

/* Prepares the folder and appends the shim's spec (shim/files.h) to `spec`. On failure *why has its
 * kind. */
int prepare_attempt(const struct prepare *p, struct strbuf *spec, enum core_start_failure *why,
                    struct err *err) MUST_CHECK;

/* "the disk of the state folder STATE", or of [run] work where cells/ is there and `of_cells`: what
 * a user knows of a program's folder STATE/programs/ID. For free(). */
char *prepare_disk_name(const char *folder, bool of_cells) __attribute__((returns_nonnull));

/* ERR_NO_SPACE unless the program's folder and its cells/ have so many tenths of their reserve
 * (base/files/file.h) free, in bytes and in inodes; says which has not. */
int prepare_check_room(const char *folder, int tenths, struct err *err) MUST_CHECK;

/* Whether STATE's copies, data and [pin] files are what was locked: before every spawn and before
 * the verdict. In the program's lane. *why: LOCK when the plan itself differs, DRIFT when
 * data or a pinned file do, MISSING when such a file is not there, HOST when it cannot be
 * determined. */
int prepare_check_lock(struct hosted *h, const struct bundle *b, enum core_start_failure *why,
                       struct err *err) MUST_CHECK;

/* Whether the copies that its commands are run from are what was locked, all of them; one that is
 * not is copied again from its source if that is as locked, which is logged. *why: LOCK when it is
 * not. */
int prepare_check_objects(struct hosted *h, const struct bundle *b, const char *state,
                          enum core_start_failure *why, struct err *err) MUST_CHECK;

/* Both before the verdict, with every pinned byte hashed again, whatever stat(2) says: a change
 * through a live mapping does not show there. Counts into h->hashing. */
int prepare_check_bytes(struct hosted *h, const struct bundle *b, const char *state,
                        enum core_start_failure *why, struct err *err) MUST_CHECK;

#endif
