/*
 * Which task runs next (S8). Each lane has a queue of its own, so that what waits for a GPU does
 * not hold up what needs none, nor what waits for this machine what runs elsewhere. Among the
 * programs with a ready task, the one of the highest priority is next, then the one that uses the
 * least of what the lane is short of, then the one that was served longest ago, then the older one.
 * Within a program only the head of a queue is considered, so that a large task is not overtaken
 * for ever by small ones; nor is a task that has its GPU and lacks only cores or memory.
 *
 * A program that runs nothing in a lane and whose head has not fitted for STARVE_MS reserves what
 * it waits for until it fits, against programs of its priority and below: cores and memory against
 * both lanes of this machine, GPUs against those that want GPUs. A GPU that others use is not
 * waited for in this way.
 */
#include "daemon/core/gpus.h"

#include "daemon/core/apparatus.h"
#include "daemon/core/internal.h"
#include <assert.h>

/* By the limits of the executor itself, without GPUs. */
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

static bool program_fits(const struct core_program *p, enum lane lane)
{
    return lane != LANE_SLURM ? p->slots == 0 || p->used_slots < p->slots
                              : p->max_queued == 0 || p->n_queued < p->max_queued;
}

/* How much of the lane a program uses. */
static int64_t used_of(const struct core_program *p, enum lane lane)
{
    return lane == LANE_GPU     ? p->used_gpus
           : lane == LANE_LOCAL ? (int64_t)p->used_threads
                                : (int64_t)p->n_queued;
}

static bool comes_before(const struct core_program *a, const struct core_program *b, enum lane lane)
{
    if (a->priority != b->priority) {
        return a->priority > b->priority;
    }
    const int64_t used_a = used_of(a, lane);
    const int64_t used_b = used_of(b, lane);
    if (used_a != used_b) {
        return used_a < used_b;
    }
    return a->served != b->served ? a->served < b->served : a->no < b->no;
}

/* Only a program that runs nothing in the lane can starve: one that runs something frees room by
 * itself. Starts the clock at the first call. */
static bool is_starved(const struct core *c, struct core_program *p, enum lane lane)
{
    int64_t *since = &p->starved_since[lane];
    if (lane == LANE_GPU ? p->used_gpus > 0 : p->used_slots > 0) {
        *since = INT64_MIN;
    } else if (*since == INT64_MIN) {
        *since = c->now_ms;
    }
    return *since != INT64_MIN && c->now_ms - *since >= STARVE_MS;
}

/* Whether its head may be started as far as the program itself is concerned. */
static bool is_waiting(const struct core_program *p, enum lane lane)
{
    return !p->damaged && !p->withheld && p->ready[lane].n > 0 && p->status.paused == 0 &&
           program_fits(p, lane) && !task_is_held(p, ready_head(p, lane));
}

const struct core_program *dispatch_ahead(const struct core *c, const struct core_program *p,
                                          enum lane lane)
{
    assert(c != NULL && p != NULL && lane < LANE_NR);
    const struct core_program *first = NULL;
    for (uint32_t i = 0; i < c->cap_programs; i++) {
        const struct core_program *q = c->programs[i];
        if (q != NULL && q->priority > p->priority && is_waiting(q, lane) &&
            (first == NULL || q->priority > first->priority)) {
            first = q;
        }
    }
    return first;
}

/* Whether the head of the lane has all it needs of this machine but cores and memory. */
static bool lacks_cores(const struct core *c, const struct core_program *p, enum lane lane)
{
    const struct core_stage *s = task_stage(p, ready_head(p, lane));
    return gpus_fit(c, p, s) && !executor_fits(c, s);
}

/* Whether a program that is starved reserves what `lane` is short of: because of its head in the
 * lane `of`. Its clock is stopped when it fits, or waits for a GPU that others use. */
static bool reserves(const struct core *c, struct core_program *p, enum lane of, enum lane lane)
{
    if (!is_waiting(p, of)) {
        return false;
    }
    const struct core_stage *s = task_stage(p, ready_head(p, of));
    if (lacks_cores(c, p, of)) {
        return is_starved(c, p, of);
    }
    if (!gpus_fit(c, p, s) && gpus_could_fit(c, p, s)) {
        return is_starved(c, p, of) && lane == LANE_GPU;
    }
    p->starved_since[of] = INT64_MIN;
    return false;
}

/* The highest priority of those that reserve it; INT64_MIN: none. Another scheduler has its own
 * order. */
static int64_t reserved_priority(const struct core *c, enum lane lane)
{
    int64_t highest = INT64_MIN;
    for (uint32_t i = 0; lane != LANE_SLURM && i < c->cap_programs; i++) {
        struct core_program *p = c->programs[i];
        for (int of = LANE_GPU; p != NULL && of <= LANE_LOCAL; of++) {
            if (reserves(c, p, (enum lane)of, lane) && p->priority > highest) {
                highest = p->priority;
            }
        }
    }
    return highest;
}

static bool head_fits(const struct core *c, const struct core_program *p, enum lane lane)
{
    const struct core_stage *s = task_stage(p, ready_head(p, lane));
    const bool yields =
        lane == LANE_LOCAL && is_waiting(p, LANE_GPU) && lacks_cores(c, p, LANE_GPU);
    return !yields && executor_fits(c, s) && gpus_fit(c, p, s);
}

/* The program whose head is started next; NULL when nothing fits, or when a starved program of at
 * least its priority reserves the machine. */
static struct core_program *pick(const struct core *c, enum lane lane)
{
    struct core_program *best = NULL;
    const int64_t reserved = reserved_priority(c, lane); /* also keeps the clocks */
    for (uint32_t i = 0; i < c->cap_programs; i++) {
        struct core_program *p = c->programs[i];
        if (p != NULL && is_waiting(p, lane) && head_fits(c, p, lane) &&
            (best == NULL || comes_before(p, best, lane))) {
            best = p;
        }
    }
    return best != NULL && best->priority > reserved ? best : NULL;
}

/* Whether it is worth looking at the programs at all. */
static bool has_room(const struct core *c, enum lane lane)
{
    if (lane == LANE_SLURM) {
        return !c->full[EXECUTOR_SLURM];
    }
    return c->used_threads < c->config.cores && (lane != LANE_GPU || c->n_gpus > 0) &&
           (c->config.slots == 0 || c->used_slots < c->config.slots);
}

static struct core_program *pick_if_room(const struct core *c, enum lane lane)
{
    return has_room(c, lane) ? pick(c, lane) : NULL;
}

/* Both lanes of this machine share its cores, so the higher priority comes first; at the same one
 * what wants a GPU does, since fewer can use what it leaves. */
static bool start_here(struct core *c)
{
    struct core_program *p = pick_if_room(c, LANE_GPU);
    struct core_program *other = pick_if_room(c, LANE_LOCAL);
    enum lane lane = LANE_GPU;
    if (p == NULL || (other != NULL && other->priority > p->priority)) {
        p = other;
        lane = LANE_LOCAL;
    }
    if (p != NULL) {
        attempt_start(c, p, ready_head(p, lane));
    }
    return p != NULL;
}

static bool start_elsewhere(struct core *c)
{
    struct core_program *p = pick_if_room(c, LANE_SLURM);
    if (p != NULL) {
        attempt_start(c, p, ready_head(p, LANE_SLURM));
    }
    return p != NULL;
}

/* Nothing before CORE_ALL_ADDED: until then attempts that hold slots may still be unknown (S3).
 * Nothing after CORE_STOPPING, either. */
void dispatch(struct core *c)
{
    assert(c != NULL && c->out != NULL);
    while (c->begun && start_here(c)) {
    }
    while (c->begun && start_elsewhere(c)) {
    }
}
