/* Compares what a result reports to have read with what it should have: of earlier stages the
 * artifacts of their accepted results, of data what the lock names. Called for each result in the
 * order of the tasks, so a cell's earlier stages are known when a later one names them. */
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "prereg/task/task_result.h"

void verify_inputs_release(struct verifying *v)
{
    struct cell_artifacts *a = &v->artifacts;
    for (size_t s = 0; s < a->n_stages; s++) {
        cJSON_Delete(a->of[s]);
    }
    free(a->of);
    *a = (struct cell_artifacts){0};
}

/* Forgets the artifacts of the cell before. */
static void begin_cell(struct verifying *v, size_t cell)
{
    struct cell_artifacts *a = &v->artifacts;
    if (a->of == NULL) {
        a->n_stages = v->program->n_stages;
        a->of = xcalloc(a->n_stages, sizeof(*a->of));
    }
    for (size_t s = 0; a->cell != cell && s < a->n_stages; s++) {
        cJSON_Delete(a->of[s]);
        a->of[s] = NULL;
    }
    a->cell = cell;
}

/* Keeps a result's artifacts for the stages that come after, as a result of nothing else. */
static void keep_artifacts(struct cell_artifacts *a, size_t stage, const cJSON *result)
{
    const cJSON *list = task_artifacts(result);
    cJSON_Delete(a->of[stage]);
    a->of[stage] = json_object();
    if (cJSON_IsArray(list)) {
        json_put(a->of[stage], "artifacts", json_copy(list));
    }
}

/* Whether the plan has the stage after the earlier one. */
static bool comes_after(const struct plan_stage *s, size_t earlier)
{
    for (size_t i = 0; i < s->n_after; i++) {
        if (s->after[i] == earlier) {
            return true;
        }
    }
    return false;
}

/* A task whose result names what it read. */
struct input_reading {
    const struct verifying *v;
    size_t task;
};

/* Looks up a stage of its cell (task_input_find). Of one whose accepted result is gone, nothing can
 * be compared. */
static int find_input(const void *ctx, const char *stage, bool *known, cJSON **result,
                      struct err *err)
{
    const struct input_reading *r = ctx;
    const struct plan_program *p = r->v->program;
    const size_t of_task = r->task % p->n_stages;
    const size_t earlier = program_find_stage(p, stage);
    (void)err;
    *known = earlier != INDEX_NONE && comes_after(&p->stages[of_task], earlier);
    if (*known && r->v->history.tasks[r->task - of_task + earlier].state == TASK_DONE &&
        r->v->artifacts.of[earlier] != NULL) {
        *result = json_copy(r->v->artifacts.of[earlier]);
    }
    return 0;
}

/* The result's own artifacts are kept after its inputs were checked: it cannot name itself. */
int verify_inputs(struct verifying *v, size_t task, const cJSON *result)
{
    const struct plan_program *p = v->program;
    const cJSON *inputs = json_member(result, "inputs");
    const struct input_reading reading = {.v = v, .task = task};
    const struct task_inputs of = {.program = p,
                                   .lock = v->lock,
                                   .cell = task / p->n_stages,
                                   .stage = task % p->n_stages,
                                   .find = find_input,
                                   .ctx = &reading};
    begin_cell(v, of.cell);
    if (task_inputs_check(&of, result, v->err) != 0 ||
        task_result_check_read(v->lock, result, v->err) != 0) {
        return mismatch_code(v->err);
    }
    v->artifacts.n_named += cJSON_IsObject(inputs) && inputs->child != NULL;
    keep_artifacts(&v->artifacts, of.stage, result);
    return 0;
}
