/*
 * An amended program that is submitted again: with its present text, or with the text that was
 * locked. Both are the same program, which its plan identifies; the amended one holds, with the
 * [run] of what was submitted.
 */
#ifndef DAEMON_ANSWERS_RESUBMIT_H
#define DAEMON_ANSWERS_RESUBMIT_H

#include "daemon/program/hosted.h"

struct again {
    const char *path;      /* of the submitted grid.toml */
    const char *folder;    /* STATE/programs/<id> */
    const char *head;      /* of the program as the loop has it */
    struct strbuf text;    /* of grid.toml from now on */
    struct bundle *bundle; /* of that text, with the amended lock */
    bool as_locked;        /* it was submitted as it was locked */
};

/* Off the loop. `submitted` was read from path, `lock` from beside it. ERR_LOCK: it is neither;
 * ERR_REFUSED: amended meanwhile. again_release() in any case. */
int again_read(struct again *a, const struct plan_program *submitted, const struct lock *lock,
               struct err *err) MUST_CHECK;
void again_release(struct again *a);

#endif
