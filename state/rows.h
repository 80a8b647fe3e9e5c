/*
 * The durable rows as plain data: what the scheduler core hands out, the store writes, and both
 * come back from. No SQLite; daemon/core links this part (preregd_rows) alone of state/.
 *
 * A task's row is a whole snapshot of what must survive of it. A program is named by its number in
 * the store (1, 2, ...), a task by its index cell * n_stages + stage, an attempt by its number
 * within the task (1, 2, ...) and by its UUID.
 */
#ifndef STATE_ROWS_H
#define STATE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/files/digest.h"
#include "base/uuid.h"
#include "prereg/amend/access_level.h"
#include "prereg/task/task_cause.h"
#include "state/placement.h"

/*
 * waiting -> ready (dependencies done) -> starting (slot) -> running (shim lock seen) -> done
 * starting, running -> ready (backoff: not_before is set) or blocked(cause) when the attempt ended
 * waiting, ready -> never_run(cause), or blocked(cause) when it has had an attempt
 * blocked, never_run -> waiting, ready by _TASK_RETRIED, _TASK_REVIVED
 * done is left by _APPARATUS_AGAIN, _RESULT_LOST
 */
enum task_state {
    TASK_WAITING,
    TASK_READY,
    TASK_STARTING,
    TASK_RUNNING,
    TASK_DONE,
    TASK_BLOCKED,
    TASK_NEVER_RUN,
    TASK_STATE_NR
};

const char *task_state_name(enum task_state s);         /* "waiting", ..., "never_run" */
enum task_state task_state_from_name(const char *name); /* TASK_STATE_NR when unknown */
bool task_state_is_terminal(enum task_state s);
bool task_move_is_allowed(enum task_state from, enum task_state to);

enum attempt_state { ATTEMPT_STARTING, ATTEMPT_RUNNING, ATTEMPT_ENDED, ATTEMPT_STATE_NR };
const char *attempt_state_name(enum attempt_state s);
enum attempt_state attempt_state_from_name(const char *name);

/* How an attempt came to its end, as exit.json's "reason" has it, or as found. */
enum end_reason {
    END_EXITED,         /* code holds */
    END_SIGNALLED,      /* signal holds */
    END_SPAWN_FAILED,   /* the shim could not run the worker */
    END_DEADLINE,       /* the shim's own limit */
    END_MEMORY,         /* its memory limit */
    END_DISK,           /* no room on its file system */
    END_LOST,           /* neither lock nor exit.json: silent death */
    END_HOST_LOST,      /* the same, and the machine was started anew since, or is gone */
    END_PREEMPTED,      /* ended by us or the machine's owner for reasons that are not its own */
    END_NEVER_LAUNCHED, /* no start.json: it never ran, and is fenced off so that it never will */
    END_REASON_NR
};

const char *end_reason_name(enum end_reason r); /* "exited", ..., as in exit.json */
enum end_reason end_reason_from_name(const char *name);

enum section { SECTION_SETUP, SECTION_STEP, SECTION_CHECKPOINT, SECTION_EVAL, SECTION_NR };
const char *section_name(enum section s);
enum section section_from_name(const char *name); /* SECTION_NR when unknown */

struct task_row {
    enum task_state state;
    enum cause cause;    /* of blocked and never_run; else CAUSE_NONE */
    bool linked;         /* done: result.json is linked beside the attempts */
    enum cause ending;   /* CANCELLED, STOPPED: the live attempt is being ended for it; else NONE */
    uint32_t n_attempts; /* the highest attempt number given out */
    uint32_t spent;      /* attempts that count against [run] attempts */
    uint32_t crashes;    /* against [run] crashes */
    uint32_t idle;       /* ends in a row without progress */
    uint32_t no_space;   /* ends in a row for want of disk */
    int64_t best_done;   /* the furthest progress of any attempt; -1 none */
    int64_t best_checkpoint;     /* the furthest checkpoint; -1 none */
    struct wall_time not_before; /* backoff; 0 none */
};

struct attempt_row {
    uint32_t no; /* 0: this row is about no attempt */
    char id[UUID_TEXT_SIZE];
    enum attempt_state state;
    enum cause cause; /* ENDED: why it did not yield the result; NONE when it did */
    enum end_reason reason;
    int code;   /* -1 unless END_EXITED */
    int signal; /* 0 unless END_SIGNALLED */
    struct wall_time started;
    struct wall_time ended;
    enum section section; /* the one it is in; SECTION_NR before it said so */
    int64_t done;         /* -1 none */
    int64_t total;        /* -1 unknown */
    int64_t checkpoint;   /* its newest checkpoint's step; -1 none */
    int64_t resumed_from; /* -1: it began at the beginning */
    int64_t malformed;    /* lines that were not JSON */
    int64_t offset;       /* bytes of events.jsonl ingested */
    int64_t ran_ms;       /* by the monotonic clock; -1 unknown; so the next three */
    int64_t user_ms;
    int64_t system_ms;
    int64_t max_rss_bytes;
    struct placement placement;
};

/* Why a program starts nothing new; bits of program_row.paused. */
enum pause_bit {
    PAUSE_PERSON = 1,
    PAUSE_DISK = 2,
    PAUSE_LOCK = 4,
    PAUSE_DATA = 8,
    PAUSE_APPARATUS = 16, /* a check does not hold, or cannot be made */
    PAUSE_HOST = 32,      /* attempts are lost before they run */
    PAUSE_FAILURES = 64,  /* the first cells of a stage have all failed the same way */
    PAUSE_STOPPING = 128, /* every task of it is being ended, slice by slice */
};
enum { PAUSE_NR = 8 };

struct program_row {
    unsigned paused;        /* pause_bits; what runs goes on running */
    bool unsealed;          /* all counted tasks are terminal */
    bool unblinded;         /* a person opened the scores before that */
    bool verdict;           /* the verdict is out */
    bool reported;          /* verdict.json and the report are written */
    bool removed;           /* a person gave up its cells; plan, journal and report stay */
    bool failures_accepted; /* a person said so: never paused for PAUSE_FAILURES again */
    char outcome[72];       /* once the verdict is out: outcome's name, "INDETERMINATE" or "VOID" */
    struct digest verdict_digest; /* of verdict.json */
};

/* Its name is the journal's "event". Rows that are not journalled follow from others, or files. */
enum row_kind {
    ROW_SUBMITTED,       /* the store's own first row: root digest, [run] */
    ROW_ATTEMPT_STARTED, /* task: ready -> starting */
    ROW_ATTEMPT_RUNNING, /* starting -> running; not journalled */
    ROW_ATTEMPT_ENDED,   /* starting, running -> done, ready, blocked */
    ROW_PROGRESS,        /* attempt only; not journalled */
    ROW_TASK_READY,      /* waiting -> ready, its dependencies are done; not journalled */
    ROW_TASK_ENDED,      /* waiting, ready -> never_run, blocked */
    ROW_TASK_ENDING,     /* cancel or stop was asked for while an attempt lives */
    ROW_TASK_RETRIED,    /* blocked, never_run -> waiting, ready */
    ROW_TASK_REVIVED,    /* likewise, by no person: with the pause for PAUSE_FAILURES */
    ROW_TASK_LINKED,     /* not journalled */
    ROW_APPARATUS_AGAIN, /* a check that was amended: done, blocked, never_run -> ready */
    ROW_RESULT_LOST,     /* done -> blocked(lost): given up, its accepted result is gone */
    ROW_PAUSED,
    ROW_RESUMED,
    ROW_UNBLINDED,
    ROW_UNSEALED,
    ROW_VERDICT,
    ROW_VERDICT_REFUSED,
    ROW_REPORTED,
    ROW_RUN_SETTINGS, /* the program was submitted again with another [run] */
    ROW_AMENDED,      /* .amendment; its files are there already */
    ROW_TAKEN_OVER,   /* by another daemon, of a shared state folder; detail: both, and the proof */
    ROW_REMOVED,      /* its cells are given up: they are being removed, or are gone */
    ROW_KIND_NR
};
const char *row_kind_name(enum row_kind k); /* "submitted", ... */
enum row_kind row_kind_from_name(const char *name);
bool row_kind_is_journalled(enum row_kind k);
bool row_kind_is_of_task(enum row_kind k); /* task and, with a number, attempt hold; else program */
struct amendment_row {
    uint32_t number; /* 1, 2, ... */
    struct digest head;
    enum access_level level;
};

struct state_row {
    enum row_kind kind;
    bool lazy; /* may wait a second for the next row that may not: losing it costs nothing */
    uint32_t program;
    uint32_t task;              /* rows of a task */
    struct wall_time time;      /* never before the time of the program's row before it */
    int64_t behind_ms;          /* the clock's own reading was so much earlier; 0: it is `time` */
    enum task_state from;       /* rows of a task: the state before */
    struct task_row after;      /* rows of a task: the state after */
    struct attempt_row attempt; /* rows of an attempt */
    struct program_row status;  /* rows of a program */
    bool has_result;            /* ATTEMPT_ENDED that makes the task done: result_digest holds */
    bool sealed;                /* has_result: its scores may not be seen yet (invariant 8) */
    struct digest result_digest;
    const char *apparatus; /* of a journal's line: the check that the task is; NULL: of the grid */
    const char *stage;     /* likewise: its stage */
    const char *detail;    /* for people, or JSON for RUN_SETTINGS; may be NULL; its maker's */
    struct amendment_row amendment; /* of AMENDED */
};

/* Whether a row of a task makes a move of its kind; false for rows of a program. */
bool state_row_is_legal(const struct state_row *row);
/* Says nothing yet: -1, NONE and SECTION_NR where 0 would lie. */
void task_row_init(struct task_row *row, enum task_state state);
void attempt_row_init(struct attempt_row *row);

#endif
