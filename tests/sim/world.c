#include "tests/sim/parts.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/xalloc.h"

#define WALL_START_MS INT64_C(1763694202000)
#define TIME_MAX_MS   (INT64_C(10) * 365 * 24 * 3600 * 1000) /* more is time running away */
#define STEPS_MAX     UINT64_C(50000000)

void sim_fail(const struct sim *s, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)fprintf(stderr, "\nseed %llu, step %llu, %lld ms, event %d: %s\n",
                  (unsigned long long)s->seed, (unsigned long long)s->n_steps, (long long)s->now_ms,
                  s->in_step != NULL ? (int)s->in_step->kind : -1, text);
    abort();
}

bool sim_chance(struct sim *s, unsigned per_mille)
{
    return rng_below(&s->rng, 1000) < per_mille;
}

int64_t sim_between(struct sim *s, int64_t low, int64_t high)
{
    return low + (int64_t)rng_below(&s->rng, (uint64_t)(high - low) + 1);
}

static bool item_before(const struct sim_item *a, const struct sim_item *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->seq < b->seq;
}

struct sim_item *sim_push(struct sim *s, int64_t at_ms, enum sim_kind kind)
{
    ARRAY_GROW(s->items, s->n_items, s->cap_items);
    size_t pos = s->n_items++;
    struct sim_item item = {.at_ms = at_ms, .seq = s->n_seq++, .kind = kind};
    while (pos > 0 && item_before(&item, &s->items[(pos - 1) / 2])) {
        s->items[pos] = s->items[(pos - 1) / 2];
        pos = (pos - 1) / 2;
    }
    s->items[pos] = item;
    return &s->items[pos];
}

static struct sim_item pop(struct sim *s)
{
    struct sim_item top = s->items[0];
    struct sim_item last = s->items[--s->n_items];
    size_t pos = 0;
    for (;;) {
        size_t child = 2 * pos + 1;
        if (child >= s->n_items) {
            break;
        }
        if (child + 1 < s->n_items && item_before(&s->items[child + 1], &s->items[child])) {
            child++;
        }
        if (!item_before(&s->items[child], &last)) {
            break;
        }
        s->items[pos] = s->items[child];
        pos = child;
    }
    s->items[pos] = last;
    return top;
}

void sim_tell_surely(struct sim *s, const struct core_event *ev, int64_t delay_ms)
{
    struct sim_item *item = sim_push(s, s->now_ms + delay_ms, SIM_EVENT);
    item->ev = *ev;
}

void sim_tell(struct sim *s, const struct core_event *ev, int64_t delay_ms)
{
    if (s->quiet) {
        sim_tell_surely(s, ev, delay_ms);
        return;
    }
    if (sim_chance(s, s->odds.lost)) {
        return;
    }
    if (sim_chance(s, s->odds.late)) {
        delay_ms += sim_between(s, 1000, 600000);
    }
    sim_tell_surely(s, ev, delay_ms);
    if (sim_chance(s, s->odds.doubled)) {
        sim_tell_surely(s, ev, delay_ms + sim_between(s, 0, 100000));
    }
}

/* Whole-program answers of the shell: they come surely unless the daemon dies first, when they are
 * asked for again. */
static void answer_program(struct sim *s, const struct core_act *act)
{
    struct core_event ev = {.program = act->program, .text = "scripted"};
    int64_t delay_ms = sim_between(s, 10, 5000);
    struct sim_program *p = &s->programs[act->program - 1];
    if (act->kind == ACT_VERDICT) {
        p->verdict_head = p->n_amended;
        if (!s->quiet && sim_chance(s, 100)) {
            amend_ask_late(s, act->program);
        }
    }
    if (act->kind == ACT_REPORT) {
        ev.kind = CORE_REPORTED;
    } else if (act->kind == ACT_WATCH_DISK) {
        ev.kind = CORE_DISK;
        delay_ms = sim_between(s, 1000, 300000);
    } else if (act->kind == ACT_WATCH_DATA) {
        ev.kind = CORE_MENDED;
        delay_ms = sim_between(s, 1000, 300000);
    } else if (!s->quiet && sim_chance(s, 200)) {
        ev.kind = CORE_VERDICT_FAILED;
    } else {
        ev.kind = CORE_VERDICT_COMPUTED;
        (void)snprintf(ev.verdict.outcome, sizeof(ev.verdict.outcome), "O4");
    }
    sim_tell_surely(s, &ev, delay_ms);
    if (ev.kind == CORE_VERDICT_FAILED) {
        ev.kind = sim_chance(s, 500) ? CORE_RESUME : CORE_MENDED;
        sim_tell_surely(s, &ev, delay_ms + 1000);
    }
}

static void do_act(struct sim *s, const struct core_act *act)
{
    struct core_event ev = {.kind = CORE_LINKED,
                            .program = act->program,
                            .task = act->task,
                            .attempt_no = act->attempt_no};
    bool late = false;
    check_act(s, act);
    switch (act->kind) {
    case ACT_START: truth_start(s, act); break;
    case ACT_TERMINATE:
    case ACT_KILL: truth_signal(s, act); break;
    case ACT_PROBE: truth_probe(s, act); break;
    case ACT_VERIFY: truth_verify(s, act); break;
    case ACT_LINK:
        late = act->task >= s->programs[act->program - 1].n_grid && sim_chance(s, 300);
        sim_tell_surely(s, &ev, late ? sim_between(s, 1000, 3600000) : sim_between(s, 0, 20));
        break;
    case ACT_ARM:
        s->armed = act->at_ms != INT64_MAX;
        s->armed_ms = act->at_ms;
        if (s->armed) {
            sim_push(s, act->at_ms, SIM_TIMER)->generation = s->generation;
        }
        break;
    case ACT_WATCH_DISK:
    case ACT_WATCH_DATA:
    case ACT_VERDICT:
    case ACT_REPORT: answer_program(s, act); break;
    case ACT_REMOVE: break; /* check_act() has looked at it */
    case CORE_ACT_NR: sim_fail(s, "no such act");
    }
}

static void step(struct sim *s, struct core_event *ev);

/* What the new daemon's shell reads from the store and feeds to the new core. */
static void add_program(struct sim *s, uint32_t no, bool fresh)
{
    struct sim_program *p = &s->programs[no - 1];
    struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = no};
    struct task_row *rows = xcalloc(p->n_tasks, sizeof(*rows));
    struct core_live *live = xcalloc(p->n_tasks, sizeof(*live));
    struct core_end *ends = xcalloc(p->n_tasks, sizeof(*ends));
    size_t n_live = 0;
    size_t n_ends = 0;
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        const struct sim_task *t = &p->tasks[i];
        rows[i] = t->row;
        if (t->row.state == TASK_STARTING || t->row.state == TASK_RUNNING) {
            live[n_live++] = (struct core_live){
                i, t->attempt, t->row.n_attempts > 0 && t->answered == t->row.n_attempts};
        }
        if (t->row.state == TASK_BLOCKED) {
            ends[n_ends++] = (struct core_end){i, t->attempt.code, t->attempt.signal};
        }
    }
    struct core_apparatus checks[SIM_CHECKS_MAX];
    amend_plan_checks(p->checks, p->checks, p->n_checks, checks);
    ev.added.plan = (struct core_plan){.n_cells = p->n_cells,
                                       .n_stages = p->n_stages,
                                       .slots = p->slots,
                                       .priority = p->priority,
                                       .stages = p->stages,
                                       .workers = p->workers,
                                       .apparatus = checks,
                                       .n_apparatus = p->n_checks};
    ev.added.tasks = fresh ? NULL : rows;
    ev.added.live = live;
    ev.added.n_live = n_live;
    ev.added.ends = ends;
    ev.added.n_ends = n_ends;
    ev.added.status = fresh ? NULL : &p->row;
    ev.added.latest = p->latest;
    step(s, &ev);
    free(rows);
    free(live);
    free(ends);
}

/* Messages under way: of the dead daemon's own threads none arrive; some of the others' do. */
static void lose_messages(struct sim *s)
{
    size_t kept = 0;
    struct sim_item *old = s->items;
    size_t n_old = s->n_items;
    s->items = NULL;
    s->n_items = s->cap_items = 0;
    for (size_t i = 0; i < n_old; i++) {
        struct sim_item *it = &old[i];
        bool person =
            it->kind == SIM_EVENT &&
            (it->ev.kind == CORE_RESUME || it->ev.kind == CORE_DISK || it->ev.kind == CORE_MENDED);
        bool of_attempt =
            it->kind == SIM_EVENT && it->ev.kind >= CORE_ATTEMPT_UP && it->ev.kind <= CORE_PROBED;
        if (it->kind == SIM_TIMER ||
            (it->kind == SIM_EVENT && !person && !(of_attempt && sim_chance(s, 500)))) {
            continue;
        }
        struct sim_item *new = sim_push(s, it->at_ms, it->kind);
        uint64_t seq = new->seq;
        *new = *it;
        new->seq = seq;
        kept++;
    }
    free(old);
}

static void restart(struct sim *s)
{
    s->n_restarts++;
    s->generation++;
    s->armed = false;
    check_settle_lazy(s, sim_chance(s, 500));
    lose_messages(s);
    for (uint32_t i = 0; i < s->n_attempts; i++) {
        struct sim_attempt *a = &s->attempts[i];
        const struct sim_task *t = sim_task_at(s, a->program, a->task);
        if (t->current == i) {
            a->fed = t->attempt.offset;
            a->was_told = false;
        }
    }
    core_out_clear(&s->out);
    core_free(s->core);
    s->config.seed = rng_next(&s->rng);
    s->core = core_create(&s->config);
    for (uint32_t no = 1; no <= s->n_programs; no++) {
        add_program(s, no, false);
    }
    step(s, &(struct core_event){.kind = CORE_ALL_ADDED});
    gpus_change(s);
}

/* S9: what the pump does before it commits. Verifying waits neither for rows that may be lost nor
 * for starts of other attempts; whatever else is asked for stays in s->out. */
static void verify_early(struct sim *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->out.n_rows; i++) {
        if (!s->out.rows[i].lazy && s->out.rows[i].kind != ROW_ATTEMPT_STARTED) {
            return;
        }
    }
    for (size_t i = 0; i < s->out.n_acts; i++) {
        if (s->out.acts[i].kind == ACT_VERIFY) {
            check_early(s, &s->out.acts[i]);
            do_act(s, &s->out.acts[i]);
        } else {
            s->out.acts[kept++] = s->out.acts[i];
        }
    }
    s->n_early += s->out.n_acts - kept;
    s->out.n_acts = kept;
}

static void see_pauses(struct sim *s)
{
    for (size_t i = 0; i < s->out.n_rows; i++) {
        const struct state_row *row = &s->out.rows[i];
        if (row->kind == ROW_PAUSED && (row->status.paused & PAUSE_APPARATUS) != 0) {
            amend_see_pause(s, row->program);
        }
        if (row->kind == ROW_PAUSED && (row->status.paused & PAUSE_FAILURES) != 0) {
            people_see_failures(s, row->program);
        }
    }
}

/* The boundaries at which a daemon can die: before the commit (what is verified without one may
 * have begun), after it, between any two acts, after them. */
static void step(struct sim *s, struct core_event *ev)
{
    bool dies = !s->quiet && ev->kind != CORE_PROGRAM_ADDED && ev->kind != CORE_ALL_ADDED &&
                rng_below(&s->rng, 10000) < s->odds.restart;
    unsigned boundary = dies ? (unsigned)rng_below(&s->rng, 3) : 9;
    ev->mono.ms = s->now_ms - (sim_chance(s, 10) ? 500 : 0);
    ev->wall.ms = WALL_START_MS + s->now_ms + s->wall_shift_ms;
    s->in_step = ev;
    s->n_steps++;
    if (ev->kind == CORE_MACHINE) {
        s->config.cores = ev->machine.cores;
        s->config.slots = ev->machine.slots;
        s->config.memory_bytes = ev->machine.memory_bytes;
    }
    if (ev->kind == CORE_GPUS) {
        gpus_list(s, ev);
    }
    core_out_clear(&s->out);
    core_step(s->core, ev, &s->out);
    verify_early(s);
    if (boundary == 0) {
        restart(s);
        return;
    }
    check_rows(s);
    see_pauses(s);
    size_t n_acts = s->out.n_acts;
    size_t n_done = boundary == 1 ? rng_below(&s->rng, n_acts + 1) : n_acts;
    struct core_act *acts = s->out.acts;
    for (size_t i = 0; i < n_done; i++) {
        do_act(s, &acts[i]);
    }
    if (dies) {
        restart(s);
        return;
    }
    check_step(s);
    s->in_step = NULL;
}

void sim_add_tasks(struct sim_program *p, uint32_t n_tasks)
{
    p->tasks = xreallocarray(p->tasks, n_tasks, sizeof(*p->tasks));
    for (uint32_t i = p->n_tasks; i < n_tasks; i++) {
        const struct core_plan_stage *st = sim_stage_of(p, i);
        struct sim_task *t = &p->tasks[i];
        *t = (struct sim_task){.current = UINT32_MAX, .accepted = UINT32_MAX};
        task_row_init(&t->row,
                      st->n_after == 0 && sim_worker(p, i) == i ? TASK_READY : TASK_WAITING);
        t->durable = t->row;
        attempt_row_init(&t->attempt);
        t->durable_attempt = t->attempt;
        p->n_counted_open += st->counted;
    }
    p->n_tasks = n_tasks;
}

/* Something that every cell needs is missing, until somebody finds out. */
static void draw_broken(struct sim *s, struct sim_program *p)
{
    static const enum sim_fate HOW[] = {FATE_CRASH,  FATE_USER,       FATE_BAD_INPUT,
                                        FATE_MEMORY, FATE_BAD_RESULT, FATE_HANG};
    p->broken = sim_chance(s, 300) ? (uint32_t)rng_below(&s->rng, p->n_stages) : p->n_stages;
    p->broken_by = HOW[rng_below(&s->rng, ARRAY_LEN(HOW))];
    p->n_repairs = (unsigned)sim_between(s, 0, 3);
}

/* In some programs cells are one work in their first stages: a stage comes after earlier ones, so
 * those are listed with it. */
static void draw_works(struct sim *s, struct sim_program *p)
{
    if (!sim_chance(s, 300)) {
        return;
    }
    const uint32_t n = (uint32_t)sim_between(s, 1, (int64_t)p->n_stages);
    p->workers = xcalloc(p->n_grid, sizeof(*p->workers));
    for (uint32_t i = 0; i < p->n_stages; i++) {
        p->naming[i] = (struct core_plan_stage){.after = p->stages[i].after,
                                                .n_after = p->stages[i].n_after,
                                                .counted = p->stages[i].counted,
                                                .sealed = p->stages[i].sealed,
                                                .threads = 1,
                                                .crashes = p->stages[i].crashes,
                                                .attempts = p->stages[i].attempts};
    }
    for (uint32_t c = 0; c < p->n_cells; c++) {
        const uint32_t other = (uint32_t)rng_below(&s->rng, c + 1);
        for (uint32_t i = 0; i < p->n_stages; i++) {
            const uint32_t task = c * p->n_stages + i;
            p->workers[task] = i < n && other < c ? p->workers[other * p->n_stages + i] : task;
        }
    }
}

static void plan(struct sim *s, struct sim_program *p, uint32_t n_tasks)
{
    p->n_stages = (uint32_t)sim_between(s, 1, SIM_STAGES_MAX);
    p->n_cells = n_tasks / p->n_stages > 0 ? n_tasks / p->n_stages : 1;
    p->n_grid = p->n_cells * p->n_stages;
    p->slots = (uint32_t)sim_between(s, 0, 3);
    for (uint32_t i = 0; i < p->n_stages; i++) {
        struct core_plan_stage *st = &p->stages[i];
        *st = (struct core_plan_stage){.after = p->after[i],
                                       .threads = (uint32_t)sim_between(s, 1, 3)};
        for (uint32_t d = 0; d < i; d++) {
            if (rng_below(&s->rng, 2) == 0) {
                p->after[i][st->n_after++] = d;
            }
        }
        st->counted = rng_below(&s->rng, 3) != 0;
        st->sealed = st->counted && rng_below(&s->rng, 2) == 0;
        st->memory_bytes = sim_between(s, 0, 20);
        st->crashes = (uint32_t)sim_between(s, 1, 5);
        st->attempts = (uint32_t)sim_between(s, 3, 50);
        st->deadline_ms[SECTION_STEP] = sim_between(s, 0, 1) * 120000;
        gpus_draw_stage(s, st);
    }
    for (uint32_t i = p->n_stages; i-- > 0;) { /* what a counted stage comes after counts, too */
        for (size_t d = 0; p->stages[i].counted && d < p->stages[i].n_after; d++) {
            p->stages[p->after[i][d]].counted = true;
        }
    }
    draw_works(s, p);
    draw_broken(s, p);
    amend_draw_checks(s, p);
    sim_add_tasks(p, p->n_grid + p->n_checks);
}

static void begin(struct sim *s, const struct sim_config *config)
{
    *s = (struct sim){.seed = config->seed, .full_checks = config->full_checks};
    rng_seed(&s->rng, config->seed);
    core_out_init(&s->out);
    core_config_default(&s->config);
    s->config.seed = rng_next(&s->rng);
    s->config.cores = (uint32_t)sim_between(s, 1, 8);
    s->config.slots = (uint32_t)sim_between(s, 0, 6);
    s->config.memory_bytes = sim_between(s, 0, 1) * 64;
    s->config.slice_tasks = 1 + (uint32_t)(config->seed % 40);
    s->odds = (struct sim_odds){
        .lost = (unsigned)sim_between(s, 0, 80),
        .doubled = (unsigned)sim_between(s, 0, 80),
        .late = (unsigned)sim_between(s, 0, 30),
        .unknown = (unsigned)sim_between(s, 0, 500),
        .restart =
            (unsigned)sim_between(s, config->full_checks ? 0 : 1, config->full_checks ? 100 : 1),
        .failing = (unsigned)sim_between(s, 0, 400),
        .start_bad = (unsigned)sim_between(s, 0, 50),
        .person = (unsigned)sim_between(s, 0, config->full_checks ? 100 : 10),
    };
    gpus_draw(s);
    s->core = core_create(&s->config);
    s->n_programs = config->full_checks ? (uint32_t)sim_between(s, 1, 3) : 1;
    s->programs = xcalloc(s->n_programs, sizeof(*s->programs));
    for (uint32_t no = 1; no <= s->n_programs; no++) {
        plan(s, &s->programs[no - 1], config->n_tasks / s->n_programs);
        s->programs[no - 1].priority = (int32_t)((config->seed / 2 + no) % 3) - 1;
        s->programs[no - 1].journal =
            config->full_checks && config->seed % 16 == 0 ? journal_new() : NULL;
        add_program(s, no, true);
    }
    step(s, &(struct core_event){.kind = CORE_ALL_ADDED});
    gpus_change(s);
}

static bool all_reported(const struct sim *s)
{
    for (uint32_t i = 0; i < s->n_programs; i++) {
        if (!s->programs[i].row.reported) {
            return false;
        }
    }
    return true;
}

/* What the core was last told of an attempt's life. */
static void note_told(struct sim *s, const struct core_event *ev)
{
    if (ev->kind != CORE_PROBED && ev->kind != CORE_ATTEMPT_UP) {
        return;
    }
    const struct sim_task *t = sim_task_at(s, ev->program, ev->task);
    struct sim_attempt *a = &s->attempts[t->current];
    if (a->no != ev->attempt_no || (ev->kind == CORE_ATTEMPT_UP && t->row.state != TASK_STARTING)) {
        return;
    }
    a->told = ev->kind == CORE_PROBED ? ev->health : HEALTH_ALIVE;
    a->was_told = true;
}

/* The daemon stands between: what it knows better than the message, it says. */
static void deliver(struct sim *s, struct core_event *ev)
{
    struct core_plan plan;
    struct core_apparatus checks[SIM_CHECKS_MAX];
    note_told(s, ev);
    amend_judge(s, ev);
    if (ev->kind != CORE_AMEND || amend_deliver(s, ev, &plan, checks)) {
        step(s, ev);
        if (ev->kind == CORE_AMEND && s->out.refusal != NULL) {
            amend_check_refusal(s, ev);
        }
    }
}

static void take(struct sim *s, struct sim_item *it)
{
    struct core_event timer = {.kind = CORE_TIMER};
    switch (it->kind) {
    case SIM_EVENT: deliver(s, &it->ev); break;
    case SIM_LINE: truth_line(s, it->attempt); break;
    case SIM_END: truth_end(s, it->attempt); break;
    case SIM_LAUNCH: truth_launch(s, it->attempt); break;
    case SIM_TIMER:
        if (it->generation == s->generation && s->armed && it->at_ms == s->armed_ms) {
            s->armed = false;
            step(s, &timer);
        }
        break;
    }
}

/* Faults stop after a while, so that every world comes to its end; people then lift what they put.
 */
static void calm_down(struct sim *s)
{
    bool stuck = s->n_items == 0; /* a lock that does not hold waits for a person */
    if (s->quiet ||
        (!stuck && s->n_steps < 40 * (uint64_t)s->programs[0].n_tasks * s->n_programs)) {
        return;
    }
    s->quiet = true;
    gpus_change(s);
    for (uint32_t no = 1; no <= s->n_programs; no++) {
        struct core_event ev = {.kind = CORE_RESUME, .program = no};
        sim_tell_surely(s, &ev, 0);
    }
}

static void finish(struct sim *s)
{
    check_end(s);
    for (uint32_t i = 0; i < s->n_programs; i++) {
        free(s->programs[i].tasks);
        free(s->programs[i].workers);
        journal_free(s->programs[i].journal);
    }
    free(s->programs);
    free(s->attempts);
    free(s->items);
    free(s->lazy);
    free(s->amends);
    core_free(s->core);
    core_out_release(&s->out);
}

static void add_totals(struct sim_amend_totals *to, const struct sim_amend_totals *from)
{
    for (size_t i = 0; i < SIM_AMEND_NR; i++) {
        to->n_taken[i] += from->n_taken[i];
        to->n_refused[i] += from->n_refused[i];
    }
    to->n_while_verifying += from->n_while_verifying;
    to->n_again += from->n_again;
    to->n_stale += from->n_stale;
    to->n_unexpected += from->n_unexpected;
    to->n_held += from->n_held;
    to->n_repeated += from->n_repeated;
}

void sim_run(const struct sim_config *config, struct sim *totals)
{
    struct sim s;
    begin(&s, config);
    while (!all_reported(&s)) {
        calm_down(&s);
        if (s.n_items == 0) {
            sim_fail(&s, "nothing more will happen, and it is not at its end");
        }
        struct sim_item it = pop(&s);
        s.now_ms = it.at_ms > s.now_ms ? it.at_ms : s.now_ms;
        take(&s, &it);
        if (!s.quiet && rng_below(&s.rng, 10000) < s.odds.person) {
            people_ask(&s);
        }
        if (s.gpu.n > 0 && !s.quiet && rng_below(&s.gpu.rng, 200) == 0) {
            gpus_change(&s);
        }
        if (!s.quiet && sim_chance(&s, 1)) {
            s.wall_shift_ms = sim_between(&s, -86400000, 86400000);
        }
        if (s.n_steps > STEPS_MAX || s.now_ms > TIME_MAX_MS) {
            sim_fail(&s, "it does not come to its end");
        }
    }
    finish(&s);
    totals->n_steps += s.n_steps;
    totals->n_restarts += s.n_restarts;
    totals->n_starts += s.n_starts;
    totals->n_kills += s.n_kills;
    totals->n_stops += s.n_stops;
    totals->n_unknown += s.n_unknown;
    totals->n_early += s.n_early;
    totals->n_failing += s.n_failing;
    totals->n_revived += s.n_revived;
    totals->n_behind += s.n_behind;
    totals->n_removed += s.n_removed;
    totals->n_let_fail += s.n_let_fail;
    totals->gpu.n_starts += s.gpu.n_starts;
    totals->gpu.n_shared += s.gpu.n_shared;
    add_totals(&totals->amended, &s.amended);
    for (size_t i = 0; i < FATE_NR; i++) {
        totals->n_by_fate[i] += s.n_by_fate[i];
    }
}
