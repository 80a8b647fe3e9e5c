/*
 * ACT_VERIFY: result.json is checked off the loop and put on the disk; a valid one is kept with its
 * attempt until its row is committed.
 *
 * The order is what invariant 1 needs: verified, then durable, then journalled. A result that was
 * judged by a program that has been amended since is judged again by the program as it is now; one
 * that could not be read is not bad, and the core asks again (S4).
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/program/apparatus.h"
#include "daemon/program/durable.h"
#include "daemon/program/inputs.h"
#include "daemon/program/result.h"
#include "daemon/shell/attempts.h"
#include "state/store/apparatus.h"

struct verify_job {
    struct job job;
    struct shell *shell;
    struct attempt_key key;
    struct bundle *bundle;
    size_t cell; /* of a task of the grid */
    size_t stage;
    const struct plan_apparatus *check; /* of the bundle; NULL: a task of the grid */
    char *first_folder;                 /* of a second run: the first run's; else NULL */
    struct digest first;                /* its accepted result */
    char *folder;
    char id[UUID_TEXT_SIZE];
    struct accepted_list inputs;
    bool collect_failed; /* the inputs are not known: the result cannot be judged yet */
    struct sync_group *syncs;
    char *top; /* the program's folder */
    struct result_check found;
};

/* On the disk before its row is in the journal: a loss of power loses both or neither.
 *
 * A failed sync ends the attempt. The kernel reports a lost write once: a second sync of the same
 * file succeeds although its bytes never reached the disk. */
static void make_durable(struct verify_job *j)
{
    struct err err;
    if (durable_result(j->syncs, j->folder, j->top, j->found.json, &err) != 0) {
        j->found.verdict = RESULT_NO_SPACE;
        (void)snprintf(j->found.why, sizeof(j->found.why), "%s", err.msg);
        cJSON_Delete(j->found.json);
        j->found.json = NULL;
    }
}

/* A first result that cannot be read says nothing about the second one: the core asks again. */
static void judge_check(struct verify_job *j)
{
    struct err err;
    char text[APPARATUS_TEXT_SIZE];
    double first = (double)NAN;
    double value = 0;
    if (j->first_folder != NULL &&
        apparatus_first_value(j->check, j->first_folder, &j->first, &first, &err) != 0) {
        j->found.unread = true;
        (void)snprintf(j->found.why, sizeof(j->found.why), "%s", err.msg);
        return;
    }
    j->found.verdict = apparatus_judge(j->check, first, j->found.json, &value, text);
    (void)snprintf(j->found.why, sizeof(j->found.why), "%s", text);
}

/* The result's form first; then, for an apparatus check, whether it answers the present question
 * and holds. */
static void on_verify_work(struct job *job)
{
    struct verify_job *j = (struct verify_job *)job;
    if (j->collect_failed) {
        j->found.unread = true;
        return;
    }
    struct result_source source = {.program = j->bundle->program,
                                   .lock = j->bundle->lock,
                                   .cell = j->cell,
                                   .stage = j->stage,
                                   .check = j->check,
                                   .inputs = j->check == NULL ? &j->inputs : NULL,
                                   .folder = j->folder,
                                   .attempt = j->id};
    result_verify(&source, &j->found);
    if (!j->found.unread && j->found.verdict == RESULT_VALID) {
        make_durable(j);
    }
    if (j->check == NULL || j->found.unread || j->found.verdict != RESULT_VALID) {
        return;
    }
    if (apparatus_is_current(j->check, j->bundle, j->folder)) {
        judge_check(j);
    } else {
        j->found.verdict = RESULT_STALE;
        (void)snprintf(j->found.why, sizeof(j->found.why), "what is checked was amended meanwhile");
    }
}

/* An amendment took effect since the job began: the result is judged again, by the program as it is
 * now. */
static bool is_outdated(const struct verify_job *j)
{
    const struct hosted *h = shell_program(j->shell, j->key.program);
    return strcmp(h->bundle->lock->head, j->bundle->lock->head) != 0;
}

/* Decides what the finding is still worth, then tells the core. */
static void on_verified(struct job *job)
{
    struct verify_job *j = (struct verify_job *)job;
    struct shell_attempt *a = j->shell->stopping ? NULL : attempt_find(j->shell, &j->key);
    if (a != NULL && shell_program(j->shell, j->key.program)->amending != NULL) {
        a->verifying = false; /* the core has the amendment already */
        a->judge_again = true;
    } else if (a != NULL && is_outdated(j)) {
        struct core_act again = {.kind = ACT_VERIFY,
                                 .program = j->key.program,
                                 .task = j->key.task,
                                 .attempt_no = j->key.no};
        a->verifying = false;
        shell_verify_attempt(j->shell, &again);
    } else if (a != NULL && j->found.unread) {
        a->verifying = false; /* unknown is not bad: the core asks again (S4) */
        if (!a->unread) {
            log_warn("%s: %s", j->folder, j->found.why);
        }
        a->unread = true;
    } else if (a != NULL) {
        struct core_event ev = {.kind = CORE_RESULT_CHECKED,
                                .program = j->key.program,
                                .task = j->key.task,
                                .attempt_no = j->key.no,
                                .text = j->found.why[0] == '\0' ? NULL : j->found.why};
        ev.check.result = j->found.verdict;
        ev.check.digest = j->found.digest;
        a->verifying = false;
        pump_post(j->shell->pump, &ev);
    }
    cJSON_Delete(j->found.json);
    bundle_unref(j->bundle);
    inputs_release(&j->inputs);
    free(j->first_folder);
    free(j->folder);
    free(j->top);
    free(j);
}

void shell_verify_again(struct shell *sh, uint32_t program)
{
    for (struct shell_attempt *a = sh->attempts; a != NULL; a = a->next) {
        struct core_act act = {.kind = ACT_VERIFY,
                               .program = a->key.program,
                               .task = a->key.task,
                               .attempt_no = a->key.no};
        if (a->key.program == program && a->judge_again) {
            a->judge_again = false;
            shell_verify_attempt(sh, &act);
        }
    }
}

/* Of a second run: where the first result is, and its digest. */
static int find_first(struct shell *sh, const struct hosted *h, uint32_t task, struct verify_job *j,
                      struct err *err)
{
    const uint32_t first = hosted_first_run(h, task);
    bool found = false;
    if (first == UINT32_MAX) {
        return 0;
    }
    int rc = store_result_digest(sh->store, h->no, first, &j->first, &found, err);
    if (rc == 0 && !found) {
        rc = err_set(err, ERR_NOT_FOUND, "the first run of the check has no accepted result");
    }
    j->first_folder = hosted_task_folder(h, first);
    return rc;
}

/* Does nothing while a job for the attempt is running: the core repeats the act now and then. */
void shell_verify_attempt(struct shell *sh, const struct core_act *act)
{
    struct attempt_key key = {.program = act->program, .task = act->task, .no = act->attempt_no};
    struct shell_attempt *a = attempt_find(sh, &key);
    struct hosted *h = shell_program(sh, act->program);
    struct err err;
    if (a == NULL || a->verifying) {
        return;
    }
    a->verifying = true;
    struct verify_job *j = xcalloc(1, sizeof(*j));
    j->job.work = on_verify_work;
    j->job.done = on_verified;
    j->shell = sh;
    j->key = key;
    j->bundle = bundle_ref(h->bundle);
    j->cell = act->task / h->plan->program->n_stages;
    j->stage = hosted_stage(h, act->task);
    j->check = hosted_is_check(h, act->task) ? apparatus_of(h, j->bundle, act->task) : NULL;
    j->folder = xstrdup(a->folder);
    j->top = xstrdup(h->folder);
    j->syncs = h->syncs;
    memcpy(j->id, a->row.id, sizeof(j->id));
    j->collect_failed = inputs_collect(sh->store, h, act->task, &j->inputs, &err) != 0 ||
                        find_first(sh, h, act->task, j, &err) != 0;
    if (j->collect_failed) {
        (void)snprintf(j->found.why, sizeof(j->found.why), "%s", err.msg);
    }
    job_start_hashing(&sh->loop, &j->job, NULL);
}
