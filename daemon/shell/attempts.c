/*
 * Follows the live attempts: reads events.jsonl as it grows and passes on what the executor
 * reports.
 *
 * Nothing is posted out of order: an end or the answer to a probe waits until everything the worker
 * wrote before it has been read and posted. Reading is bounded per attempt and turn, and stops
 * while the pump has no room; what is unread stays in the worker's file.
 */
#include "daemon/shell/attempts.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/program/apparatus.h"
#include "daemon/program/cells.h"
#include "daemon/program/prepare.h"
#include "daemon/shim/files.h"

#define TICK_MS        100
#define TICKS_FOR_ALL  20  /* of this machine's attempts */
#define TICKS_FOR_FAR  100 /* of those of another executor: their files may be on a network */
#define READ_BYTES     ((size_t)1024 * 1024)
#define READS_PER_TICK 4
#define DRAIN_AGAIN_MS 1

/* ---- finding one ---- */

/* A closing attempt is not found: its row has ended already. */
struct shell_attempt *attempt_find(const struct shell *sh, const struct attempt_key *key)
{
    return key_map_get(&sh->attempt_map, key);
}

static void insert(struct shell *sh, struct shell_attempt *a)
{
    a->next = sh->attempts;
    if (a->next != NULL) {
        a->next->previous = a;
    }
    sh->attempts = a;
    sh->n_attempts++;
    key_map_put(&sh->attempt_map, &a->key, a);
}

static void take_out(struct shell *sh, struct shell_attempt *a)
{
    if (a->previous != NULL) {
        a->previous->next = a->next;
    } else {
        sh->attempts = a->next;
    }
    if (a->next != NULL) {
        a->next->previous = a->previous;
    }
    assert(sh->n_attempts > 0);
    sh->n_attempts--;
}

struct executor *shell_executor_of(const struct shell *sh, const struct shell_attempt *a)
{
    assert(a->row.placement.executor < EXECUTOR_NR);
    return sh->executors[a->row.placement.executor];
}

double attempt_pace_ms(const struct shell_attempt *a)
{
    if (a->row.done <= a->since_done) {
        return (double)NAN;
    }
    return (double)(clock_mono().ms - a->since_ms) / (double)(a->row.done - a->since_done);
}

/* A resumed attempt begins at its checkpoint: its pace is measured from its first progress on. */
void attempt_mirror(struct shell_attempt *a, const struct attempt_row *row)
{
    bool began_late = a->row.done < 0 && row->done > 0 && row->resumed_from >= 0;
    a->row = *row;
    if (began_late) {
        a->since_ms = clock_mono().ms;
        a->since_done = row->done;
    }
}

void attempt_locate(const struct shell_attempt *a, struct attempt_place *out)
{
    const struct hosted *h = shell_program(a->shell, a->key.program);
    *out = (struct attempt_place){.key = a->key,
                                  .id = a->row.id,
                                  .folder = a->folder,
                                  .program_folder = h->folder,
                                  .program = h->bundle->program,
                                  .stage = hosted_stage(h, a->key.task),
                                  .used = a->up || cells_are_used(h),
                                  .placement = &a->row.placement};
}

static void post(struct shell_attempt *a, struct core_event *ev)
{
    ev->program = a->key.program;
    ev->task = a->key.task;
    ev->attempt_no = a->key.no;
    pump_post(a->shell->pump, ev);
}

static void on_tick(uv_timer_t *timer);

/* A worker's last words may hold a score if its stage is sealed (invariant 8). */
static bool words_may_be_shown(const struct shell_attempt *a)
{
    const struct hosted *h = shell_program(a->shell, a->key.program);
    return hosted_is_check(h, a->key.task) || h->status.unsealed || h->status.unblinded ||
           !program_stage_is_sealed(h->bundle->program, hosted_stage(h, a->key.task));
}

/* The text is the executor's detail, or else the worker's last line on standard error. */
static void post_end(struct shell_attempt *a)
{
    const struct attempt_end *end = &a->end;
    struct core_event ev = {.kind = CORE_ATTEMPT_ENDED};
    ev.ended.reason = end->reason;
    ev.ended.code = end->code;
    ev.ended.signal = end->signal;
    ev.ended.ran_ms = end->ran_ms;
    ev.ended.user_ms = end->user_ms;
    ev.ended.system_ms = end->system_ms;
    ev.ended.max_rss_bytes = end->max_rss_bytes;
    ev.ended.unfit = end->unfit;
    ev.ended.excused = end->excused;
    char words[300] = "";
    if (end->detail[0] == '\0' && !(end->reason == END_EXITED && end->code == 0) &&
        words_may_be_shown(a)) {
        apparatus_last_words(a->folder, words, sizeof(words));
    }
    ev.text = end->detail[0] != '\0' ? end->detail : words[0] != '\0' ? words : NULL;
    post(a, &ev);
}

/* ---- events.jsonl ---- */

/* Without following links or waiting for a FIFO: the worker owns the file. */
static ssize_t read_events(const struct shell_attempt *a, char *buffer)
{
    char *path = path_join(a->folder, LAYOUT_EVENTS);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    free(path);
    if (fd < 0) {
        return -1;
    }
    ssize_t n = pread(fd, buffer, READ_BYTES, a->offset);
    (void)close(fd);
    return n;
}

/* One read. False without a whole line, or when the rest is not wanted: the rest of a file that
 * breaks the protocol (a hole of gigabytes, say) is never read. */
static bool take_some(struct shell_attempt *a)
{
    struct events_said said;
    ssize_t n = a->malformed > CORE_MALFORMED_MAX ? 0 : read_events(a, a->shell->read_buffer);
    if (n <= 0) {
        return false;
    }
    events_take(a->shell->read_buffer, (size_t)n, &said);
    if (said.n_bytes == 0) {
        return false;
    }
    struct core_event ev = {.kind = CORE_WORKER_SAID};
    ev.said.from = a->offset;
    ev.said.to = a->offset + (int64_t)said.n_bytes;
    ev.said.section = said.section;
    ev.said.progressed = said.progressed;
    ev.said.done = said.done;
    ev.said.total = said.total;
    ev.said.checkpoint = said.checkpoint;
    ev.said.resumed_from = said.resumed_from;
    ev.said.malformed = said.malformed;
    if (said.progressed) {
        memcpy(a->unit, said.unit, sizeof(a->unit));
    }
    a->offset = ev.said.to;
    a->shell->counters.event_bytes += said.n_bytes;
    a->malformed += said.malformed;
    post(a, &ev);
    return (size_t)n == READ_BYTES;
}

/* An exit.json alone is not enough: it may report a worker that could not be forked, and so may a
 * start.json that is about to become one. */
static void look_for_start(struct shell_attempt *a)
{
    struct shim_start start;
    struct err ignored;
    if (shim_start_read(a->folder, a->row.id, &start, &ignored) == 0) {
        struct core_event ev = {.kind = CORE_ATTEMPT_UP};
        a->up = true;
        post(a, &ev);
    }
}

/* Reads a turn's share of its events; `dirty` afterwards means that there may be more. While the
 * state cannot be written, events stay in the worker's file, where they cost no memory. */
static void drain(struct shell_attempt *a)
{
    a->dirty = false;
    for (int i = 0; i < READS_PER_TICK; i++) {
        if (!pump_has_room(a->shell->pump)) {
            a->dirty = true;
            return;
        }
        if (!take_some(a)) {
            return;
        }
    }
    a->dirty = true;
}

static void follow(struct shell_attempt *a)
{
    if (!a->began) {
        return;
    }
    if (!a->up) {
        look_for_start(a);
    }
    drain(a);
}

/* Posts the end or the probe's answer once all events were read. The end is judged by them, and
 * after a daemon was held up, an unread sign of work must not look like a hang. */
static void settle(struct shell_attempt *a)
{
    drain(a);
    if (a->dirty && !pump_has_room(a->shell->pump)) {
        return; /* retried at the next tick */
    }
    if (a->dirty) {
        (void)uv_timer_start(&a->shell->tick, on_tick, DRAIN_AGAIN_MS, TICK_MS);
    } else if (a->ended) {
        a->end_waits = false;
        post_end(a);
    } else {
        struct core_event ev = {.kind = CORE_PROBED};
        ev.health = a->health;
        a->probe_waits = false;
        post(a, &ev);
    }
}

/* Whether it is read at this tick although nothing says that it has written. */
static bool is_due(const struct shell_attempt *a, unsigned tick)
{
    if (a->row.placement.executor == EXECUTOR_LOCAL) {
        return tick % TICKS_FOR_ALL == 0 || !a->up;
    }
    return tick % (a->up ? TICKS_FOR_FAR : TICKS_FOR_ALL) == 0;
}

static void on_tick(uv_timer_t *timer)
{
    struct shell *sh = timer->data;
    static unsigned tick;
    tick++;
    for (struct shell_attempt *a = sh->attempts, *next; a != NULL; a = next) {
        next = a->next;
        if (a->closing) {
            continue;
        }
        if (a->ended && !a->end_waits && pump_damage(sh->pump, a->key.program) != NULL) {
            attempt_remove(a); /* its program gets no rows, so none will end it */
        } else if (a->end_waits || (a->probe_waits && !a->ended)) {
            settle(a);
        } else if (!a->ended && (a->dirty || is_due(a, tick))) {
            follow(a);
        }
    }
}

static void on_events_change(uv_fs_event_t *watch, const char *name, int events, int status)
{
    struct shell_attempt *a = watch->data;
    (void)name;
    (void)events;
    (void)status;
    a->dirty = true;
}

/* Without a watch (too many of them, or a file system that does not notify) the tick reads it every
 * two seconds. */
static void listen_to(struct shell_attempt *a)
{
    if (a->has_watch || a->closing) {
        return;
    }
    char *path = path_join(a->folder, LAYOUT_EVENTS);
    if (uv_fs_event_init(&a->shell->loop, &a->watch) == 0) {
        a->watch.data = a;
        a->has_watch = true;
        if (uv_fs_event_start(&a->watch, on_events_change, path, 0) != 0) {
            log_debug("%s: cannot be watched; it is read every two seconds", path);
        }
    }
    free(path);
}

/* ---- life ---- */

/* Reading continues at the committed offset, so that no byte is ingested twice (S6). */
struct shell_attempt *attempt_add(struct shell *sh, const struct attempt_key *key,
                                  const struct attempt_row *row)
{
    const struct hosted *h = shell_program(sh, key->program);
    struct shell_attempt *a = xcalloc(1, sizeof(*a));
    a->shell = sh;
    a->key = *key;
    a->row = *row;
    a->since_ms = clock_mono().ms;
    a->since_done = row->done > 0 ? row->done : 0;
    a->offset = row->offset;
    a->malformed = row->malformed;
    a->up = row->state == ATTEMPT_RUNNING;
    a->folder = hosted_attempt_folder(h, key->task, key->no, row->id);
    insert(sh, a);
    if (uv_is_active((uv_handle_t *)&sh->tick) == 0) {
        (void)uv_timer_start(&sh->tick, on_tick, TICK_MS, TICK_MS);
    }
    return a;
}

static void attempt_free(struct shell_attempt *a)
{
    struct shell *sh = a->shell;
    take_out(sh, a);
    if (sh->n_attempts == 0 && !sh->stopping) {
        (void)uv_timer_stop(&sh->tick);
    }
    free(a->folder);
    free(a);
}

static void on_watch_closed(uv_handle_t *handle)
{
    attempt_free(handle->data);
}

/* The watch is closed first; the struct is freed when libuv has let go of it. */
void attempt_remove(struct shell_attempt *a)
{
    if (a->closing) {
        return;
    }
    a->closing = true;
    key_map_remove(&a->shell->attempt_map, &a->key);
    if (a->has_watch) {
        uv_close((uv_handle_t *)&a->watch, on_watch_closed);
    } else {
        attempt_free(a);
    }
}

void attempts_close(struct shell *sh)
{
    for (struct shell_attempt *a = sh->attempts, *next; a != NULL; a = next) {
        next = a->next;
        attempt_remove(a);
    }
}

/* ---- the executors' reports ---- */

/* A file system of several machines does not notify of what another one writes. */
void attempts_on_began(void *ctx, const struct attempt_key *key)
{
    struct shell_attempt *a = attempt_find(ctx, key);
    if (a != NULL) {
        a->began = true;
        if (a->row.placement.executor == EXECUTOR_LOCAL) {
            listen_to(a);
        }
    }
}

void attempts_on_full(void *ctx, enum executor_kind executor, bool full)
{
    struct shell *sh = ctx;
    struct core_event ev = {.kind = CORE_QUEUE};
    ev.queue.executor = executor;
    ev.queue.full = full;
    pump_post(sh->pump, &ev);
}

void attempts_on_ended(void *ctx, const struct attempt_key *key, const struct attempt_end *end)
{
    struct shell_attempt *a = attempt_find(ctx, key);
    if (a == NULL || a->ended) {
        return;
    }
    a->ended = true;
    a->began = true; /* what it wrote is read before its end is posted */
    a->end = *end;
    a->end_waits = true;
    settle(a);
}

void attempts_on_probed(void *ctx, const struct attempt_key *key, enum core_health health)
{
    struct shell_attempt *a = attempt_find(ctx, key);
    if (a != NULL && !a->ended) {
        a->health = health;
        a->probe_waits = true;
        settle(a);
    }
}
