/* What is given is named by UUID, which no reordering of devices changes. An attempt that is given
 * none sees none, so that it cannot use what another has reserved. */
#include "daemon/program/gpu_grant.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json/json.h"

static const char *const visible_names[GPU_VENDOR_NR] = {
    [GPU_NVIDIA] = "CUDA_VISIBLE_DEVICES", [GPU_AMD] = "ROCR_VISIBLE_DEVICES"};
static const char *const device_paths[GPU_VENDOR_NR] = {
    [GPU_NVIDIA] = "/dev/nvidiactl", [GPU_AMD] = "/dev/kfd"};

/* Also where none may be seen: the daemon's own variable hides them, or they are not listed yet. */
static bool has_vendor(const struct gpu_list *list, enum gpu_vendor v)
{
    bool has = getenv(visible_names[v]) != NULL || access(device_paths[v], F_OK) == 0;
    for (size_t i = 0; list != NULL && i < list->n; i++) {
        has = has || list->items[i].vendor == v;
    }
    return has;
}

static void give(struct gpu_grant *out, const struct gpu_list *list, const char *uuid)
{
    const struct gpu *from = list == NULL ? NULL : gpu_list_find(list, uuid);
    struct gpu *g = NULL;
    struct err ignored;
    if (from == NULL || gpu_list_add(&out->given, &g, &ignored) != 0) {
        (void)snprintf(out->missing, sizeof(out->missing), "%s", uuid);
        return;
    }
    *g = *from;
    g->free_bytes = -1; /* of that moment only; so are its processes */
    g->processes = NULL;
    g->n_processes = 0;
    g->processes_known = false;
}

void gpu_grant_fill(struct gpu_grant *out, const struct placement *at, const struct gpu_list *list)
{
    *out = (struct gpu_grant){0};
    if (at->executor != EXECUTOR_LOCAL) {
        return;
    }
    for (int v = 0; v < GPU_VENDOR_NR; v++) {
        out->hides[v] = has_vendor(list, (enum gpu_vendor)v);
    }
    for (const char *rest = at->gpus; *rest != '\0';) {
        char uuid[GPU_UUID_SIZE];
        const size_t n = strcspn(rest, ",");
        (void)snprintf(uuid, sizeof(uuid), "%.*s", (int)n, rest);
        give(out, list, uuid);
        rest += rest[n] == ',' ? n + 1 : n;
    }
}

void gpu_grant_release(struct gpu_grant *g)
{
    gpu_list_release(&g->given);
}

int gpu_grant_check(const struct gpu_grant *g, const char *pin_gpu, struct err *err)
{
    if (g->missing[0] != '\0') {
        return err_set(err, ERR_BUSY, "GPU %s is not there any more", g->missing);
    }
    for (size_t i = 0; pin_gpu != NULL && i < g->given.n; i++) {
        const struct gpu *gpu = &g->given.items[i];
        if (!gpu_model_is(gpu->model, pin_gpu)) {
            return err_set(err, ERR_LOCK, "[pin] gpu: locked \"%s\", and GPU %s is a \"%s\"",
                           pin_gpu, gpu->uuid, gpu->model);
        }
    }
    return 0;
}

/* "GPU-a,GPU-b"; an AMD GPU without an identity by its index. */
static void visible_text(const struct gpu_grant *g, enum gpu_vendor v, struct strbuf *out)
{
    for (size_t i = 0; i < g->given.n; i++) {
        const struct gpu *gpu = &g->given.items[i];
        const bool by_index = strncmp(gpu->uuid, GPU_INDEX_PREFIX, strlen(GPU_INDEX_PREFIX)) == 0;
        if (gpu->vendor == v && by_index) {
            strbuf_addf(out, "%s%lld", out->len == 0 ? "" : ",", (long long)gpu->index);
        } else if (gpu->vendor == v) {
            strbuf_addf(out, "%s%s", out->len == 0 ? "" : ",", gpu->uuid);
        }
    }
}

void gpu_grant_environment(const struct gpu_grant *g, const struct plan_stage *s,
                           task_variable_fn *fn, void *ctx)
{
    for (int v = 0; v < GPU_VENDOR_NR; v++) {
        struct strbuf text = STRBUF_INIT;
        visible_text(g, (enum gpu_vendor)v, &text);
        if (g->hides[v] && json_member(s->env, visible_names[v]) == NULL) {
            fn(ctx, visible_names[v], text.buf);
        }
        if (v == GPU_NVIDIA && text.len > 0) {
            fn(ctx, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
        }
        strbuf_release(&text);
    }
}
