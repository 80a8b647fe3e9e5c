/* The needs of each stage against a list of GPUs, by the rules by which the scheduler gives them
 * (daemon/core/gpus.c): those that [run] gpus names, of the pinned model, with the memory that is
 * declared, all of one model, and no parts (MIG) where several are wanted. */
#include "prereg/program/gpu_needs.h"

#include <string.h>

#define WHOLE 1000
#define PART  "MIG-"

static bool asks(const struct plan_stage *s)
{
    return s->run.executor == EXECUTOR_LOCAL && s->run.gpu_thousandths > 0;
}

bool gpu_needs_any(const struct plan_program *p)
{
    bool any = false;
    for (size_t i = 0; i < p->n_stages; i++) {
        any = any || asks(&p->stages[i]);
    }
    return any;
}

static int64_t n_wanted(const struct plan_stage *s)
{
    return s->run.gpu_thousandths < WHOLE ? 1 : s->run.gpu_thousandths / WHOLE;
}

static bool is_listed(const struct plan_program *p, const struct gpu *g)
{
    bool listed = p->run.gpus_auto;
    for (size_t i = 0; !listed && i < p->run.n_gpus; i++) {
        listed = gpu_is_named(g->uuid, g->index, p->run.gpus[i]);
    }
    return listed;
}

static bool is_suitable(const struct plan_program *p, const struct plan_stage *s,
                        const struct gpu *g)
{
    return is_listed(p, g) && (p->pin_gpu == NULL || gpu_model_is(g->model, p->pin_gpu)) &&
           g->memory_bytes >= s->run.gpu_memory_bytes &&
           (n_wanted(s) == 1 || strncmp(g->uuid, PART, strlen(PART)) != 0);
}

/* The most suitable GPUs of one model. */
static int64_t most_of_one_model(const struct plan_program *p, const struct plan_stage *s,
                                 const struct gpu_list *list)
{
    int64_t most = 0;
    for (size_t i = 0; i < list->n; i++) {
        int64_t n = 0;
        for (size_t k = 0; k < list->n; k++) {
            n += is_suitable(p, s, &list->items[k]) &&
                 strcmp(list->items[k].model, list->items[i].model) == 0;
        }
        most = n > most ? n : most;
    }
    return most;
}

/* "2 x NVIDIA H100 (81559 MiB), 1 x NVIDIA T4 (15 GiB)", or "none". */
static void text_of_list(const struct plan_program *p, const struct gpu_list *list,
                         struct strbuf *out)
{
    bool told[GPU_LIST_MAX] = {false};
    for (size_t i = 0; i < list->n; i++) {
        const struct gpu *g = &list->items[i];
        size_t n = 0;
        if (told[i] || !is_listed(p, g)) {
            continue;
        }
        for (size_t k = i; k < list->n; k++) {
            const struct gpu *other = &list->items[k];
            if (is_listed(p, other) && strcmp(other->model, g->model) == 0 &&
                other->memory_bytes == g->memory_bytes) {
                told[k] = true;
                n++;
            }
        }
        strbuf_addf(out, "%s%zu x %s", out->len == 0 ? "" : ", ", n, g->model);
        if (g->memory_bytes > 0) {
            strbuf_adds(out, " (");
            gpu_add_memory(out, g->memory_bytes);
            strbuf_addc(out, ')');
        } else {
            strbuf_adds(out, " (memory unknown)");
        }
    }
    if (out->len == 0) {
        strbuf_adds(out, list->n == 0 ? "none" : "none that [run] gpus names");
    }
}

static void text_of_want(const struct plan_program *p, const struct plan_stage *s,
                         struct strbuf *out)
{
    const int64_t n = n_wanted(s);
    if (s->run.gpu_thousandths < WHOLE) {
        strbuf_addf(out, "%g of a GPU", (double)s->run.gpu_thousandths / WHOLE);
    } else {
        strbuf_add_count(out, n, "GPU", "GPUs of one model");
    }
    if (s->run.gpu_memory_bytes > 0) {
        strbuf_adds(out, " with ");
        gpu_add_memory(out, s->run.gpu_memory_bytes);
        strbuf_adds(out, n == 1 ? "" : " each");
    }
    if (p->pin_gpu != NULL) {
        strbuf_addf(out, " of the model \"%s\" ([pin] gpu)", p->pin_gpu);
    }
}

static void check_stage(const struct plan_program *p, const struct plan_stage *s,
                        const struct gpu_list *list, enum diag_level level, struct diag *diag)
{
    struct strbuf want = STRBUF_INIT;
    struct strbuf have = STRBUF_INIT;
    const struct place at = s->run.gpus_place;
    if (n_wanted(s) > GPU_NEEDS_MAX) {
        diag_add(diag, level, at.line, at.column,
                 "run.%s.gpus: an attempt on one machine has at most %d GPUs", s->name,
                 GPU_NEEDS_MAX);
    } else if (most_of_one_model(p, s, list) < n_wanted(s)) {
        text_of_want(p, s, &want);
        text_of_list(p, list, &have);
        diag_add(diag, level, at.line, at.column,
                 "run.%s.gpus: an attempt needs %s, and this machine has %s", s->name, want.buf,
                 have.buf);
    }
    strbuf_release(&want);
    strbuf_release(&have);
}

void gpu_needs_check(const struct plan_program *p, const struct gpu_list *list,
                     enum diag_level level, struct diag *diag)
{
    for (size_t i = 0; i < p->n_stages; i++) {
        if (asks(&p->stages[i])) {
            check_stage(p, &p->stages[i], list, level, diag);
        }
    }
}
