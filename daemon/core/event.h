/*
 * The events that drive the scheduler core: plain data, each carrying its own time. The pointers in
 * an event only need to live during core_step.
 */
#ifndef DAEMON_CORE_EVENT_H
#define DAEMON_CORE_EVENT_H

#include "daemon/core/gpu.h"
#include "daemon/core/plan.h"
#include "prereg/program/stage_set.h"
#include "state/rows.h"

struct core_end { /* how the last attempt of a blocked task ended */
    uint32_t task;
    int code; /* as in attempt_row */
    int signal;
};

struct core_live { /* an attempt without an end in the store */
    uint32_t task;
    struct attempt_row attempt;
    bool answered; /* at work when a pause for failures was lifted (failures.c) */
};

struct core_access { /* what an amendment was judged by */
    enum access_level level;
    struct stage_set started; /* some task of the stage has had an attempt */
    uint32_t n_done;          /* tasks of the grid */
};

struct core_amendment {
    uint32_t number;
    struct digest head;
    struct core_access access;
    struct stage_set params_of;   /* whose params it changes */
    bool by_results;              /* the results that existed by then were read */
    const struct core_plan *plan; /* the apparatus checks after it; NULL: unchanged */
};

/* HEALTH_UNKNOWN neither kills nor retries (S4). HEALTH_QUEUED: another scheduler has it and has
 * not begun it, so it may be ended at once. */
enum core_health { HEALTH_ALIVE, HEALTH_DEAD, HEALTH_UNKNOWN, HEALTH_QUEUED };
enum core_start_failure {
    START_FAILED_HOST,     /* fork, file handles, ...: retried later, from a budget of the program
                              (judge.c) */
    START_FAILED_NO_SPACE, /* pauses the program */
    START_FAILED_LOCK,     /* the lock does not hold: pauses the program and says so */
    START_FAILED_DRIFT,    /* pinned data or worker differs: the task ends blocked(drift) */
    START_FAILED_USER,     /* the worker cannot be executed: blocked(user_error) */
    START_FAILED_MISSING,  /* data are not there at all: pauses the program until they are */
    START_FAILED_OUTDATED, /* the program was amended meanwhile: retried at once, up to three
                              times in a row; then as START_FAILED_HOST */
    START_FAILED_NR
};
/* What verifying result.json came to. */
enum core_result_check {
    RESULT_VALID, /* for an apparatus check: valid, and it holds */
    RESULT_BAD,
    RESULT_DRIFT,
    RESULT_NO_SPACE,
    RESULT_UNEXPECTED, /* apparatus checks only: whole, and not what was expected */
    RESULT_STALE,      /* apparatus checks only: its question was amended meanwhile */
};

enum core_event_kind {
    CORE_PROGRAM_ADDED,    /* .added: it is in the store already, fresh or recovered */
    CORE_ALL_ADDED,        /* after a start: that was all; before it nothing is started */
    CORE_PROGRAM_SETTINGS, /* .added.plan with another [run] only; .text: the [run] table as JSON */
    CORE_ATTEMPT_UP,       /* .attempt: its shim has started the worker */
    CORE_START_FAILED,     /* .attempt, .start_failure, .text */
    CORE_WORKER_SAID,      /* .attempt, .said */
    CORE_ATTEMPT_ENDED,    /* .attempt, .ended */
    CORE_RESULT_CHECKED,   /* .attempt, .check, .text: what is wrong, or what an apparatus check
                               returned */
    CORE_PROBED,           /* .attempt, .health */
    CORE_LINKED, /* .attempt: its result is now the task's; a repeated check gets another */
    CORE_TIMER,  /* the armed time has come; harmless at any other time */
    CORE_RETRY,  /* .task; a person's request: core_step answers in .refusal. Of this and those that
                     follow down to UNBLIND .text is the reason that was given, or NULL */
    CORE_RETRY_ALL, /* every blocked task of the grid that may be, in slices */
    CORE_CANCEL,    /* .task */
    CORE_LOST, /* .task: done, and the caller has seen that its accepted result is gone or changed;
                  .text: the person's reason */
    CORE_STOP, /* the whole program: everything not terminal ends as stopped, in slices */
    CORE_PAUSE,
    CORE_RESUME,   /* lifts every pause; blocked apparatus checks are repeated;
                      .accept_failures: stages may fail from now on (failures.c) */
    CORE_REMOVE,   /* its cells are given up; .text: the receipt that was made of them, and why */
    CORE_UNBLIND,  /* .text: who and why */
    CORE_AMEND,    /* .amendment, .text: the reason; its files are in the program's folder */
    CORE_STOPPING, /* the daemon ends soon: nothing is started any more */
    CORE_MACHINE,  /* .machine: slots, cores or memory changed */
    CORE_QUEUE,    /* .queue: an executor takes no more attempts, or takes them again */
    CORE_GPUS,     /* .gpus: those of this machine, as they are now */
    CORE_DISK,     /* .program, .disk_full, .text */
    CORE_MENDED,   /* .program, .text: data that were missing are there; the lock that refused the
                      verdict holds; the machine is given another chance to start something */
    CORE_DAMAGED,  /* the store rejects its rows: nothing of it is started and no row of it is made
                      any more; its attempts run to their end */
    CORE_WITHHELD, /* .withheld: its rows cannot be committed now, unlike those of others; the shell
                      keeps them. Nothing of it is started until the event comes with false */
    CORE_VERDICT_COMPUTED, /* .verdict */
    CORE_VERDICT_FAILED,   /* .text; asked for again on CORE_RESUME, CORE_MENDED and after a restart
                            */
    CORE_REPORTED,         /* verdict.json and provenance.json are written, and the report unless
                              .text says why not */
    CORE_EVENT_NR
};

struct core_event {
    enum core_event_kind kind;
    struct mono_time mono; /* never goes back: an earlier one counts as the latest seen */
    struct wall_time wall; /* may jump */
    uint32_t program;
    uint32_t task;
    uint32_t attempt_no;  /* with program and task: which attempt */
    const char *text;     /* or NULL */
    bool accept_failures; /* of RESUME */
    union {
        struct {
            struct core_plan plan;
            const struct task_row *tasks; /* all n_cells * n_stages + n_apparatus, or NULL for a
                                         fresh program */
            const struct core_live *live; /* attempts not ended, at most one per task */
            size_t n_live;
            const struct core_end *ends; /* of blocked tasks; a task without one ended unknown */
            size_t n_ends;
            const struct program_row *status; /* or NULL for a fresh program */
            struct wall_time latest;          /* of its journal's rows */
            const char *stop_text;            /* status.paused has STOPPING: the reason, or NULL */
        } added;
        struct {
            int64_t from; /* offset in events.jsonl where this batch begins; ignored unless it is
                             the attempt's own (S6) */
            int64_t to;   /* where it ends: behind the last whole line */
            enum section section; /* the last one named, or SECTION_NR */
            bool progressed;      /* a progress line was among them: done and total hold */
            int64_t done;
            int64_t total;        /* -1 unknown */
            int64_t checkpoint;   /* the newest named, or -1 */
            int64_t resumed_from; /* or -1 */
            int64_t malformed;    /* how many */
        } said;
        struct {
            enum end_reason reason;
            int code;
            int signal;
            int64_t ran_ms; /* -1 unknown; so the next three */
            int64_t user_ms;
            int64_t system_ms;
            int64_t max_rss_bytes;
            bool unfit; /* NEVER_LAUNCHED: its node did not begin it, although its job was active */
            bool excused; /* NEVER_LAUNCHED, and no attempt comes to that node again: the program
                             spends nothing, either */
        } ended;
        struct {
            enum core_result_check result;
            struct digest digest; /* of result.json, RESULT_VALID */
        } check;
        struct {
            char outcome[72];
            struct digest digest;
        } verdict;
        struct {
            uint32_t slots;
            uint32_t cores;
            int64_t memory_bytes;
        } machine;
        struct {
            enum executor_kind executor;
            bool full;
        } queue;
        struct {
            bool known;                  /* false: what was known may hold no longer */
            const struct core_gpu *list; /* at most GPU_LIST_MAX, each UUID once */
            size_t n;
        } gpus;
        struct core_amendment amendment;
        enum core_start_failure start_failure;
        enum core_health health;
        bool disk_full;
        bool withheld;
    };
};

#endif
