/* lost: a user gives up a task whose accepted result is gone or differs from what was accepted.
 *
 * The result is verified here, off the loop: one that is still as accepted cannot be given up, so
 * that no cell can be dropped for its score. Where only the link to it is wrong, the link is
 * repaired. */
#include "daemon/answers/answer.h"
#include "daemon/program/inputs.h"

#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"

struct lost_job {
    struct job job;
    struct shell *shell;
    uint64_t connection;
    struct hosted *hosted;
    uint32_t task;
    struct accepted_list one;
    char *reason; /* or NULL */
    int rc;       /* 0: the result is as it was accepted */
    struct err err;
};

static void on_look_work(struct job *job)
{
    struct lost_job *j = (struct lost_job *)job;
    j->rc = inputs_verify(&j->one, NULL, &j->err);
}

/* 0: intact, so refused. ERR_LOCK: gone or changed, so the core is asked. Any other error: unknown,
 * so refused. */
static int give_up(struct lost_job *j, cJSON **result)
{
    struct core_event ev = {
        .kind = CORE_LOST, .program = j->hosted->no, .task = j->task, .text = j->reason};
    if (j->rc == 0) {
        struct core_act link = {.kind = ACT_LINK, .program = j->hosted->no, .task = j->task};
        shell_link_result(j->shell, &link);
        return err_set(
            &j->err, ERR_REFUSED,
            "the result of %.100s is what was accepted, and is linked again: it cannot be given up "
            "(`preregctl resume` if the program waits)",
            j->one.items[0].task);
    }
    if (j->rc != ERR_LOCK) { /* it cannot be read now, which proves nothing */
        struct err why = j->err;
        return err_set(
            &j->err, ERR_REFUSED,
            "%.80s is not given up: whether its result is gone cannot be determined now. %.150s",
            j->one.items[0].task, why.msg);
    }
    int rc = pump_request(j->shell->pump, &ev, &j->err);
    if (rc == 0) {
        *result = json_object();
        json_put_string(*result, "program", j->hosted->id);
        json_put_string(*result, "task", j->one.items[0].task);
    }
    return rc;
}

static void on_looked(struct job *job)
{
    struct lost_job *j = (struct lost_job *)job;
    cJSON *result = NULL;
    if (!j->shell->stopping) {
        int rc = give_up(j, &result);
        answer_later(j->shell, j->connection, result, rc == 0 ? NULL : &j->err);
    }
    cJSON_Delete(result);
    inputs_release(&j->one);
    free(j->reason);
    free(j);
}

/* Checks the request on the loop and then verifies the one result in a job. */
int answer_lost(struct answer_context *ctx, const cJSON *params, cJSON **result, struct err *err)
{
    struct hosted *h = NULL;
    const char *name = NULL;
    const char *reason = NULL;
    struct accepted_list one = {0};
    (void)result;
    int rc = answer_find_named(ctx->shell, params, &h, err);
    if (rc != 0 || (rc = json_get_string(params, "task", &name, err)) != 0 ||
        (rc = json_opt_string(params, "reason", &reason, err)) != 0) {
        return rc;
    }
    uint32_t task = hosted_find_task(h, name);
    if (task == UINT32_MAX) {
        return answer_no_task(h, name, err);
    }
    if (hosted_is_check(h, task) || h->tasks[task].state != TASK_DONE) {
        return err_set(
            err, ERR_REFUSED,
            "%.120s is not done: only an accepted result can be lost (`preregctl cancel` gives up "
            "what has none)",
            name);
    }
    rc = inputs_of_one(ctx->shell->store, h, task, &one, err);
    if (rc != 0) {
        inputs_release(&one);
        return rc;
    }
    struct lost_job *j = xcalloc(1, sizeof(*j));
    *j = (struct lost_job){.job = {.work = on_look_work, .done = on_looked},
                           .shell = ctx->shell,
                           .connection = ctx->call->connection,
                           .hosted = h,
                           .task = task,
                           .one = one,
                           .reason = reason == NULL ? NULL : xstrdup(reason)};
    ctx->call->later = true;
    job_start_hashing(&ctx->shell->loop, &j->job, NULL);
    return 0;
}
