/*
 * exit.json decides whenever it is there. Without it an attempt ends only when it is gone from the
 * queue and has shown no sign of life for a grace, with good looks and good answers over all of it.
 *
 *   gone ──exit.json──► ended as it says
 *        ──heartbeat rises──► the grace begins again
 *        ──a grace, checked after it──► never submitted: again; else ended as Slurm explains
 */
#include "daemon/executor/slurm/book_parts.h"

#include <assert.h>

#include "base/xalloc.h"
#include "daemon/executor/slurm/ledger.h"

#define TRIES_MAX     3 /* unanswered submissions of one batch */
#define ACCOUNTED_MAX 50

static void look(struct slurm_book *b, uint32_t slot)
{
    struct attempt_record *a = ledger_at(b, slot);
    if (!a->looking) {
        a->looking = true;
        a->look_ms = b->now_ms;
        acts_add(b, SLURM_ACT_LOOK)->key = a->key;
    }
}

bool settle_is_alive(const struct slurm_book *b, const struct attempt_record *a)
{
    /* Rule 19: a heartbeat that rose lately, or the queue's latest answer. */
    if (b->now_ms - a->beat_ms < b->config.beat_ms) {
        return true;
    }
    int64_t round = calls_round_ms(b->config.round_ms, b->config.round_max_ms, b->n_live);
    return a->phase == PHASE_BEGUN && b->now_ms - b->good_ms < 3 * round;
}

void settle_gone(struct slurm_book *b, uint32_t slot, bool over)
{
    struct attempt_record *a = ledger_at(b, slot);
    if (a->phase != PHASE_GONE) {
        assert(a->phase != PHASE_FREE && a->phase != PHASE_WAITING);
        a->phase = PHASE_GONE;
        a->gone_ms = b->now_ms;
        a->n_absent = 0;
        a->n_looks = 0;
        a->accounted = false;
        a->over = over;
        look(b, slot); /* rule 12: most have ended well */
    }
    a->over = a->over || over;
}

void settle_accepted(struct slurm_book *b, uint32_t batch)
{
    struct batch_record *r = &b->batches[batch];
    r->seen = true;
    if (r->state != BATCH_UNSURE && r->state != BATCH_AGAIN) {
        return;
    }
    r->state = BATCH_HELD;
    r->n_again = 0;
    for (uint32_t i = 0; i < r->n_entries; i++) {
        if (r->entries[i] < ENTRY_STRAY && ledger_at(b, r->entries[i])->phase == PHASE_AGAIN) {
            ledger_at(b, r->entries[i])->phase = PHASE_UNSURE;
            settle_gone(b, r->entries[i], false);
        }
    }
}

/* ---- the end without exit.json ---- */

/* Rules 18, 19 and 22: the state outranks the job's exit code, and explains what the files do not.
 * CANCELLED is scancel by hand; our own has its reason in the core. */
static const struct {
    uint8_t state;
    uint8_t reason;
} EXPLAINED[] = {
    {SLURM_NODE_FAIL, END_HOST_LOST}, {SLURM_BOOT_FAIL, END_HOST_LOST},
    {SLURM_PREEMPTED, END_PREEMPTED}, {SLURM_REVOKED, END_PREEMPTED},
    {SLURM_CANCELLED, END_PREEMPTED}, {SLURM_TIMEOUT, END_DEADLINE},
    {SLURM_DEADLINE, END_DEADLINE},   {SLURM_OUT_OF_MEMORY, END_MEMORY},
};

static enum end_reason reason_of_state(const struct attempt_record *a)
{
    for (size_t i = 0; i < ARRAY_LEN(EXPLAINED); i++) {
        if (EXPLAINED[i].state == a->state) {
            return (enum end_reason)EXPLAINED[i].reason;
        }
    }
    if (a->requeued) {
        return END_PREEMPTED; /* rule 7: the shim has refused to run twice in one folder */
    }
    return a->launched ? END_LOST : END_NEVER_LAUNCHED;
}

/* Rule 24. */
static void blame_node(struct slurm_book *b, const struct attempt_record *a, enum end_reason reason)
{
    bool failed_start = reason == END_NEVER_LAUNCHED;
    b->n_failed_starts = failed_start ? b->n_failed_starts + 1 : 0;
    if (failed_start && b->n_failed_starts == b->config.failed_starts) {
        acts_note(b, arena_printf(&b->out->texts, "%u jobs in a row have not started their shim",
                                  b->n_failed_starts));
    }
    if ((failed_start || reason == END_HOST_LOST) && a->over &&
        nodes_count_failure(&b->nodes, a->node, b->now_ms, b->now_ms + b->config.exclude_ms,
                            failed_start)) {
        acts_note(b, arena_printf(&b->out->texts,
                                  "node %s has failed twice and is excluded for %lld minutes",
                                  intern_word(&b->nodes.names, a->node),
                                  (long long)(b->config.exclude_ms / 60000)));
    }
}

static const char *state_word(const struct slurm_book *b, const struct attempt_record *a)
{
    return a->state != SLURM_UNKNOWN ? slurm_state_word((enum slurm_state)a->state)
                                     : intern_word(&b->words, a->word);
}

static void end_over(struct slurm_book *b, uint32_t slot)
{
    const struct attempt_record *a = ledger_at(b, slot);
    enum end_reason reason = reason_of_state(a);
    const char *node = intern_word(&b->nodes.names, a->node);
    const char *why = intern_word(&b->words, a->reason);
    const char *words = slurm_reason_in_words(why);
    bool says_why = why[0] != '\0' && (words == NULL || words[0] != '\0');
    blame_node(b, a, reason);
    acts_end_without(b, slot, reason,
                     arena_printf(&b->out->texts, "Slurm: %s%s%s%s%s", state_word(b, a),
                                  node[0] != '\0' ? " on " : "", node, says_why ? ", " : "",
                                  says_why ? why : ""));
}

/* Neither command knows its job, and it left nothing. */
static void end_absent(struct slurm_book *b, uint32_t slot)
{
    struct attempt_record *a = ledger_at(b, slot);
    struct batch_record *r = &b->batches[a->batch];
    bool doubtful = r->state == BATCH_UNSURE && !a->launched && !a->reported_begun;
    if (slurm_state_phase((enum slurm_state)a->state) == SLURM_PHASE_OVER) {
        end_over(b, slot); /* rule 16: accounting knows how */
    } else if (doubtful && a->want != WANT_NOTHING) {
        acts_end_without(b, slot, END_PREEMPTED, "ended before Slurm had accepted it");
    } else if (doubtful && r->n_tries < TRIES_MAX) {
        /* Rule 1: the queue answered well, over a grace, that the name is absent. So it is after a
         * restart, when an earlier daemon may have called sbatch or not. */
        a->phase = PHASE_AGAIN;
        r->n_again++;
    } else if (doubtful) {
        acts_end_without(b, slot, END_NEVER_LAUNCHED, "sbatch has not answered, three times");
    } else {
        /* Rule 17. */
        acts_end_without(b, slot, END_HOST_LOST,
                         "its job is gone from Slurm's queue, and it left no exit.json");
    }
}

static void decide(struct slurm_book *b, uint32_t slot)
{
    const struct attempt_record *a = ledger_at(b, slot);
    const int64_t grace = b->config.grace_ms;
    if (a->phase != PHASE_GONE) {
        return;
    }
    /* It never had a node: nothing of it can be late. */
    if (a->over && a->node == 0 && !a->launched && !a->reported_begun && a->n_looks > 0) {
        end_over(b, slot);
        return;
    }
    /* Rules 17 and 20: no sign of life for a grace, and checked after it. */
    int64_t last = a->gone_ms > a->beat_ms ? a->gone_ms : a->beat_ms;
    if (b->now_ms < last + grace || a->n_looks < 2 || a->good_look_ms < last + grace) {
        return;
    }
    if (a->over) {
        end_over(b, slot);
    } else if (a->n_absent >= 2 && a->absent_ms >= a->gone_ms + grace) {
        /* Rule 15: good answers alone count, also behind the grace. */
        end_absent(b, slot);
    }
}

/* ---- files ---- */

/* Rule 19: sequences against our own clock. What was there before we first looked proves nothing.
 */
static void note_beat(struct slurm_book *b, struct attempt_record *a, int64_t beat)
{
    bool ours = a->batch != NOWHERE && !b->batches[a->batch].adopted;
    if (beat > a->beat) {
        a->beat_ms = a->read_once || ours ? b->now_ms : a->beat_ms;
        a->beat = beat;
    }
    a->read_once = true;
}

/* Its shim has begun nothing: the end is known, and costs the task nothing. */
static void end_unfit(struct slurm_book *b, uint32_t slot, const char *node, const char *has)
{
    const struct attempt_record *a = ledger_at(b, slot);
    struct strbuf words = STRBUF_INIT;
    const uint32_t shape = a->shape;
    const uint16_t number =
        a->node != 0 || node[0] == '\0' ? a->node : nodes_number(&b->nodes, node);
    if (a->batch != NOWHERE) {
        settle_accepted(b, a->batch);
    }
    if (number != 0 && unfit_add(b, shape, number, has)) {
        acts_note(b, arena_printf(&b->out->texts,
                                  "node %s has %s, and not the GPU that a program pins: it is "
                                  "excluded for that program's jobs",
                                  intern_word(&b->nodes.names, number), has));
    }
    unfit_words(b, shape, &words);
    acts_end_unfit(b, slot, number != 0, words.len > 0 ? words.buf : has);
    strbuf_release(&words);
}

void settle_files(struct slurm_book *b, const struct slurm_event *ev)
{
    uint32_t slot = ledger_find(b, &ev->key);
    if (slot == NOWHERE || !ledger_at(b, slot)->looking) {
        return;
    }
    struct attempt_record *a = ledger_at(b, slot);
    a->looking = false;
    if (!ev->files.listed) {
        return;
    }
    a->good_look_ms = a->look_ms;
    a->n_looks = (uint16_t)(a->n_looks + (a->n_looks < UINT16_MAX));
    if (ev->files.end != NULL) {
        /* Rule 12. */
        if (a->batch != NOWHERE) {
            settle_accepted(b, a->batch);
        }
        b->n_failed_starts = 0;
        acts_end(b, slot, ev->files.end);
        return;
    }
    if (ev->files.unfit_has != NULL && !a->launched && !ev->files.launched) {
        end_unfit(b, slot, ev->files.unfit_node, ev->files.unfit_has);
        return;
    }
    if (ev->files.launched || ev->files.beat > 0) {
        a->launched = true;
        acts_begun(b, slot);
        if (a->batch != NOWHERE) {
            settle_accepted(b, a->batch);
        }
    }
    a->requeued = a->requeued || ev->files.refused; /* rule 7 */
    note_beat(b, a, ev->files.beat);
    decide(b, slot);
}

/* ---- rounds ---- */

/* Rule 16: explains a job that left the queue, where there is accounting; once for each. */
static void want_accounting(struct slurm_book *b, struct attempt_record *a)
{
    struct batch_record *r = &b->batches[a->batch];
    if (a->phase == PHASE_GONE && !a->over && !a->accounted && !b->accounting &&
        b->now_ms >= a->gone_ms + b->config.grace_ms / 2 && b->now_ms >= b->accounting_off_ms &&
        b->account.n < ACCOUNTED_MAX) {
        a->accounted = true;
        for (size_t i = 0; i < b->account.n; i++) {
            if (&b->batches[b->account.at[i]] == r) {
                return;
            }
        }
        list_add(&b->account, a->batch);
    }
}

/* Whether it may have files: not while it waits in the queue (rule 17), and what was absent from
 * the last good answer may wait there after all while it cannot be asked for. An adopted one has
 * perhaps ended long ago. */
static bool may_have_files(const struct slurm_book *b, const struct attempt_record *a, bool ok)
{
    if (a->phase == PHASE_BEGUN || a->phase == PHASE_AGAIN || (a->phase == PHASE_GONE && a->over) ||
        (a->phase == PHASE_HELD && a->reported_begun)) {
        return true;
    }
    bool adopted = a->batch != NOWHERE && b->batches[a->batch].adopted;
    return (a->phase == PHASE_GONE && (ok || adopted || a->reported_begun)) ||
           (a->phase == PHASE_UNSURE && adopted);
}

static void clean_batches(struct slurm_book *b)
{
    for (uint32_t i = 0; i < b->n_batches; i++) {
        struct batch_record *r = &b->batches[i];
        if (r->name[0] == '\0') {
            continue;
        }
        if (r->state == BATCH_UNSURE && r->n_live > 0 && r->n_again == r->n_live) {
            r->state = BATCH_AGAIN;
            list_add(&b->again, i);
        }
        if (r->n_live == 0 && !r->listed && r->state != BATCH_AGAIN &&
            r->state != BATCH_SUBMITTING && !b->asking && !b->accounting && b->n_cancels == 0 &&
            b->account.n == 0 && b->now_ms >= r->over_ms + BATCH_LINGER_MS) {
            acts_forget(b, i);
            ledger_remove_batch(b, i);
        }
    }
}

void settle_round(struct slurm_book *b, bool ok)
{
    for (uint32_t slot = 0; slot < b->n_attempts; slot++) {
        struct attempt_record *a = ledger_at(b, slot);
        if (a->phase == PHASE_FREE || !may_have_files(b, a, ok)) {
            continue;
        }
        want_accounting(b, a);
        look(b, slot);
    }
    clean_batches(b);
}
