/*
 * [run] keep: removes superseded checkpoints of tasks that are done (state/disk/checkpoints.h), off
 * the loop, a few tasks in a job and one job at a time. Nothing rests on these files, so it is no
 * row: what a killed daemon has left is found by the pass that follows every start and every new
 * [run].
 */
#include <stdlib.h>

#include "base/files/file.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/program/work.h"
#include "daemon/shell/shell.h"
#include "state/disk/checkpoints.h"

#define TASKS_AT_ONCE 16

struct prune_job {
    struct job job;
    struct shell *shell;
    struct hosted *hosted;
    bool keep_last;
    char *folders[TASKS_AT_ONCE]; /* of tasks */
    size_t n;
};

static void start_next(struct shell *sh);

static void prune_task(const char *folder, bool keep_last)
{
    struct name_list list = {0};
    struct err err;
    if (checkpoints_superseded(folder, keep_last, &list, &err) != 0) {
        log_warn("its checkpoints are kept: %s", err.msg);
    }
    for (size_t i = 0; i < list.n; i++) {
        if (dir_remove(list.names[i], &err) != 0) {
            log_warn("%s: a superseded checkpoint stays: %s", list.names[i], err.msg);
        }
    }
    name_list_release(&list);
}

/* Checkpoints that another state resumes from are not this one's to remove. */
static void on_work(struct job *job)
{
    const struct prune_job *j = (struct prune_job *)job;
    struct err err;
    const bool ours = work_check(j->hosted, &j->shell->owner, &err) == 0;
    if (!ours) {
        log_warn("%s: its checkpoints are kept: %s", j->hosted->id, err.msg);
    }
    for (size_t i = 0; ours && i < j->n; i++) {
        prune_task(j->folders[i], j->keep_last);
    }
}

static void on_done(struct job *job)
{
    struct prune_job *j = (struct prune_job *)job;
    struct shell *sh = j->shell;
    for (size_t i = 0; i < j->n; i++) {
        free(j->folders[i]);
    }
    free(j);
    sh->pruning = false;
    start_next(sh);
}

static bool is_prunable(const struct hosted *h, uint32_t task)
{
    return h->tasks[task].state == TASK_DONE && h->tasks[task].linked;
}

/* The next tasks of a program, first those that have just ended; none where everything is kept. */
static size_t take_tasks(struct hosted *h, char **folders)
{
    size_t n = 0;
    if (h->bundle->program->run.keep == RUN_KEEP_ALL || h->status.removed) {
        h->n_prune = 0;
        h->prune_next = (uint32_t)h->n_tasks;
    }
    while (n < TASKS_AT_ONCE && h->n_prune > 0) {
        const uint32_t task = h->prune[--h->n_prune];
        if (is_prunable(h, task)) {
            folders[n++] = hosted_task_folder(h, task);
        }
    }
    while (n < TASKS_AT_ONCE && h->prune_next < h->n_tasks) {
        const uint32_t task = h->prune_next++;
        if (is_prunable(h, task)) {
            folders[n++] = hosted_task_folder(h, task);
        }
    }
    return n;
}

static void start_next(struct shell *sh)
{
    if (sh->pruning || sh->stopping) {
        return;
    }
    struct prune_job *j = xcalloc(1, sizeof(*j));
    j->job = (struct job){.work = on_work, .done = on_done};
    j->shell = sh;
    for (size_t i = 0; j->n == 0 && i < sh->cap_programs; i++) {
        struct hosted *h = shell_served(sh, i);
        if (h != NULL) {
            j->n = take_tasks(h, j->folders);
            j->hosted = h;
            j->keep_last = h->bundle->program->run.keep == RUN_KEEP_LAST;
        }
    }
    if (j->n == 0) {
        free(j);
        return;
    }
    sh->pruning = true;
    job_start(&sh->loop, &j->job);
}

void shell_prune_task(struct shell *sh, struct hosted *h, uint32_t task)
{
    if (h->bundle->program->run.keep == RUN_KEEP_ALL || task >= h->n_tasks) {
        return;
    }
    ARRAY_GROW(h->prune, h->n_prune, h->cap_prune);
    h->prune[h->n_prune++] = task;
    start_next(sh);
}

void shell_prune_all(struct shell *sh, struct hosted *h)
{
    h->prune_next = 0;
    start_next(sh);
}
