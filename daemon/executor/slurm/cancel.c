/* Calls wait in a short list: what has waited for CHECK_MS is dropped, since its ids may have been
 * given to other jobs meanwhile; the next answer brings it back. */
#include "daemon/executor/slurm/book_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "daemon/executor/slurm/ledger.h"

#define CHECK_MS      10000
#define AGAIN_MS      30000 /* a signal may get lost; KillWait is 30 s */
#define IDS_MAX_BYTES 16000

enum cancelling { CANCEL_NOT, CANCEL_PLAIN, CANCEL_SOFT };

/* Whether a live row of an attempt, row i of the answer, must end. */
static enum cancelling judge(const struct attempt_record *a, uint32_t i, enum slurm_phase phase)
{
    if (a->want == WANT_KILL) {
        return CANCEL_PLAIN;
    }
    if (a->want == WANT_TERMINATE) {
        /* What has not begun has nothing to checkpoint. */
        return phase == SLURM_PHASE_WAITING ? CANCEL_PLAIN : CANCEL_SOFT;
    }
    if (phase != SLURM_PHASE_WAITING) {
        return CANCEL_NOT; /* of two that run the shim's own claim lets one work */
    }
    /* Rule 7: requeued by the site, it would only refuse to run. */
    if (a->row == i && a->reported_begun && a->requeued) {
        return CANCEL_PLAIN;
    }
    /* Rules 1, 6: accepted twice. */
    return a->row != i ? CANCEL_PLAIN : CANCEL_NOT;
}

static void add(struct slurm_book *b, uint32_t batch, bool soft, const char *id)
{
    struct batch_record *r = &b->batches[batch];
    if (r->cancel[soft] == NOWHERE) {
        ARRAY_GROW(b->cancels, b->n_cancels, b->cap_cancels);
        r->cancel[soft] = (uint32_t)b->n_cancels;
        struct cancel *c = &b->cancels[b->n_cancels++];
        *c = (struct cancel){.batch = batch, .soft = soft, .checked_ms = b->now_ms};
        memcpy(c->name, r->name, UUID_TEXT_SIZE);
        strbuf_init(&c->ids);
    }
    struct strbuf *ids = &b->cancels[r->cancel[soft]].ids;
    if (ids->len < IDS_MAX_BYTES) {
        strbuf_addf(ids, "%s%s", ids->len > 0 ? " " : "", id);
    }
}

void cancel_find(struct slurm_book *b, const struct slurm_rows *rows)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        const struct slurm_row *row = &rows->rows[i];
        enum slurm_phase phase = slurm_state_phase(row->state);
        uint32_t batch = NOWHERE;
        const uint32_t *at = ledger_entry(b, row, &batch);
        const uint32_t entry = at != NULL ? *at : ENTRY_OVER;
        if (entry == ENTRY_OVER || phase == SLURM_PHASE_OVER) {
            continue;
        }
        if (entry == ENTRY_STRAY) {
            add(b, batch, false, row->id); /* its attempt is over, and fenced */
            continue;
        }
        struct attempt_record *a = ledger_at(b, entry);
        enum cancelling how = judge(a, i, phase);
        if (how != CANCEL_NOT && (a->row != i || b->now_ms - a->signal_ms >= AGAIN_MS)) {
            a->signal_ms = b->now_ms;
            add(b, batch, how == CANCEL_SOFT, row->id);
        }
    }
}

static void drop_first(struct slurm_book *b)
{
    struct cancel *c = &b->cancels[0];
    b->batches[c->batch].cancel[c->soft] = NOWHERE;
    strbuf_release(&c->ids);
    memmove(c, c + 1, --b->n_cancels * sizeof(*c));
    for (size_t i = 0; i < b->n_cancels; i++) {
        b->batches[b->cancels[i].batch].cancel[b->cancels[i].soft] = (uint32_t)i;
    }
}

int64_t cancel_due_ms(struct slurm_book *b)
{
    while (b->n_cancels > 0 && b->now_ms - b->cancels[0].checked_ms > CHECK_MS) {
        drop_first(b);
    }
    return b->n_cancels > 0 && !b->cancelling ? b->now_ms : INT64_MAX;
}

void cancel_call(struct slurm_book *b)
{
    const struct cancel *c = &b->cancels[0];
    struct slurm_act *act = acts_add(b, SLURM_ACT_CANCEL);
    act->name = arena_strdup(&b->out->texts, c->name);
    act->ids = arena_strdup(&b->out->texts, c->ids.buf);
    act->soft = c->soft;
    act->shape = b->batches[c->batch].shape; /* rule 25 */
    b->cancelling = true;
    drop_first(b);
}

void cancel_answered(struct slurm_book *b)
{
    b->cancelling = false;
}

size_t slurm_book_count_ending(const struct slurm_book *b)
{
    size_t n = b->n_cancels + b->cancelling;
    for (uint32_t i = 0; i < b->n_attempts; i++) {
        const struct attempt_record *a = &b->attempts[i];
        n += a->phase != PHASE_FREE && a->phase != PHASE_GONE && a->want != WANT_NOTHING &&
             a->signal_ms == LONG_AGO;
    }
    return n;
}

void cancel_release(struct slurm_book *b)
{
    for (size_t i = 0; i < b->n_cancels; i++) {
        strbuf_release(&b->cancels[i].ids);
    }
    free(b->cancels);
}
