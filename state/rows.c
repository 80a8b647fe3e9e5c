/* Names of states, reasons, sections and rows, the table of legal moves, and rows at rest. */
#include "state/rows.h"

#include <assert.h>
#include <string.h>

static const char *const TASK_STATES[TASK_STATE_NR] = {
    [TASK_WAITING] = "waiting",     [TASK_READY] = "ready", [TASK_STARTING] = "starting",
    [TASK_RUNNING] = "running",     [TASK_DONE] = "done",   [TASK_BLOCKED] = "blocked",
    [TASK_NEVER_RUN] = "never_run",
};

static const char *const ATTEMPT_STATES[ATTEMPT_STATE_NR] = {
    [ATTEMPT_STARTING] = "starting",
    [ATTEMPT_RUNNING] = "running",
    [ATTEMPT_ENDED] = "ended",
};

static const char *const END_REASONS[END_REASON_NR] = {
    [END_EXITED] = "exited",
    [END_SIGNALLED] = "signalled",
    [END_SPAWN_FAILED] = "spawn_failed",
    [END_DEADLINE] = "deadline",
    [END_MEMORY] = "memory",
    [END_DISK] = "disk",
    [END_LOST] = "lost",
    [END_HOST_LOST] = "host_lost",
    [END_PREEMPTED] = "preempted",
    [END_NEVER_LAUNCHED] = "never_launched",
};

static const char *const SECTIONS[SECTION_NR] = {
    [SECTION_SETUP] = "setup",
    [SECTION_STEP] = "step",
    [SECTION_CHECKPOINT] = "checkpoint",
    [SECTION_EVAL] = "eval",
};

static const struct {
    const char *name;
    bool journalled;
    bool of_task;
} ROW_KINDS[ROW_KIND_NR] = {
    [ROW_SUBMITTED] = {"submitted", true, false},
    [ROW_ATTEMPT_STARTED] = {"attempt_started", true, true},
    [ROW_ATTEMPT_RUNNING] = {"attempt_running", false, true},
    [ROW_ATTEMPT_ENDED] = {"attempt_ended", true, true},
    [ROW_PROGRESS] = {"progress", false, true},
    [ROW_TASK_READY] = {"task_ready", false, true},
    [ROW_TASK_ENDED] = {"task_ended", true, true},
    [ROW_TASK_ENDING] = {"task_ending", true, true},
    [ROW_TASK_RETRIED] = {"task_retried", true, true},
    [ROW_TASK_REVIVED] = {"task_revived", true, true},
    [ROW_TASK_LINKED] = {"task_linked", false, true},
    [ROW_APPARATUS_AGAIN] = {"apparatus_again", true, true},
    [ROW_RESULT_LOST] = {"result_lost", true, true},
    [ROW_PAUSED] = {"paused", true, false},
    [ROW_RESUMED] = {"resumed", true, false},
    [ROW_UNBLINDED] = {"unblinded", true, false},
    [ROW_UNSEALED] = {"unsealed", true, false},
    [ROW_VERDICT] = {"verdict", true, false},
    [ROW_VERDICT_REFUSED] = {"verdict_refused", true, false},
    [ROW_REPORTED] = {"reported", true, false},
    [ROW_RUN_SETTINGS] = {"run_settings", true, false},
    [ROW_AMENDED] = {"amended", true, false},
    [ROW_TAKEN_OVER] = {"taken_over", true, false},
    [ROW_REMOVED] = {"removed", true, false},
};

/* Allowed moves; the diagram is in rows.h. A move to itself is always refused. */
#define TO(s) (1u << (s))
static const unsigned MOVES[TASK_STATE_NR] = {
    [TASK_WAITING] = TO(TASK_READY) | TO(TASK_NEVER_RUN),
    [TASK_READY] = TO(TASK_STARTING) | TO(TASK_NEVER_RUN) | TO(TASK_BLOCKED),
    [TASK_STARTING] = TO(TASK_RUNNING) | TO(TASK_READY) | TO(TASK_BLOCKED),
    [TASK_RUNNING] = TO(TASK_DONE) | TO(TASK_READY) | TO(TASK_BLOCKED),
    [TASK_DONE] = 0,
    [TASK_BLOCKED] = TO(TASK_WAITING) | TO(TASK_READY),
    [TASK_NEVER_RUN] = TO(TASK_WAITING) | TO(TASK_READY),
};

static unsigned find_name(const char *const *names, unsigned n, const char *name)
{
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return n;
}

const char *task_state_name(enum task_state s)
{
    return s < TASK_STATE_NR ? TASK_STATES[s] : "?";
}

enum task_state task_state_from_name(const char *name)
{
    assert(name != NULL);
    return (enum task_state)find_name(TASK_STATES, TASK_STATE_NR, name);
}

bool task_state_is_terminal(enum task_state s)
{
    return s == TASK_DONE || s == TASK_BLOCKED || s == TASK_NEVER_RUN;
}

bool task_move_is_allowed(enum task_state from, enum task_state to)
{
    return from < TASK_STATE_NR && to < TASK_STATE_NR && (MOVES[from] & TO(to)) != 0;
}

const char *attempt_state_name(enum attempt_state s)
{
    return s < ATTEMPT_STATE_NR ? ATTEMPT_STATES[s] : "?";
}

enum attempt_state attempt_state_from_name(const char *name)
{
    assert(name != NULL);
    return (enum attempt_state)find_name(ATTEMPT_STATES, ATTEMPT_STATE_NR, name);
}

const char *end_reason_name(enum end_reason r)
{
    return r < END_REASON_NR ? END_REASONS[r] : "?";
}

enum end_reason end_reason_from_name(const char *name)
{
    assert(name != NULL);
    return (enum end_reason)find_name(END_REASONS, END_REASON_NR, name);
}

const char *section_name(enum section s)
{
    return s < SECTION_NR ? SECTIONS[s] : "";
}

enum section section_from_name(const char *name)
{
    assert(name != NULL);
    return (enum section)find_name(SECTIONS, SECTION_NR, name);
}

const char *row_kind_name(enum row_kind k)
{
    return k < ROW_KIND_NR ? ROW_KINDS[k].name : "?";
}

enum row_kind row_kind_from_name(const char *name)
{
    assert(name != NULL);
    unsigned k = 0;
    while (k < ROW_KIND_NR && strcmp(ROW_KINDS[k].name, name) != 0) {
        k++;
    }
    return (enum row_kind)k;
}

bool row_kind_is_journalled(enum row_kind k)
{
    return k < ROW_KIND_NR && ROW_KINDS[k].journalled;
}

bool row_kind_is_of_task(enum row_kind k)
{
    return k < ROW_KIND_NR && ROW_KINDS[k].of_task;
}

void task_row_init(struct task_row *row, enum task_state state)
{
    assert(row != NULL);
    *row = (struct task_row){.state = state, .best_done = -1, .best_checkpoint = -1};
}

void attempt_row_init(struct attempt_row *row)
{
    assert(row != NULL);
    *row = (struct attempt_row){
        .code = -1,
        .section = SECTION_NR,
        .done = -1,
        .total = -1,
        .checkpoint = -1,
        .resumed_from = -1,
        .ran_ms = -1,
        .user_ms = -1,
        .system_ms = -1,
        .max_rss_bytes = -1,
    };
}

bool state_row_is_legal(const struct state_row *row)
{
    assert(row != NULL);
    switch (row->kind) {
    case ROW_PROGRESS:
    case ROW_TASK_ENDING:
        return row->from == row->after.state && !task_state_is_terminal(row->from);
    case ROW_TASK_LINKED: return row->from == TASK_DONE && row->after.state == TASK_DONE;
    case ROW_APPARATUS_AGAIN:
        return task_state_is_terminal(row->from) && row->after.state == TASK_READY;
    case ROW_RESULT_LOST:
        return row->from == TASK_DONE && row->after.state == TASK_BLOCKED &&
               row->after.cause == CAUSE_LOST;
    case ROW_ATTEMPT_STARTED: return row->from == TASK_READY && row->after.state == TASK_STARTING;
    case ROW_ATTEMPT_RUNNING: return row->from == TASK_STARTING && row->after.state == TASK_RUNNING;
    case ROW_ATTEMPT_ENDED:
        return (row->from == TASK_STARTING || row->from == TASK_RUNNING) &&
               task_move_is_allowed(row->from, row->after.state) &&
               row->has_result == (row->after.state == TASK_DONE);
    case ROW_TASK_REVIVED:
        return (row->from == TASK_BLOCKED || row->from == TASK_NEVER_RUN) &&
               task_move_is_allowed(row->from, row->after.state);
    case ROW_TASK_READY:
    case ROW_TASK_ENDED:
    case ROW_TASK_RETRIED: return task_move_is_allowed(row->from, row->after.state);
    case ROW_SUBMITTED:
    case ROW_PAUSED:
    case ROW_RESUMED:
    case ROW_UNBLINDED:
    case ROW_UNSEALED:
    case ROW_VERDICT:
    case ROW_VERDICT_REFUSED:
    case ROW_REPORTED:
    case ROW_RUN_SETTINGS:
    case ROW_AMENDED:
    case ROW_TAKEN_OVER:
    case ROW_REMOVED:
    case ROW_KIND_NR: break;
    }
    return false;
}
