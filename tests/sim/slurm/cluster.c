/* The controller and its nodes: what sbatch, squeue and scancel do, and what goes wrong. Answers
 * are texts as Slurm prints them, read back by the real parser. */
#include "tests/sim/slurm/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define PASS_MS   1000
#define PASS_MOST 200 /* jobs begun in one pass */
#define LOST_MS   6000

bool cluster_is_live(enum slurm_state s)
{
    return slurm_state_phase(s) != SLURM_PHASE_OVER;
}

void cluster_wait(struct farm *f, uint32_t job)
{
    ARRAY_GROW(f->pending, f->n_pending, f->cap_pending);
    f->pending[f->n_pending++] = job;
    if (!f->pass_armed) {
        f->pass_armed = true;
        farm_push(f, PASS_MS, FARM_PASS, NONE);
    }
}

static void release_node(struct farm *f, const struct farm_job *j)
{
    if (j->node != NONE && f->nodes[j->node].used > 0) {
        f->nodes[j->node].used--;
    }
}

void cluster_move(struct farm *f, uint32_t job, enum slurm_state state)
{
    struct farm_job *j = &f->jobs[job];
    bool was = cluster_is_live(j->state);
    bool held_node = slurm_state_phase(j->state) == SLURM_PHASE_ACTIVE;
    if (!j->present || (!was && !cluster_is_live(state))) {
        return;
    }
    j->before = j->state;
    j->state = state;
    j->changed_ms = f->now_ms;
    if (held_node && slurm_state_phase(state) != SLURM_PHASE_ACTIVE) {
        release_node(f, j);
    }
    if (was && !cluster_is_live(state)) {
        f->n_held--;
        if (j->attempt != NONE) {
            f->attempts[j->attempt].n_live_jobs--;
        }
        farm_push(f, f->config.min_job_age_ms, FARM_PURGE, job);
    }
}

void cluster_purge(struct farm *f, uint32_t job)
{
    struct farm_job *j = &f->jobs[job];
    if (!j->present) {
        return;
    }
    j->present = false;
    f->queue[j->place] = f->queue[--f->n_queue];
    f->jobs[f->queue[j->place]].place = j->place;
}

/* ---- accepting ---- */

static enum farm_fate draw_fate(struct farm *f)
{
    if (!farm_chance(f, 1200)) {
        return FATE_GOOD;
    }
    return (enum farm_fate)farm_between(f, FATE_CODE, FATE_NR - 1);
}

static uint32_t add_job(struct farm *f, uint32_t attempt, uint32_t base, uint32_t index)
{
    ARRAY_GROW(f->jobs, f->n_jobs, f->cap_jobs);
    ARRAY_GROW(f->queue, f->n_queue, f->cap_queue);
    f->queue[f->n_queue] = f->n_jobs;
    f->jobs[f->n_jobs] = (struct farm_job){.attempt = attempt,
                                           .batch = NONE,
                                           .base = base,
                                           .index = index,
                                           .state = SLURM_PENDING,
                                           .before = SLURM_STATE_NR,
                                           .changed_ms = f->now_ms,
                                           .accepted_ms = f->now_ms,
                                           .node = NONE,
                                           .present = true,
                                           .place = f->n_queue++,
                                           .fate = FATE_GOOD};
    return f->n_jobs++;
}

static uint32_t next_id(struct farm *f)
{
    uint32_t id = f->next_id++;
    for (uint32_t i = 0; i < f->n_jobs && f->config.n_tasks <= 1000; i++) {
        f->n_faults[FAULT_ID_REUSED] += f->jobs[i].base == id;
    }
    return id;
}

/* Another user's. */
static void add_foreign(struct farm *f)
{
    const uint32_t job = add_job(f, NONE, next_id(f), SLURM_INDEX_NONE);
    f->n_held++;
    farm_push(f, farm_between(f, 1000, 1000000), FARM_STATE, job)->state = SLURM_COMPLETED;
}

void cluster_accept(struct farm *f, struct farm_plan *plan)
{
    uint32_t base = next_id(f);
    const struct farm_batch *batch = &f->batches[plan->batch];
    if (farm_chance(f, 500)) {
        add_foreign(f);
    }
    for (uint32_t i = 0; i < plan->n; i++) {
        struct farm_attempt *a = &f->attempts[plan->attempts[i]];
        uint32_t job =
            add_job(f, plan->attempts[i], base, batch->array ? a->index : SLURM_INDEX_NONE);
        f->jobs[job].batch = plan->batch;
        f->jobs[job].fate = draw_fate(f);
        f->jobs[job].late = plan->late;
        f->jobs[job].excluded = plan->excluded;
        f->n_fates[f->jobs[job].fate]++;
        a->in_flight = false;
        a->last_job = job;
        a->n_live_jobs++;
        f->n_held++;
        cluster_wait(f, job);
        if (f->jobs[job].fate == FATE_HAND_PENDING) {
            farm_push(f, farm_between(f, 100, 3000), FARM_STATE, job)->state = SLURM_CANCELLED;
        }
    }
    f->most_held = f->n_held > f->most_held ? f->n_held : f->most_held;
}

static void answer_submit(struct farm *f, const struct slurm_act *act, int64_t delay_ms,
                          enum slurm_submit_answer answer)
{
    struct slurm_event *ev = &farm_push(f, delay_ms, FARM_ANSWER, NONE)->ev;
    ev->kind = SLURM_EVENT_SUBMITTED;
    ev->name = xstrdup(act->name);
    ev->text = "scripted";
    ev->submit = answer;
}

static struct farm_plan *make_plan(struct farm *f, const struct slurm_act *act, uint32_t batch)
{
    struct farm_plan *p = xcalloc(1, sizeof(*p));
    p->batch = batch;
    for (const char *at = act->exclude; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        const unsigned long node = strtoul(at + 1, NULL, 10); /* "n7" */
        p->excluded |= node < 64 ? UINT64_C(1) << node : 0;
    }
    p->attempts = xcalloc(act->n_entries, sizeof(*p->attempts));
    for (size_t i = 0; i < act->n_entries; i++) {
        p->attempts[p->n++] = farm_attempt_of(f, &act->entries[i].key);
    }
    f->n_faults[FAULT_EXCLUDED] += p->excluded != 0;
    return p;
}

static void accept_at(struct farm *f, const struct farm_plan *from, int64_t delay_ms, bool late)
{
    struct farm_plan *p = xcalloc(1, sizeof(*p));
    *p = *from;
    p->attempts = xcalloc(from->n, sizeof(*p->attempts));
    memcpy(p->attempts, from->attempts, from->n * sizeof(*p->attempts));
    p->late = late;
    for (uint32_t i = 0; i < p->n; i++) {
        f->attempts[p->attempts[i]].in_flight = true;
        f->attempts[p->attempts[i]].late |= late;
    }
    farm_push(f, delay_ms, FARM_ACCEPT, NONE)->plan = p;
}

static bool excludes_all(const struct farm *f, uint64_t excluded)
{
    bool all = f->config.n_nodes <= 64;
    for (uint32_t i = 0; all && i < f->config.n_nodes; i++) {
        all = (excluded >> i & 1) != 0;
    }
    return all;
}

/* What becomes of one sbatch: accepted or not, answered or not, in every order. */
static void submit(struct farm *f, const struct slurm_act *act, const struct farm_plan *plan)
{
    int64_t quick = farm_between(f, 5, 100);
    if (f->now_ms < f->down_until_ms) {
        answer_submit(f, act, 9000, SLURM_SUBMIT_UNKNOWN);
    } else if (excludes_all(f, plan->excluded)) {
        f->n_faults[FAULT_NO_NODE]++;
        answer_submit(f, act, quick, SLURM_SUBMIT_NEVER);
    } else if (farm_chance(f, 60)) {
        f->n_faults[FAULT_NEVER]++;
        answer_submit(f, act, quick, SLURM_SUBMIT_NEVER);
    } else if (farm_chance(f, 300)) {
        f->n_faults[FAULT_LOST_ANSWER]++;
        accept_at(f, plan, quick, false);
        answer_submit(f, act, farm_between(f, 1000, 150000), SLURM_SUBMIT_UNKNOWN);
    } else if (farm_chance(f, 300)) {
        f->n_faults[FAULT_NOT_ACCEPTED]++;
        answer_submit(f, act, farm_between(f, 100, 150000), SLURM_SUBMIT_UNKNOWN);
    } else if (farm_chance(f, 300)) {
        f->n_faults[FAULT_LATE_ACCEPT]++;
        accept_at(f, plan, farm_between(f, 30000, 120000), false);
        answer_submit(f, act, 30000, SLURM_SUBMIT_UNKNOWN);
    } else if (farm_chance(f, 100)) {
        f->n_faults[FAULT_VERY_LATE_ACCEPT]++;
        accept_at(f, plan, farm_between(f, 200000, 900000), true);
        answer_submit(f, act, 10000, SLURM_SUBMIT_UNKNOWN);
    } else if (farm_chance(f, 200)) {
        f->n_faults[FAULT_DOUBLED]++;
        accept_at(f, plan, quick, true);
        accept_at(f, plan, quick + farm_between(f, 1, 20000), true);
        answer_submit(f, act, quick + 1, SLURM_SUBMIT_DONE);
    } else if (farm_chance(f, 500)) {
        f->n_faults[FAULT_FULL]++;
        answer_submit(f, act, quick, SLURM_SUBMIT_FULL);
    } else {
        accept_at(f, plan, quick / 2, false);
        answer_submit(f, act, quick, SLURM_SUBMIT_DONE);
    }
}

void cluster_sbatch(struct farm *f, const struct slurm_act *act, uint32_t batch)
{
    struct farm_plan *plan = make_plan(f, act, batch);
    submit(f, act, plan);
    free(plan->attempts);
    free(plan);
}

/* ---- running ---- */

static bool is_excluded(uint64_t excluded, uint32_t node)
{
    return node < 64 && (excluded >> node & 1) != 0;
}

static uint32_t find_node(struct farm *f, uint64_t excluded)
{
    uint32_t first = (uint32_t)rng_below(&f->rng, f->config.n_nodes);
    for (uint32_t i = 0; i < f->config.n_nodes; i++) {
        uint32_t n = (first + i) % f->config.n_nodes;
        if (!f->nodes[n].down && f->nodes[n].used < f->config.cpus && !is_excluded(excluded, n)) {
            return n;
        }
    }
    return NONE;
}

static void begin_job(struct farm *f, uint32_t job, uint32_t node)
{
    struct farm_job *j = &f->jobs[job];
    f->nodes[node].used++;
    j->node = node;
    cluster_move(f, job, SLURM_RUNNING);
    f->attempts[j->attempt].began = true;
    if (j->fate == FATE_BAD_START) {
        farm_push(f, farm_between(f, 50, 1000), FARM_STATE, job)->state = SLURM_FAILED;
        return;
    }
    if (j->fate == FATE_STEPD) {
        farm_push(f, 48000, FARM_STATE, job)->state = SLURM_NODE_FAIL;
    }
    if (j->fate == FATE_ODD_STATE) {
        farm_push(f, 3000, FARM_STATE, job)->state = SLURM_UNKNOWN;
    }
    farm_push(f, farm_between(f, 50, 2000), FARM_SHIM, job)->generation = j->restarts;
}

void cluster_pass(struct farm *f)
{
    f->pass_armed = false;
    uint32_t n = 0;
    while (f->first_pending < f->n_pending && n < PASS_MOST && f->now_ms >= f->down_until_ms) {
        uint32_t job = f->pending[f->first_pending];
        const struct farm_job *j = &f->jobs[job];
        if (j->present && j->state == SLURM_PENDING) {
            uint32_t node = find_node(f, j->excluded);
            if (node == NONE) {
                break;
            }
            begin_job(f, job, node);
            n++;
        }
        f->first_pending++;
    }
    if (f->first_pending < f->n_pending) {
        f->pass_armed = true;
        farm_push(f, PASS_MS, FARM_PASS, NONE);
    }
}

void cluster_node_fail(struct farm *f, uint32_t node)
{
    for (uint32_t i = f->n_queue; i-- > 0;) {
        uint32_t job = f->queue[i];
        if (f->jobs[job].node == node && f->jobs[job].state != SLURM_PENDING) {
            cluster_move(f, job, SLURM_NODE_FAIL);
        }
    }
}

void cluster_break_node(struct farm *f)
{
    uint32_t node = (uint32_t)rng_below(&f->rng, f->config.n_nodes);
    struct farm_node *n = &f->nodes[node];
    if (n->down) {
        return;
    }
    bool goes_on = rng_below(&f->rng, 2) == 0;
    n->down = true;
    f->n_faults[FAULT_NODE_DIED]++;
    if (goes_on && rng_below(&f->rng, 2) == 0) {
        n->cut_off_ms = f->now_ms;
        f->n_faults[FAULT_NODE_CUT_OFF]++;
    }
    for (uint32_t i = 0; !goes_on && i < f->n_queue; i++) {
        struct farm_job *j = &f->jobs[f->queue[i]];
        if (j->node == node && j->alive) {
            j->changed_ms = j->node_died_ms = f->now_ms;
            shim_kill(f, f->queue[i]);
        }
    }
    farm_push(f, farm_between(f, 10000, 120000), FARM_NODE_FAIL, node);
    farm_push(f, farm_between(f, 130000, 1500000), FARM_NODE_BACK, node);
}

/* kill -9 slurmctld: jobs of its last seconds are lost, and their ids given out again (rule 2). */
static void lose_jobs(struct farm *f, int64_t lost_ms)
{
    for (uint32_t i = f->n_queue; i-- > 0;) {
        uint32_t job = f->queue[i];
        struct farm_job *j = &f->jobs[job];
        if (j->accepted_ms < f->now_ms - lost_ms) {
            continue;
        }
        f->n_faults[FAULT_CONTROLLER_LOST]++;
        f->next_id = j->base < f->next_id ? j->base : f->next_id;
        shim_kill(f, job);
        cluster_move(f, job, SLURM_CANCELLED);
        cluster_purge(f, job);
    }
    for (int64_t n = farm_between(f, 0, 12); n > 0 && f->config.n_tasks <= 1000; n--) {
        add_foreign(f); /* others are first to submit when it is back */
    }
}

void cluster_crash(struct farm *f)
{
    f->n_faults[FAULT_CONTROLLER_DOWN]++;
    f->down_until_ms = f->now_ms + farm_between(f, 1000, farm_chance(f, 2000) ? 3600000 : 120000);
    lose_jobs(f, LOST_MS);
}

/* ---- squeue, sacct, scancel ---- */

static void print_row(struct farm *f, const struct farm_job *j, int64_t as_of_ms,
                      struct strbuf *out)
{
    enum slurm_state s = j->changed_ms > as_of_ms ? j->before : j->state;
    /* another's may have a UUID for a name, too: another daemon of the same user */
    const char *foreign = j->base % 2 == 0 ? "interactive" : "deadbeef-0000-4000-8000-000000000000";
    if (j->accepted_ms > as_of_ms || s == SLURM_STATE_NR) {
        return; /* not yet in what is shown */
    }
    /* Slurm shows those that were cancelled while they waited as one row of their array. */
    const bool whole = s == SLURM_CANCELLED && j->node == NONE && j->base % 2 == 0;
    strbuf_addf(out, "%u", j->base);
    if (j->index != SLURM_INDEX_NONE && !whole) {
        strbuf_addf(out, "_%u", j->index);
    }
    strbuf_addf(out, "|%u|%s|%s|%s|%lld|", j->base,
                s == SLURM_UNKNOWN ? "DREAMING" : slurm_state_word(s),
                s == SLURM_PENDING ? "Priority" : "None",
                j->attempt == NONE ? foreign : f->batches[j->batch].name,
                (long long)(j->accepted_ms / 1000));
    if (j->node != NONE) {
        strbuf_addf(out, "n%u", j->node);
    }
    strbuf_adds(out, "|N/A|N/A\n");
}

void cluster_squeue(struct farm *f, const struct slurm_act *act)
{
    struct farm_item *it = NULL;
    if (f->now_ms < f->down_until_ms || farm_chance(f, 200)) {
        f->n_faults[FAULT_CANNOT_ASK]++;
        it = farm_push(f, farm_between(f, 100, 9000), FARM_ANSWER, NONE);
        it->ev.kind = SLURM_EVENT_QUEUE;
        return;
    }
    struct strbuf text = STRBUF_INIT;
    int64_t as_of_ms = f->now_ms;
    if (farm_chance(f, 500)) {
        f->n_faults[FAULT_LAG]++;
        as_of_ms -= farm_between(f, 1000, 20000);
    }
    for (uint32_t i = 0; i < f->n_queue; i++) {
        const struct farm_job *j = &f->jobs[f->queue[i]];
        if (act->kind == SLURM_ACT_QUEUE ||
            (j->batch != NONE && strstr(act->name, f->batches[j->batch].name) != NULL)) {
            print_row(f, j, as_of_ms, &text);
        }
    }
    if (farm_chance(f, 100) && text.len > 60) {
        f->n_faults[FAULT_ODD_LINE]++;
        text.len -= (size_t)farm_between(f, 1, 50); /* a broken pipe */
        text.buf[text.len] = '\0';
    }
    it = farm_push(f, farm_between(f, 5, 500), FARM_ANSWER, NONE);
    it->ev.kind = SLURM_EVENT_QUEUE;
    it->ev.queue.ok = true;
    it->rows = strbuf_detach(&text);
}

void cluster_sacct(struct farm *f)
{
    struct slurm_event *ev = &farm_push(f, farm_between(f, 10, 5000), FARM_ANSWER, NONE)->ev;
    ev->kind = SLURM_EVENT_ACCOUNTED;
    ev->queue.off = true;
}

static void cancel_job(struct farm *f, uint32_t job, bool soft)
{
    struct farm_job *j = &f->jobs[job];
    check_cancelled(f, job);
    if (j->state == SLURM_PENDING) {
        if (!soft) {
            cluster_move(f, job, SLURM_CANCELLED);
        }
        return;
    }
    if (f->nodes[j->node].down) {
        if (!soft) {
            cluster_move(f, job, SLURM_CANCELLED);
        }
        return;
    }
    shim_term(f, job);
    shim_kill(f, job);
    struct farm_item *it = farm_push(f, farm_between(f, 10, 3000), FARM_STATE, job);
    it->state = soft ? SLURM_COMPLETED : SLURM_CANCELLED;
    it->generation = j->restarts;
}

static bool has_id(const char *ids, const struct farm_job *j)
{
    char id[40];
    (void)snprintf(id, sizeof(id), j->index != SLURM_INDEX_NONE ? "%u_%u" : "%u", j->base,
                   j->index);
    size_t n = strlen(id);
    for (const char *at = strstr(ids, id); at != NULL; at = strstr(at + 1, id)) {
        if ((at == ids || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0')) {
            return true;
        }
    }
    return false;
}

void cluster_scancel(struct farm *f, const struct slurm_act *act)
{
    farm_push(f, farm_between(f, 5, 200), FARM_ANSWER, NONE)->ev.kind = SLURM_EVENT_CANCELLED;
    if (f->now_ms < f->down_until_ms || farm_chance(f, 300)) {
        f->n_faults[FAULT_CANCEL_FAILED]++;
        return;
    }
    if (farm_chance(f, 500)) {
        lose_jobs(f,
                  10 * LOST_MS); /* between the question and this call: the ids are others' now */
    }
    for (uint32_t i = f->n_queue; i-- > 0;) {
        uint32_t job = f->queue[i];
        const struct farm_job *j = &f->jobs[job];
        if (!cluster_is_live(j->state) || !has_id(act->ids, j)) {
            continue;
        }
        /* --name: Slurm itself spares what has another one. */
        if (j->batch != NONE && strcmp(f->batches[j->batch].name, act->name) == 0) {
            cancel_job(f, job, act->soft);
        } else {
            check_foreign(f, act, job);
        }
    }
}
