/* The real core over the book: its acts start and end attempts, the book's reports are its events.
 * Rows are committed, whole, before any act of theirs is done; the daemon may die between any two
 * acts. */
#include "daemon/core/core.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/sim/slurm/parts.h"

struct farm_core {
    struct core *core;
    struct core_out out;
    struct core_event *waiting; /* of the book's reports, in order */
    size_t n_waiting;
    size_t cap_waiting;
    struct task_row *rows; /* committed */
    struct attempt_row **attempts;
    struct program_row status;
    struct wall_time latest;
    bool stepping;
};

static void step(struct farm *f, const struct core_event *ev);

/* ---- rows ---- */

static void commit_attempt(struct farm *f, const struct state_row *row)
{
    struct farm_core *c = f->core;
    struct attempt_row **at = &c->attempts[row->task];
    const bool ended = row->kind == ROW_ATTEMPT_ENDED;
    if (row->attempt.no == 0) {
        return;
    }
    if (*at == NULL) {
        *at = xcalloc(1, sizeof(**at));
    }
    **at = row->attempt;
    if (row->kind == ROW_ATTEMPT_STARTED) {
        if (row->attempt.placement.executor != EXECUTOR_SLURM) {
            farm_fail(f, "task %u is placed elsewhere", row->task);
        }
        daemon_new_attempt(f, row->task, row->attempt.no, row->attempt.id);
    }
    if (ended) {
        f->attempts[f->tasks[row->task].current].live = false;
        f->n_live--;
        free(*at);
        *at = NULL;
    }
}

static void commit(struct farm *f)
{
    struct farm_core *c = f->core;
    for (size_t i = 0; i < c->out.n_rows; i++) {
        const struct state_row *row = &c->out.rows[i];
        c->latest = row->time;
        if (row->kind == ROW_PAUSED) {
            farm_push(f, farm_between(f, 5000, 60000), FARM_RESUME, NONE);
        }
        if (!row_kind_is_of_task(row->kind)) {
            c->status = row->status;
            continue;
        }
        const bool was = task_state_is_terminal(c->rows[row->task].state);
        const bool is = task_state_is_terminal(row->after.state);
        c->rows[row->task] = row->after;
        f->n_done += is;
        f->n_done -= was;
        f->tasks[row->task].done = row->after.state == TASK_DONE;
        if (row->after.state == TASK_BLOCKED && row->after.cause != CAUSE_CANCELLED &&
            row->after.cause != CAUSE_STOPPED) {
            farm_fail(f, "task %u is blocked(%s)", row->task, cause_name(row->after.cause));
        }
        commit_attempt(f, row);
    }
}

/* ---- acts ---- */

static void later(struct farm *f, int64_t delay_ms, const struct core_event *ev)
{
    struct farm_item *it = farm_push(f, delay_ms, FARM_CORE, NONE);
    it->core_ev = xcalloc(1, sizeof(*it->core_ev));
    *it->core_ev = *ev;
}

static void end_attempt(struct farm *f, const struct core_act *act)
{
    const struct attempt_key key = {act->program, act->task, act->attempt_no};
    const bool kill = act->kind == ACT_KILL;
    uint32_t at = farm_attempt_of(f, &key);
    if (at == NONE) {
        farm_fail(f, "the core ends an attempt that is not there");
    }
    f->attempts[at].want = kill ? ASK_KILL : ASK_TERM;
    daemon_step(f, &(struct slurm_event){.kind = kill ? SLURM_EVENT_KILL : SLURM_EVENT_TERMINATE,
                                         .key = key});
}

static void do_act(struct farm *f, const struct core_act *act)
{
    const struct attempt_key key = {act->program, act->task, act->attempt_no};
    struct core_event ev = {
        .program = 1, .task = act->task, .attempt_no = act->attempt_no, .text = "scripted"};
    switch (act->kind) {
    case ACT_START: daemon_start(f, farm_attempt_of(f, &key)); return;
    case ACT_TERMINATE:
    case ACT_KILL: end_attempt(f, act); return;
    case ACT_PROBE: daemon_probe(f, farm_attempt_of(f, &key)); return;
    case ACT_VERIFY:
        ev.kind = CORE_RESULT_CHECKED;
        ev.check.result = RESULT_VALID;
        break;
    case ACT_LINK: ev.kind = CORE_LINKED; break;
    case ACT_REMOVE: return; /* of a program that is given up */
    case ACT_ARM:
        f->core_armed_ms = act->at_ms > f->now_ms ? act->at_ms : f->now_ms;
        if (act->at_ms != INT64_MAX) {
            farm_push(f, f->core_armed_ms - f->now_ms, FARM_CORE_TIMER, NONE);
        }
        return;
    case ACT_WATCH_DISK:
    case ACT_WATCH_DATA: ev.kind = CORE_MENDED; break;
    case ACT_VERDICT:
        ev.kind = CORE_VERDICT_COMPUTED;
        memcpy(ev.verdict.outcome, "O4", 3);
        break;
    case ACT_REPORT: ev.kind = CORE_REPORTED; break;
    case CORE_ACT_NR: farm_fail(f, "no such act of the core");
    }
    later(f, farm_between(f, 1, 50), &ev);
}

static void step(struct farm *f, const struct core_event *ev)
{
    struct farm_core *c = f->core;
    struct core_event timed = *ev;
    timed.mono.ms = timed.wall.ms = f->now_ms;
    core_out_clear(&c->out);
    core_step(c->core, &timed, &c->out);
    f->n_core_steps++;
    commit(f);
    for (size_t i = 0; i < c->out.n_acts && !f->dead; i++) {
        const struct core_act act = c->out.acts[i];
        if (farm_chance(f, f->config.n_tasks > 1000 ? 0 : 3)) {
            daemon_die(f);
        } else {
            do_act(f, &act);
        }
    }
}

/* Steps of the core for all that the book has reported; they may make more of it. */
void core_drain(struct farm *f)
{
    struct farm_core *c = f->core;
    if (c == NULL || c->stepping) {
        return;
    }
    c->stepping = true;
    for (size_t i = 0; i < c->n_waiting && !f->dead; i++) {
        const struct core_event ev = c->waiting[i];
        step(f, &ev);
    }
    c->n_waiting = 0;
    c->stepping = false;
}

void core_tell(struct farm *f, const struct core_event *ev)
{
    struct farm_core *c = f->core;
    ARRAY_GROW(c->waiting, c->n_waiting, c->cap_waiting);
    c->waiting[c->n_waiting++] = *ev;
}

/* What the book reports, in the core's words. */
void core_report(struct farm *f, const struct slurm_act *act)
{
    static const enum core_health HEALTH[] = {[SLURM_ALIVE] = HEALTH_ALIVE,
                                              [SLURM_QUEUED] = HEALTH_QUEUED,
                                              [SLURM_UNSURE] = HEALTH_UNKNOWN};
    struct core_event ev = {.program = 1, .task = act->key.task, .attempt_no = act->key.no};
    if (act->kind == SLURM_ACT_BEGAN) {
        ev.kind = CORE_ATTEMPT_UP;
    } else if (act->kind == SLURM_ACT_PROBED) {
        ev.kind = CORE_PROBED;
        ev.health = HEALTH[act->health];
    } else if (act->kind == SLURM_ACT_ENDED) {
        ev.kind = CORE_ATTEMPT_ENDED;
        ev.ended.reason = act->end->reason;
        ev.ended.unfit = act->end->unfit;
        ev.ended.excused = act->end->excused;
        ev.ended.code = act->end->code;
        ev.ended.signal = act->end->signal;
        ev.ended.ran_ms = ev.ended.user_ms = ev.ended.system_ms = ev.ended.max_rss_bytes = -1;
    } else {
        ev.kind = CORE_QUEUE;
        ev.queue.executor = EXECUTOR_SLURM;
        ev.queue.full = act->kind == SLURM_ACT_FULL;
    }
    core_tell(f, &ev);
}

/* A person cancels a task, and perhaps has it run after all. */
void core_people(struct farm *f)
{
    uint32_t task = (uint32_t)rng_below(&f->rng, f->config.n_tasks);
    core_tell(f, &(struct core_event){.kind = CORE_CANCEL, .program = 1, .task = task});
    if (rng_below(&f->rng, 4) > 0) {
        const struct core_event retry = {.kind = CORE_RETRY, .program = 1, .task = task};
        later(f, farm_between(f, 1000, 900000), &retry);
    }
}

/* ---- lives ---- */

static void add_program(struct farm *f)
{
    struct farm_core *c = f->core;
    const uint32_t n = f->config.n_tasks;
    struct core_plan_stage stage = {.name = "train",
                                    .counted = true,
                                    .executor = EXECUTOR_SLURM,
                                    .threads = 1,
                                    .crashes = 60000,
                                    .attempts = 1000000};
    struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = 1};
    for (size_t i = 0; i < SECTION_NR; i++) {
        stage.deadline_ms[i] = INT64_C(1000000000); /* the workers here say nothing */
    }
    struct core_live *live = xcalloc(n, sizeof(*live));
    struct core_end *ends = xcalloc(n, sizeof(*ends));
    ev.added.plan = (struct core_plan){
        .n_cells = n, .n_stages = 1, .max_queued = f->config.max_queued, .stages = &stage};
    for (uint32_t i = 0; i < n; i++) {
        if (c->attempts[i] != NULL) {
            live[ev.added.n_live++] = (struct core_live){.task = i, .attempt = *c->attempts[i]};
        }
        if (c->rows[i].state == TASK_BLOCKED) {
            ends[ev.added.n_ends++] = (struct core_end){.task = i, .code = -1};
        }
    }
    const bool fresh = c->latest.ms == 0;
    ev.added.tasks = fresh ? NULL : c->rows;
    ev.added.status = fresh ? NULL : &c->status;
    ev.added.live = live;
    ev.added.ends = ends;
    ev.added.latest = c->latest;
    step(f, &ev);
    free(live);
    free(ends);
}

void core_rise(struct farm *f)
{
    struct farm_core *c = f->core;
    struct core_config config;
    if (c == NULL) {
        c = f->core = xcalloc(1, sizeof(*c));
        core_out_init(&c->out);
        c->rows = xcalloc(f->config.n_tasks, sizeof(*c->rows));
        c->attempts = xcalloc(f->config.n_tasks, sizeof(struct attempt_row *));
    }
    core_config_default(&config);
    config.seed = rng_next(&f->rng);
    core_free(c->core);
    c->core = core_create(&config);
    c->n_waiting = 0;
    c->stepping = true;
    add_program(f);
    if (!f->dead) {
        step(f, &(struct core_event){.kind = CORE_ALL_ADDED});
    }
    c->stepping = false;
    core_drain(f);
}

void core_release(struct farm *f)
{
    struct farm_core *c = f->core;
    if (c == NULL) {
        return;
    }
    for (uint32_t i = 0; i < f->config.n_tasks; i++) {
        free(c->attempts[i]);
    }
    core_free(c->core);
    core_out_release(&c->out);
    free(c->attempts);
    free(c->rows);
    free(c->waiting);
    free(c);
}
