/* Checks what [[same_work]] comes to. verify_same_work() compares the result of a task that is
 * another name of a work with the result of the task that did the work; it is called for each
 * result in the order of the tasks, in which a work comes before its other names, and results of
 * works are kept until their last name. verify_works() holds the plan's declaration against the
 * parameters of the tasks. */
#include "base/diag.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "prereg/program/same_work.h"
#include "prereg/task/task_result.h"
#include "truthtable/prove/check.h"

#include <stdlib.h>
#include <string.h>

/* Names of works times conditions: an answer is searched for each name. */
#define SEARCHES_MAX ((size_t)1 << 28)

void verify_same_work_release(struct verifying *v)
{
    for (size_t t = 0; v->works.of != NULL && t < program_n_tasks(v->program); t++) {
        cJSON_Delete(v->works.of[t]);
    }
    free(v->works.of);
    free(v->works.last_name);
    v->works = (struct kept_works){0};
}

/* Finds the last name of every work in one pass. */
static void begin(struct verifying *v)
{
    const struct plan_program *p = v->program;
    const size_t n = program_n_tasks(p);
    if (v->works.of != NULL || p->workers == NULL) {
        return;
    }
    v->works.of = xcalloc(n, sizeof(*v->works.of));
    v->works.last_name = xcalloc(n, sizeof(*v->works.last_name));
    for (size_t t = 0; t < n; t++) {
        v->works.last_name[program_worker_of(p, t)] = t;
    }
}

/* The result of a work that was lost since, as its first name states it: all of it but the id of
 * the attempt, which is beside its digest. The digest must be that which the journal accepted of
 * the work, and the attempt one of the work's. */
static int rebuild_lost(struct verifying *v, size_t worker, const cJSON *result, cJSON **out)
{
    const cJSON *of = NULL;
    const char *id = NULL;
    const char *hex = NULL;
    char accepted[DIGEST_HEX_SIZE];
    size_t n = 0;
    if (json_get_object(result, "same_work", &of, v->err) != 0 ||
        json_get_string(of, "attempt", &id, v->err) != 0 ||
        json_get_string(of, "sha256", &hex, v->err) != 0) {
        return err_wrap(v->err, "it is another name of a work, and does not say so");
    }
    digest_hex(&v->history.tasks[worker].result, accepted);
    if (digest_is_zero(&v->history.tasks[worker].result) || strcmp(hex, accepted) != 0) {
        return err_differs(v->err, "the result of its work is not one that the journal accepted",
                           digest_is_zero(&v->history.tasks[worker].result) ? NULL : accepted, hex);
    }
    const struct history_attempt *a = history_attempts_of(&v->history, worker, &n);
    while (n > 0 && strcmp(a[n - 1].row.id, id) != 0) {
        n--;
    }
    if (n == 0) {
        return err_set(v->err, ERR_LOCK, "the task of its work has no attempt %.40s", id);
    }
    *out = json_copy(result);
    cJSON_DeleteItemFromObjectCaseSensitive(*out, "attempt");
    cJSON_DeleteItemFromObjectCaseSensitive(*out, "same_work");
    json_put_string(*out, "attempt", id);
    return 0;
}

/* The result of a task that does its own work, or that accepts one from an earlier receipt. */
static int check_worker(struct verifying *v, size_t task, const cJSON *result)
{
    cJSON *reused = NULL;
    int rc = verify_reused_result(v, task, &reused);
    if (rc == 0) {
        rc = reused == NULL
                 ? task_result_check_own(result, v->err)
                 : task_result_check_same(result, reused, &v->reused.pins[task].accepts, v->err);
    }
    if (rc != 0 && reused != NULL) {
        (void)err_wrap(v->err, "it is reused from an earlier receipt");
    }
    cJSON_Delete(reused);
    return rc;
}

int verify_same_work(struct verifying *v, size_t task, const cJSON *result)
{
    const struct plan_program *p = v->program;
    const size_t worker = program_worker_of(p, task);
    struct kept_works *w = &v->works;
    int rc = 0;
    begin(v);
    if (worker == task) {
        rc = check_worker(v, task, result);
        if (rc == 0 && w->of != NULL && w->last_name[task] != task) {
            w->of[task] = json_copy(result);
        }
        return rc == 0 ? 0 : mismatch_code(v->err);
    }
    rc = w->of[worker] == NULL ? rebuild_lost(v, worker, result, &w->of[worker])
                               : task_result_check_same(result, w->of[worker],
                                                        &v->history.tasks[worker].result, v->err);
    if (w->last_name[worker] == task) {
        cJSON_Delete(w->of[worker]);
        w->of[worker] = NULL;
    }
    return rc == 0 ? 0 : mismatch_code(v->err);
}

/* The workers' answers about one stage of a condition: what they solved, which the root covers, and
 * what they say that parameters come to, if `describe` is not NULL. A remark may have any other
 * form, which is not an answer. */
static cJSON *answer_of(const cJSON *solved, const cJSON *described)
{
    cJSON *answer = json_object();
    const cJSON *resolves = json_member(described, "resolves");
    json_put(answer, "params", cJSON_IsObject(solved) ? json_copy(solved) : json_object());
    if (cJSON_IsObject(resolves)) {
        json_put(answer, "resolves", json_copy(resolves));
    }
    return answer;
}

/* Those about every stage of every condition. */
static cJSON *answers_of(const struct verifying *v, const cJSON *describe)
{
    const struct plan_program *p = v->program;
    cJSON *answers = json_object();
    for (size_t c = 0; c < p->n_conditions; c++) {
        const char *condition = p->conditions[c].name;
        cJSON *stages = json_object();
        for (size_t s = 0; s < p->n_stages; s++) {
            const char *stage = p->stages[s].name;
            json_put(stages, stage,
                     answer_of(json_member(json_member(v->lock->solved, condition), stage),
                               json_member(json_member(describe, condition), stage)));
        }
        json_put(answers, condition, stages);
    }
    return answers;
}

/* The parameters are covered by the root. What a worker says that they come to is among the lock's
 * remarks, which are not: where the names rest on it, that is not shown. Without an amendment the
 * daemon took no plan whose names rest on neither. */
int verify_works(struct verifying *v)
{
    const struct plan_program *p = v->program;
    struct strbuf written = STRBUF_INIT;
    struct strbuf answered = STRBUF_INIT;
    int rc = 0;
    if (p->workers == NULL || v->imported) {
        return 0;
    }
    const size_t n_names = program_n_other_names(p);
    if (n_names == 0) {
        return 0;
    }
    if (n_names + p->n_conditions > SEARCHES_MAX / p->n_conditions) {
        v->works.rests_on = "they are too many to be compared here";
        return 0;
    }
    cJSON *solved = answers_of(v, NULL);
    cJSON *answers = answers_of(v, v->lock->describe);
    if (same_work_is_shown(p, solved, &written)) {
        verifying_says(v, "%zu %s another name of a work, and %s of the work", n_names,
                       text_plural((int64_t)n_names, "task is", "tasks are"),
                       text_plural((int64_t)n_names, "its parameters are those",
                                   "their parameters are those"));
    } else if (!same_work_is_shown(p, answers, &answered) && v->lock->n_amendments == 0) {
        err_at(v->err, RECEIPT_LOCK, 0);
        rc = err_set(v->err, ERR_LOCK,
                     "[[same_work]]: %.120s, and no worker says that it comes to the same",
                     answered.buf);
    } else {
        strbuf_adds(&written, ", and that both come to the same is their worker's word, among the "
                              "lock's remarks (`describe`)");
        v->works.rests_on = arena_strdup(&v->arena, written.buf);
    }
    cJSON_Delete(solved);
    cJSON_Delete(answers);
    strbuf_release(&written);
    strbuf_release(&answered);
    return rc;
}
