/* ACT_LINK: cells/<cell>/<stage>/result.json -> attempt-NNNN-<uuid>/result.json. On the loop: what
 * depends on the task reads its input through the link, and its start is the next act. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/result.h"
#include "daemon/shell.h"

static int link_at(const char *folder, const char *target, struct err *err)
{
    char *path = path_join(folder, RESULT_FILE);
    char *temp = path_join(folder, ".result.json.new");
    int rc = 0;
    (void)unlink(temp);
    if (symlink(target, temp) != 0 || rename(temp, path) != 0) {
        rc = err_set_errno(err, errno, "link %s", path);
    } else {
        rc = dir_sync(folder, err);
    }
    free(path);
    free(temp);
    return rc;
}

static int keep_done(void *ctx, uint32_t task, const struct attempt_row *a, struct err *err)
{
    struct attempt_row *out = ctx;
    (void)task;
    (void)err;
    if (a->state == ATTEMPT_ENDED && a->cause == CAUSE_NONE) {
        *out = *a;
    }
    return 0;
}

void shell_link_result(struct shell *sh, const struct core_act *act)
{
    struct hosted *h = shell_program(sh, act->program);
    struct attempt_row row;
    struct err err;
    attempt_row_init(&row);
    /* The store knows which attempt it was, also after a restart. */
    int rc = store_attempts(sh->store, act->program, act->task, keep_done, &row, &err);
    if (rc == 0 && row.no == 0) {
        rc = err_set(&err, ERR_CORRUPT, "no attempt of task %u has a result", act->task);
    }
    if (rc == 0) {
        char *folder = hosted_task_folder(h, act->task);
        char *target = xasprintf("attempt-%04u-%s/%s", row.no, row.id, RESULT_FILE);
        rc = link_at(folder, target, &err);
        free(folder);
        free(target);
    }
    if (rc != 0) {
        log_error("%s: %s", h->id, err.msg);
        return; /* comes again after a restart; what depends on it fails to start until then */
    }
    struct core_event ev = {.kind = CORE_LINKED, .program = act->program, .task = act->task};
    pump_post(sh->pump, &ev);
}
