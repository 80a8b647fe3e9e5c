/*
 * The step: takes the event's time, lets the part that it belongs to change the records, and then
 * makes the calls to Slurm that are due and that the token bucket allows, the most urgent first.
 */
#include "daemon/executor/slurm/book.h"

#include <assert.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "daemon/executor/slurm/book_parts.h"
#include "daemon/executor/slurm/ledger.h"

#define GRACE_MS  180000
#define INDEX_MAX 100000u /* max_queued is at most that, and so is a batch */

void slurm_book_config_default(struct slurm_book_config *c)
{
    *c = (struct slurm_book_config){.max_array = 1001,
                                    .grace_ms = GRACE_MS,
                                    .round_ms = 5000,
                                    .round_max_ms = 60000,
                                    .gather_ms = 200,
                                    .beat_ms = 60000,
                                    .exclude_ms = INT64_C(86400000),
                                    .calls_a_minute = 120,
                                    .failed_starts = 5};
}

struct slurm_book *slurm_book_create(const struct slurm_book_config *config)
{
    struct slurm_book *b = xcalloc(1, sizeof(*b));
    assert(config->max_array > 0 && config->calls_a_minute >= 2 && config->round_ms > 0 &&
           config->round_max_ms >= config->round_ms);
    b->config = *config;
    rng_seed(&b->rng, config->seed);
    ledger_init(b);
    nodes_init(&b->nodes);
    intern_init(&b->words);
    calls_init(&b->calls, config->calls_a_minute, LONG_AGO);
    b->submitting = b->testing = NOWHERE;
    b->now_ms = b->hold_ms = b->round_ms = b->good_ms = b->linger_ms = LONG_AGO;
    b->accounting_off_ms = LONG_AGO;
    b->batch_most = config->max_array;
    b->next_ms = INT64_MAX;
    return b;
}

void slurm_book_free(struct slurm_book *b)
{
    if (b == NULL) {
        return;
    }
    ledger_release(b);
    nodes_release(&b->nodes);
    intern_release(&b->words);
    cancel_release(b);
    free(b->again.at);
    free(b->asked.at);
    free(b->want_names.at);
    free(b->account.at);
    free(b);
}

void slurm_book_set_max_array(struct slurm_book *b, uint32_t max_array)
{
    assert(max_array > 0);
    b->config.max_array = max_array;
    b->batch_most = max_array;
}

void slurm_out_init(struct slurm_out *out)
{
    *out = (struct slurm_out){0};
    arena_init(&out->texts);
}

void slurm_out_clear(struct slurm_out *out)
{
    out->n = 0;
    arena_clear(&out->texts);
}

void slurm_out_release(struct slurm_out *out)
{
    free(out->acts);
    arena_release(&out->texts);
    *out = (struct slurm_out){0};
}

/* ---- probes ---- */

static void report_health(struct slurm_book *b, const struct attempt_key *key,
                          enum slurm_health health)
{
    struct slurm_act *act = acts_add(b, SLURM_ACT_PROBED);
    act->key = *key;
    act->health = health;
}

/* Rule 1: after a restart the job's name, which its folder keeps, is what it is asked for by. */
static void adopt(struct slurm_book *b, const struct slurm_event *ev)
{
    bool array = ev->start.index != SLURM_INDEX_NONE;
    uint32_t index = array ? ev->start.index : 0;
    uint32_t batch = ledger_find_batch(b, ev->start.name);
    if (batch == NOWHERE) {
        batch = ledger_add_batch(b, ev->start.name, array);
        b->batches[batch].state = BATCH_UNSURE;
        b->batches[batch].adopted = true;
        b->batches[batch].n_tries = 1; /* by the daemon before; its answer is unknown */
        b->batches[batch].shape = ev->start.shape;
    }
    struct batch_record *r = &b->batches[batch];
    bool taken = index < r->n_entries && r->entries[index] < ENTRY_STRAY;
    if (!r->adopted || r->array != array || taken) {
        report_health(b, &ev->key, SLURM_UNSURE); /* its file contradicts another's */
        return;
    }
    uint32_t slot = ledger_add(b, &ev->key, ev->start.id);
    struct attempt_record *a = ledger_at(b, slot);
    a->shape = ev->start.shape;
    (void)ledger_shape(b, a->shape); /* its batch may be submitted again, and refused */
    a->array = array;
    a->probe_owed = true;
    if (index < r->n_entries) {
        r->entries[index] = ENTRY_OVER;
    }
    ledger_enter(b, batch, index, slot);
    if (r->state == BATCH_HELD) {
        a->phase = PHASE_HELD; /* the queue has shown the rest of it */
    }
}

static void probe_unknown(struct slurm_book *b, const struct slurm_event *ev)
{
    switch (ev->start.hint) {
    case SLURM_HINT_NEVER: {
        uint32_t slot = ledger_add(b, &ev->key, ev->start.id);
        acts_end_without(b, slot, END_NEVER_LAUNCHED, "it was never submitted");
        return;
    }
    case SLURM_HINT_FENCED: {
        /* Its job gives up by itself: it must not be submitted again. */
        uint32_t slot = ledger_add(b, &ev->key, ev->start.id);
        acts_end_without(b, slot, END_HOST_LOST, "an earlier daemon gave it up");
        return;
    }
    case SLURM_HINT_JOB:
        if (uuid_is_valid(ev->start.name) &&
            (ev->start.index == SLURM_INDEX_NONE || ev->start.index < INDEX_MAX)) {
            adopt(b, ev);
            return;
        }
        break;
    case SLURM_HINT_NONE:
    case SLURM_HINT_UNCLEAR: break;
    }
    report_health(b, &ev->key, SLURM_UNSURE);
}

static void probe(struct slurm_book *b, const struct slurm_event *ev)
{
    uint32_t slot = ledger_find(b, &ev->key);
    if (slot == NOWHERE) {
        probe_unknown(b, ev);
        return;
    }
    const struct attempt_record *a = ledger_at(b, slot);
    int64_t round = calls_round_ms(b->config.round_ms, b->config.round_max_ms, b->n_live);
    bool fresh = b->now_ms - b->good_ms < 3 * round;
    bool ours =
        a->phase == PHASE_WAITING || a->phase == PHASE_SUBMITTING || a->phase == PHASE_AGAIN;
    report_health(b, &ev->key,
                  settle_is_alive(b, a)                       ? SLURM_ALIVE
                  : ours || (a->phase == PHASE_HELD && fresh) ? SLURM_QUEUED
                                                              : SLURM_UNSURE);
}

/* ---- ending ---- */

static void want_end(struct slurm_book *b, const struct attempt_key *key, enum attempt_want want)
{
    uint32_t slot = ledger_find(b, key);
    if (slot == NOWHERE) {
        return;
    }
    struct attempt_record *a = ledger_at(b, slot);
    if (a->phase == PHASE_WAITING || a->phase == PHASE_AGAIN) {
        acts_end_without(b, slot, END_PREEMPTED, "ended before it was submitted");
        return;
    }
    if (want > a->want) {
        a->want = (uint8_t)want;
        a->signal_ms = LONG_AGO;
    }
    if (a->phase != PHASE_SUBMITTING && a->phase != PHASE_GONE) {
        ledger_ask_soon(b, a->batch);
    }
}

/* ---- the step ---- */

struct due_call {
    int64_t (*due_ms)(struct slurm_book *b);
    void (*make)(struct slurm_book *b);
};

static int64_t watch_due(struct slurm_book *b)
{
    return watch_due_ms(b);
}

static int64_t accounting_due(struct slurm_book *b)
{
    return watch_accounting_due_ms(b);
}

/* Makes what is due; the most urgent first, since each takes a token. */
static void make_calls(struct slurm_book *b)
{
    static const struct due_call CALLS[] = {{watch_due, watch_call},
                                            {cancel_due_ms, cancel_call},
                                            {submit_due_ms, submit_call},
                                            {accounting_due, watch_accounting_call}};
    b->next_ms = submit_room_ms(b);
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        int64_t due = CALLS[i].due_ms(b);
        if (due <= b->now_ms) {
            if (!calls_take(&b->calls, b->now_ms)) { /* rule 10 */
                int64_t token = calls_next_ms(&b->calls);
                b->next_ms = token < b->next_ms ? token : b->next_ms;
                return;
            }
            CALLS[i].make(b);
            due = CALLS[i].due_ms(b);
            due = due > b->now_ms ? due : b->now_ms + 1;
        }
        b->next_ms = due < b->next_ms ? due : b->next_ms;
    }
}

void slurm_book_step(struct slurm_book *b, const struct slurm_event *ev, struct slurm_out *out)
{
    b->out = out;
    b->now_ms = ev->mono.ms > b->now_ms ? ev->mono.ms : b->now_ms;
    switch (ev->kind) {
    case SLURM_EVENT_START: submit_start(b, ev); break;
    case SLURM_EVENT_PROBE: probe(b, ev); break;
    case SLURM_EVENT_TERMINATE: want_end(b, &ev->key, WANT_TERMINATE); break;
    case SLURM_EVENT_KILL: want_end(b, &ev->key, WANT_KILL); break;
    case SLURM_EVENT_TESTED: submit_tested(b, ev); break;
    case SLURM_EVENT_SUBMITTED: submit_answered(b, ev); break;
    case SLURM_EVENT_QUEUE: watch_answered(b, ev); break;
    case SLURM_EVENT_ACCOUNTED: watch_accounted(b, ev); break;
    case SLURM_EVENT_CANCELLED: cancel_answered(b); break;
    case SLURM_EVENT_FILES: settle_files(b, ev); break;
    case SLURM_EVENT_TIMER: break;
    }
    make_calls(b);
    b->out = NULL;
}

int64_t slurm_book_next_ms(const struct slurm_book *b)
{
    return b->next_ms;
}

void slurm_book_set_grace(struct slurm_book *b, int64_t grace_ms)
{
    assert(grace_ms >= 1000);
    b->config.grace_ms = grace_ms;
}

void slurm_book_set_round(struct slurm_book *b, int64_t round_ms)
{
    assert(round_ms >= 1000 && round_ms <= b->config.round_max_ms);
    b->config.round_ms = round_ms;
}

size_t slurm_book_count(const struct slurm_book *b)
{
    return b->n_live;
}

bool slurm_book_view(const struct slurm_book *b, const struct attempt_key *key,
                     struct slurm_view *view)
{
    uint32_t slot = ledger_find(b, key);
    if (slot == NOWHERE) {
        return false;
    }
    const struct attempt_record *a = &b->attempts[slot];
    int64_t round = calls_round_ms(b->config.round_ms, b->config.round_max_ms, b->n_live);
    *view = (struct slurm_view){.reason = intern_word(&b->words, a->reason),
                                .node = intern_word(&b->nodes.names, a->node),
                                .name = "",
                                .index = a->index,
                                .stale = b->now_ms - b->good_ms >= 3 * round};
    if (a->batch != NOWHERE) {
        view->name = b->batches[a->batch].name;
    }
    view->state = a->phase == PHASE_WAITING || a->phase == PHASE_AGAIN ? "waiting"
                  : a->phase == PHASE_SUBMITTING                       ? "submitting"
                  : a->state == SLURM_UNKNOWN && a->word == 0          ? "submitted"
                  : a->word != 0 ? intern_word(&b->words, a->word)
                                 : slurm_state_word((enum slurm_state)a->state);
    return true;
}
