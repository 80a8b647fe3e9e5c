/* Accepted results as inputs: collected from the store on the loop, compared with their digests off
 * it, before every spawn and when a result states what it read of them. Three outcomes are kept
 * apart: gone or changed (ERR_LOCK), unreadable now (ERR_IO), and a disk that is not mounted
 * (ERR_NOT_FOUND). */
#include "daemon/program/inputs.h"

#include "base/files/file.h"
#include "base/xalloc.h"
#include "daemon/program/cells.h"
#include "daemon/program/result.h"
#include "prereg/program/same_work.h"

/* The accepted attempt and its digest, as journalled. */
static int collect_one(struct store *store, const struct hosted *h, uint32_t task,
                       struct accepted *out, struct err *err)
{
    struct store_accepted a;
    bool found = false;
    out->stage = h->plan->program->stages[hosted_stage(h, task)].name;
    out->task = hosted_task_name(h, task);
    int rc = store_accepted(store, h->no, task, &a, &found, err);
    if (rc == 0 && !found) {
        rc = err_set(err, ERR_CORRUPT, "%.100s has no accepted result", out->task);
    }
    if (rc == 0) {
        out->digest = a.digest;
        out->folder = hosted_attempt_folder(h, task, a.attempt_no, a.attempt_id);
    }
    return rc;
}

int inputs_collect(struct store *store, const struct hosted *h, uint32_t task,
                   struct accepted_list *out, struct err *err)
{
    *out = (struct accepted_list){.hosted = h};
    if (hosted_is_check(h, task)) {
        return 0;
    }
    const struct plan_program *p = h->plan->program;
    const struct plan_stage *s = &p->stages[hosted_stage(h, task)];
    uint32_t first = task - task % (uint32_t)p->n_stages;
    int rc = 0;
    const size_t work = program_worker_of(p, task);
    out->items = xcalloc(s->n_after + 1, sizeof(*out->items));
    for (size_t i = 0; rc == 0 && i < s->n_after; i++) {
        rc = collect_one(store, h, first + (uint32_t)s->after[i], &out->items[out->n++], err);
    }
    if (rc == 0 && work != task) {
        out->has_work = true;
        rc = collect_one(store, h, (uint32_t)work, &out->items[out->n++], err);
    }
    if (rc == 0 && hosted_is_reused(h, task)) {
        out->has_work = true;
        out->items[out->n++] = (struct accepted){.stage = s->name,
                                                 .task = hosted_task_name(h, task),
                                                 .folder = reuse_task_folder(h->folder, task),
                                                 .digest = hosted_reuse(h)[task].accepts};
    }
    return rc;
}

int inputs_of_one(struct store *store, const struct hosted *h, uint32_t task,
                  struct accepted_list *out, struct err *err)
{
    *out = (struct accepted_list){.hosted = h, .items = xcalloc(1, sizeof(*out->items)), .n = 1};
    return collect_one(store, h, task, &out->items[0], err);
}

void inputs_release(struct accepted_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i].task);
        free(list->items[i].folder);
    }
    free(list->items);
    *list = (struct accepted_list){0};
}

/* A result that seems gone may be on a disk that is not mounted: then that is the error. */
static int look_for_cells(const struct accepted_list *list, int rc, struct err *err)
{
    struct err away;
    int there = rc == ERR_LOCK ? cells_check(list->hosted, true, &away) : 0;
    if (there != 0) {
        *err = away;
        return there;
    }
    return rc;
}

/* Stops at the first input that is not as accepted. */
int inputs_verify(const struct accepted_list *list, struct pin_cache *cache, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < list->n; i++) {
        const struct accepted *in = &list->items[i];
        cJSON *result = NULL;
        rc = input_read(in, &result, err);
        if (rc == 0 && task_result_check_artifacts(result, in->folder, cache, err) != 0) {
            rc = input_refuse(in->task, err);
        }
        cJSON_Delete(result);
    }
    return look_for_cells(list, rc, err);
}

int inputs_glance(const struct accepted_list *list, size_t *n_artifacts, struct err *err)
{
    const struct accepted *in = &list->items[0];
    cJSON *result = NULL;
    *n_artifacts = 0;
    int rc = input_read(in, &result, err);
    if (rc == 0 && task_result_glance_artifacts(result, in->folder, n_artifacts, err) != 0) {
        rc = input_refuse(in->task, err);
    }
    cJSON_Delete(result);
    return look_for_cells(list, rc, err);
}
