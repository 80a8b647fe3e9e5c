/*
 * The pump: steps queued events, commits the rows in one transaction, then does the acts.
 *
 * It runs before the loop sleeps and after it wakes, so the events of one turn share a commit. Acts
 * may post events; they are handled in further rounds, up to ROUNDS_MAX, before the loop gets its
 * turn. `flushing` keeps an act from entering again. After a failed commit `out` keeps its rows and
 * acts, and nothing is stepped until they are committed.
 */
#include "daemon/shell/pump.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/shell/batch.h"
#include "daemon/shell/withheld.h"

#define LAZY_MS         1000
#define COMMIT_AGAIN_MS 1000
#define ROUNDS_MAX      64 /* of events that acts cause at once, before the loop gets a turn */

struct queued {
    struct core_event ev;
    char *text;
};

struct damaged {
    uint32_t program;
    struct err why;
};

struct pump {
    uv_loop_t *loop;
    struct core *core;
    struct store *store;
    struct pump_listener listener;
    struct queued *queue;
    size_t n_queue;
    size_t cap_queue;
    struct core_out out;    /* stepped, not committed */
    struct core_out acting; /* committed, its acts are being done */
    bool flushing;
    bool closed;
    bool failing; /* the last commit failed */
    struct pump_commits commits;
    struct err why;
    struct damaged *damaged;
    size_t n_damaged;
    size_t cap_damaged;
    struct withheld_list withheld;
    int64_t armed_ms; /* the core's timer; INT64_MAX: none */
    int64_t lazy_due_ms;
    uv_prepare_t prepare; /* before the loop sleeps: after timers */
    uv_check_t check;     /* after it woke: after I/O */
    uv_timer_t core_timer;
    uv_timer_t again;
    uv_timer_t lazy;
    uv_timer_t retry; /* of what is withheld */
};

static void pump_flush(struct pump *p, bool now);

static void on_prepare(uv_prepare_t *h)
{
    pump_flush(h->data, false);
}

static void on_check(uv_check_t *h)
{
    pump_flush(h->data, false);
}

static void on_core_timer(uv_timer_t *h)
{
    struct pump *p = h->data;
    struct core_event ev = {.kind = CORE_TIMER};
    int64_t left = p->armed_ms - clock_mono().ms;
    if (left > 0) { /* libuv's time may differ from ours by the length of a turn */
        uv_update_time(p->loop);
        (void)uv_timer_start(h, on_core_timer, (uint64_t)left, 0);
        return;
    }
    p->armed_ms = INT64_MAX; /* the next time is armed again, even if it is the same */
    pump_post(p, &ev);
}

static void on_nudge(uv_timer_t *h)
{
    (void)h; /* prepare follows */
}

struct pump *pump_create(uv_loop_t *loop, struct core *core, struct store *store,
                         const struct pump_listener *listener)
{
    struct pump *p = xcalloc(1, sizeof(*p));
    p->loop = loop;
    p->core = core;
    p->store = store;
    p->listener = *listener;
    p->armed_ms = INT64_MAX;
    core_out_init(&p->out);
    core_out_init(&p->acting);
    (void)uv_prepare_init(loop, &p->prepare);
    (void)uv_check_init(loop, &p->check);
    (void)uv_timer_init(loop, &p->core_timer);
    (void)uv_timer_init(loop, &p->again);
    (void)uv_timer_init(loop, &p->lazy);
    (void)uv_timer_init(loop, &p->retry);
    p->prepare.data = p->check.data = p->core_timer.data = p->again.data = p->lazy.data = p;
    p->retry.data = p;
    (void)uv_prepare_start(&p->prepare, on_prepare);
    (void)uv_check_start(&p->check, on_check);
    return p;
}

void pump_close(struct pump *p)
{
    if (p->closed) {
        return;
    }
    pump_flush(p, true);
    p->closed = true;
    uv_close((uv_handle_t *)&p->prepare, NULL);
    uv_close((uv_handle_t *)&p->check, NULL);
    uv_close((uv_handle_t *)&p->core_timer, NULL);
    uv_close((uv_handle_t *)&p->again, NULL);
    uv_close((uv_handle_t *)&p->lazy, NULL);
    uv_close((uv_handle_t *)&p->retry, NULL);
}

void pump_free(struct pump *p)
{
    for (size_t i = 0; i < p->n_queue; i++) {
        free(p->queue[i].text);
    }
    free(p->queue);
    free(p->damaged);
    withheld_release(&p->withheld);
    core_out_release(&p->out);
    core_out_release(&p->acting);
    free(p);
}

size_t pump_n_queued(const struct pump *p)
{
    return p->n_queue;
}

bool pump_has_room(const struct pump *p)
{
    return p->n_queue < PUMP_QUEUE_MAX;
}

void pump_post(struct pump *p, struct core_event *ev)
{
    if (p->closed) {
        return;
    }
    ev->mono = clock_mono();
    ev->wall = clock_wall();
    ARRAY_GROW(p->queue, p->n_queue, p->cap_queue);
    struct queued *q = &p->queue[p->n_queue++];
    q->ev = *ev;
    q->text = ev->text == NULL ? NULL : xstrdup(ev->text);
    q->ev.text = q->text;
}

/* Steps everything queued into `out`. */
static void step_queue(struct pump *p)
{
    size_t n = p->n_queue;
    struct queued *batch = p->queue;
    p->queue = NULL;
    p->n_queue = p->cap_queue = 0;
    for (size_t i = 0; i < n; i++) {
        core_step(p->core, &batch[i].ev, &p->out);
        free(batch[i].text);
    }
    free(batch);
}

/* The timer needs no commit: a CORE_TIMER too early or too late changes nothing. */
static void arm(struct pump *p, int64_t at_ms)
{
    if (at_ms == p->armed_ms) {
        return;
    }
    p->armed_ms = at_ms;
    if (at_ms == INT64_MAX) {
        (void)uv_timer_stop(&p->core_timer);
        return;
    }
    int64_t left = at_ms - clock_mono().ms;
    uv_update_time(p->loop);
    (void)uv_timer_start(&p->core_timer, on_core_timer, left > 0 ? (uint64_t)left : 0, 0);
}

static bool has_urgent(const struct core_out *out)
{
    for (size_t i = 0; i < out->n_rows; i++) {
        if (!out->rows[i].lazy) {
            return true;
        }
    }
    for (size_t i = 0; i < out->n_acts; i++) { /* ARM acts were removed */
        if (out->acts[i].kind != ACT_LINK) {   /* is as urgent as its row */
            return true;
        }
    }
    return false;
}

/* After every step. Does the ARM acts at once and removes them from `out`; what belongs to a
 * withheld program waits with the rest of it. */
static void sort_out(struct pump *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->out.n_acts; i++) {
        if (p->out.acts[i].kind == ACT_ARM) {
            arm(p, p->out.acts[i].at_ms);
        } else {
            p->out.acts[kept++] = p->out.acts[i];
        }
    }
    p->out.n_acts = kept;
    for (size_t i = 0; i < p->withheld.n; i++) {
        batch_move(&p->out, p->withheld.items[i].program, &p->withheld.items[i].out);
    }
}

/* Verifying a result only reads, so it need not wait for rows that may be lost or for the starts of
 * other attempts. Any other uncommitted row holds it back. */
static void do_verify_acts(struct pump *p)
{
    for (size_t i = 0; i < p->out.n_rows; i++) {
        if (!p->out.rows[i].lazy && p->out.rows[i].kind != ROW_ATTEMPT_STARTED) {
            return;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < p->out.n_acts; i++) {
        if (p->out.acts[i].kind == ACT_VERIFY) {
            p->listener.act(p->listener.ctx, &p->out.acts[i]);
        } else {
            p->out.acts[kept++] = p->out.acts[i];
        }
    }
    p->out.n_acts = kept;
}

const struct err *pump_damage(const struct pump *p, uint32_t program)
{
    for (size_t i = 0; i < p->n_damaged; i++) {
        if (p->damaged[i].program == program) {
            return &p->damaged[i].why;
        }
    }
    return NULL;
}

/* Removes its rows and acts, then steps CORE_DAMAGED, after which the core may start others in its
 * place. */
static void drop_program(struct pump *p, uint32_t program, const struct err *why)
{
    struct core_event ev = {
        .kind = CORE_DAMAGED, .mono = clock_mono(), .wall = clock_wall(), .program = program};
    ARRAY_GROW(p->damaged, p->n_damaged, p->cap_damaged);
    struct damaged *d = &p->damaged[p->n_damaged++];
    *d = (struct damaged){.program = program, .why = *why};
    batch_drop(&p->out, program);
    if (p->listener.damaged != NULL) {
        p->listener.damaged(p->listener.ctx, program, &d->why);
    }
    core_step(p->core, &ev, &p->out);
    sort_out(p);
}

static void step_withheld(struct pump *p, uint32_t program, bool withheld)
{
    struct core_event ev = {.kind = CORE_WITHHELD,
                            .mono = clock_mono(),
                            .wall = clock_wall(),
                            .program = program,
                            .withheld = withheld};
    core_step(p->core, &ev, &p->out);
    sort_out(p);
}

static void tell_withheld(struct pump *p, uint32_t program, struct err *why)
{
    if (p->listener.withheld != NULL) {
        p->listener.withheld(p->listener.ctx, program, why);
    }
}

static void arm_retry(struct pump *p)
{
    int64_t due = withheld_due_ms(&p->withheld);
    if (due == INT64_MAX || p->closed) {
        (void)uv_timer_stop(&p->retry);
        return;
    }
    int64_t left = due - clock_mono().ms;
    uv_update_time(p->loop);
    (void)uv_timer_start(&p->retry, on_nudge, left > 0 ? (uint64_t)left : 0, 0);
}

/* After a commit that failed for this reason: when one program's journal is to blame, takes that
 * program out of the transaction, so that the commit of the others is worth another try. */
static bool withhold(struct pump *p, const struct err *err)
{
    const uint32_t program = store_failed_journal(p->store);
    if (program == 0 || store_is_damaged(p->store)) {
        return false;
    }
    struct withheld *w = withheld_add(&p->withheld, program, clock_mono().ms);
    w->why = *err;
    tell_withheld(p, program, &w->why);
    step_withheld(p, program, true);
    arm_retry(p);
    return true;
}

/* After a commit that failed with this code: tries each program's rows alone. True when one was
 * dropped, so that the commit of the others is worth another try. */
static bool drop_damaged(struct pump *p, int code)
{
    size_t n_before = p->n_damaged;
    size_t n = 0;
    uint32_t *programs = batch_programs(&p->out, &n);
    for (size_t i = 0; i < n && !batch_may_wait(code) && !store_is_damaged(p->store); i++) {
        struct err why;
        int rc = batch_try(p->store, &p->listener, &p->out, programs[i], &why);
        if (rc != 0 && !batch_may_wait(rc) && !store_is_damaged(p->store)) {
            drop_program(p, programs[i], &why);
        }
    }
    free(programs);
    return p->n_damaged > n_before;
}

const struct pump_commits *pump_commits(const struct pump *p)
{
    return &p->commits;
}

static void count_commit(struct pump_commits *c, int64_t ns)
{
    c->n++;
    c->sum_ns += ns;
    for (int i = 0; i < PUMP_COMMIT_BUCKETS; i++) {
        if (ns <= (INT64_C(1000000) << i)) {
            c->buckets[i]++;
            break;
        }
    }
}

/* True when all rows of `out` are committed. A failure is logged once, and retried every second. */
static bool commit(struct pump *p)
{
    struct err err;
    const int64_t began = clock_mono_ns();
    int rc = batch_commit(p->store, &p->listener, &p->out, &err);
    while (rc != 0 && (withhold(p, &err) || drop_damaged(p, rc))) {
        rc = batch_commit(p->store, &p->listener, &p->out, &err);
    }
    if (rc != 0) {
        if (!p->failing) {
            log_error("state cannot be written, nothing more is started: %s", err.msg);
        }
        p->failing = true;
        p->why = err;
        (void)uv_timer_start(&p->again, on_nudge, COMMIT_AGAIN_MS, 0);
        return false;
    }
    if (p->failing) {
        log_info("state can be written again");
    }
    count_commit(&p->commits, clock_mono_ns() - began);
    p->failing = false;
    p->lazy_due_ms = 0;
    (void)uv_timer_stop(&p->lazy);
    return true;
}

/* Whether everything in `out` may wait: lazy rows only, for at most LAZY_MS. */
static bool may_wait(struct pump *p)
{
    if (has_urgent(&p->out)) {
        return false;
    }
    int64_t now = clock_mono().ms;
    if (p->lazy_due_ms == 0) {
        p->lazy_due_ms = now + LAZY_MS;
        (void)uv_timer_start(&p->lazy, on_nudge, LAZY_MS, 0);
        return true;
    }
    return now < p->lazy_due_ms;
}

static void finish(struct pump *p, const struct core_out *out)
{
    p->listener.committed(p->listener.ctx, out->rows, out->n_rows);
    for (size_t i = 0; i < out->n_acts; i++) {
        p->listener.act(p->listener.ctx, &out->acts[i]);
    }
}

/* Swaps the two outs first: an act may cause a step, which fills `out` while `acting` is read. */
static void do_acts(struct pump *p)
{
    struct core_out done = p->acting;
    p->acting = p->out;
    p->out = done;
    core_out_clear(&p->out);
    finish(p, &p->acting);
}

/* Tries the rows of a withheld program again. Afterwards it is no longer withheld, or the next try
 * is due later: rows that are rejected now make it damaged. */
static void retry_withheld(struct pump *p, struct withheld *w)
{
    struct err err;
    const uint32_t program = w->program;
    int rc = batch_commit(p->store, &p->listener, &w->out, &err);
    if (rc != 0 && (batch_may_wait(rc) || store_is_damaged(p->store))) {
        withheld_postpone(w, clock_mono().ms);
        return;
    }
    struct core_out out = w->out;
    withheld_remove(&p->withheld, program);
    tell_withheld(p, program, NULL);
    if (rc != 0) {
        drop_program(p, program, &err);
    } else {
        finish(p, &out);
        step_withheld(p, program, false);
    }
    core_out_release(&out);
}

/* now: those that are not due, too. From the end, because a retry may remove its entry. */
static void retry_due(struct pump *p, bool now)
{
    const int64_t now_ms = clock_mono().ms;
    for (size_t i = p->withheld.n; i > 0; i--) {
        if (now || p->withheld.items[i - 1].due_ms <= now_ms) {
            retry_withheld(p, &p->withheld.items[i - 1]);
        }
    }
    arm_retry(p);
}

/* One round: step, commit, act. False when there is nothing more to do now. */
static bool round_once(struct pump *p, bool now)
{
    if (!p->failing) {
        step_queue(p);
        sort_out(p);
        do_verify_acts(p);
    } else if (uv_is_active((const uv_handle_t *)&p->again) != 0 && !now) {
        return false;
    }
    if ((p->out.n_rows == 0 && p->out.n_acts == 0) || (!now && may_wait(p))) {
        return false;
    }
    if (!commit(p)) {
        return false;
    }
    do_acts(p);
    return p->n_queue > 0;
}

/* Runs rounds until nothing is left. now: commits lazy rows, too, and retries a failed commit at
 * once. */
static void pump_flush(struct pump *p, bool now)
{
    if (p->flushing || p->closed) {
        return; /* an act can lead back here */
    }
    p->flushing = true;
    if (p->withheld.n > 0 && !p->failing) {
        retry_due(p, now);
    }
    int rounds = 0;
    while (rounds < ROUNDS_MAX && round_once(p, now)) {
        rounds++;
    }
    if (p->n_queue > 0 && !p->failing) {
        (void)uv_timer_start(&p->again, on_nudge, 0, 0);
    }
    p->flushing = false;
}

bool pump_is_well(const struct pump *p, struct err *why)
{
    if (p->failing) {
        *why = p->why;
        (void)err_wrap(why, "the state folder cannot be written");
    }
    return !p->failing;
}

/* Whether requests about the program are refused: its rows are rejected, or wait. */
static bool refuses(const struct pump *p, uint32_t program, struct err *err)
{
    const struct withheld *w = withheld_find(&p->withheld, program);
    const struct err *why = w != NULL ? &w->why : pump_damage(p, program);
    if (why != NULL) {
        *err = *why;
    }
    return why != NULL;
}

/* In one go: pending events first, so that the request is judged by the present state, then its
 * step, commit and acts. */
int pump_request(struct pump *p, struct core_event *ev, struct err *err)
{
    assert(!p->flushing);
    p->flushing = true;
    if (p->failing) {
        (void)round_once(p, true); /* a person's request is worth another try at once */
    }
    struct withheld *w = withheld_find(&p->withheld, ev->program);
    const bool was_withheld = w != NULL;
    if (was_withheld && !p->failing) {
        retry_withheld(p, w);
        arm_retry(p);
    }
    if (!pump_is_well(p, err) || refuses(p, ev->program, err)) {
        p->flushing = false;
        return err->code;
    }
    step_queue(p);
    ev->mono = clock_mono();
    ev->wall = clock_wall();
    core_step(p->core, ev, &p->out);
    int rc = p->out.refusal == NULL ? 0 : err_set(err, ERR_REFUSED, "%s", p->out.refusal);
    sort_out(p);
    if (p->out.n_rows > 0 || p->out.n_acts > 0) {
        if (commit(p)) {
            do_acts(p);
        } else if (rc == 0) { /* a refused event changed nothing, so its answer stays a refusal */
            *err = p->why;
            rc = err->code;
        }
    }
    p->flushing = false;
    rc = was_withheld && ev->kind == CORE_RESUME && rc == ERR_REFUSED ? 0 : rc;
    return refuses(p, ev->program, err) ? err->code : rc;
}
