/*
 * The scheduler: one pure step function, core_step(core, event) -> rows and acts
 * (docs/scheduler.md).
 *
 * No clock, no I/O, no randomness but its own seeded generator: an event carries its time, what
 * must be done comes back as data. The shell COMMITS ALL ROWS of `out` in one transaction BEFORE IT
 * DOES ANY ACT of it, in order; it may take several steps into one `out` first. When the commit
 * fails it keeps `out`, feeds no event, and tries again. After a restart a new core is created and
 * fed CORE_PROGRAM_ADDED with the committed rows of every program, then CORE_ALL_ADDED: acts
 * that were committed but perhaps not done come out again, so every act must be safe to do twice.
 *
 * Ownership: the core owns copies of all it needs; pointers in an event need to live during the
 * step only. `out` owns its rows, acts and their texts until core_out_clear.
 *
 * A program that was reported as CORE_DAMAGED makes no rows, and no acts but PROBE, TERMINATE and
 * KILL; what its attempts hold of the machine stays counted until they have ended. The shell has
 * dropped the rows and acts of it that were not committed: a PROBE may name an attempt that was
 * never started, and is then answered by ENDED with NEVER_LAUNCHED.
 *
 * Invariants (docs/invariants.md): no task has two live current attempts; `done` is left only by an
 * amended apparatus check and by a task whose result is lost (S2);
 * threads, memory and slots are never overspent; UNKNOWN neither kills nor retries; the verdict is
 * asked for only when everything has ended.
 */
#ifndef DAEMON_CORE_CORE_H
#define DAEMON_CORE_CORE_H

#include "base/arena.h"
#include "daemon/core/event.h"
#include "state/rows.h"

/* Restarts in a row without progress that block a task; more only where [run] crashes is more. */
#define CORE_IDLE_MAX 3u
/* Lines of events.jsonl that are not events; more end the attempt as bad_result. */
#define CORE_MALFORMED_MAX 100

struct core;

struct core_config {
    uint64_t seed;        /* of jitter and attempt ids; the shell takes it from the kernel */
    uint32_t slots;       /* attempts at once on this machine; 0: by cores and memory only */
    uint32_t cores;       /* >= 1 */
    int64_t memory_bytes; /* 0: unlimited */
    int64_t backoff_ms;   /* first delay (default 1 s), doubled each time */
    int64_t backoff_max_ms;
    int64_t grace_ms;          /* SIGTERM to SIGKILL */
    int64_t probe_ms;          /* between probes of what does not answer */
    int64_t start_ms;          /* spawn to shim lock before it is probed */
    int64_t deadline_floor_ms; /* a measured deadline is never below this */
    int64_t deadline_first_ms; /* while nothing has been measured */
    uint32_t slice_tasks;      /* tasks that STOP and RETRY_ALL move in one step */
};

/* Suitable for one core and no memory limit; the shell sets machine and seed. */
void core_config_default(struct core_config *c);

/* clang-format off */
/*
 * What each act asks of the shell, and the event that answers it:
 *
 *   START         check lock and pins, make the attempt's folder, spawn the shim
 *                                                     -> ATTEMPT_UP or START_FAILED
 *   TERMINATE     SIGTERM to the attempt through a checked pidfd  -> ATTEMPT_ENDED, eventually
 *   KILL          SIGKILL to its whole tree, likewise             -> ATTEMPT_ENDED, eventually
 *   PROBE         check locks and files: exit.json is there       -> ATTEMPT_ENDED
 *                                        otherwise                -> PROBED
 *   VERIFY        read and verify result.json                     -> RESULT_CHECKED
 *   LINK          link result.json beside the attempts, replacing an older link -> LINKED
 *   ARM           set the core's one timer: at_ms replaces the armed time, INT64_MAX disarms
 *                                                                 -> TIMER
 *   WATCH_DISK    check every few seconds, until there is room    -> DISK, disk_full false
 *   WATCH_DATA    check every few seconds, until the data are there, or until it is time to retry
 *                 attempts that the machine could not start       -> MENDED
 *   VERDICT       check the lock and compute; write nothing yet
 *                                                     -> VERDICT_COMPUTED or VERDICT_FAILED
 *   REMOVE        remove the program's cells, which a row has given up        (no answer)
 *   REPORT        write verdict.json and provenance.json, run prereg-report    -> REPORTED
 *
 * A probe that finds no exit.json fences the attempt off before it reports it gone (DEAD, or ENDED
 * with LOST or NEVER_LAUNCHED): it takes the shim's lock, so that a late shim gives up.
 */
/* clang-format on */
enum core_act_kind {
    ACT_START,
    ACT_TERMINATE,
    ACT_KILL,
    ACT_PROBE,
    ACT_VERIFY,
    ACT_LINK,
    ACT_ARM,
    ACT_WATCH_DISK,
    ACT_WATCH_DATA,
    ACT_VERDICT,
    ACT_REPORT,
    ACT_REMOVE,
    CORE_ACT_NR
};

const char *core_act_name(enum core_act_kind kind); /* "start", ... */

struct core_act {
    enum core_act_kind kind;
    uint32_t program;
    uint32_t task;
    uint32_t attempt_no;
    char attempt_id[UUID_TEXT_SIZE]; /* START, and all others of an attempt */
    int64_t at_ms;                   /* ARM: mono */
};

/* What one or more steps produced. Both lists are in order; commit the rows before any act. */
struct core_out {
    struct state_row *rows;
    size_t n_rows;
    size_t cap_rows;
    struct core_act *acts;
    size_t n_acts;
    size_t cap_acts;
    struct arena texts;
    const char *refusal; /* of the last step, when it was a person's request and is refused: why;
                            else NULL */
};

/* `config` is copied. Nothing is started before CORE_ALL_ADDED. Requires cores, probe_ms and
 * slice_tasks above 0. */
struct core *core_create(const struct core_config *config);
void core_free(struct core *core);

/* An empty `out`; release it in the end. */
void core_out_init(struct core_out *out);
void core_out_clear(struct core_out *out); /* keeps the memory */
void core_out_release(struct core_out *out);

/* Appends to out. Every step is O(log n) in the tasks, but for PROGRAM_ADDED, STOP, RETRY_ALL and
 * dependants of one task. Events about unknown programs, tasks or attempts, late and doubled ones
 * change nothing. */
void core_step(struct core *core, const struct core_event *event, struct core_out *out);

/* When the armed timer is due (mono); INT64_MAX: none is armed. */
int64_t core_next_timer_ms(const struct core *core);

/* What an amendment is judged by: how far a program has run, and whether its scores were open
 * (amend.c). O(tasks). False when there is no such program. */
bool core_access_get(const struct core *c, uint32_t program, struct core_access *out);

/* Whether the second run of an apparatus check is over for good: it is done, or ended for a cause
 * that no resume removes (apparatus.c). */
bool again_is_final(enum task_state s, enum cause cause);

#endif
