/* What this machine has and who holds it: the core's limits, the last list of GPUs, and the rows of
 * the attempts in flight. */
#include <string.h>
#include <unistd.h>

#include "base/json/json.h"
#include "base/machine/machine.h"
#include "base/xalloc.h"
#include "daemon/answers/answer.h"
#include "daemon/answers/placement.h"
#include "daemon/core/explain.h"
#include "daemon/http/data.h"
#include "daemon/shell/attempts.h"
#include "daemon/shell/gpu_watch.h"

#define HOLDERS_MAX 2000
#define GPU_TASKS   8

static bool is_here(const struct shell_attempt *a)
{
    return a->row.placement.executor == EXECUTOR_LOCAL && !a->closing;
}

static void put_memory(cJSON *o, const struct shell *sh)
{
    int64_t promised = 0;
    for (const struct shell_attempt *a = sh->attempts; a != NULL; a = a->next) {
        promised += is_here(a) ? a->row.placement.memory_bytes : 0;
    }
    cJSON *m = json_object();
    json_put_int(m, "total_bytes", machine_memory_bytes());
    json_put_int(m, "available_bytes", machine_memory_free_bytes());
    json_put_int(m, "limit_bytes", sh->config.memory_bytes);
    json_put_int(m, "promised_bytes", promised);
    json_put(o, "memory", m);
}

/* The names of the tasks that hold the GPU. */
static cJSON *tasks_on(const struct shell *sh, const char *uuid)
{
    cJSON *list = json_array();
    for (const struct shell_attempt *a = sh->attempts; a != NULL; a = a->next) {
        const struct hosted *h = shell_program(sh, a->key.program);
        if (h != NULL && !a->closing && strstr(a->row.placement.gpus, uuid) != NULL &&
            cJSON_GetArraySize(list) < GPU_TASKS) {
            char *name = hosted_task_name(h, a->key.task);
            char *whole = xasprintf("%s: %s", h->id, name);
            json_push_string(list, whole);
            free(whole);
            free(name);
        }
    }
    return list;
}

static void put_gpus(cJSON *o, const struct shell *sh)
{
    const struct gpu_list *gpus = gpu_watch_list(sh);
    cJSON *list = json_array();
    for (size_t i = 0; gpus != NULL && i < gpus->n; i++) {
        const struct gpu *g = &gpus->items[i];
        cJSON *one = json_object();
        json_put_string(one, "uuid", g->uuid);
        json_put_int(one, "index", g->index);
        json_put_string(one, "model", g->model);
        json_put_int(one, "memory_bytes", g->memory_bytes);
        if (g->free_bytes >= 0) {
            json_put_int(one, "used_bytes", g->memory_bytes - g->free_bytes);
        } else {
            json_put_null(one, "used_bytes");
        }
        json_put(one, "tasks", tasks_on(sh, g->uuid));
        json_push(list, one);
    }
    json_put(o, "gpus", list);
    json_put_string(o, "gpus_why", gpu_watch_fault(sh));
}

static void put_holder(cJSON *list, const struct shell *sh, const struct shell_attempt *a)
{
    const struct hosted *h = shell_program(sh, a->key.program);
    if (h == NULL) {
        return;
    }
    cJSON *o = json_object();
    char *name = hosted_task_name(h, a->key.task);
    json_put_string(o, "program", h->id);
    json_put_string(o, "task", name);
    json_put_int(o, "attempt", a->key.no);
    json_put_string(o, "executor", executor_kind_name(a->row.placement.executor));
    json_put_int(o, "slots", a->row.placement.threads);
    json_put_int(o, "memory_bytes", a->row.placement.memory_bytes);
    json_put(o, "gpus", placement_gpus(sh, a->row.placement.gpus));
    json_put_null(o, "node");
    json_put_bool(o, "running", a->row.state == ATTEMPT_RUNNING);
    summary_put_time(o, "since", a->row.started);
    json_push(list, o);
    free(name);
}

static void put_disk(cJSON *o, const struct shell *sh)
{
    cJSON *d = json_object();
    json_put_string(d, "path", sh->state);
    json_put_int(d, "free_bytes", sh->space.free_bytes);
    json_put_int(d, "total_bytes", sh->space.total_bytes);
    json_put(o, "disk", d);
}

cJSON *machine_json(const struct shell *sh)
{
    char host[256] = "";
    cJSON *o = json_object();
    cJSON *slots = json_object();
    cJSON *holders = json_array();
    size_t n = 0;
    (void)gethostname(host, sizeof(host) - 1);
    json_put_string(o, "host", host);
    json_put_int(o, "cores", sh->config.cores);
    json_put_int(slots, "total", sh->config.slots > 0 ? sh->config.slots : sh->config.cores);
    json_put_int(slots, "used", core_n_slots_used(sh->core));
    json_put(o, "slots", slots);
    json_put_int(o, "queued", core_n_queued(sh->core));
    put_memory(o, sh);
    put_gpus(o, sh);
    for (const struct shell_attempt *a = sh->attempts; a != NULL && n < HOLDERS_MAX; a = a->next) {
        if (!a->closing) {
            put_holder(holders, sh, a);
            n++;
        }
    }
    json_put(o, "holders", holders);
    put_disk(o, sh);
    return o;
}
