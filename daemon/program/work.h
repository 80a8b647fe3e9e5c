/*
 * That this state folder alone has a program's cells under [run] work (state/ownership/). Cells in
 * the state folder itself need no such proof. Blocking.
 */
#ifndef DAEMON_PROGRAM_WORK_H
#define DAEMON_PROGRAM_WORK_H

#include "daemon/program/hosted.h"
#include "state/ownership/work_owner.h"

/* Before anything of a new program is written: ERR_BUSY when its cells would be where another state
 * has them. folder: STATE/programs/ID, which need not exist; work: [run] work or NULL. */
struct work_wish {
    const struct work_owner *own;
    bool adopt; /* as work_owner_check() */
};
int work_check_new(const char *folder, const char *work, const struct work_wish *wish,
                   struct err *err) MUST_CHECK;
/* Claims the cells of the program in `folder`. */
int work_claim(const char *folder, const struct work_wish *wish, struct err *err) MUST_CHECK;
/* When a daemon starts: claims them, or for a program that has ended only checks them. ERR_BUSY and
 * ERR_CORRUPT: the program must not be served. A disk that is not there is not an error. */
int work_load(struct hosted *h, const struct work_owner *own, bool ended,
              struct err *err) MUST_CHECK;
/* Before each start; and before files there are removed, which claims nothing. Both set work_lost.
 */
int work_keep(struct hosted *h, const struct work_owner *own, struct err *err) MUST_CHECK;
int work_check(struct hosted *h, const struct work_owner *own, struct err *err) MUST_CHECK;

#endif
