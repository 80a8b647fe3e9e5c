/* S3 for GPUs: what attempts that really live hold of each is never more than there is, whatever
 * was lost, doubled or restarted; and an attempt gets what its stage asked for, of GPUs that the
 * core was last told of as there and free of others. In every sixth world. */
#include "base/xalloc.h"
#include "tests/sim/parts.h"

#define WHOLE 1000

void gpus_draw(struct sim *s)
{
    if (s->seed % 6 != 0) {
        return;
    }
    rng_seed(&s->gpu.rng, s->seed);
    s->gpu.n = 1 + (uint32_t)rng_below(&s->gpu.rng, SIM_GPUS_MAX);
    for (uint32_t i = 0; i < s->gpu.n; i++) {
        struct core_gpu *g = &s->gpu.are[i];
        *g = (struct core_gpu){.index = i, .memory_bytes = 40 + 40 * (i / 2)};
        (void)snprintf(g->uuid, sizeof(g->uuid), "GPU-%u", i);
        (void)snprintf(g->model, sizeof(g->model), "model %u", i / 2);
    }
}

/* Every wish can be granted once all is well: at most 40 bytes, and two GPUs only where two are of
 * one model. */
void gpus_draw_stage(struct sim *s, struct core_plan_stage *st)
{
    static const int64_t SHARES[] = {0, 0, 250, 300, 500, 1000, 1000, 2000};
    if (s->gpu.n == 0) {
        return;
    }
    st->gpu_thousandths = SHARES[rng_below(&s->gpu.rng, ARRAY_LEN(SHARES))];
    if (st->gpu_thousandths > WHOLE && s->gpu.n < 2) {
        st->gpu_thousandths = WHOLE;
    }
    const bool share = st->gpu_thousandths > 0 && st->gpu_thousandths < WHOLE;
    st->gpu_memory_bytes = share ? 1 + (int64_t)rng_below(&s->gpu.rng, 40) : 0;
}

/* While there are faults, some are gone, and strangers use some, or the memory of some. */
void gpus_list(struct sim *s, struct core_event *ev)
{
    s->gpu.n_told = 0;
    ev->gpus.known = s->quiet || rng_below(&s->gpu.rng, 10) > 0;
    for (uint32_t i = 0; ev->gpus.known && i < s->gpu.n; i++) {
        struct core_gpu *g = &s->gpu.told[s->gpu.n_told];
        *g = s->gpu.are[i];
        if (!s->quiet && rng_below(&s->gpu.rng, 6) == 0) {
            (void)snprintf(g->used_by, sizeof(g->used_by), "pid 1");
        }
        if (!s->quiet && rng_below(&s->gpu.rng, 4) == 0) {
            g->others_bytes = (int64_t)rng_below(&s->gpu.rng, (uint64_t)g->memory_bytes + 1);
        }
        s->gpu.n_told += s->quiet || rng_below(&s->gpu.rng, 10) > 0;
    }
    ev->gpus.list = s->gpu.told;
    ev->gpus.n = s->gpu.n_told;
}

void gpus_change(struct sim *s)
{
    if (s->gpu.n > 0) {
        sim_tell_surely(s, &(struct core_event){.kind = CORE_GPUS},
                        (int64_t)rng_below(&s->gpu.rng, 5000));
    }
}

/* Which of the world's GPUs it has, as bits. */
static unsigned bits_of(struct sim *s, const struct placement *at)
{
    unsigned bits = 0;
    size_t n = 0;
    for (uint32_t i = 0; i < s->gpu.n; i++) {
        const char *found = strstr(at->gpus, s->gpu.are[i].uuid);
        bits |= found != NULL ? 1u << i : 0;
        n += found != NULL ? strlen(s->gpu.are[i].uuid) + 1 : 0;
    }
    if (n != strlen(at->gpus) + (at->gpus[0] != '\0')) {
        sim_fail(s, "S3: \"%s\" is not a list of GPUs", at->gpus);
    }
    return bits;
}

void gpus_use(struct sim *s, const struct placement *at, int sign)
{
    const int64_t each = at->gpu_thousandths < WHOLE ? at->gpu_thousandths : WHOLE;
    const unsigned bits = bits_of(s, at);
    for (uint32_t i = 0; i < s->gpu.n; i++) {
        if ((bits >> i & 1) != 0) {
            s->gpu.used[i] += sign * each;
            s->gpu.memory[i] += sign * at->gpu_memory_bytes;
        }
    }
}

/* `memory`: what attempts declare of it, the one that starts included; 0 where that declares none.
 */
static void check_told(struct sim *s, const struct core_gpu *g, int64_t memory)
{
    bool told = false;
    for (size_t i = 0; i < s->gpu.n_told; i++) {
        const struct core_gpu *t = &s->gpu.told[i];
        told |= strcmp(t->uuid, g->uuid) == 0 && t->used_by[0] == '\0' &&
                (memory == 0 || memory + t->others_bytes <= t->memory_bytes);
    }
    if (!told) {
        sim_fail(s, "S3: %s is given, and is gone or used by others", g->uuid);
    }
}

void gpus_check_start(struct sim *s, const struct core_act *act)
{
    const struct sim_program *p = &s->programs[act->program - 1];
    const struct core_plan_stage *st = sim_stage_of(p, act->task);
    const struct placement *at = &sim_task_at(s, act->program, act->task)->attempt.placement;
    const unsigned bits = bits_of(s, at);
    const int64_t each = st->gpu_thousandths < WHOLE ? st->gpu_thousandths : WHOLE;
    int64_t n = 0;
    const char *model = NULL;
    for (uint32_t i = 0; i < s->gpu.n; i++) {
        const struct core_gpu *g = &s->gpu.are[i];
        if ((bits >> i & 1) == 0) {
            continue;
        }
        check_told(s, g, st->gpu_memory_bytes == 0 ? 0 : s->gpu.memory[i] + st->gpu_memory_bytes);
        n += each;
        if (s->gpu.used[i] + each > WHOLE ||
            (each < WHOLE && s->gpu.memory[i] + st->gpu_memory_bytes > g->memory_bytes)) {
            sim_fail(s, "S3: %s is given twice: %lld thousandths in use, %lld more", g->uuid,
                     (long long)s->gpu.used[i], (long long)each);
        }
        if (model != NULL && strcmp(model, g->model) != 0) {
            sim_fail(s, "task %u gets GPUs of two models", act->task);
        }
        model = g->model;
        s->gpu.n_shared += s->gpu.used[i] > 0;
    }
    s->gpu.n_starts += n > 0;
    if (n != st->gpu_thousandths) {
        sim_fail(s, "task %u gets %lld thousandths of GPUs instead of %lld", act->task,
                 (long long)n, (long long)st->gpu_thousandths);
    }
}
