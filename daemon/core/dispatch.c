/*
 * Which task runs next (S8). Among the programs with a ready task, the one that uses the fewest
 * threads is next, then the one that was served longest ago, then the older one. Within a program
 * only the head of its queue is considered, so that a large task is not overtaken for ever by small
 * ones. A program that runs nothing and whose head has not fitted for STARVE_MS reserves the
 * machine until it fits.
 */
#include "daemon/core/internal.h"

static bool machine_fits(const struct core *c, const struct core_stage *s)
{
    const struct core_config *m = &c->config;
    if (m->slots > 0 && c->used_slots >= m->slots) {
        return false;
    }
    if (c->used_threads + live_threads(c, s) > m->cores) {
        return false;
    }
    return m->memory_bytes == 0 || c->used_memory + live_memory(c, s) <= m->memory_bytes;
}

static bool program_fits(const struct core_program *p)
{
    return p->slots == 0 || p->used_slots < p->slots;
}

bool dispatch_fits(const struct core *c, const struct core_program *p, const struct core_stage *s)
{
    return program_fits(p) && machine_fits(c, s);
}

static bool comes_before(const struct core_program *a, const struct core_program *b)
{
    if (a->used_threads != b->used_threads) {
        return a->used_threads < b->used_threads;
    }
    return a->served != b->served ? a->served < b->served : a->no < b->no;
}

/* Only a program that runs nothing can starve: one that runs something frees room by itself. Starts
 * the clock at the first call. */
static bool is_starved(const struct core *c, struct core_program *p)
{
    if (p->used_slots > 0) {
        p->starved_since = INT64_MIN;
    } else if (p->starved_since == INT64_MIN) {
        p->starved_since = c->now_ms;
    }
    return p->starved_since != INT64_MIN && c->now_ms - p->starved_since >= STARVE_MS;
}

/* The program whose head is started next; NULL when nothing fits, or when a starved program
 * reserves the machine. */
static struct core_program *pick(struct core *c)
{
    struct core_program *best = NULL;
    for (uint32_t i = 0; i < c->cap_programs; i++) {
        struct core_program *p = c->programs[i];
        if (p == NULL || p->damaged || p->withheld || p->n_ready == 0 || p->status.paused != 0 ||
            !program_fits(p) || task_is_held(p, p->ready[0])) {
            continue;
        }
        if (!machine_fits(c, task_stage(p, p->ready[0]))) {
            if (is_starved(c, p)) {
                return NULL;
            }
            continue;
        }
        p->starved_since = INT64_MIN;
        if (best == NULL || comes_before(p, best)) {
            best = p;
        }
    }
    return best;
}

/* Nothing before CORE_ALL_ADDED: until then attempts that hold slots may still be unknown (S3). */
void dispatch(struct core *c)
{
    while (c->begun) {
        if (c->used_threads >= c->config.cores ||
            (c->config.slots > 0 && c->used_slots >= c->config.slots)) {
            return;
        }
        struct core_program *p = pick(c);
        if (p == NULL) {
            return;
        }
        attempt_start(c, p, p->ready[0]);
    }
}
