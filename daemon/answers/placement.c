/* The UUIDs of a local attempt are in its row, index and model in the list of the machine's GPUs.
 * A cluster chooses GPUs and node itself: start.json and the heartbeat of the attempt say which. */
#include "daemon/answers/placement.h"

#include <string.h>

#include "base/json/json.h"
#include "daemon/core/gpus.h"
#include "daemon/shell/attempts.h"
#include "daemon/shell/gpu_watch.h"
#include "daemon/shim/files.h"
#include "daemon/shim/heartbeat.h"

static cJSON *gpu_json(const char *uuid, const struct gpu *g)
{
    cJSON *o = json_object();
    json_put_string(o, "uuid", uuid);
    if (g != NULL) {
        json_put_int(o, "index", g->index);
    } else {
        json_put_null(o, "index");
    }
    json_put_string(o, "model", g == NULL ? NULL : g->model);
    return o;
}

static const struct gpu *find_gpu(const struct shell *sh, const char *uuid)
{
    const struct gpu_list *list = gpu_watch_list(sh);
    return list == NULL ? NULL : gpu_list_find(list, uuid);
}

cJSON *placement_gpus(const struct shell *sh, const char *uuids)
{
    char uuid[GPU_UUID_SIZE];
    cJSON *list = json_array();
    for (const char *rest = uuids; gpus_next_uuid(&rest, uuid);) {
        json_push(list, gpu_json(uuid, find_gpu(sh, uuid)));
    }
    return list;
}

static cJSON *gpus_of_folder(const char *folder, const char *id)
{
    struct gpu_list given;
    cJSON *list = json_array();
    shim_start_gpus(folder, id, &given);
    for (size_t i = 0; i < given.n; i++) {
        json_push(list, gpu_json(given.items[i].uuid, &given.items[i]));
    }
    gpu_list_release(&given);
    return list;
}

void placement_put(cJSON *o, const struct shell *sh, const char *folder,
                   const struct attempt_row *a)
{
    struct heartbeat beat;
    struct err ignored;
    const bool elsewhere = a->placement.executor != EXECUTOR_LOCAL;
    const bool has_files = folder != NULL && a->state != ATTEMPT_STARTING;
    const bool asks = elsewhere && has_files && a->placement.gpu_thousandths > 0;
    const bool known = elsewhere && has_files && heartbeat_read(folder, &beat, &ignored) == 0;
    json_put_string(o, "executor", executor_kind_name(a->placement.executor));
    json_put(o, "gpus",
             asks ? gpus_of_folder(folder, a->id) : placement_gpus(sh, a->placement.gpus));
    json_put_string(o, "node", known ? beat.host : NULL);
    json_put_string(o, "job", known && strcmp(beat.job, "-") != 0 ? beat.job : NULL);
}

/* The entry of that GPU, made where there is none. */
static cJSON *entry_of(const struct shell *sh, cJSON *list, const char *uuid)
{
    cJSON *o = NULL;
    cJSON_ArrayForEach(o, list)
    {
        if (strcmp(json_member(o, "uuid")->valuestring, uuid) == 0) {
            return o;
        }
    }
    o = gpu_json(uuid, find_gpu(sh, uuid));
    json_put_int(o, "n_tasks", 0);
    json_put(o, "tasks", json_array());
    json_push(list, o);
    return o;
}

static void add_holder(const struct shell *sh, const struct hosted *h, uint32_t task,
                       const char *uuids, cJSON *list)
{
    char uuid[GPU_UUID_SIZE];
    for (const char *rest = uuids; gpus_next_uuid(&rest, uuid);) {
        cJSON *o = entry_of(sh, list, uuid);
        cJSON *tasks = cJSON_GetObjectItemCaseSensitive(o, "tasks");
        cJSON *n = cJSON_GetObjectItemCaseSensitive(o, "n_tasks");
        if (cJSON_GetArraySize(tasks) < PLACEMENT_TASKS_MAX) {
            char *name = hosted_task_name(h, task);
            json_push_string(tasks, name);
            free(name);
        }
        cJSON_SetNumberValue(n, n->valuedouble + 1);
    }
}

cJSON *placement_held(const struct shell *sh, const struct hosted *h)
{
    cJSON *list = json_array();
    for (const struct shell_attempt *a = sh->attempts; a != NULL; a = a->next) {
        if (a->key.program == h->no && !a->closing) {
            add_holder(sh, h, a->key.task, a->row.placement.gpus, list);
        }
    }
    return list;
}

uint32_t placement_n_queued(const struct shell *sh, const struct hosted *h)
{
    uint32_t n = 0;
    for (const struct shell_attempt *a = sh->attempts; a != NULL; a = a->next) {
        n += a->key.program == h->no && !a->closing && a->row.state == ATTEMPT_STARTING &&
             a->row.placement.executor != EXECUTOR_LOCAL && !hosted_is_check(h, a->key.task);
    }
    return n;
}
