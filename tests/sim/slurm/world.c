/* Virtual time: a heap of what will happen, taken in order until every task has its result. */
#include "tests/sim/slurm/parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define TIME_MAX_MS (INT64_C(20) * 24 * 3600 * 1000)

/* The first attempts that have not ended, as they are and as the book sees them. */
static void describe_live(const struct farm *f)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < f->n_attempts && n < 4; i++) {
        const struct farm_attempt *a = &f->attempts[i];
        struct slurm_view v = {.state = "not in the book", .reason = "", .node = ""};
        if (!a->live) {
            continue;
        }
        n++;
        if (f->book != NULL) {
            (void)slurm_book_view(
                f->book, &(struct attempt_key){.program = 1, .task = a->task, .no = a->no}, &v);
        }
        (void)fprintf(
            stderr,
            "  task %u attempt %u: %s %s %s; want %d, submitted %d, in flight %d, %u live "
            "jobs, last %s, claimed %d, alive %d, fenced %d\n",
            a->task, a->no, v.state, v.reason, v.node, (int)a->want, a->submitted, a->in_flight,
            a->n_live_jobs,
            a->last_job != NONE ? slurm_state_word(f->jobs[a->last_job].state) : "none",
            a->claim != NONE, a->claim != NONE && f->jobs[a->claim].alive, a->fenced);
    }
}

void farm_fail(const struct farm *f, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)fprintf(stderr, "\nseed %llu, step %llu, %lld ms: %s\n",
                  (unsigned long long)f->config.seed, (unsigned long long)f->n_steps,
                  (long long)f->now_ms, text);
    describe_live(f);
    abort();
}

bool farm_chance(struct farm *f, unsigned per_ten_thousand)
{
    return f->config.faults && !f->quiet && rng_below(&f->rng, 10000) < per_ten_thousand;
}

int64_t farm_between(struct farm *f, int64_t low, int64_t high)
{
    return low + (int64_t)rng_below(&f->rng, (uint64_t)(high - low) + 1);
}

/* ---- what will happen, by time ---- */

static bool before(const struct farm_item *a, const struct farm_item *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->seq < b->seq;
}

struct farm_item *farm_push(struct farm *f, int64_t delay_ms, enum farm_kind kind, uint32_t which)
{
    ARRAY_GROW(f->items, f->n_items, f->cap_items);
    struct farm_item item = {.at_ms = f->now_ms + delay_ms,
                             .seq = f->n_seq++,
                             .kind = kind,
                             .generation = f->generation,
                             .which = which};
    if (kind == FARM_SHIM || kind == FARM_JOB_END || kind == FARM_STATE) {
        item.generation = f->jobs[which].restarts; /* of the job's life in the queue */
    }
    size_t pos = f->n_items++;
    while (pos > 0 && before(&item, &f->items[(pos - 1) / 2])) {
        f->items[pos] = f->items[(pos - 1) / 2];
        pos = (pos - 1) / 2;
    }
    f->items[pos] = item;
    return &f->items[pos];
}

static struct farm_item pop(struct farm *f)
{
    struct farm_item top = f->items[0];
    struct farm_item last = f->items[--f->n_items];
    size_t pos = 0;
    for (;;) {
        size_t child = 2 * pos + 1;
        if (child >= f->n_items) {
            break;
        }
        if (child + 1 < f->n_items && before(&f->items[child + 1], &f->items[child])) {
            child++;
        }
        if (!before(&f->items[child], &last)) {
            break;
        }
        f->items[pos] = f->items[child];
        pos = child;
    }
    f->items[pos] = last;
    return top;
}

/* ---- one of them ---- */

static enum slurm_act_kind answered_by(const struct slurm_event *ev)
{
    switch (ev->kind) {
    case SLURM_EVENT_TESTED: return SLURM_ACT_TEST;
    case SLURM_EVENT_SUBMITTED: return SLURM_ACT_SUBMIT;
    case SLURM_EVENT_QUEUE: return SLURM_ACT_QUEUE;
    case SLURM_EVENT_ACCOUNTED: return SLURM_ACT_ACCOUNTING;
    case SLURM_EVENT_CANCELLED: return SLURM_ACT_CANCEL;
    case SLURM_EVENT_FILES: return SLURM_ACT_LOOK;
    case SLURM_EVENT_START:
    case SLURM_EVENT_PROBE:
    case SLURM_EVENT_TERMINATE:
    case SLURM_EVENT_KILL:
    case SLURM_EVENT_TIMER: break;
    }
    return SLURM_ACT_NR;
}

static void deliver(struct farm *f, struct farm_item *it)
{
    struct arena arena;
    struct slurm_rows rows;
    arena_init(&arena);
    f->under_way[answered_by(&it->ev)] = false;
    if (it->rows != NULL) {
        slurm_parse_queue(it->rows, strlen(it->rows), &arena, &rows);
        it->ev.queue.rows = &rows;
    }
    if (it->ev.files.end != NULL) {
        uint32_t at = farm_attempt_of(f, &it->ev.key);
        it->ev.files.end = at != NONE ? &f->attempts[at].end : NULL;
    }
    daemon_step(f, &it->ev);
    arena_release(&arena);
}

static void drop(struct farm_item *it)
{
    union {
        const char *text;
        char *heap;
    } name = {.text = it->ev.name};
    if (it->kind == FARM_ANSWER && it->ev.kind == SLURM_EVENT_SUBMITTED) {
        free(name.heap);
    }
    free(it->rows);
    free(it->core_ev);
    if (it->plan != NULL) {
        free(it->plan->attempts);
        free(it->plan);
    }
}

static void node_back(struct farm *f, uint32_t node)
{
    f->nodes[node].down = false;
    if (f->nodes[node].cut_off_ms != INT64_MAX) {
        f->nodes[node].cut_off_ms = INT64_MAX;
        f->nodes[node].back_ms = f->now_ms;
    }
}

static void take_state(struct farm *f, const struct farm_item *it)
{
    struct farm_job *j = &f->jobs[it->which];
    if (it->generation != j->restarts || !j->present) {
        return;
    }
    if (it->state == SLURM_UNKNOWN && j->state != SLURM_RUNNING) {
        return;
    }
    if (it->state == SLURM_CANCELLED && j->fate == FATE_HAND_PENDING && j->state != SLURM_PENDING) {
        return;
    }
    bool steals = j->fate == FATE_STEPD && it->state == SLURM_NODE_FAIL;
    cluster_move(f, it->which, it->state);
    j->orphan = steals && j->alive;
}

static void take(struct farm *f, struct farm_item *it)
{
    bool mine = it->generation == f->generation && !f->dead;
    switch (it->kind) {
    case FARM_ANSWER:
        if (mine) {
            deliver(f, it);
        }
        break;
    case FARM_ACCEPT: cluster_accept(f, it->plan); break;
    case FARM_PASS: cluster_pass(f); break;
    case FARM_SHIM:
        if (it->generation == f->jobs[it->which].restarts) {
            shim_start(f, it->which);
        }
        break;
    case FARM_JOB_END:
        if (it->generation == f->jobs[it->which].restarts) {
            shim_end(f, it->which);
        }
        break;
    case FARM_STATE: take_state(f, it); break;
    case FARM_PURGE: cluster_purge(f, it->which); break;
    case FARM_NODE_FAIL: cluster_node_fail(f, it->which); break;
    case FARM_NODE_BACK: node_back(f, it->which); break;
    case FARM_TIMER:
        if (mine && it->at_ms == f->armed_ms) {
            f->armed_ms = INT64_MAX;
            daemon_step(f, &(struct slurm_event){.kind = SLURM_EVENT_TIMER});
        }
        break;
    case FARM_PEOPLE: daemon_people(f); break;
    case FARM_BREAK:
        cluster_break_node(f);
        farm_push(f, f->config.break_ms, FARM_BREAK, NONE);
        break;
    case FARM_RISE: daemon_rise(f); break;
    case FARM_CORE:
        if (mine || (it->core_ev->kind == CORE_RETRY && !f->dead)) {
            core_tell(f, it->core_ev);
        }
        break;
    case FARM_CORE_TIMER:
        if (mine && it->at_ms == f->core_armed_ms) {
            f->core_armed_ms = INT64_MAX;
            core_tell(f, &(struct core_event){.kind = CORE_TIMER});
        }
        break;
    case FARM_RESUME:
        if (f->dead) {
            farm_push(f, 10000, FARM_RESUME, NONE);
        } else {
            core_tell(f, &(struct core_event){
                             .kind = CORE_RESUME, .program = 1, .accept_failures = true});
        }
        break;
    case FARM_STOP:
        if (f->dead) {
            farm_push(f, 10000, FARM_STOP, NONE);
        } else {
            f->n_faults[FAULT_CANCELLED]++;
            core_tell(f, &(struct core_event){.kind = CORE_STOP, .program = 1});
        }
        break;
    case FARM_PROBE:
        if (mine && it->which != NONE) {
            daemon_probe(f, it->which);
        }
        break;
    }
}

/* ---- a whole world ---- */

static void begin(struct farm *f, const struct farm_config *config)
{
    *f = (struct farm){.config = *config, .next_id = 1, .down_until_ms = -1};
    rng_seed(&f->rng, config->seed);
    slurm_out_init(&f->out);
    f->now_ms = INT64_C(1763694202000);
    f->tasks = xcalloc(config->n_tasks, sizeof(*f->tasks));
    f->todo = xcalloc(config->n_tasks, sizeof(*f->todo));
    f->nodes = xcalloc(config->n_nodes, sizeof(*f->nodes));
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        f->nodes[i].cut_off_ms = INT64_MAX;
    }
    for (uint32_t i = config->n_tasks; i-- > 0;) {
        f->tasks[i].current = NONE;
        f->todo[f->n_todo++] = i;
    }
    daemon_begin(f);
    farm_push(f, 1000, FARM_PEOPLE, NONE);
    if (config->break_ms > 0) {
        farm_push(f, config->break_ms, FARM_BREAK, NONE);
    }
    if (config->core) {
        core_rise(f);
    }
    if (config->core && config->cancel_ms > 0) {
        farm_push(f, config->cancel_ms, FARM_STOP, NONE);
    }
}

void farm_run(const struct farm_config *config, struct farm *f)
{
    begin(f, config);
    const int64_t began_ms = f->now_ms;
    daemon_dispatch(f);
    while (f->n_done < config->n_tasks) {
        if (f->n_items == 0) {
            farm_fail(f, "nothing more will happen, and it is not at its end");
        }
        struct farm_item it = pop(f);
        f->now_ms = it.at_ms > f->now_ms ? it.at_ms : f->now_ms;
        take(f, &it);
        drop(&it);
        daemon_dispatch(f);
        f->quiet = f->quiet || f->n_done >= config->n_tasks - config->n_tasks / 20;
        if (config->stop_ms > 0 && f->now_ms - began_ms > config->stop_ms) {
            break;
        }
        if (f->now_ms - began_ms > TIME_MAX_MS) {
            farm_fail(f, "it does not come to its end");
        }
    }
    if (config->stop_ms == 0) {
        check_finish(f);
    }
}

void farm_release(struct farm *f)
{
    for (size_t i = 0; i < f->n_items; i++) {
        drop(&f->items[i]);
    }
    core_release(f);
    slurm_book_free(f->book);
    slurm_out_release(&f->out);
    free(f->tasks);
    free(f->todo);
    free(f->attempts);
    free(f->batches);
    free(f->jobs);
    free(f->queue);
    free(f->pending);
    free(f->nodes);
    free(f->items);
    free(f->spans);
}
