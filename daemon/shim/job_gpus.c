/*
 * Asks the node of a job for its GPUs, once, before start.json. A driver that hangs costs the
 * helper's time limit and nothing else. An attempt on a GPU of another model than its program pins
 * would have other bits: it is not begun, so that the cluster can give it another node.
 */
#include "daemon/shim/job_gpus.h"

#include <stdlib.h>

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

static int check_models(const struct shim_spec *spec, struct err *err)
{
    if (spec->gpus.n == 0) {
        return err_set(err, ERR_REFUSED, "[pin] gpu: locked \"%s\", and the job sees no GPU",
                       spec->pin_gpu);
    }
    for (size_t i = 0; i < spec->gpus.n; i++) {
        const struct gpu *g = &spec->gpus.items[i];
        if (!gpu_model_is(g->model, spec->pin_gpu)) {
            return err_set(err, ERR_REFUSED, "[pin] gpu: locked \"%s\", and GPU %s is a \"%s\"",
                           spec->pin_gpu, g->uuid, g->model);
        }
    }
    return 0;
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
            return err_set(err, ERR_REFUSED, "[pin] gpu: which GPUs the job has is unknown: %s",
                           why.msg);
        }
        strbuf_addf(notes, "which GPUs the job has is unknown: %s", why.msg);
        return 0;
    }
    for (size_t i = 0; i < spec->gpus.n; i++) {
        keep_facts(&spec->gpus.items[i]);
    }
    return pinned ? check_models(spec, err) : 0;
}
