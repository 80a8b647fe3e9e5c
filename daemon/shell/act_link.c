/*
 * ACT_LINK: makes cells/<cell>/<stage>/result.json a link to attempt-NN-<uuid>/result.json, for
 * people, the report and rebuild. Tasks that depend on this one find their input by the journal
 * (inputs.h).
 *
 * The link is made on the loop and synced off it; not where the cells are another state's by now.
 * LINKED is posted after the sync, because nothing makes the link again afterwards. Its row is not
 * journalled: no later sync of the journal would cover the link.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/program/result.h"
#include "daemon/program/work.h"
#include "daemon/shell/shell.h"

#define AGAIN_MS 2000

/* In one step: a reader sees the old link or the new one. */
static int replace_link(const char *folder, const char *target, const char *path)
{
    char *temp = path_join(folder, "." LAYOUT_RESULT ".new");
    (void)unlink(temp);
    int why = symlink(target, temp) != 0 || rename(temp, path) != 0 ? errno : 0;
    free(temp);
    return why;
}

static int link_at(const char *folder, const char *target, struct err *err)
{
    char *path = path_join(folder, LAYOUT_RESULT);
    int why = symlink(target, path) == 0 ? 0 : errno;
    if (why == EEXIST) {
        why = replace_link(folder, target, path);
    }
    int rc = why == 0 ? 0 : err_set_errno(err, why, "link %s", path);
    free(path);
    return rc;
}

struct late_link {
    struct shell *shell;
    struct core_act act;
    uv_timer_t timer;
};

static void on_later_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_later(uv_timer_t *timer)
{
    struct late_link *l = timer->data;
    if (!l->shell->stopping && shell_served(l->shell, l->act.program) != NULL) {
        shell_link_result(l->shell, &l->act);
    }
    uv_close((uv_handle_t *)timer, on_later_closed);
}

/* Retries after a failure, such as a full disk. The result is accepted all the same, but the
 * verdict waits for its link. */
static void link_later(struct shell *sh, const struct core_act *act)
{
    struct late_link *l = xcalloc(1, sizeof(*l));
    l->shell = sh;
    l->act = *act;
    (void)uv_timer_init(&sh->loop, &l->timer);
    l->timer.data = l;
    (void)uv_timer_start(&l->timer, on_later, AGAIN_MS, 0);
}

struct sync_job {
    struct job job;
    struct shell *shell;
    struct core_act act;
    char *folder;
    int rc;
    struct err err;
};

static void on_sync_work(struct job *job)
{
    struct sync_job *j = (struct sync_job *)job;
    j->rc = dir_sync(j->folder, &j->err);
}

static void on_synced(struct job *job)
{
    struct sync_job *j = (struct sync_job *)job;
    if (j->shell->stopping) {
        /* the next daemon links it again */
    } else if (j->rc != 0) {
        log_error("program %u: %s", j->act.program, j->err.msg);
        link_later(j->shell, &j->act);
    } else {
        struct core_event ev = {.kind = CORE_LINKED,
                                .program = j->act.program,
                                .task = j->act.task,
                                .attempt_no = j->act.attempt_no};
        pump_post(j->shell->pump, &ev);
    }
    free(j->folder);
    free(j);
}

/* Owns folder from here on. */
static void sync_start(struct shell *sh, const struct core_act *act, char *folder)
{
    struct sync_job *j = xcalloc(1, sizeof(*j));
    j->job.work = on_sync_work;
    j->job.done = on_synced;
    j->shell = sh;
    j->act = *act;
    j->folder = folder;
    job_start(&sh->loop, &j->job);
}

struct owner_job {
    struct job job;
    struct shell *shell;
    struct hosted *hosted;
    struct core_act act;
    int rc;
};

static void on_owner_work(struct job *job)
{
    struct owner_job *j = (struct owner_job *)job;
    struct err ignored; /* it is the reason why the program is paused */
    j->rc = work_check(j->hosted, &j->shell->owner, &ignored);
}

static void on_owner_checked(struct job *job)
{
    struct owner_job *j = (struct owner_job *)job;
    if (!j->shell->stopping && j->rc == 0) {
        shell_link_result(j->shell, &j->act);
    } else if (!j->shell->stopping) {
        link_later(j->shell, &j->act);
    }
    free(j);
}

/* Another state has the cells, and links its own results there. Checks off the loop whether it
 * still has them. */
static void owner_check_start(struct shell *sh, struct hosted *h, const struct core_act *act)
{
    struct owner_job *j = xcalloc(1, sizeof(*j));
    j->job.work = on_owner_work;
    j->job.done = on_owner_checked;
    j->shell = sh;
    j->hosted = h;
    j->act = *act;
    job_start(&sh->loop, &j->job);
}

void shell_link_result(struct shell *sh, const struct core_act *act)
{
    struct hosted *h = shell_program(sh, act->program);
    struct store_accepted a;
    struct err err;
    bool found = false;
    if (atomic_load(&h->work_lost)) {
        owner_check_start(sh, h, act);
        return;
    }
    /* The store knows which attempt it was, also after a restart. */
    int rc = store_accepted(sh->store, act->program, act->task, &a, &found, &err);
    if (rc == 0 && !found) {
        rc = err_set(&err, ERR_CORRUPT, "no attempt of task %u has a result", act->task);
    }
    char *folder = hosted_task_folder(h, act->task);
    if (rc == 0) {
        char *attempt = hosted_attempt_folder(h, act->task, a.attempt_no, a.attempt_id);
        char *target = path_join(path_name(attempt), LAYOUT_RESULT);
        rc = link_at(folder, target, &err);
        free(target);
        free(attempt);
    }
    if (rc != 0) {
        log_error("%s: %s", h->id, err.msg);
        free(folder);
        link_later(sh, act);
        return;
    }
    sync_start(sh, act, folder);
}
