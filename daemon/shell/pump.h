/*
 * The pump between the scheduler core and the world: events in, rows committed, acts out.
 *
 * Events of one turn of the loop are stepped into one `core_out` and committed in one transaction
 * before any of their acts is done. While a commit fails nothing is stepped and nothing is done:
 * events queue up to a bound, and the same rows are tried again. Rows that may wait (lazy) do so
 * for a second, and ACT_VERIFY, which only reads, does not wait for them.
 *
 * A commit that fails for another reason than the disk fails because of some program's rows. Each
 * program's rows are then applied alone and rolled back; a program whose rows are rejected even
 * alone is damaged. Invariants: none of its rows is committed and none of their acts is done; the
 * rows and acts of the other programs are those that they would have been without it; the core gets
 * CORE_DAMAGED before any of them; a program stays damaged as long as the pump lives. Where the
 * database itself is damaged (store_is_damaged) no program is blamed, and nothing more is written.
 *
 * A commit that fails because the journal of one program cannot be written (its folder is gone or
 * read-only) stops that program alone: the core gets CORE_WITHHELD, the program's rows and acts
 * wait in their order (withheld.h), and all of them are tried again ever more rarely, and at every
 * request about the program.
 */
#ifndef DAEMON_SHELL_PUMP_H
#define DAEMON_SHELL_PUMP_H

#include <uv.h>

#include "daemon/core/core.h"
#include "state/store/store.h"

struct pump;

struct pump_listener {
    void *ctx;
    /* Inside the transaction, after the rows were applied: what else must go with them. Rows
     * behind an amendment's row are applied after this was called for that row, in a call of their
     * own. */
    int (*committing)(void *ctx, const struct state_row *rows, size_t n, struct err *err);
    /* After the commit, before the acts. */
    void (*committed)(void *ctx, const struct state_row *rows, size_t n);
    void (*act)(void *ctx, const struct core_act *act);
    /* The store rejects the program's rows for this reason. The message of *why may be replaced: it
     * answers all later requests about the program. NULL is fine. */
    void (*damaged)(void *ctx, uint32_t program, struct err *why);
    /* The program's journal cannot be written, for this reason; called once, and with NULL when it
     * can be again, or when its rows are rejected. The message of *why may be replaced, as above.
     * NULL is fine. */
    void (*withheld)(void *ctx, uint32_t program, struct err *why);
};

/* core and store are borrowed; the listener is copied. Runs with the loop from now on. */
struct pump *pump_create(uv_loop_t *loop, struct core *core, struct store *store,
                         const struct pump_listener *listener);
/* Commits waiting rows and accepts no more events. Free it after the loop has run dry. */
void pump_close(struct pump *p);
void pump_free(struct pump *p);

/* While commits fail events wait in the queue. A caller that can hold its events back (workers'
 * events stay in their files) asks first whether there is room; the others are always queued. */
#define PUMP_QUEUE_MAX 4096
bool pump_has_room(const struct pump *p);
size_t pump_n_queued(const struct pump *p);

/* Queues the event; its time is set here. Text is copied; other pointers must live until then, so
 * CORE_PROGRAM_ADDED and _SETTINGS go through pump_request. */
void pump_post(struct pump *p, struct core_event *ev);

/* Steps and commits at once. ERR_REFUSED with the core's reason; the program's own error when it is
 * damaged (the event has no effect), or when its journal could not be written before and still
 * cannot (likewise); the commit's error when the state or its journal cannot be written (the event
 * has taken effect in the core and will be committed later). A RESUME that finds the journal
 * writable again has done what it was for. */
int pump_request(struct pump *p, struct core_event *ev, struct err *err) MUST_CHECK;

/* False while commits fail: requests of a person are refused. */
bool pump_is_well(const struct pump *p, struct err *why);

/* How long commits took since the start: bucket i counts those of at most 2^i ms. */
#define PUMP_COMMIT_BUCKETS 14
struct pump_commits {
    uint64_t n;
    int64_t sum_ns;
    uint64_t buckets[PUMP_COMMIT_BUCKETS]; /* not cumulative; longer ones are in n alone */
};
const struct pump_commits *pump_commits(const struct pump *p);

/* Why the program's rows are rejected; NULL while they are not. Lives until the next event. */
const struct err *pump_damage(const struct pump *p, uint32_t program);

#endif
