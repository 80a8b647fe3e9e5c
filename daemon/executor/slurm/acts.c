/* Everything in an act is a copy in the arena of `out`: the records may change before the shell
 * reads it. */
#include "daemon/executor/slurm/book_parts.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/executor/slurm/ledger.h"

struct slurm_act *acts_add(struct slurm_book *b, enum slurm_act_kind kind)
{
    struct slurm_out *out = b->out;
    ARRAY_GROW(out->acts, out->n, out->cap);
    struct slurm_act *act = &out->acts[out->n++];
    *act = (struct slurm_act){.kind = kind};
    return act;
}

void acts_note(struct slurm_book *b, const char *text)
{
    acts_add(b, SLURM_ACT_NOTE)->text = text;
}

void acts_begun(struct slurm_book *b, uint32_t slot)
{
    struct attempt_record *a = ledger_at(b, slot);
    if (!a->reported_begun) {
        a->reported_begun = true;
        acts_add(b, SLURM_ACT_BEGAN)->key = a->key;
    }
}

static void forget_name(struct slurm_book *b, uint32_t shape, const char *name)
{
    struct slurm_act *act = acts_add(b, SLURM_ACT_FORGET);
    act->shape = shape;
    act->name = arena_strdup(&b->out->texts, name);
}

void acts_forget(struct slurm_book *b, uint32_t batch)
{
    struct batch_record *r = &b->batches[batch];
    if (!r->forgotten) {
        r->forgotten = true;
        forget_name(b, r->shape, r->name);
    }
}

/* Of an earlier daemon's batch others may not be adopted yet: it lingers, and so do its files. */
static void forget_last(struct slurm_book *b, const struct attempt_record *a, uint32_t batch)
{
    char own[UUID_TEXT_SIZE];
    if (batch == NOWHERE && a->written) {
        ledger_id(a, own);
        forget_name(b, a->shape, own);
    } else if (batch == NOWHERE || b->batches[batch].n_live > 0 || b->submitting == batch) {
        return;
    } else if (b->batches[batch].adopted) {
        const int64_t until = b->now_ms + BATCH_LINGER_MS + b->config.round_max_ms;
        b->linger_ms = until > b->linger_ms ? until : b->linger_ms;
    } else {
        acts_forget(b, batch);
    }
}

static void end(struct slurm_book *b, uint32_t slot, const struct attempt_end *end, bool fence)
{
    const struct attempt_record was = *ledger_at(b, slot);
    struct slurm_act *act = acts_add(b, SLURM_ACT_ENDED);
    struct attempt_end *copy = arena_alloc(&b->out->texts, sizeof(*copy));
    *copy = *end;
    act->key = was.key;
    act->end = copy;
    act->fence = fence;
    ledger_remove(b, slot, fence ? ENTRY_STRAY : ENTRY_OVER);
    forget_last(b, &was, was.batch);
}

void acts_end(struct slurm_book *b, uint32_t slot, const struct attempt_end *e)
{
    end(b, slot, e, false);
}

static void end_fenced(struct slurm_book *b, uint32_t slot, struct attempt_end *e,
                       const char *detail)
{
    e->code = -1;
    e->ran_ms = e->user_ms = e->system_ms = e->max_rss_bytes = -1;
    text_copy_line(e->detail, sizeof(e->detail), detail);
    b->linger_ms = b->now_ms + BATCH_LINGER_MS;
    end(b, slot, e, true);
}

void acts_end_without(struct slurm_book *b, uint32_t slot, enum end_reason reason,
                      const char *detail)
{
    struct attempt_end e = {.reason = reason};
    end_fenced(b, slot, &e, detail);
}

void acts_end_unfit(struct slurm_book *b, uint32_t slot, bool excluded, const char *detail)
{
    struct attempt_end e = {.reason = END_NEVER_LAUNCHED, .unfit = true, .excused = excluded};
    end_fenced(b, slot, &e, detail);
}
