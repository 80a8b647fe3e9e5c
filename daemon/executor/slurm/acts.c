/* Everything in an act is a copy in the arena of `out`: the records may change before the shell
 * reads it. */
#include "daemon/executor/slurm/acts.h"

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

static void end(struct slurm_book *b, uint32_t slot, const struct attempt_end *end, bool fence)
{
    struct slurm_act *act = acts_add(b, SLURM_ACT_ENDED);
    struct attempt_end *copy = arena_alloc(&b->out->texts, sizeof(*copy));
    *copy = *end;
    act->key = ledger_at(b, slot)->key;
    act->end = copy;
    act->fence = fence;
    ledger_remove(b, slot, fence ? ENTRY_STRAY : ENTRY_OVER);
}

void acts_end(struct slurm_book *b, uint32_t slot, const struct attempt_end *e)
{
    end(b, slot, e, false);
}

void acts_end_without(struct slurm_book *b, uint32_t slot, enum end_reason reason,
                      const char *detail)
{
    struct attempt_end e = {.reason = reason,
                            .code = -1,
                            .ran_ms = -1,
                            .user_ms = -1,
                            .system_ms = -1,
                            .max_rss_bytes = -1};
    text_copy_line(e.detail, sizeof(e.detail), detail);
    b->linger_ms = b->now_ms + BATCH_LINGER_MS;
    end(b, slot, &e, true);
}
