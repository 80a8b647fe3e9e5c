/*
 * Which task runs next (S8). Each executor has a queue of its own, so that what waits for this
 * machine does not hold up what runs elsewhere. Among the programs with a ready task, the one of
 * the highest priority is next, then the one that uses the least of the executor, then the one that
 * was served longest ago, then the older one. Within a program only the head of its queue is
 * considered, so that a large task is not overtaken for ever by small ones. A program that runs
 * nothing here and whose head has not fitted for STARVE_MS reserves the machine until it fits,
 * against programs of its priority and below.
 */
#include "daemon/core/internal.h"

/* By the limits of the executor itself. */
static bool executor_fits(const struct core *c, const struct core_stage *s)
{
    const struct core_config *m = &c->config;
    if (s->executor != EXECUTOR_LOCAL) {
        return !c->full[s->executor];
    }
    if (m->slots > 0 && c->used_slots >= m->slots) {
        return false;
    }
    if (c->used_threads + live_threads(c, s) > m->cores) {
        return false;
    }
    return m->memory_bytes == 0 || c->used_memory + live_memory(c, s) <= m->memory_bytes;
}

static bool program_fits(const struct core_program *p, enum executor_kind executor)
{
    return executor == EXECUTOR_LOCAL ? p->slots == 0 || p->used_slots < p->slots
                                      : p->max_queued == 0 || p->n_queued < p->max_queued;
}

bool dispatch_fits(const struct core *c, const struct core_program *p, const struct core_stage *s)
{
    return program_fits(p, s->executor) && executor_fits(c, s);
}

static bool comes_before(const struct core_program *a, const struct core_program *b,
                         enum executor_kind executor)
{
    if (a->priority != b->priority) {
        return a->priority > b->priority;
    }
    const bool local = executor == EXECUTOR_LOCAL;
    const uint32_t used_a = local ? a->used_threads : a->n_queued;
    const uint32_t used_b = local ? b->used_threads : b->n_queued;
    if (used_a != used_b) {
        return used_a < used_b;
    }
    return a->served != b->served ? a->served < b->served : a->no < b->no;
}

/* Only a program that runs nothing here can starve: one that runs something frees room by itself.
 * Another scheduler has its own order. Starts the clock at the first call. */
static bool is_starved(const struct core *c, struct core_program *p, enum executor_kind executor)
{
    if (executor != EXECUTOR_LOCAL) {
        return false;
    }
    if (p->used_slots > 0) {
        p->starved_since = INT64_MIN;
    } else if (p->starved_since == INT64_MIN) {
        p->starved_since = c->now_ms;
    }
    return p->starved_since != INT64_MIN && c->now_ms - p->starved_since >= STARVE_MS;
}

/* Whether its head may be started as far as the program itself is concerned. */
static bool is_waiting(const struct core_program *p, enum executor_kind executor)
{
    return !p->damaged && !p->withheld && p->ready[executor].n > 0 && p->status.paused == 0 &&
           program_fits(p, executor) && !task_is_held(p, ready_head(p, executor));
}

const struct core_program *dispatch_ahead(const struct core *c, const struct core_program *p,
                                          enum executor_kind executor)
{
    const struct core_program *first = NULL;
    for (uint32_t i = 0; i < c->cap_programs; i++) {
        const struct core_program *q = c->programs[i];
        if (q != NULL && q->priority > p->priority && is_waiting(q, executor) &&
            (first == NULL || q->priority > first->priority)) {
            first = q;
        }
    }
    return first;
}

/* The program whose head is started next; NULL when nothing fits, or when a starved program of at
 * least its priority reserves the machine. */
static struct core_program *pick(struct core *c, enum executor_kind executor)
{
    struct core_program *best = NULL;
    int64_t reserved = INT64_MIN; /* the highest priority of those that are starved */
    for (uint32_t i = 0; i < c->cap_programs; i++) {
        struct core_program *p = c->programs[i];
        if (p == NULL || !is_waiting(p, executor)) {
            continue;
        }
        if (!executor_fits(c, task_stage(p, ready_head(p, executor)))) {
            if (is_starved(c, p, executor) && p->priority > reserved) {
                reserved = p->priority;
            }
            continue;
        }
        if (executor == EXECUTOR_LOCAL) {
            p->starved_since = INT64_MIN;
        }
        if (best == NULL || comes_before(p, best, executor)) {
            best = p;
        }
    }
    return best != NULL && best->priority > reserved ? best : NULL;
}

/* Whether it is worth looking at the programs at all. */
static bool has_room(const struct core *c, enum executor_kind executor)
{
    if (executor != EXECUTOR_LOCAL) {
        return !c->full[executor];
    }
    return c->used_threads < c->config.cores &&
           (c->config.slots == 0 || c->used_slots < c->config.slots);
}

/* Nothing before CORE_ALL_ADDED: until then attempts that hold slots may still be unknown (S3). */
void dispatch(struct core *c)
{
    for (int e = 0; c->begun && e < EXECUTOR_NR; e++) {
        const enum executor_kind executor = (enum executor_kind)e;
        while (has_room(c, executor)) {
            struct core_program *p = pick(c, executor);
            if (p == NULL) {
                break;
            }
            attempt_start(c, p, ready_head(p, executor));
        }
    }
}
