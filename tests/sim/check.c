/* The invariants, checked against what is committed and what is true: never against what the core
 * says of itself alone. Numbers refer to docs/invariants.md. */
#include <signal.h>

#include "base/xalloc.h"
#include "tests/sim/parts.h"

static bool dead_end(const struct task_row *r)
{
    return r->state == TASK_BLOCKED || r->state == TASK_NEVER_RUN;
}

static bool is_live(const struct task_row *r)
{
    return r->state == TASK_STARTING || r->state == TASK_RUNNING;
}

static bool dependencies_done(const struct sim_program *p, uint32_t task)
{
    const struct core_plan_stage *st = sim_stage_of(p, task);
    for (size_t i = 0; i < st->n_after; i++) {
        if (p->tasks[task - task % p->n_stages + st->after[i]].row.state != TASK_DONE) {
            return false;
        }
    }
    const uint32_t worker = sim_worker(p, task);
    return worker == task || p->tasks[worker].row.state == TASK_DONE;
}

static bool dependency_dead(const struct sim_program *p, uint32_t task)
{
    const struct core_plan_stage *st = sim_stage_of(p, task);
    for (size_t i = 0; i < st->n_after; i++) {
        if (dead_end(&p->tasks[task - task % p->n_stages + st->after[i]].row)) {
            return true;
        }
    }
    const uint32_t worker = sim_worker(p, task);
    return worker != task && dead_end(&p->tasks[worker].row);
}

/* A kill from outside is charged when it left the task where it was: idle is 0 only after progress.
 */
static bool spends_crash(const struct state_row *row)
{
    switch ((int)row->attempt.cause) {
    case CAUSE_SILENT_DEATH: return row->after.idle > 0;
    case CAUSE_CRASH:
        return row->attempt.reason != END_SIGNALLED || row->attempt.signal != SIGKILL ||
               row->after.idle > 0;
    case CAUSE_HANG:
    case CAUSE_TIMEOUT:
    case CAUSE_OOM:
    case CAUSE_BAD_RESULT: return true;
    default: return false;
    }
}

/* S3: budgets, from causes alone. Exit 75 without progress may be charged as well, so the core's
 * count may be higher, but never lower, and whoever is tried again has budget left. */
static void check_budgets(struct sim *s, const struct sim_program *p, const struct state_row *row)
{
    struct sim_task *t = &s->programs[row->program - 1].tasks[row->task];
    const struct core_plan_stage *st = sim_stage_of(p, row->task);
    bool by_person = row->after.cause == CAUSE_CANCELLED || row->after.cause == CAUSE_STOPPED;
    if (row->has_result || by_person) {
        return;
    }
    t->crashes += spends_crash(row);
    t->spent += spends_crash(row) || row->attempt.cause == CAUSE_PREEMPTED ||
                row->attempt.cause == CAUSE_CRASH || row->attempt.cause == CAUSE_SILENT_DEATH;
    if (row->after.crashes < t->crashes || row->after.spent < t->spent) {
        sim_fail(s, "task %u: %u crashes and %u attempts are charged, there were %u and %u",
                 row->task, row->after.crashes, row->after.spent, t->crashes, t->spent);
    }
    if (row->after.crashes > st->crashes || row->after.spent > st->attempts ||
        row->after.idle > sim_idle_max(st)) {
        sim_fail(s, "task %u: over its budget", row->task);
    }
    bool left = row->after.crashes < st->crashes && row->after.spent < st->attempts &&
                row->after.idle < sim_idle_max(st);
    if (row->after.state == TASK_READY && !left) {
        sim_fail(s, "task %u: tried again without budget", row->task);
    }
    switch ((int)row->attempt.cause) {
    case CAUSE_USER_ERROR:
    case CAUSE_BAD_INPUT:
    case CAUSE_NOT_MEASURABLE:
    case CAUSE_APPARATUS:
        if (row->after.state != TASK_BLOCKED) {
            sim_fail(s, "task %u: %s must end it at once", row->task,
                     cause_name(row->attempt.cause));
        }
        break;
    case CAUSE_NO_SPACE:
        if (row->after.state == TASK_BLOCKED) {
            sim_fail(s, "task %u: want of disk ended it", row->task);
        }
        if (row->after.spent > t->spent + row->after.n_attempts) {
            sim_fail(s, "task %u: want of disk burnt an attempt", row->task);
        }
        break;
    default:
        if (row->after.state == TASK_BLOCKED && left && row->attempt.cause != CAUSE_DRIFT) {
            sim_fail(s, "task %u: given up with budget left (%s)", row->task,
                     cause_name(row->attempt.cause));
        }
        break;
    }
}

static void check_start(struct sim *s, const struct sim_program *p, const struct sim_task *t,
                        const struct state_row *row)
{
    if (is_live(&t->row)) {
        sim_fail(s, "S1: task %u has an attempt alive", row->task);
    }
    if (row->after.n_attempts != t->row.n_attempts + 1 ||
        row->attempt.no != row->after.n_attempts) {
        sim_fail(s, "task %u: attempt number %u after %u", row->task, row->attempt.no,
                 t->row.n_attempts);
    }
    if (p->row.paused != 0) {
        sim_fail(s, "task %u started in a paused program", row->task);
    }
    if (!dependencies_done(p, row->task)) {
        sim_fail(s, "task %u started before what it depends on was done", row->task);
    }
    if (s->in_step->kind == CORE_PROBED && s->in_step->health == HEALTH_UNKNOWN &&
        s->in_step->program == row->program && s->in_step->task == row->task) {
        sim_fail(s, "S4: UNKNOWN made a new attempt of task %u", row->task);
    }
    amend_check_start(s, p, row);
}

/* What a check that was taken away says is no matter. */
static bool may_be_valid(const struct sim_program *p, uint32_t task, const struct sim_attempt *a)
{
    return a->fate == FATE_GOOD || (a->fate == FATE_UNEXPECTED && task >= p->n_grid &&
                                    !p->checks[task - p->n_grid].declared);
}

static void check_end_row(struct sim *s, const struct sim_program *p, const struct sim_task *t,
                          const struct state_row *row)
{
    const struct sim_attempt *a = t->current == UINT32_MAX ? NULL : &s->attempts[t->current];
    bool began = a != NULL && a->no == row->attempt.no;
    if (row->attempt.no != t->attempt.no || row->attempt.no != t->row.n_attempts) {
        sim_fail(s, "S5: attempt %u of task %u is not the current one", row->attempt.no, row->task);
    }
    if (began && a->alive) {
        sim_fail(s, "task %u: attempt %u is said to have ended and lives", row->task, a->no);
    }
    if (row->has_result &&
        (!began || !a->ended_known || a->code != 0 || !may_be_valid(p, row->task, a))) {
        sim_fail(s, "task %u is done without a valid result", row->task);
    }
    if (row->has_result && (row->attempt.reason != END_EXITED || row->attempt.code != 0)) {
        sim_fail(s, "task %u is done, but its end is not known: %s", row->task,
                 end_reason_name(row->attempt.reason));
    }
    if (s->in_step->kind == CORE_PROBED && s->in_step->health == HEALTH_UNKNOWN) {
        sim_fail(s, "S4: UNKNOWN ended task %u", row->task);
    }
    bool open = p->row.unsealed || p->row.unblinded;
    if (row->has_result && row->sealed != (sim_stage_of(p, row->task)->sealed && !open)) {
        sim_fail(s, "task %u: its seal is wrong", row->task);
    }
    if (row->has_result) {
        if (t->accepted != UINT32_MAX) {
            sim_fail(s, "task %u: two results are counted", row->task);
        }
        amend_check_result(s, p, row, a);
    }
    check_budgets(s, p, row);
}

/* Whether the tasks of a cell may have been given up for one of the cell `lost`. */
static bool is_tied(const struct sim_program *p, uint32_t cell, uint32_t lost)
{
    bool tied = cell == lost;
    for (uint32_t s = 0; s < p->n_stages; s++) {
        tied =
            tied || sim_worker(p, cell * p->n_stages + s) == sim_worker(p, lost * p->n_stages + s);
    }
    return tied;
}

/* By the pause for failures; or in the row after the end of an attempt that was answered when such
 * a pause was lifted, with what comes later in its cell in the rows after that. */
static bool may_revive(const struct sim_program *p, const struct sim_task *t,
                       const struct state_row *row)
{
    const struct state_row *last = &p->last;
    bool ended = last->kind == ROW_ATTEMPT_ENDED && last->task == row->task;
    bool answered = t->row.n_attempts > 0 && t->row.n_attempts == t->answered;
    bool follows = last->kind == ROW_TASK_REVIVED && row->from == TASK_NEVER_RUN &&
                   last->task < row->task &&
                   is_tied(p, row->task / p->n_stages, last->task / p->n_stages);
    return (p->row.paused & PAUSE_FAILURES) != 0 || (ended && answered) || follows;
}

static void check_move(struct sim *s, const struct sim_program *p, const struct sim_task *t,
                       const struct state_row *row)
{
    bool stays =
        row->kind == ROW_PROGRESS || row->kind == ROW_TASK_LINKED || row->kind == ROW_TASK_ENDING;
    if (row->from != t->row.state) {
        sim_fail(s, "S2: %s of task %u from %s, but it is %s", row_kind_name(row->kind), row->task,
                 task_state_name(row->from), task_state_name(t->row.state));
    }
    bool again = row->kind == ROW_APPARATUS_AGAIN && row->task >= p->n_grid;
    if (stays ? row->after.state != row->from
              : !(again || task_move_is_allowed(row->from, row->after.state)) ||
                    !state_row_is_legal(row)) {
        sim_fail(s, "S2: task %u from %s to %s", row->task, task_state_name(row->from),
                 task_state_name(row->after.state));
    }
    const bool is_again = row->task >= p->n_grid && p->checks[row->task - p->n_grid].again;
    const bool is_dead = is_again ? p->n_terminal == p->n_grid && !amend_again_is_of_use(p)
                                  : dependency_dead(p, row->task);
    if (row->kind == ROW_TASK_ENDED && row->after.cause == CAUSE_DEPENDENCY && !is_dead) {
        sim_fail(s, "task %u: nothing it depends on has failed", row->task);
    }
    bool tried_again = row->kind == ROW_TASK_RETRIED || row->kind == ROW_TASK_REVIVED;
    if (tried_again && sim_stage_of(p, row->task)->counted &&
        (p->row.unsealed || p->row.verdict || (p->row.unblinded && p->n_accepted > 0))) {
        sim_fail(s, "invariant 8: counted task %u tried again after scores were seen", row->task);
    }
    if (row->kind == ROW_TASK_REVIVED && !may_revive(p, t, row)) {
        sim_fail(s, "task %u is revived, and its program goes on", row->task);
    }
    if (row->kind == ROW_PROGRESS && row->attempt.offset <= t->attempt.offset) {
        sim_fail(s, "S6: task %u took the same bytes in twice", row->task);
    }
}

static void count_move(struct sim_program *p, const struct state_row *row)
{
    bool was = task_state_is_terminal(row->from);
    bool is = task_state_is_terminal(row->after.state);
    p->n_unlinked += row->has_result;
    p->n_unlinked -= row->kind == ROW_TASK_LINKED;
    if (row->task >= p->n_grid) { /* planned and counted is the grid alone */
        p->n_unlinked -= row->kind == ROW_APPARATUS_AGAIN && row->from == TASK_DONE &&
                         !p->tasks[row->task].row.linked;
        return;
    }
    p->n_terminal += (uint32_t)is;
    p->n_terminal -= (uint32_t)was;
    if (sim_stage_of(p, row->task)->counted) {
        p->n_counted_open += (uint32_t)was;
        p->n_counted_open -= (uint32_t)is;
    }
}

static void take_accepted(struct sim_program *p, struct sim_task *t, const struct state_row *row)
{
    t->accepted = row->has_result ? t->current : t->accepted;
    if (row->has_result && row->task < p->n_grid) {
        p->n_accepted++;
        p->stage_accepted[sim_accepted_as(p, row->task)]++;
    }
}

static void take_task_row(struct sim *s, const struct state_row *row)
{
    struct sim_program *p = &s->programs[row->program - 1];
    struct sim_task *t = &p->tasks[row->task];
    check_move(s, p, t, row);
    if (row->kind == ROW_ATTEMPT_STARTED) {
        check_start(s, p, t, row);
    } else if (row->kind == ROW_ATTEMPT_ENDED) {
        check_end_row(s, p, t, row);
        take_accepted(p, t, row);
    } else if (row->kind == ROW_TASK_REVIVED || row->kind == ROW_TASK_RETRIED ||
               row->kind == ROW_APPARATUS_AGAIN) {
        t->crashes = 0;
        t->spent = 0;
        t->accepted = UINT32_MAX;
        s->amended.n_again += row->kind == ROW_APPARATUS_AGAIN;
        s->n_revived += row->kind == ROW_TASK_REVIVED;
    } else if (row->kind == ROW_TASK_LINKED && s->in_step->attempt_no != t->row.n_attempts) {
        sim_fail(s, "task %u: the link of attempt %u is taken for that of attempt %u", row->task,
                 s->in_step->attempt_no, t->row.n_attempts);
    }
    count_move(p, row);
    t->row = row->after;
    if (row->attempt.no != 0) {
        t->attempt = row->attempt;
    }
}

static bool checks_ended(const struct sim_program *p)
{
    bool ended = true;
    for (uint32_t i = 0; i < p->n_checks; i++) {
        ended = ended && (!p->checks[i].declared ||
                          task_state_is_terminal(p->tasks[p->n_grid + i].row.state));
    }
    return ended;
}

/* `cancel --all` in slices: when it says that it is over, it is, whoever died meanwhile. */
static void check_stopped(struct sim *s, const struct sim_program *p, const struct state_row *row)
{
    bool was = (p->row.paused & PAUSE_STOPPING) != 0;
    s->n_stops += was;
    for (uint32_t i = 0; was && (row->status.paused & PAUSE_STOPPING) == 0 && i < p->n_tasks; i++) {
        const struct task_row *t = &p->tasks[i].row;
        if (!task_state_is_terminal(t->state) && t->ending == CAUSE_NONE) {
            sim_fail(s, "everything is cancelled, and task %u is %s", i, task_state_name(t->state));
        }
    }
}

/* What is at work when a pause for failures is lifted, in a stage that never had a result, belongs
 * to that pause, whenever it ends. */
static void note_answered(struct sim_program *p, const struct program_row *now)
{
    bool lifted = (p->row.paused & PAUSE_FAILURES) != 0 && (now->paused & PAUSE_FAILURES) == 0;
    for (uint32_t i = 0; lifted && i < p->n_grid; i++) {
        const struct task_row *t = &p->tasks[i].row;
        if (is_live(t) && p->stage_accepted[sim_accepted_as(p, i)] == 0) {
            p->tasks[i].answered = t->n_attempts;
        }
    }
}

static void take_program_row(struct sim *s, const struct state_row *row)
{
    struct sim_program *p = &s->programs[row->program - 1];
    check_stopped(s, p, row);
    note_answered(p, &row->status);
    if (row->kind == ROW_UNSEALED) {
        p->n_unsealed++;
        if (p->n_counted_open != 0 || p->n_unsealed > 1) {
            sim_fail(s, "S7: unsealed with %u counted tasks open, time %u", p->n_counted_open,
                     p->n_unsealed);
        }
        if (!amend_is_settled(p)) {
            sim_fail(s, "S7: unsealed before a check has been run again");
        }
        if (p->n_accepted == 0 && s->in_step->kind != CORE_VERDICT_COMPUTED) {
            sim_fail(s, "S7: unsealed before the verdict, and nothing was ever accepted");
        }
    }
    if (row->kind == ROW_VERDICT) {
        p->n_verdicts++;
        if (p->n_verdicts > 1 || p->n_terminal != p->n_grid || p->n_unlinked != 0 ||
            !p->row.unsealed || !checks_ended(p)) {
            sim_fail(s, "S7: verdict %u with %u of %u tasks ended", p->n_verdicts, p->n_terminal,
                     p->n_grid);
        }
        if (p->verdict_head != p->n_amended) {
            sim_fail(s, "the verdict was computed with head %u, and the program's is %u",
                     p->verdict_head, p->n_amended);
        }
    }
    if (row->kind == ROW_REPORTED) {
        p->n_reported++;
    }
    if (row->kind == ROW_REMOVED && (!p->row.reported || p->row.removed)) {
        sim_fail(s, "the cells are given up %s", p->row.removed ? "twice" : "before the report");
    }
    s->n_removed += row->kind == ROW_REMOVED;
    if (row->kind == ROW_AMENDED) {
        amend_take_row(s, row);
    }
    p->row = row->status;
}

static void make_durable(struct sim *s, const struct state_row *row)
{
    struct sim_program *p = &s->programs[row->program - 1];
    journal_take(s, row);
    if (row_kind_is_journalled(row->kind)) {
        p->durable_latest = row->time;
    }
    if (!row_kind_is_of_task(row->kind)) {
        p->durable = row->status;
        return;
    }
    p->tasks[row->task].durable = row->after;
    if (row->attempt.no != 0) {
        p->tasks[row->task].durable_attempt = row->attempt;
    }
}

/* The end of an attempt that nothing waited for: found again when the next daemon looks. */
static void lose_end(struct sim_program *p, struct sim_task *t, const struct state_row *row)
{
    t->accepted = UINT32_MAX;
    p->n_unlinked--;
    if (row->task < p->n_grid) {
        p->n_terminal--;
        p->n_counted_open += sim_stage_of(p, row->task)->counted;
        p->n_accepted--;
        p->stage_accepted[sim_accepted_as(p, row->task)]--;
    }
}

/* Back to what survived: also in the counts. */
static void lose_row(struct sim *s, const struct state_row *row)
{
    struct sim_program *p = &s->programs[row->program - 1];
    if (!row_kind_is_of_task(row->kind)) {
        p->row = p->durable;
        return;
    }
    p->tasks[row->task].row = p->tasks[row->task].durable;
    p->tasks[row->task].attempt = p->tasks[row->task].durable_attempt;
    p->n_unlinked += row->kind == ROW_TASK_LINKED;
    p->latest = p->durable_latest;
    if (row->kind == ROW_ATTEMPT_ENDED) {
        lose_end(p, &p->tasks[row->task], row);
    }
}

void check_settle_lazy(struct sim *s, bool survive)
{
    for (size_t i = 0; i < s->n_lazy; i++) {
        if (survive) {
            make_durable(s, &s->lazy[i]);
        }
    }
    for (size_t i = 0; !survive && i < s->n_lazy; i++) {
        lose_row(s, &s->lazy[i]);
    }
    s->n_lazy = 0;
}

/* Whatever the clock does, a program's history does not go back, and says so where the clock did.
 */
static void check_time(struct sim *s, const struct state_row *row)
{
    struct sim_program *p = &s->programs[row->program - 1];
    const struct attempt_row *a = &row->attempt;
    if (row->time.ms < p->latest.ms || row->time.ms - row->behind_ms != s->in_step->wall.ms ||
        (row->behind_ms > 0 && row->time.ms != p->latest.ms)) {
        sim_fail(s, "a row's time is %lld, behind by %lld; the row before has %lld",
                 (long long)row->time.ms, (long long)row->behind_ms, (long long)p->latest.ms);
    }
    if (row->kind == ROW_ATTEMPT_ENDED && a->ended.ms < a->started.ms) {
        sim_fail(s, "an attempt ended at %lld and started at %lld", (long long)a->ended.ms,
                 (long long)a->started.ms);
    }
    if (row_kind_is_journalled(row->kind)) {
        p->latest = row->time;
    }
}

void check_rows(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_programs; i++) {
        s->programs[i].last = (struct state_row){.kind = ROW_KIND_NR};
    }
    for (size_t i = 0; i < s->out.n_rows; i++) {
        const struct state_row *row = &s->out.rows[i];
        if (row->program == 0 || row->program > s->n_programs) {
            sim_fail(s, "a row of program %u", row->program);
        }
        check_time(s, row);
        if (row_kind_is_of_task(row->kind)) {
            take_task_row(s, row);
        } else {
            take_program_row(s, row);
        }
        s->programs[row->program - 1].last = *row;
        if (row->lazy) {
            ARRAY_GROW(s->lazy, s->n_lazy, s->cap_lazy);
            s->lazy[s->n_lazy++] = *row;
            continue;
        }
        check_settle_lazy(s, true);
        make_durable(s, row);
    }
}

static void check_room(struct sim *s, const struct core_act *act)
{
    const struct sim_program *p = &s->programs[act->program - 1];
    const struct core_plan_stage *st = sim_stage_of(p, act->task);
    uint32_t threads = st->threads < s->config.cores ? st->threads : s->config.cores;
    int64_t memory = st->memory_bytes;
    if (s->config.slots > 0 && s->used_slots + 1 > s->config.slots) {
        sim_fail(s, "S3: %u slots, %u in use", s->config.slots, s->used_slots);
    }
    if (s->used_threads + threads > s->config.cores) {
        sim_fail(s, "S3: %u cores, %u in use, %u more", s->config.cores, s->used_threads, threads);
    }
    if (s->config.memory_bytes > 0 && s->used_memory + memory > s->config.memory_bytes) {
        sim_fail(s, "S3: memory overspent");
    }
}

void check_act(struct sim *s, const struct core_act *act)
{
    if (act->kind == ACT_ARM) {
        return;
    }
    struct sim_program *p = &s->programs[act->program - 1];
    if (act->kind == ACT_VERDICT && (p->n_terminal != p->n_grid || p->n_verdicts > 0)) {
        sim_fail(s, "S7: a verdict asked for with %u of %u ended", p->n_terminal, p->n_grid);
    }
    if (act->kind > ACT_LINK) {
        return;
    }
    const struct sim_task *t = &p->tasks[act->task];
    bool committed = act->attempt_no == t->attempt.no;
    if (!committed) {
        sim_fail(s, "%s of attempt %u of task %u: not committed", core_act_name(act->kind),
                 act->attempt_no, act->task);
    }
    if (act->kind == ACT_START) {
        check_room(s, act);
        gpus_check_start(s, act);
    }
    if (act->kind == ACT_TERMINATE || act->kind == ACT_KILL) {
        const struct sim_attempt *a = &s->attempts[t->current];
        if (a->no == act->attempt_no && a->was_told && a->told == HEALTH_UNKNOWN) {
            sim_fail(s, "S4: task %u is UNKNOWN and is ended", act->task);
        }
    }
}

/* Only what survives a death now may be acted upon: the attempt itself, and that it has ended. */
void check_early(struct sim *s, const struct core_act *act)
{
    const struct sim_task *t = sim_task_at(s, act->program, act->task);
    if (act->attempt_no != t->durable_attempt.no || !is_live(&t->durable)) {
        sim_fail(s, "S9: %s of attempt %u of task %u, which is not durable",
                 core_act_name(act->kind), act->attempt_no, act->task);
    }
}

/* Then somebody must hear of it: a check is blocked that the program waits for. */
static bool is_paused_for_nothing(const struct sim_program *p)
{
    bool nothing = (p->row.paused & PAUSE_APPARATUS) != 0;
    for (uint32_t i = 0; i < p->n_checks; i++) {
        nothing = nothing && !(p->checks[i].declared && dead_end(&p->tasks[p->n_grid + i].row));
    }
    return nothing;
}

static bool is_own_failure(const struct sim_task *t)
{
    static const enum cause OWN[] = {CAUSE_CRASH,     CAUSE_HANG,       CAUSE_TIMEOUT,
                                     CAUSE_OOM,       CAUSE_BAD_RESULT, CAUSE_USER_ERROR,
                                     CAUSE_BAD_INPUT, CAUSE_DRIFT};
    bool own = false;
    for (size_t i = 0; i < ARRAY_LEN(OWN); i++) {
        own |= t->row.cause == OWN[i];
    }
    return own && t->row.state == TASK_BLOCKED &&
           !(t->row.cause == CAUSE_CRASH && t->attempt.signal == SIGKILL);
}

/* Of a stage that never had a result no three cells are given up for the same failure, unless
 * somebody said that they may fail, or somebody has seen scores that trying again could choose by.
 */
static void check_failures(struct sim *s, const struct sim_program *p, uint32_t stage)
{
    bool seen = p->row.unblinded && p->n_accepted > 0 && p->stages[stage].counted;
    if (p->stage_accepted[stage] + p->stage_accepted[SIM_STAGES_MAX + stage] > 0 ||
        p->row.failures_accepted || seen) {
        return;
    }
    for (uint32_t i = stage; i < p->n_grid; i += p->n_stages) {
        const struct sim_task *t = &p->tasks[i];
        uint32_t same = 0;
        for (uint32_t k = i; is_own_failure(t) && k < p->n_grid; k += p->n_stages) {
            const struct sim_task *other = &p->tasks[k];
            same += is_own_failure(other) && other->row.cause == t->row.cause &&
                    other->attempt.code == t->attempt.code &&
                    other->attempt.signal == t->attempt.signal;
        }
        if (same >= 3) {
            sim_fail(s, "%u cells of stage %u were given up for the same failure (%s)", same, stage,
                     cause_name(t->row.cause));
        }
    }
}

static void check_program(struct sim *s, uint32_t no)
{
    const struct sim_program *p = &s->programs[no - 1];
    struct core_counts counts;
    uint32_t sum = 0;
    if (!core_counts_get(s->core, no, &counts)) {
        sim_fail(s, "program %u is gone", no);
    }
    if (is_paused_for_nothing(p)) {
        sim_fail(s, "program %u is paused for its apparatus, and no check is blocked", no);
    }
    for (size_t i = 0; i < TASK_STATE_NR; i++) {
        sum += counts.by_state[i];
    }
    for (uint32_t i = 0; s->full_checks && i < p->n_stages; i++) {
        check_failures(s, p, i);
    }
    uint32_t ended = counts.by_state[TASK_DONE] + counts.by_state[TASK_BLOCKED] +
                     counts.by_state[TASK_NEVER_RUN];
    if (sum != p->n_grid || counts.planned != sum || ended != p->n_terminal ||
        counts.counted_open != p->n_counted_open) {
        sim_fail(s, "invariant 4: planned %u, states sum to %u, %u ended, committed %u", p->n_grid,
                 sum, ended, p->n_terminal);
    }
}

static void check_task(struct sim *s, uint32_t no, uint32_t task)
{
    const struct sim_program *p = &s->programs[no - 1];
    const struct sim_task *t = &p->tasks[task];
    struct core_explanation e;
    if (!core_explain(s->core, no, task, &e)) {
        sim_fail(s, "task %u is gone", task);
    }
    const struct task_row *r = &t->row;
    if (e.row.state != r->state || e.row.cause != r->cause || e.row.n_attempts != r->n_attempts ||
        e.row.crashes != r->crashes || e.row.spent != r->spent || e.row.idle != r->idle ||
        e.row.best_done != r->best_done || e.row.linked != r->linked ||
        e.row.not_before.ms != r->not_before.ms || e.row.ending != r->ending) {
        sim_fail(s, "task %u: the core believes other than what was committed", task);
    }
    if (r->state == TASK_WAITING && dependencies_done(p, task)) {
        sim_fail(s, "task %u waits for nothing", task);
    }
    if (r->state == TASK_WAITING && dependency_dead(p, task)) {
        sim_fail(s, "task %u waits for what will never be", task);
    }
    if ((e.attempt.no != 0) != is_live(r)) {
        sim_fail(s, "task %u: is %s with attempt %u", task, task_state_name(r->state),
                 e.attempt.no);
    }
    bool held = amend_is_held(p, task) && !amend_holds(p);
    if (e.why == (held ? WHY_SLOTS : WHY_APPARATUS)) {
        sim_fail(s, "task %u: said to %s the apparatus", task, held ? "pass" : "wait for");
    }
}

void check_step(struct sim *s)
{
    for (uint32_t no = 1; no <= s->n_programs && s->in_step->kind != CORE_PROGRAM_ADDED; no++) {
        check_program(s, no);
        for (uint32_t i = 0; s->full_checks && i < s->programs[no - 1].n_tasks; i++) {
            check_task(s, no, i);
        }
    }
    if (s->full_checks && s->in_step->kind != CORE_PROGRAM_ADDED) {
        check_priority(s);
    }
}

void check_end(struct sim *s)
{
    for (uint32_t no = 1; no <= s->n_programs; no++) {
        const struct sim_program *p = &s->programs[no - 1];
        if (p->n_verdicts != 1 || p->n_unsealed != 1 || p->n_reported != 1 ||
            p->n_terminal != p->n_grid) {
            sim_fail(s, "program %u: %u verdicts, %u reports, %u of %u ended", no, p->n_verdicts,
                     p->n_reported, p->n_terminal, p->n_grid);
        }
        for (uint32_t i = 0; i < p->n_tasks; i++) {
            check_task(s, no, i);
            if (!task_state_is_terminal(p->tasks[i].row.state) && i < p->n_grid) {
                sim_fail(s, "task %u is not at its end", i);
            }
        }
        journal_check(s, p);
    }
    if (core_n_live(s->core) != 0 || s->used_slots != 0) {
        sim_fail(s, "%zu attempts are left, %u really live", core_n_live(s->core), s->used_slots);
    }
}
