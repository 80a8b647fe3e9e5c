#include "tests/sim/amend.h"

#include "base/xalloc.h"
#include "daemon/core/core.h"
#include "tests/sim/parts.h"

static const char *const NAMES[SIM_CHECKS_MAX] = {"a", "b", "c", "d", "e", "f", "g", "h"};

void amend_plan_checks(const struct sim_check *checks, const struct sim_check *before, uint32_t n,
                       struct core_apparatus *out)
{
    for (uint32_t i = 0; i < n; i++) {
        out[i] = (struct core_apparatus){.name = NAMES[i],
                                         .stage = checks[i].stage,
                                         .again = checks[i].again,
                                         .first = checks[i].again ? 0 : i,
                                         .declared = checks[i].declared,
                                         .changed = checks[i].version != before[i].version};
    }
}

/* What a check runs with is its stage's; counted, sealed or after another it never is. */
static void set_check_stages(struct sim_program *p)
{
    for (uint32_t i = 0; i < p->n_checks; i++) {
        struct core_plan_stage *st = &p->check_stages[i];
        *st = p->stages[p->checks[i].stage];
        st->counted = st->sealed = false;
        st->n_after = 0;
    }
}

static struct sim_check draw_check(struct sim *s, const struct sim_program *p, uint32_t version)
{
    return (struct sim_check){.stage = (uint32_t)rng_below(&s->rng, p->n_stages),
                              .declared = true,
                              .hopeless = s->full_checks && !s->quiet && sim_chance(s, 100),
                              .version = version};
}

void amend_draw_checks(struct sim *s, struct sim_program *p)
{
    p->n_checks = sim_chance(s, 400) ? 0 : (uint32_t)sim_between(s, 1, 3);
    for (uint32_t i = 0; i < p->n_checks; i++) {
        p->checks[i] = draw_check(s, p, 1);
        p->checks[i].again = i > 0 && sim_chance(s, 500);
    }
    set_check_stages(p);
}

/* ---- what is true ---- */

static bool is_live(const struct task_row *r)
{
    return r->state == TASK_STARTING || r->state == TASK_RUNNING;
}

/* By the definitions of docs/amendments.md, from committed rows alone. */
static struct core_access true_access(const struct sim_program *p)
{
    struct core_access a = {.level = ACCESS_NOTHING_RUN};
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        const struct task_row *r = &p->tasks[i].row;
        enum access_level level = r->n_attempts == 0 ? ACCESS_NOTHING_RUN
                                  : i < p->n_grid && sim_stage_of(p, i)->sealed
                                      ? ACCESS_SEALED
                                      : ACCESS_NOTHING_SCORED;
        a.level = level > a.level ? level : a.level;
        if (i < p->n_grid && r->n_attempts > 0) {
            stage_set_add(&a.started, i % p->n_stages);
        }
        a.n_done += i < p->n_grid && r->state == TASK_DONE;
    }
    a.level = p->row.unsealed || p->row.unblinded || p->row.verdict ? ACCESS_SEEN : a.level;
    return a;
}

static struct core_access ask_access(struct sim *s, uint32_t program)
{
    struct core_access truth = true_access(&s->programs[program - 1]);
    struct core_access said = {0};
    if (!core_access_get(s->core, program, &said) || said.level != truth.level ||
        !stage_set_equal(&said.started, &truth.started) || said.n_done != truth.n_done) {
        sim_fail(s, "access is said to be %s, and is %s", access_level_name(said.level),
                 access_level_name(truth.level));
    }
    return said;
}

/* Sealed stages are those that measures read. */
static bool results_have(const struct sim *s, const struct sim_program *p, uint32_t metric)
{
    for (uint32_t i = 0; i < p->n_grid; i++) {
        const struct sim_task *t = &p->tasks[i];
        if (t->row.state == TASK_DONE && sim_stage_of(p, i)->sealed &&
            (s->attempts[t->accepted].metrics >> metric & 1) == 0) {
            return false;
        }
    }
    return true;
}

bool amend_is_held(const struct sim_program *p, uint32_t task)
{
    return task < p->n_grid && sim_stage_of(p, task)->sealed && sim_stage_of(p, task)->n_after > 0;
}

bool amend_again_is_of_use(const struct sim_program *p)
{
    bool scored = false;
    for (uint32_t i = 0; i < p->n_grid; i++) {
        scored |= amend_is_held(p, i) && p->tasks[i].row.state == TASK_DONE;
    }
    return scored && p->tasks[p->n_grid].row.state == TASK_DONE;
}

bool amend_is_settled(const struct sim_program *p)
{
    bool settled = true;
    for (uint32_t i = 0; i < p->n_checks; i++) {
        const struct task_row *r = &p->tasks[p->n_grid + i].row;
        settled &= !p->checks[i].again || !p->checks[i].declared || r->state == TASK_DONE ||
                   r->cause == CAUSE_APPARATUS || r->cause == CAUSE_STOPPED ||
                   r->cause == CAUSE_DEPENDENCY;
    }
    return settled;
}

bool amend_holds(const struct sim_program *p)
{
    for (uint32_t i = 0; i < p->n_checks; i++) {
        if (p->checks[i].declared && !p->checks[i].again &&
            p->tasks[p->n_grid + i].row.state != TASK_DONE) {
            return false;
        }
    }
    return true;
}

/* ---- prepared ---- */

static void change_checks(struct sim *s, const struct sim_program *p, struct sim_amend *a)
{
    for (int64_t n = sim_between(s, 1, 2); n > 0; n--) {
        uint32_t i = (uint32_t)rng_below(&s->rng, a->n_checks + 1);
        if (i == SIM_CHECKS_MAX) {
            continue;
        }
        if (i < a->n_checks && a->checks[i].declared && sim_chance(s, 400)) {
            a->checks[i].declared = false;
            continue;
        }
        const bool again = a->checks[i].again;
        a->checks[i] = draw_check(s, p, a->checks[i].version + 1);
        a->checks[i].again = i < a->n_checks ? again : i > 0 && sim_chance(s, 500);
        a->n_checks += i == a->n_checks;
    }
}

static void change_params(struct sim *s, const struct sim_program *p, struct sim_amend *a)
{
    uint32_t stage = (uint32_t)rng_below(&s->rng, p->n_stages);
    stage_set_add(&a->params_of, stage);
    for (uint32_t i = 0; i < a->n_checks; i++) {
        a->checks[i].version += a->checks[i].declared && a->checks[i].stage == stage;
    }
}

static struct sim_amend begin(struct sim *s, uint32_t program, enum sim_amend_kind kind)
{
    const struct sim_program *p = &s->programs[program - 1];
    struct sim_amend a = {.kind = kind,
                          .program = program,
                          .based_on = p->n_amended,
                          .access = ask_access(s, program),
                          .metric = p->metric,
                          .n_checks = p->n_checks};
    memcpy(a.checks, p->checks, sizeof(a.checks));
    return a;
}

/* The table of docs/amendments.md, as far as it concerns this world. */
static bool is_allowed(const struct sim *s, const struct sim_program *p, const struct sim_amend *a)
{
    switch (a->kind) {
    case AMEND_METRIC: return a->access.level <= ACCESS_SEALED && results_have(s, p, a->metric);
    case AMEND_CHECKS: return a->access.level <= ACCESS_NOTHING_SCORED;
    case AMEND_PARAMS:
        return a->access.level <= ACCESS_SEALED &&
               !stage_set_meets(&a->access.started, &a->params_of);
    case AMEND_POST_HOC:
    case SIM_AMEND_NR: break;
    }
    return true;
}

static void send(struct sim *s, const struct sim_amend *a, int64_t delay_ms)
{
    struct core_event ev = {
        .kind = CORE_AMEND, .program = a->program, .task = s->n_amends, .text = "scripted"};
    ARRAY_GROW(s->amends, s->n_amends, s->cap_amends);
    s->amends[s->n_amends++] = *a;
    sim_tell_surely(s, &ev, delay_ms);
}

void amend_ask(struct sim *s, uint32_t program)
{
    const struct sim_program *p = &s->programs[program - 1];
    struct sim_amend a = begin(s, program, (enum sim_amend_kind)rng_below(&s->rng, SIM_AMEND_NR));
    if (a.kind == AMEND_METRIC) {
        a.metric = (a.metric + 1) % SIM_METRICS;
    } else if (a.kind == AMEND_CHECKS) {
        change_checks(s, p, &a);
    } else if (a.kind == AMEND_PARAMS) {
        change_params(s, p, &a);
    }
    if (is_allowed(s, p, &a)) {
        send(s, &a, sim_chance(s, 500) ? sim_between(s, 0, 300) : sim_between(s, 0, 60000));
    }
}

void amend_ask_late(struct sim *s, uint32_t program)
{
    struct sim_amend a = begin(s, program, AMEND_POST_HOC);
    send(s, &a, sim_between(s, 0, 6000));
}

/* False: no check asks what no model can give. */
static bool mend_checks(struct sim *s, uint32_t program)
{
    struct sim_amend a = begin(s, program, AMEND_CHECKS);
    bool found = false;
    for (uint32_t i = 0; i < a.n_checks; i++) {
        if (a.checks[i].declared && a.checks[i].hopeless) {
            a.checks[i].hopeless = false;
            a.checks[i].version++;
            found = true;
        }
    }
    if (found && is_allowed(s, &s->programs[program - 1], &a)) {
        send(s, &a, 1000);
    }
    return found;
}

void amend_see_pause(struct sim *s, uint32_t program)
{
    struct sim_program *p = &s->programs[program - 1];
    struct core_event ev = {.kind = CORE_RESUME, .program = program, .text = "scripted"};
    p->n_mendings++;
    if ((s->quiet || p->n_mendings > 2) && mend_checks(s, program) && p->n_mendings > 6) {
        ev.kind = CORE_STOP; /* scores are there already: it can only be given up */
        sim_tell_surely(s, &ev, 2000);
        ev.kind = CORE_RESUME;
    }
    sim_tell_surely(s, &ev, sim_between(s, 3000, 60000));
}

/* ---- at the daemon ---- */

bool amend_deliver(struct sim *s, struct core_event *ev, struct core_plan *plan,
                   struct core_apparatus *checks)
{
    const struct sim_program *p = &s->programs[ev->program - 1];
    const struct sim_amend *a = &s->amends[ev->task];
    if (a->based_on != p->n_amended) {
        s->amended.n_refused[a->kind]++;
        return false; /* another one came before it */
    }
    amend_plan_checks(a->checks, p->checks, a->n_checks, checks);
    *plan = (struct core_plan){.n_cells = p->n_cells,
                               .n_stages = p->n_stages,
                               .slots = p->slots,
                               .priority = p->priority,
                               .stages = p->stages,
                               .apparatus = checks,
                               .n_apparatus = a->n_checks};
    ev->amendment = (struct core_amendment){.number = p->n_amended + 1,
                                            .access = a->access,
                                            .params_of = a->params_of,
                                            .by_results = a->kind == AMEND_METRIC,
                                            .plan = plan};
    ev->amendment.head.bytes[0] = (unsigned char)ev->amendment.number;
    return true;
}

/* A stage whose results lie open has begun since it was prepared: it was judged by less than could
 * be looked at. */
static bool is_overtaken(const struct sim_program *p, const struct sim_amend *a)
{
    struct core_access now = true_access(p);
    for (uint32_t i = 0; i < p->n_stages; i++) {
        if (!p->stages[i].sealed && stage_set_has(&now.started, i) &&
            !stage_set_has(&a->access.started, i)) {
            return true;
        }
    }
    return false;
}

void amend_check_refusal(struct sim *s, const struct core_event *ev)
{
    const struct sim_program *p = &s->programs[ev->program - 1];
    const struct sim_amend *a = &s->amends[ev->task];
    struct core_access now = true_access(p);
    bool computing = !p->row.verdict && p->n_terminal == p->n_grid;
    s->amended.n_refused[a->kind]++;
    if (!computing && now.level == a->access.level &&
        !stage_set_meets(&now.started, &a->params_of) && !is_overtaken(p, a) &&
        (a->kind != AMEND_METRIC || now.n_done == a->access.n_done)) {
        sim_fail(s, "amendment %u is refused for nothing: %s", a->based_on + 1, s->out.refusal);
    }
}

void amend_judge(struct sim *s, struct core_event *ev)
{
    if (ev->kind != CORE_RESULT_CHECKED || ev->check.result != RESULT_VALID) {
        return;
    }
    const struct sim_program *p = &s->programs[ev->program - 1];
    const struct sim_attempt *a = &s->attempts[p->tasks[ev->task].current];
    if (a->no != ev->attempt_no) {
        return;
    }
    if (ev->task < p->n_grid) {
        bool has = !sim_stage_of(p, ev->task)->sealed || (a->metrics >> p->metric & 1) != 0;
        ev->check.result = has ? RESULT_VALID : RESULT_BAD;
        return;
    }
    const struct sim_check *c = &p->checks[ev->task - p->n_grid];
    if (!c->declared) {
        return;
    }
    if (a->asked != c->version) {
        ev->check.result = RESULT_STALE;
        s->amended.n_stale++;
    } else if (c->hopeless || a->fate == FATE_UNEXPECTED) {
        ev->check.result = RESULT_UNEXPECTED;
        s->amended.n_unexpected++;
    }
}

/* ---- rows ---- */

/* Results that the core has been told to wait for. */
static bool is_verifying(const struct sim *s, const struct sim_program *p)
{
    for (uint32_t i = 0; i < p->n_grid; i++) {
        const struct sim_task *t = &p->tasks[i];
        if (is_live(&t->row) && t->current != UINT32_MAX &&
            s->attempts[t->current].no == t->attempt.no && s->attempts[t->current].ended_known &&
            s->attempts[t->current].code == 0) {
            return true;
        }
    }
    return false;
}

static void check_amendment(const struct sim *s, const struct sim_program *p,
                            const struct sim_amend *a, const struct state_row *row)
{
    struct core_access now = true_access(p);
    struct sim_amend judged = *a;
    if (row->amendment.number != p->n_amended + 1 || a->based_on != p->n_amended ||
        row->amendment.head.bytes[0] != (unsigned char)row->amendment.number) {
        sim_fail(s, "amendment %u does not follow %u", row->amendment.number, p->n_amended);
    }
    if (row->amendment.level != now.level) {
        sim_fail(s, "amendment %u was made at %s, it says %s", row->amendment.number,
                 access_level_name(now.level), access_level_name(row->amendment.level));
    }
    if (is_overtaken(p, a)) {
        sim_fail(s, "amendment %u was judged before an open stage began", row->amendment.number);
    }
    judged.access = now;
    if (!is_allowed(s, p, &judged)) {
        sim_fail(s, "amendment %u (%d) is not allowed at %s, with what has been started and done",
                 row->amendment.number, (int)a->kind, access_level_name(now.level));
    }
}

void amend_take_row(struct sim *s, const struct state_row *row)
{
    struct sim_program *p = &s->programs[row->program - 1];
    if (s->in_step->kind != CORE_AMEND) {
        sim_fail(s, "an amendment that nobody asked for");
    }
    const struct sim_amend *a = &s->amends[s->in_step->task];
    check_amendment(s, p, a, row);
    s->amended.n_taken[a->kind]++;
    s->amended.n_while_verifying += a->kind == AMEND_METRIC && is_verifying(s, p);
    p->n_amended++;
    p->metric = a->metric;
    memcpy(p->checks, a->checks, sizeof(p->checks));
    p->n_checks = a->n_checks;
    set_check_stages(p);
    sim_add_tasks(p, p->n_grid + p->n_checks);
}

void amend_check_start(struct sim *s, const struct sim_program *p, const struct state_row *row)
{
    if (row->task >= p->n_grid) {
        if (!p->checks[row->task - p->n_grid].declared) {
            sim_fail(s, "a check that was taken away is started");
        }
        if (p->checks[row->task - p->n_grid].again &&
            (p->n_terminal != p->n_grid || !amend_again_is_of_use(p))) {
            sim_fail(s, "a check is run again with %u of %u tasks ended", p->n_terminal, p->n_grid);
        }
        return;
    }
    if (!amend_is_held(p, row->task)) {
        return;
    }
    for (uint32_t i = 0; i < p->n_checks; i++) {
        const struct sim_task *t = &p->tasks[p->n_grid + i];
        const struct sim_check *c = &p->checks[i];
        if (c->declared && !c->again &&
            (t->row.state != TASK_DONE || s->attempts[t->accepted].asked != c->version)) {
            sim_fail(s, "task %u is started before check %u holds as it is asked now", row->task,
                     i);
        }
        s->amended.n_held += c->declared;
    }
}

void amend_check_result(struct sim *s, const struct sim_program *p, const struct state_row *row,
                        const struct sim_attempt *a)
{
    if (a->head > p->n_amended) {
        sim_fail(s, "task %u ran with head %u of %u", row->task, a->head, p->n_amended);
    }
    if (row->task >= p->n_grid) {
        const struct sim_check *c = &p->checks[row->task - p->n_grid];
        if (c->declared && (a->asked != c->version || c->hopeless)) {
            sim_fail(s, "check %u is done, and was asked something else", row->task - p->n_grid);
        }
        if (c->declared && c->again && p->n_terminal != p->n_grid) {
            sim_fail(s, "a check held again with %u of %u tasks ended", p->n_terminal, p->n_grid);
        }
        s->amended.n_repeated += c->declared && c->again;
    } else if (sim_stage_of(p, row->task)->sealed && (a->metrics >> p->metric & 1) == 0) {
        sim_fail(s, "task %u is done without the metric that its measure reads", row->task);
    }
}
