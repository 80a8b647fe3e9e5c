/* Finds the folder that is claimed (shared_work.h), and claims, checks or keeps it. */
#include "daemon/program/work.h"

#include <string.h>

#include "base/files/file.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/executor/shared_work.h"

int work_check_new(const char *folder, const char *work, const struct work_wish *wish,
                   struct err *err)
{
    char *owned = shared_work_owned(folder);
    if (owned == NULL && work != NULL) {
        owned = path_join(work, path_name(folder));
    }
    int rc = owned == NULL ? 0 : work_owner_check(owned, wish->own, wish->adopt, err);
    free(owned);
    return rc;
}

int work_claim(const char *folder, const struct work_wish *wish, struct err *err)
{
    char *owned = shared_work_owned(folder);
    int rc = owned == NULL ? 0 : work_owner_claim(owned, wish->own, wish->adopt, err);
    free(owned);
    return rc;
}

int work_load(struct hosted *h, const struct work_owner *own, bool ended, struct err *err)
{
    char *owned = shared_work_owned(h->folder);
    int rc = owned == NULL ? 0
             : ended       ? work_owner_check(owned, own, false, err)
                           : work_owner_claim(owned, own, false, err);
    free(owned);
    atomic_store(&h->work_claimed, rc == 0 && !ended);
    if (rc != 0 && rc != ERR_BUSY && rc != ERR_CORRUPT) {
        log_warn("%s: whether its cells in [run] work are its own is not known yet: %s", h->id,
                 err->msg);
        rc = 0;
    }
    return rc;
}

/* Once claimed, the file must stay as this daemon wrote it: a copy of the state folder on another
 * host has the same id. */
static int check(struct hosted *h, const struct work_owner *own, bool claims, struct err *err)
{
    char *owned = shared_work_owned(h->folder);
    int rc = 0;
    if (owned != NULL && atomic_load(&h->work_claimed)) {
        rc = work_owner_keep(owned, own, err);
    } else if (owned != NULL && !claims) {
        rc = work_owner_check(owned, own, false, err);
    } else if (owned != NULL) {
        rc = work_owner_claim(owned, own, false, err);
        atomic_store(&h->work_claimed, rc == 0);
    }
    if (rc == 0 || rc == ERR_BUSY) {
        atomic_store(&h->work_lost, rc == ERR_BUSY);
    }
    free(owned);
    return rc;
}

int work_keep(struct hosted *h, const struct work_owner *own, struct err *err)
{
    return check(h, own, true, err);
}

int work_check(struct hosted *h, const struct work_owner *own, struct err *err)
{
    return check(h, own, false, err);
}
