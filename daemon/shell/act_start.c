/*
 * ACT_START: the attempt's folder is prepared off the loop, in the program's lane (what is pinned
 * is hashed there), then the executor starts the shim.
 *
 * While the job runs the attempt is `preparing`: probes find it neither alive nor dead. An
 * amendment that takes effect meanwhile makes every failure here START_FAILED_OUTDATED, because it
 * was found by comparing with a program that no longer holds.
 */
#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/program/cells.h"
#include "daemon/program/prepare.h"
#include "daemon/shell/attempts.h"
#include "daemon/shell/gpu_watch.h"

struct start_job {
    struct job job;
    struct shell *shell;
    struct attempt_key key;
    struct prepare prepare;
    struct strbuf spec;    /* what the shim is to run */
    uint32_t amend_writes; /* when it began */
    char id[UUID_TEXT_SIZE];
    char *folder;
    int rc;
    enum core_start_failure why;
    struct err err;
};

static void start_failed(struct shell *sh, const struct attempt_key *key,
                         enum core_start_failure why, const struct err *err)
{
    struct core_event ev = {.kind = CORE_START_FAILED,
                            .program = key->program,
                            .task = key->task,
                            .attempt_no = key->no,
                            .text = err->msg};
    ev.start_failure = why;
    log_warn("program %u task %u attempt %u was not started: %s", key->program, key->task, key->no,
             err->msg);
    pump_post(sh->pump, &ev);
}

static void on_prepare_work(struct job *job)
{
    struct start_job *j = (struct start_job *)job;
    j->rc = j->rc == 0 ? prepare_attempt(&j->prepare, &j->spec, &j->why, &j->err) : j->rc;
}

/* An amendment is being written, was written since the job began, or took effect. */
static bool is_outdated(const struct start_job *j)
{
    const struct hosted *h = j->prepare.hosted;
    return h->amending != NULL || h->amend_writes != j->amend_writes ||
           strcmp(h->bundle->lock->head, j->prepare.bundle->lock->head) != 0;
}

/* On the loop, after the job: starts the shim or posts why there is none. The attempt may be gone
 * or its program damaged by now. */
static void hand_over(struct start_job *j)
{
    struct shell *sh = j->shell;
    struct shell_attempt *a = attempt_find(sh, &j->key);
    struct attempt_place place;
    if (a == NULL || a->ended) {
        return; /* it was ended meanwhile */
    }
    a->preparing = false;
    if (shell_served(sh, j->key.program) == NULL) {
        (void)err_set(&j->err, ERR_CORRUPT, "the rows of its program are damaged");
        start_failed(sh, &j->key, START_FAILED_HOST, &j->err);
        attempt_remove(a); /* its program gets no rows, so none will end it */
        return;
    }
    if (j->rc == 0) {
        struct executor *x = shell_executor_of(sh, a);
        attempt_locate(a, &place);
        place.spec = &j->spec;
        place.program = j->prepare.bundle->program;
        place.stage = j->prepare.stage;
        j->rc = x->ops->start(x, &place, &j->err);
        j->why = START_FAILED_HOST;
    }
    if (j->rc != 0 && is_outdated(j)) {
        j->why = START_FAILED_OUTDATED; /* the finding is about the program before */
    }
    if (j->rc != 0) {
        start_failed(sh, &j->key, j->why, &j->err);
    }
}

static void on_prepared(struct job *job)
{
    struct start_job *j = (struct start_job *)job;
    if (!j->shell->stopping) {
        hand_over(j);
    }
    bundle_unref(j->prepare.bundle);
    gpu_grant_release(&j->prepare.gpus);
    inputs_release(&j->prepare.inputs);
    strbuf_release(&j->spec);
    free(j->folder);
    free(j);
}

/* Everything the job needs is copied here, on the loop; it holds a reference to the bundle. */
void shell_start_attempt(struct shell *sh, const struct core_act *act)
{
    struct hosted *h = shell_program(sh, act->program);
    struct shell_attempt *a;
    struct start_job *j = xcalloc(1, sizeof(*j));
    j->spec = (struct strbuf)STRBUF_INIT;
    j->job.work = on_prepare_work;
    j->job.done = on_prepared;
    j->shell = sh;
    j->key =
        (struct attempt_key){.program = act->program, .task = act->task, .no = act->attempt_no};
    a = attempt_find(sh, &j->key);
    if (a != NULL) {
        a->preparing = true;
    }
    memcpy(j->id, act->attempt_id, sizeof(j->id));
    j->amend_writes = h->amend_writes;
    j->folder = hosted_attempt_folder(h, act->task, act->attempt_no, act->attempt_id);
    j->prepare = (struct prepare){.state = sh->state,
                                  .hosted = h,
                                  .job = &j->job,
                                  .bundle = bundle_ref(h->bundle),
                                  .task = act->task,
                                  .stage = hosted_stage(h, act->task),
                                  .no = act->attempt_no,
                                  .id = j->id,
                                  .folder = j->folder,
                                  .cells_used = cells_are_used(h),
                                  .grace_ms = sh->config.grace_ms,
                                  .owner = &sh->owner,
                                  .shared = sh->tenure != NULL,
                                  .shim = sh->shim};
    if (a != NULL) {
        j->prepare.executor = a->row.placement.executor;
        gpu_grant_fill(&j->prepare.gpus, &a->row.placement, gpu_watch_list(sh));
    }
    j->why = START_FAILED_LOCK;
    j->rc = inputs_collect(sh->store, h, act->task, &j->prepare.inputs, &j->err);
    if (j->rc != 0 && j->rc != ERR_CORRUPT) {
        j->why = START_FAILED_HOST; /* the store could not be read: tried again */
    }
    job_start_hashing(&sh->loop, &j->job, &h->hash_lane);
}
