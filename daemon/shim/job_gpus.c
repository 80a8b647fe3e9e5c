/*
 * Asks the node of a job for its GPUs, once, before start.json. A driver that hangs costs the
 * helper's time limit and nothing else. An attempt on a GPU of another model than its program pins
 * would have other bits: it is not begun, so that the cluster can give it another node.
 */
#include "daemon/shim/job_gpus.h"

#include <stdlib.h>
#include <string.h>

#include "base/machine/gpu_ask.h"
#include "base/strbuf.h"

/* What else uses them is of this moment only. */
static void keep_facts(struct gpu *g)
{
    free(g->processes);
    g->processes = NULL;
    g->n_processes = 0;
    g->processes_known = false;
    g->free_bytes = -1;
}

/* Whether `model` is that of an earlier GPU in the list. */
static bool is_named(const struct gpu_list *list, size_t i)
{
    bool named = false;
    for (size_t k = 0; k < i; k++) {
        named = named || strcmp(list->items[k].model, list->items[i].model) == 0;
    }
    return named;
}

/* "NVIDIA T4", "no GPU": each model once. */
static void add_models(const struct gpu_list *list, struct strbuf *out)
{
    strbuf_adds(out, list->n == 0 ? "no GPU" : "");
    for (size_t i = 0; i < list->n; i++) {
        if (!is_named(list, i)) {
            strbuf_addf(out, "%s%s", i == 0 ? "" : " and ", list->items[i].model);
        }
    }
}

static int check_models(const struct shim_spec *spec, struct strbuf *notes, struct err *err)
{
    int rc = 0;
    if (spec->gpus.n == 0) {
        rc = err_set(err, ERR_REFUSED, "[pin] gpu: locked \"%s\", and the job sees no GPU",
                     spec->pin_gpu);
    }
    for (size_t i = 0; rc == 0 && i < spec->gpus.n; i++) {
        const struct gpu *g = &spec->gpus.items[i];
        if (!gpu_model_is(g->model, spec->pin_gpu)) {
            rc = err_set(err, ERR_REFUSED, "[pin] gpu: locked \"%s\", and GPU %s is a \"%s\"",
                         spec->pin_gpu, g->uuid, g->model);
        }
    }
    if (rc != 0) {
        add_models(&spec->gpus, notes);
    }
    return rc;
}

int job_gpus_find(struct shim_spec *spec, struct strbuf *notes, struct err *err)
{
    struct err why;
    const bool pinned = spec->pin_gpu[0] != '\0';
    if (!spec->asks_gpus) {
        return 0;
    }
    gpu_list_release(&spec->gpus);
    if (gpu_ask(GPU_ASK_MS, &spec->gpus, NULL, &why) != 0) {
        if (pinned) {
            strbuf_adds(notes, "GPUs that cannot be listed");
            return err_set(err, ERR_REFUSED, "[pin] gpu: which GPUs the job has is unknown: %s",
                           why.msg);
        }
        strbuf_addf(notes, "which GPUs the job has is unknown: %s", why.msg);
        return 0;
    }
    for (size_t i = 0; i < spec->gpus.n; i++) {
        keep_facts(&spec->gpus.items[i]);
    }
    return pinned ? check_models(spec, notes, err) : 0;
}
