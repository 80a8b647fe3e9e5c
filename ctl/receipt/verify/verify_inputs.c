/* Compares what a result reports to have read of earlier stages with the artifacts of their
 * accepted results. Called for each result in the order of the tasks, so a cell's earlier stages
 * are known when a later one names them. */
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"

void verify_inputs_release(struct verifying *v)
{
    struct cell_artifacts *a = &v->artifacts;
    for (size_t s = 0; s < a->n_stages; s++) {
        free(a->hex[s]);
    }
    free(a->hex);
    free(a->n);
    *a = (struct cell_artifacts){0};
}

/* Forgets the artifacts of the cell before. */
static void begin_cell(struct verifying *v, size_t cell)
{
    struct cell_artifacts *a = &v->artifacts;
    if (a->hex == NULL) {
        a->n_stages = v->program->n_stages;
        a->hex = xcalloc(a->n_stages, sizeof(*a->hex));
        a->n = xcalloc(a->n_stages, sizeof(*a->n));
    }
    if (a->cell != cell) {
        memset(a->n, 0, a->n_stages * sizeof(*a->n));
        a->cell = cell;
    }
}

/* Keeps the digests of a result's artifacts for the stages that come after. */
static void keep_artifacts(struct cell_artifacts *a, size_t stage, const cJSON *result)
{
    const cJSON *list = json_member(result, "artifacts");
    const cJSON *m = NULL;
    const int n = cJSON_GetArraySize(list);
    a->n[stage] = 0;
    if (n > 0) {
        a->hex[stage] = xreallocarray(a->hex[stage], (size_t)n, sizeof(*a->hex[stage]));
    }
    cJSON_ArrayForEach(m, list)
    {
        const cJSON *sha256 = json_member(m, "sha256");
        if (cJSON_IsString(sha256) && strlen(sha256->valuestring) == DIGEST_HEX_SIZE - 1) {
            memcpy(a->hex[stage][a->n[stage]++], sha256->valuestring, DIGEST_HEX_SIZE);
        }
    }
}

/* Whether the stage's accepted result states an artifact with that digest. */
static bool has_artifact(const struct cell_artifacts *a, size_t stage, const char *hex)
{
    for (size_t i = 0; i < a->n[stage]; i++) {
        if (strcmp(a->hex[stage][i], hex) == 0) {
            return true;
        }
    }
    return false;
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

/* One entry of "inputs": STAGE = digest. Of a stage whose accepted result is gone, nothing can
 * be compared. */
static int check_input(struct verifying *v, size_t task, const cJSON *named)
{
    const struct plan_program *p = v->program;
    const struct plan_stage *s = &p->stages[task % p->n_stages];
    const size_t earlier = program_find_stage(p, named->string);
    if (!cJSON_IsString(named) || earlier == INDEX_NONE || !comes_after(s, earlier)) {
        return err_set(v->err, ERR_LOCK,
                       "the result's \"inputs\" name a stage that %s does not come after", s->name);
    }
    const size_t its_task = task - task % p->n_stages + earlier;
    if (v->history.tasks[its_task].state != TASK_DONE ||
        has_artifact(&v->artifacts, earlier, named->valuestring)) {
        return 0;
    }
    char at[160];
    (void)snprintf(at, sizeof(at),
                   "what it read of %.80s is not an artifact of the accepted result",
                   named->string);
    return err_differs(v->err, at,
                       v->artifacts.n[earlier] == 1 ? v->artifacts.hex[earlier][0]
                                                    : "one of its artifacts",
                       named->valuestring);
}

/* The result's own artifacts are kept after its inputs were checked: it cannot name itself. */
int verify_inputs(struct verifying *v, size_t task, const cJSON *result)
{
    const cJSON *inputs = json_member(result, "inputs");
    const cJSON *named = NULL;
    begin_cell(v, task / v->program->n_stages);
    cJSON_ArrayForEach(named, inputs)
    {
        int rc = cJSON_IsObject(inputs) ? check_input(v, task, named)
                                        : err_set(v->err, ERR_LOCK, "\"inputs\" is not an object");
        if (rc != 0) {
            return rc;
        }
    }
    v->artifacts.n_named += cJSON_IsObject(inputs) && inputs->child != NULL;
    keep_artifacts(&v->artifacts, task % v->program->n_stages, result);
    return 0;
}
