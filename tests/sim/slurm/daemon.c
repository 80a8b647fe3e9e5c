/* The shell of a daemon as small as can be, and a core that starts every task until it has a
 * result. What is committed survives; the book and every answer on its way die with the daemon. */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/sim/slurm/parts.h"

static void draw_id(struct farm *f, char id[UUID_TEXT_SIZE])
{
    static const char HEX[] = "0123456789abcdef";
    static const char FORM[] = "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx";
    for (size_t i = 0; i < UUID_TEXT_SIZE; i++) {
        id[i] = FORM[i] == 'x' ? HEX[rng_below(&f->rng, 16)] : FORM[i];
    }
}

void daemon_begin(struct farm *f)
{
    struct slurm_book_config config;
    slurm_book_config_default(&config);
    config.seed = rng_next(&f->rng);
    config.max_array = f->config.max_array;
    f->book = slurm_book_create(&config);
    memset(f->under_way, 0, sizeof(f->under_way));
    f->n_calls = 0;
    f->full = f->dead = false;
    f->armed_ms = INT64_MAX;
}

void daemon_die(struct farm *f)
{
    f->n_faults[FAULT_RESTART]++;
    f->generation++;
    f->dead = true;
    slurm_book_free(f->book);
    f->book = NULL;
    farm_push(f, farm_between(f, 500, 120000), FARM_RISE, NONE);
}

/* ---- acts ---- */

static uint32_t batch_of(struct farm *f, const struct slurm_act *act)
{
    uint32_t first = farm_attempt_of(f, &act->entries[0].key);
    const struct farm_attempt *a = &f->attempts[first];
    const bool adopted = a->submitted && strcmp(f->batches[a->batch].name, act->name) == 0;
    if (act->again || adopted) { /* an earlier daemon's is submitted again under its name */
        f->n_faults[FAULT_AGAIN]++;
        return a->batch;
    }
    ARRAY_GROW(f->batches, f->n_batches, f->cap_batches);
    struct farm_batch *b = &f->batches[f->n_batches];
    *b = (struct farm_batch){.array = act->array != NULL};
    (void)memcpy(b->name, act->name, UUID_TEXT_SIZE);
    return f->n_batches++;
}

static void submit(struct farm *f, const struct slurm_act *act)
{
    if (farm_chance(f, 50)) {
        struct slurm_event *ev = &farm_push(f, 10, FARM_ANSWER, NONE)->ev;
        ev->kind = SLURM_EVENT_SUBMITTED;
        ev->name = xstrdup(act->name);
        ev->submit = SLURM_SUBMIT_NOT_MADE;
        f->n_faults[FAULT_NOT_MADE]++;
        return;
    }
    uint32_t batch = batch_of(f, act);
    for (size_t i = 0; i < act->n_entries; i++) {
        uint32_t at = farm_attempt_of(f, &act->entries[i].key);
        if (at == NONE) {
            farm_fail(f, "something unknown is submitted");
        }
        struct farm_attempt *a = &f->attempts[at];
        check_submit(f, at);
        a->submitted = true;
        a->batch = batch;
        a->index = act->entries[i].index;
        if (farm_chance(f, 2)) {
            daemon_die(f); /* some of the files are written, sbatch is not run */
            return;
        }
    }
    cluster_sbatch(f, act, batch);
}

static void end(struct farm *f, const struct slurm_act *act)
{
    uint32_t at = farm_attempt_of(f, &act->key);
    if (at == NONE) {
        farm_fail(f, "something unknown ends");
    }
    struct farm_attempt *a = &f->attempts[at];
    struct farm_task *t = &f->tasks[a->task];
    check_ended(f, at, act);
    a->fenced = a->fenced || act->fence;
    if (farm_chance(f, 5)) {
        daemon_die(f); /* fenced, and not committed */
        return;
    }
    f->n_ends[act->end->reason]++;
    if (act->end->reason == END_HOST_LOST && a->claim != NONE) {
        int64_t died_ms = f->jobs[a->claim].node_died_ms;
        if (died_ms > 0) {
            ARRAY_GROW(f->spans, f->n_spans, f->cap_spans);
            f->spans[f->n_spans++] = f->now_ms - died_ms;
        }
    }
    if (f->core != NULL) {
        core_report(f, act);
        return;
    }
    a->live = false;
    f->n_live--;
    if (!act->fence && act->end->code == 0) {
        t->done = true;
        f->n_done++;
        return;
    }
    f->todo[f->n_todo++] = a->task;
}

static void test(struct farm *f, const struct slurm_act *act)
{
    struct slurm_event *ev = &farm_push(f, farm_between(f, 5, 100), FARM_ANSWER, NONE)->ev;
    ev->kind = SLURM_EVENT_TESTED;
    ev->shape = act->shape;
    ev->text = "scripted";
    ev->submit = farm_chance(f, 1000)  ? SLURM_SUBMIT_UNKNOWN
                 : farm_chance(f, 200) ? SLURM_SUBMIT_NEVER
                                       : SLURM_SUBMIT_DONE;
}

static void do_act(struct farm *f, const struct slurm_act *act)
{
    switch (act->kind) {
    case SLURM_ACT_TEST:
        check_call(f, act);
        test(f, act);
        return;
    case SLURM_ACT_SUBMIT:
        check_call(f, act);
        submit(f, act);
        return;
    case SLURM_ACT_QUEUE:
    case SLURM_ACT_NAMES:
        check_call(f, act);
        cluster_squeue(f, act);
        return;
    case SLURM_ACT_ACCOUNTING:
        check_call(f, act);
        cluster_sacct(f);
        return;
    case SLURM_ACT_CANCEL:
        check_call(f, act);
        cluster_scancel(f, act);
        return;
    case SLURM_ACT_LOOK: shim_look(f, &act->key); return;
    case SLURM_ACT_PROBED:
        if (f->core != NULL) {
            core_report(f, act);
        } else if (act->health == SLURM_UNSURE) {
            farm_push(f, 30000, FARM_PROBE, farm_attempt_of(f, &act->key));
        }
        return;
    case SLURM_ACT_ENDED: end(f, act); return;
    case SLURM_ACT_FULL:
    case SLURM_ACT_ROOM:
        f->full = act->kind == SLURM_ACT_FULL;
        if (f->core != NULL) {
            core_report(f, act);
        }
        return;
    case SLURM_ACT_BEGAN:
        if (farm_attempt_of(f, &act->key) == NONE) {
            farm_fail(f, "something unknown begins");
        }
        if (f->core != NULL) {
            core_report(f, act);
        }
        return;
    case SLURM_ACT_FORGET:
    case SLURM_ACT_NOTE: return;
    case SLURM_ACT_NR: break;
    }
    farm_fail(f, "no such act");
}

static void arm(struct farm *f)
{
    int64_t next = slurm_book_next_ms(f->book);
    next = next > f->now_ms ? next : f->now_ms;
    if (next != INT64_MAX && next < f->armed_ms) {
        f->armed_ms = next;
        farm_push(f, next - f->now_ms, FARM_TIMER, NONE);
    }
}

void daemon_step(struct farm *f, const struct slurm_event *ev)
{
    struct slurm_event timed = *ev;
    timed.mono.ms = f->now_ms;
    slurm_out_clear(&f->out);
    slurm_book_step(f->book, &timed, &f->out);
    f->n_steps++;
    for (size_t i = 0; i < f->out.n && !f->dead; i++) {
        if (farm_chance(f, f->config.n_tasks > 1000 ? 0 : 3)) {
            daemon_die(f); /* at every boundary */
        } else {
            do_act(f, &f->out.acts[i]);
        }
    }
    if (!f->dead) {
        check_step(f);
        arm(f);
    }
}

/* ---- tasks ---- */

static struct slurm_event event_of(const struct farm *f, uint32_t attempt,
                                   enum slurm_event_kind kind)
{
    const struct farm_attempt *a = &f->attempts[attempt];
    struct slurm_event ev = {.kind = kind, .key = {.program = 1, .task = a->task, .no = a->no}};
    ev.start.id = a->id;
    ev.start.array = f->config.array;
    return ev;
}

void daemon_new_attempt(struct farm *f, uint32_t task, uint32_t no, const char *id)
{
    ARRAY_GROW(f->attempts, f->n_attempts, f->cap_attempts);
    struct farm_attempt *a = &f->attempts[f->n_attempts];
    *a = (struct farm_attempt){.task = task,
                               .no = no,
                               .live = true,
                               .batch = NONE,
                               .last_job = NONE,
                               .claim = NONE,
                               .unfit_seen_ms = INT64_MAX,
                               .exit_seen_ms = INT64_MAX};
    (void)memcpy(a->id, id, UUID_TEXT_SIZE);
    f->tasks[task].n_attempts = no;
    f->tasks[task].current = f->n_attempts++;
    f->n_live++;
}

void daemon_start(struct farm *f, uint32_t attempt)
{
    struct slurm_event ev = event_of(f, attempt, SLURM_EVENT_START);
    daemon_step(f, &ev);
}

void daemon_dispatch(struct farm *f)
{
    char id[UUID_TEXT_SIZE];
    if (f->core != NULL) {
        core_drain(f);
        return;
    }
    while (!f->dead && !f->full && f->n_todo > 0 && f->n_live < f->config.max_queued) {
        uint32_t task = f->todo[--f->n_todo];
        draw_id(f, id);
        daemon_new_attempt(f, task, f->tasks[task].n_attempts + 1, id);
        daemon_start(f, f->n_attempts - 1);
    }
}

void daemon_probe(struct farm *f, uint32_t attempt)
{
    const struct farm_attempt *a = &f->attempts[attempt];
    if (!a->live) {
        return;
    }
    struct slurm_event ev = event_of(f, attempt, SLURM_EVENT_PROBE);
    ev.start.hint = !a->submitted                              ? SLURM_HINT_NEVER
                    : a->fenced && a->exit_seen_ms > f->now_ms ? SLURM_HINT_FENCED
                                                               : SLURM_HINT_JOB;
    if (farm_chance(f, 300)) {
        ev.start.hint = SLURM_HINT_UNCLEAR;
    }
    if (a->submitted) {
        ev.start.name = f->batches[a->batch].name;
        ev.start.index = f->batches[a->batch].array ? a->index : SLURM_INDEX_NONE;
    }
    daemon_step(f, &ev);
    if (f->core == NULL && !f->dead && f->attempts[attempt].live &&
        f->attempts[attempt].want != ASK_NOTHING) {
        ev.kind = f->attempts[attempt].want == ASK_KILL ? SLURM_EVENT_KILL : SLURM_EVENT_TERMINATE;
        daemon_step(f, &ev);
    }
}

void daemon_rise(struct farm *f)
{
    daemon_begin(f);
    f->n_live_at_rise = f->n_live;
    for (uint32_t i = 0; i < f->n_attempts; i++) {
        f->attempts[i].adopted |= f->attempts[i].live;
    }
    if (f->core != NULL) {
        core_rise(f);
        return;
    }
    for (uint32_t i = 0; i < f->n_attempts && !f->dead; i++) {
        if (f->attempts[i].live) {
            daemon_probe(f, i);
        }
    }
}

static void ask_for_end(struct farm *f)
{
    uint32_t task = (uint32_t)rng_below(&f->rng, f->config.n_tasks);
    uint32_t at = f->tasks[task].current;
    if (f->dead || at == NONE || !f->attempts[at].live) {
        return;
    }
    bool kill = rng_below(&f->rng, 2) == 0;
    f->attempts[at].want = kill ? ASK_KILL : ASK_TERM;
    struct slurm_event ev = event_of(f, at, kill ? SLURM_EVENT_KILL : SLURM_EVENT_TERMINATE);
    daemon_step(f, &ev);
}

void daemon_people(struct farm *f)
{
    if (farm_chance(f, 1000) && !f->dead) {
        if (f->core != NULL) {
            core_people(f);
        } else {
            ask_for_end(f);
        }
    }
    if (farm_chance(f, 60)) {
        cluster_crash(f);
    }
    if (farm_chance(f, 100)) {
        cluster_break_node(f);
    }
    if (!f->dead && farm_chance(f, 30)) {
        daemon_die(f);
    }
    if (!f->quiet) {
        farm_push(f, farm_between(f, 1000, 5000), FARM_PEOPLE, NONE);
    }
}
