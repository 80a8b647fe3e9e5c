/*
 * One question at a time, about everything or about a few names. Of several rows of one attempt the
 * one that is most alive counts, and among equals the one that was submitted last. A batch is
 * absent only from a good, complete answer to a question that was asked after sbatch had answered.
 */
#include "daemon/executor/slurm/book_parts.h"

#include <assert.h>
#include <string.h>

#include "daemon/executor/slurm/ledger.h"

#define NAMES_MAX 50 /* more are asked about with everything */

/* ---- questions ---- */

int64_t watch_due_ms(const struct slurm_book *b)
{
    bool held = b->n_live > b->n_waiting || b->now_ms < b->linger_ms || b->hold_answer;
    if (b->asking || !held) {
        return INT64_MAX;
    }
    return b->want_names.n > 0 ? b->now_ms : b->round_ms;
}

static void unlist(struct slurm_book *b, struct list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        b->batches[l->at[i]].listed = false;
    }
    l->n = 0;
}

void watch_call(struct slurm_book *b)
{
    /* Rule 13: one question for everything, or for all that is wanted now. */
    b->asked_names = b->now_ms < b->round_ms && b->want_names.n <= NAMES_MAX;
    b->asking = true;
    b->asked_ms = b->now_ms;
    b->asked.n = 0;
    if (!b->asked_names) {
        acts_add(b, SLURM_ACT_QUEUE);
        unlist(b, &b->want_names);
        return;
    }
    struct strbuf names = STRBUF_INIT;
    for (size_t i = 0; i < b->want_names.n; i++) {
        strbuf_addf(&names, "%s%s", i > 0 ? "," : "", b->batches[b->want_names.at[i]].name);
        list_add(&b->asked, b->want_names.at[i]);
    }
    unlist(b, &b->want_names);
    acts_add(b, SLURM_ACT_NAMES)->name = arena_strdup(&b->out->texts, names.buf);
    strbuf_release(&names);
}

/* ---- rows ---- */

static int rank(enum slurm_phase phase)
{
    switch (phase) {
    case SLURM_PHASE_ACTIVE: return 3;
    case SLURM_PHASE_WAITING: return 2;
    case SLURM_PHASE_UNCLEAR: return 1;
    case SLURM_PHASE_OVER: break;
    }
    return 0;
}

static bool outranks(const struct slurm_row *x, const struct slurm_row *y)
{
    int dx = rank(slurm_state_phase(x->state));
    int dy = rank(slurm_state_phase(y->state));
    return dx != dy ? dx > dy : x->submit_s > y->submit_s;
}

static void note_final_reason(struct slurm_book *b, struct batch_record *r,
                              const struct slurm_row *row)
{
    if (r->noted || row->state != SLURM_PENDING || !slurm_reason_is_final(row->reason)) {
        return;
    }
    r->noted = true; /* rule 23: it would wait for ever in silence */
    acts_note(b, arena_printf(&b->out->texts, "job %s will never begin: %s (%s)", row->id,
                              slurm_reason_in_words(row->reason), row->reason));
}

static void note_row(struct slurm_book *b, uint32_t slot, const struct slurm_rows *rows, uint32_t i)
{
    struct attempt_record *a = ledger_at(b, slot);
    if (a->row == NOWHERE || outranks(&rows->rows[i], &rows->rows[a->row])) {
        a->row = i;
    }
}

/* The rest of an array that was cancelled while all of it waited is one row without an index. It is
 * about whatever has no row of its own in a complete answer. */
static void note_whole_array(struct slurm_book *b, uint32_t batch, const struct slurm_rows *rows,
                             uint32_t i)
{
    const struct slurm_row *row = &rows->rows[i];
    const struct batch_record *r = &b->batches[batch];
    if (!r->array || row->index != SLURM_INDEX_NONE || row->state != SLURM_CANCELLED ||
        row->node[0] != '\0' || rows->n_odd > 0) {
        return;
    }
    for (uint32_t k = 0; k < r->n_entries; k++) {
        if (r->entries[k] < ENTRY_STRAY) {
            note_row(b, r->entries[k], rows, i);
        }
    }
}

/* Finds the best row of each attempt, and the batches that are in the queue. */
static void mark_rows(struct slurm_book *b, const struct slurm_rows *rows)
{
    assert(rows->n < NOWHERE);
    for (uint32_t i = 0; i < rows->n; i++) {
        const struct slurm_row *row = &rows->rows[i];
        uint32_t batch = NOWHERE;
        const uint32_t *entry = ledger_entry(b, row, &batch);
        /* Any job of the batch shows that sbatch took it, also one whose attempt is not adopted
         * yet. One that a refused sbatch leaves behind is over and has no node: it proves nothing.
         */
        if (batch != NOWHERE &&
            (slurm_state_phase(row->state) != SLURM_PHASE_OVER || row->node[0] != '\0')) {
            settle_accepted(b, batch);
        }
        if (entry == NULL && batch != NOWHERE) {
            note_whole_array(b, batch, rows, i);
        }
        if (entry == NULL || *entry >= ENTRY_STRAY) {
            continue;
        }
        note_row(b, *entry, rows, i);
        note_final_reason(b, &b->batches[batch], row);
    }
}

static void begin(struct slurm_book *b, uint32_t slot)
{
    struct attempt_record *a = ledger_at(b, slot);
    a->phase = PHASE_BEGUN;
    a->waits_ms = LONG_AGO;
    acts_begun(b, slot);
}

static void wait_on(struct slurm_book *b, struct attempt_record *a)
{
    a->phase = PHASE_HELD;
    if (!a->reported_begun) {
        return;
    }
    /* Rule 7: what has begun and waits again was requeued by the site, unless an answer is an old
     * one or the controller has forgotten what it knew. */
    a->waits_ms = a->waits_ms == LONG_AGO ? b->asked_ms : a->waits_ms;
    a->requeued = a->requeued || (b->asked_ms - a->waits_ms >= b->config.beat_ms &&
                                  b->now_ms - a->beat_ms >= b->config.beat_ms);
}

static void see(struct slurm_book *b, uint32_t slot, const struct slurm_row *row)
{
    struct attempt_record *a = ledger_at(b, slot);
    a->state = (uint8_t)row->state;
    a->word = row->state == SLURM_UNKNOWN ? intern_add(&b->words, row->word) : 0;
    a->reason = intern_add(&b->words, row->reason);
    if (row->node[0] != '\0') {
        a->node = nodes_number(&b->nodes, row->node);
    }
    a->requeued = a->requeued || slurm_state_is_requeue(row->state);
    switch (slurm_state_phase(row->state)) {
    case SLURM_PHASE_ACTIVE: begin(b, slot); return;
    case SLURM_PHASE_WAITING: wait_on(b, a); return;
    case SLURM_PHASE_UNCLEAR:
        /* Rule 18: shown, and neither alive nor dead for it. */
        if (a->phase == PHASE_GONE || a->phase == PHASE_UNSURE) {
            a->phase = a->reported_begun ? PHASE_BEGUN : PHASE_HELD;
        }
        return;
    case SLURM_PHASE_OVER: settle_gone(b, slot, true); return;
    }
}

static void miss(struct slurm_book *b, uint32_t slot)
{
    struct attempt_record *a = ledger_at(b, slot);
    if (a->phase == PHASE_AGAIN) {
        return;
    }
    settle_gone(b, slot, false);
    a->absent_ms = b->asked_ms;
    a->n_absent = (uint16_t)(a->n_absent + (a->n_absent < UINT16_MAX));
}

/* Applies the answer to one attempt. complete: what is not in it is absent. */
static void apply(struct slurm_book *b, uint32_t slot, const struct slurm_rows *rows, bool complete)
{
    struct attempt_record *a = ledger_at(b, slot);
    uint32_t row = a->row;
    a->row = NOWHERE;
    if (a->phase == PHASE_FREE || a->phase == PHASE_WAITING || a->phase == PHASE_SUBMITTING) {
        return;
    }
    if (row != NOWHERE) {
        see(b, slot, &rows->rows[row]);
    } else if (complete && b->asked_ms > b->batches[a->batch].submitted_ms) {
        miss(b, slot); /* rule 15: absent */
    }
}

static void apply_all(struct slurm_book *b, const struct slurm_rows *rows)
{
    for (uint32_t slot = 0; slot < b->n_attempts; slot++) {
        apply(b, slot, rows, rows->n_odd == 0);
    }
}

static void apply_names(struct slurm_book *b, const struct slurm_rows *rows)
{
    for (size_t i = 0; i < b->asked.n; i++) {
        const struct batch_record *r = &b->batches[b->asked.at[i]];
        for (uint32_t k = 0; k < r->n_entries; k++) {
            if (r->entries[k] < ENTRY_STRAY) {
                apply(b, r->entries[k], rows, rows->n_odd == 0);
            }
        }
    }
}

/* Health that was asked for and not known then. */
static void pay_probes(struct slurm_book *b)
{
    for (uint32_t slot = 0; slot < b->n_attempts; slot++) {
        struct attempt_record *a = ledger_at(b, slot);
        if (a->phase == PHASE_FREE || !a->probe_owed) {
            continue;
        }
        a->probe_owed = false;
        struct slurm_act *act = acts_add(b, SLURM_ACT_PROBED);
        act->key = a->key;
        act->health = settle_is_alive(b, a)    ? SLURM_ALIVE
                      : a->phase == PHASE_HELD ? SLURM_QUEUED
                                               : SLURM_UNSURE;
    }
}

void watch_answered(struct slurm_book *b, const struct slurm_event *ev)
{
    if (!b->asking) {
        return;
    }
    b->asking = false;
    if (!b->asked_names) {
        b->round_ms = b->asked_ms + calls_round_ms(b->config.round_ms, b->config.round_max_ms,
                                                   b->n_live - b->n_waiting);
    }
    /* Rule 15: "cannot ask" changes nothing. */
    if (ev->queue.ok) {
        const struct slurm_rows *rows = ev->queue.rows;
        b->hold_answer = false;
        mark_rows(b, rows);
        cancel_find(b, rows);
        if (b->asked_names) {
            apply_names(b, rows);
        } else {
            b->good_ms = b->asked_ms;
            apply_all(b, rows);
        }
    }
    if (!b->asked_names) {
        settle_round(b, ev->queue.ok);
        pay_probes(b);
    }
}

/* ---- accounting ---- */

int64_t watch_accounting_due_ms(const struct slurm_book *b)
{
    return b->account.n > 0 && !b->accounting ? b->now_ms : INT64_MAX;
}

void watch_accounting_call(struct slurm_book *b)
{
    struct strbuf names = STRBUF_INIT;
    int64_t since = INT64_MAX;
    for (size_t i = 0; i < b->account.n; i++) {
        const struct batch_record *r = &b->batches[b->account.at[i]];
        strbuf_addf(&names, "%s%s", i > 0 ? "," : "", r->name);
        since = r->adopted || r->submitted_ms < since ? r->submitted_ms : since;
    }
    b->account.n = 0;
    b->accounting = true;
    struct slurm_act *act = acts_add(b, SLURM_ACT_ACCOUNTING);
    act->name = arena_strdup(&b->out->texts, names.buf);
    act->since_ms = since > LONG_AGO ? since : INT64_MIN;
    strbuf_release(&names);
}

#define ACCOUNTING_AGAIN_MS INT64_C(3600000)

/* Rule 16: it explains what left the queue, and decides nothing. */
void watch_accounted(struct slurm_book *b, const struct slurm_event *ev)
{
    if (!b->accounting) {
        return;
    }
    b->accounting = false;
    if (!ev->queue.ok) {
        b->accounting_off_ms = ev->queue.off ? b->now_ms + ACCOUNTING_AGAIN_MS : b->now_ms;
        return;
    }
    for (size_t i = 0; i < ev->queue.rows->n; i++) {
        const struct slurm_row *row = &ev->queue.rows->rows[i];
        uint32_t batch = NOWHERE;
        const uint32_t *entry = ledger_entry(b, row, &batch);
        if (entry == NULL || *entry >= ENTRY_STRAY) {
            continue;
        }
        struct attempt_record *a = ledger_at(b, *entry);
        if (a->phase == PHASE_GONE && !a->over &&
            slurm_state_phase(row->state) == SLURM_PHASE_OVER) {
            a->state = (uint8_t)row->state;
            a->node = row->node[0] != '\0' ? nodes_number(&b->nodes, row->node) : a->node;
        }
    }
}
