/* Compares the result of a task that is another name of a work with the result of the task that did
 * the work. Called for each result in the order of the tasks, in which a work comes before its
 * other names; the results of such works are kept until then. */
#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "prereg/program/same_work.h"
#include "prereg/task/task_result.h"

void verify_same_work_release(struct verifying *v)
{
    for (size_t t = 0; v->works != NULL && t < program_n_tasks(v->program); t++) {
        cJSON_Delete(v->works[t]);
    }
    free(v->works);
    v->works = NULL;
}

/* Whether a later task is another name of this one's work. */
static bool has_names(const struct plan_program *p, size_t task)
{
    for (size_t t = task + p->n_stages; t < program_n_tasks(p); t += p->n_stages) {
        if (program_worker_of(p, t) == task) {
            return true;
        }
    }
    return false;
}

int verify_same_work(struct verifying *v, size_t task, const cJSON *result)
{
    const struct plan_program *p = v->program;
    const size_t worker = program_worker_of(p, task);
    int rc = 0;
    if (worker == task) {
        rc = task_result_check_own(result, v->err);
    } else if (v->works != NULL && v->works[worker] != NULL) { /* else it was lost since */
        rc = task_result_check_same(result, v->works[worker], &v->history.tasks[worker].result,
                                    v->err);
    }
    if (rc != 0) {
        return v->err->code = ERR_LOCK;
    }
    if (worker == task && p->workers != NULL && has_names(p, task)) {
        if (v->works == NULL) {
            v->works = xcalloc(program_n_tasks(p), sizeof(*v->works));
        }
        v->works[task] = json_copy(result);
    }
    return 0;
}
