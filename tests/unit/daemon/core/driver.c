#include "tests/unit/daemon/core/driver.h"
#include "tests/unit/check.h"

static const char *const EVENTS[CORE_EVENT_NR] = {
    [CORE_PROGRAM_ADDED] = "program_added",
    [CORE_ALL_ADDED] = "all_added",
    [CORE_PROGRAM_SETTINGS] = "program_settings",
    [CORE_ATTEMPT_UP] = "attempt_up",
    [CORE_START_FAILED] = "start_failed",
    [CORE_WORKER_SAID] = "worker_said",
    [CORE_ATTEMPT_ENDED] = "attempt_ended",
    [CORE_RESULT_CHECKED] = "result_checked",
    [CORE_PROBED] = "probed",
    [CORE_LINKED] = "linked",
    [CORE_TIMER] = "timer",
    [CORE_RETRY] = "retry",
    [CORE_RETRY_ALL] = "retry_all",
    [CORE_CANCEL] = "cancel",
    [CORE_LOST] = "lost",
    [CORE_STOP] = "stop",
    [CORE_PAUSE] = "pause",
    [CORE_RESUME] = "resume",
    [CORE_UNBLIND] = "unblind",
    [CORE_AMEND] = "amend",
    [CORE_STOPPING] = "stopping",
    [CORE_MACHINE] = "machine",
    [CORE_DISK] = "disk",
    [CORE_MENDED] = "mended",
    [CORE_DAMAGED] = "damaged",
    [CORE_VERDICT_COMPUTED] = "verdict_computed",
    [CORE_VERDICT_FAILED] = "verdict_failed",
    [CORE_REPORTED] = "reported",
};

void driver_init(struct driver *d, uint32_t cores)
{
    struct core_config c;
    core_config_default(&c);
    c.seed = 7;
    c.cores = cores;
    c.backoff_ms = 1000;
    c.backoff_max_ms = 8000;
    *d = (struct driver){.core = core_create(&c), .trace = STRBUF_INIT, .now_ms = 0};
    core_out_init(&d->out);
    driver_step(d, (struct core_event){.kind = CORE_ALL_ADDED});
}

void driver_release(struct driver *d)
{
    core_free(d->core);
    core_out_release(&d->out);
    strbuf_release(&d->trace);
}

static void trace_row(struct driver *d, const struct state_row *row)
{
    strbuf_addf(&d->trace, "  row %s", row_kind_name(row->kind));
    if (row_kind_is_of_task(row->kind)) {
        strbuf_addf(&d->trace, " %u.%u", row->program, row->task);
        if (row->from != row->after.state) {
            strbuf_addf(&d->trace, " %s->%s", task_state_name(row->from),
                        task_state_name(row->after.state));
        }
        if (row->attempt.no > 0) {
            strbuf_addf(&d->trace, " attempt %u", row->attempt.no);
        }
        if (row->attempt.state == ATTEMPT_ENDED && row->attempt.cause != CAUSE_NONE) {
            strbuf_addf(&d->trace, " %s", cause_name(row->attempt.cause));
        } else if (row->after.cause != CAUSE_NONE) {
            strbuf_addf(&d->trace, " %s", cause_name(row->after.cause));
        }
    } else {
        strbuf_addf(&d->trace, " %u", row->program);
    }
    strbuf_adds(&d->trace, row->lazy ? " (lazy)\n" : "\n");
}

static void trace_act(struct driver *d, const struct core_act *act)
{
    strbuf_addf(&d->trace, "  act %s", core_act_name(act->kind));
    if (act->kind == ACT_ARM && act->at_ms == INT64_MAX) {
        strbuf_adds(&d->trace, " never\n");
    } else if (act->kind == ACT_ARM) {
        strbuf_addf(&d->trace, " %lld\n", (long long)act->at_ms);
    } else if (act->kind <= ACT_LINK) {
        strbuf_addf(&d->trace, " %u.%u attempt %u\n", act->program, act->task, act->attempt_no);
    } else {
        strbuf_addf(&d->trace, " %u\n", act->program);
    }
}

void driver_step(struct driver *d, struct core_event ev)
{
    ev.mono.ms = d->now_ms;
    ev.wall.ms = 1763694202000 + d->now_ms;
    core_out_clear(&d->out);
    core_step(d->core, &ev, &d->out);
    strbuf_addf(&d->trace, "%lld %s", (long long)d->now_ms, EVENTS[ev.kind]);
    if (ev.kind >= CORE_ATTEMPT_UP && ev.kind <= CORE_PROBED) {
        strbuf_addf(&d->trace, " %u.%u attempt %u", ev.program, ev.task, ev.attempt_no);
    }
    strbuf_addc(&d->trace, '\n');
    for (size_t i = 0; i < d->out.n_rows; i++) {
        trace_row(d, &d->out.rows[i]);
    }
    for (size_t i = 0; i < d->out.n_acts; i++) {
        trace_act(d, &d->out.acts[i]);
    }
    if (d->out.refusal != NULL) {
        strbuf_addf(&d->trace, "  refused: %s\n", d->out.refusal);
    }
}

void driver_add(struct driver *d, uint32_t program, const struct core_plan *plan)
{
    struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = program};
    ev.added.plan = *plan;
    driver_step(d, ev);
}

static struct core_event of_attempt(enum core_event_kind kind, uint32_t task, uint32_t no)
{
    return (struct core_event){.kind = kind, .program = 1, .task = task, .attempt_no = no};
}

void driver_at(struct driver *d, enum core_event_kind kind, uint32_t task, uint32_t no)
{
    driver_step(d, of_attempt(kind, task, no));
}

void driver_exit(struct driver *d, uint32_t task, uint32_t no, int code)
{
    struct core_event ev = of_attempt(CORE_ATTEMPT_ENDED, task, no);
    ev.ended.reason = END_EXITED;
    ev.ended.code = code;
    driver_step(d, ev);
}

void driver_end(struct driver *d, uint32_t task, uint32_t no, enum end_reason reason)
{
    struct core_event ev = of_attempt(CORE_ATTEMPT_ENDED, task, no);
    ev.ended.reason = reason;
    ev.ended.signal = 9;
    driver_step(d, ev);
}

void driver_checked(struct driver *d, uint32_t task, uint32_t no, enum core_result_check result)
{
    struct core_event ev = of_attempt(CORE_RESULT_CHECKED, task, no);
    ev.check.result = result;
    driver_step(d, ev);
}

void driver_probed(struct driver *d, uint32_t task, uint32_t no, enum core_health health)
{
    struct core_event ev = of_attempt(CORE_PROBED, task, no);
    ev.health = health;
    driver_step(d, ev);
}

void driver_said(struct driver *d, uint32_t task, uint32_t no, int64_t from, int64_t done)
{
    struct core_event ev = of_attempt(CORE_WORKER_SAID, task, no);
    ev.said.from = from;
    ev.said.to = from + 100;
    ev.said.section = SECTION_NR;
    ev.said.progressed = true;
    ev.said.done = done;
    ev.said.total = 1000;
    ev.said.checkpoint = -1;
    ev.said.resumed_from = -1;
    driver_step(d, ev);
}

bool driver_did(const struct driver *d, enum core_act_kind kind)
{
    for (size_t i = 0; i < d->out.n_acts; i++) {
        if (d->out.acts[i].kind == kind) {
            return true;
        }
    }
    return false;
}

struct task_row driver_row(const struct driver *d, uint32_t task)
{
    struct core_explanation e;
    assert_true(core_explain(d->core, 1, task, &e));
    return e.row;
}
