/* Questions to a history that was read, and its release. Lists are in the journal's order, so
 * the last entry up to a row is what held then; attempts are sorted by task. */
#include <stdlib.h>

#include "base/json/json.h"
#include "ctl/receipt/history.h"

void history_release(struct history *h)
{
    cJSON_Delete(h->amended);
    cJSON_Delete(h->unblindings);
    cJSON_Delete(h->takeovers);
    cJSON_Delete(h->checks);
    cJSON_Delete(h->runs);
    run_record_free(h->record);
    free(h->tasks);
    free(h->stages);
    free(h->attempts);
    free(h->hashes);
    *h = (struct history){0};
}

const char *history_head_at(const struct history *h, const struct lock *lock, size_t row)
{
    const char *head = lock->root;
    const cJSON *a = NULL;
    cJSON_ArrayForEach(a, h->amended)
    {
        const cJSON *its = json_member(a, "head");
        bool before = json_member(a, "row")->valuedouble <= (double)row;
        head = before && cJSON_IsString(its) ? its->valuestring : head;
    }
    return head;
}

const cJSON *history_run_at(const struct history *h, size_t row)
{
    const cJSON *found = NULL;
    const cJSON *o = NULL;
    cJSON_ArrayForEach(o, h->runs)
    {
        bool before = json_member(o, "row")->valuedouble <= (double)row;
        found = before ? json_member(o, "run") : found;
    }
    return found;
}

const char *history_narrower(const struct history *h, size_t task)
{
    const struct history_task *t = &h->tasks[task];
    return t->state == TASK_BLOCKED ? run_record_narrower(h->record, task, t->cause) : NULL;
}

const struct history_attempt *history_attempts_of(const struct history *h, size_t task, size_t *n)
{
    size_t low = 0;
    size_t high = h->n_attempts;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        low = h->attempts[mid].task < task ? mid + 1 : low;
        high = h->attempts[mid].task < task ? high : mid;
    }
    *n = 0;
    while (low + *n < h->n_attempts && h->attempts[low + *n].task == task) {
        (*n)++;
    }
    return h->attempts + low;
}
