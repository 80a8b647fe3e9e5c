/*
 * Attempts of one shape wait in a list until their batch is full or has waited long enough. One
 * sbatch is under way at a time; what it answers decides about the whole batch.
 */
#include "daemon/executor/slurm/book_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "daemon/executor/slurm/ledger.h"

#define WAIT_FIRST_MS 5000
#define WAIT_MAX_MS   300000
#define RETEST_MS     60000
#define UNCLEAR_MAX   3
#define NOT_MADE_MAX  3

/* 5 s, 10 s, ... 300 s, and up to a quarter more. */
static int64_t wait_ms(struct slurm_book *b, uint32_t n)
{
    int64_t ms = WAIT_FIRST_MS;
    for (uint32_t i = 1; i < n && ms < WAIT_MAX_MS; i++) {
        ms *= 2;
    }
    ms = ms < WAIT_MAX_MS ? ms : WAIT_MAX_MS;
    return ms + (int64_t)rng_below(&b->rng, (uint64_t)ms / 4);
}

void submit_start(struct slurm_book *b, const struct slurm_event *ev)
{
    if (ledger_find(b, &ev->key) != NOWHERE) {
        return;
    }
    const struct shape_record *s = ledger_shape(b, ev->start.shape);
    uint32_t slot = ledger_add(b, &ev->key, ev->start.id);
    if (s->refused && b->now_ms < s->retest_ms) {
        acts_end_without(b, slot, END_NEVER_LAUNCHED, s->why);
        return;
    }
    struct attempt_record *a = ledger_at(b, slot);
    a->shape = ev->start.shape;
    a->array = ev->start.array;
    ledger_wait(b, slot, false);
}

/* ---- the next batch ---- */

static uint32_t batch_limit(const struct slurm_book *b)
{
    return b->batch_most < b->config.max_array ? b->batch_most : b->config.max_array;
}

/* The list that has waited longest among those that are due; false: none. */
static bool choose_list(const struct slurm_book *b, uint32_t *shape, bool *array, int64_t *due_ms)
{
    *due_ms = INT64_MAX;
    for (uint32_t i = 0; i < b->n_shapes; i++) {
        const struct shape_record *s = &b->shapes[i];
        for (unsigned k = 0; s->known && k < 2; k++) {
            if (s->n_waiting[k] == 0) {
                continue;
            }
            /* Rule 10: one call for many. A single job gains nothing by waiting. */
            bool full = k == 0 || s->n_waiting[k] >= batch_limit(b);
            int64_t due = full ? s->since_ms[k] : s->since_ms[k] + b->config.gather_ms;
            if (due < *due_ms) {
                *due_ms = due;
                *shape = i;
                *array = k == 1;
            }
        }
    }
    return *due_ms != INT64_MAX;
}

static bool has_again(struct slurm_book *b)
{
    while (b->again.n > 0) {
        const struct batch_record *r = &b->batches[b->again.at[0]];
        if (r->state == BATCH_AGAIN && r->n_live > 0 && r->n_again == r->n_live) {
            return true;
        }
        if (r->state == BATCH_AGAIN) {
            b->batches[b->again.at[0]].state = r->n_live > 0 ? BATCH_UNSURE : BATCH_REFUSED;
        }
        memmove(b->again.at, b->again.at + 1, --b->again.n * sizeof(*b->again.at));
    }
    return false;
}

int64_t submit_due_ms(struct slurm_book *b)
{
    uint32_t shape = 0;
    bool array = false;
    int64_t due = INT64_MAX;
    if (b->submitting != NOWHERE || b->testing != NOWHERE || b->hold_answer) {
        return INT64_MAX;
    }
    if (has_again(b)) {
        due = b->now_ms;
    } else if (!choose_list(b, &shape, &array, &due)) {
        return INT64_MAX;
    }
    return due > b->hold_ms ? due : b->hold_ms;
}

/* Rule 11: when what was refused has ended meanwhile, only a new start can find out whether there
 * is room. */
int64_t submit_room_ms(struct slurm_book *b)
{
    if (!b->full || b->n_waiting > 0 || b->submitting != NOWHERE || has_again(b)) {
        return INT64_MAX;
    }
    if (b->now_ms < b->hold_ms) {
        return b->hold_ms;
    }
    b->full = false;
    acts_add(b, SLURM_ACT_ROOM);
    return INT64_MAX;
}

/* ---- sbatch ---- */

static const char *array_text(struct slurm_book *b, const struct batch_record *r)
{
    struct strbuf text = STRBUF_INIT;
    for (uint32_t i = 0; i < r->n_entries; i++) {
        uint32_t first = i;
        while (i < r->n_entries && r->entries[i] < ENTRY_STRAY) {
            i++;
        }
        if (i > first) {
            strbuf_addf(&text, "%s%u", text.len > 0 ? "," : "", first);
        }
        if (i > first + 1) {
            strbuf_addf(&text, "-%u", i - 1);
        }
    }
    const char *copy = arena_strdup(&b->out->texts, text.buf);
    strbuf_release(&text);
    return copy;
}

static void submit_batch(struct slurm_book *b, uint32_t batch, bool again)
{
    struct batch_record *r = &b->batches[batch];
    struct slurm_act *act = acts_add(b, SLURM_ACT_SUBMIT);
    struct slurm_entry *entries = arena_array(&b->out->texts, r->n_live, sizeof(*entries));
    struct strbuf exclude = STRBUF_INIT;
    for (uint32_t i = 0; i < r->n_entries; i++) {
        if (r->entries[i] < ENTRY_STRAY) {
            struct attempt_record *a = ledger_at(b, r->entries[i]);
            a->phase = PHASE_SUBMITTING;
            entries[act->n_entries++] = (struct slurm_entry){a->key, i};
        }
    }
    assert(act->n_entries == r->n_live && r->n_live > 0);
    r->state = BATCH_SUBMITTING;
    r->n_again = 0;
    r->bare = b->shapes[r->shape].bare;
    if (!r->bare) {
        nodes_add_excluded(&b->nodes, b->now_ms, &exclude); /* rule 24 */
    }
    unfit_add_excluded(b, r->shape, &exclude);
    r->excludes = exclude.len > 0;
    act->shape = r->shape;
    act->name = arena_strdup(&b->out->texts, r->name);
    act->array = r->array ? array_text(b, r) : NULL;
    act->exclude = exclude.len > 0 ? arena_strdup(&b->out->texts, exclude.buf) : NULL;
    act->entries = entries;
    act->again = again;
    b->submitting = batch;
    strbuf_release(&exclude);
}

static void submit_list(struct slurm_book *b, uint32_t shape, bool array)
{
    struct shape_record *s = &b->shapes[shape];
    char name[UUID_TEXT_SIZE];
    uint32_t n = s->n_waiting[array] < batch_limit(b) ? s->n_waiting[array] : batch_limit(b);
    bool is_array = array && n > 1;
    /* Rule 1: the name is the attempt's own where it is alone. */
    ledger_id(ledger_at(b, s->head[array]), name);
    if (is_array) {
        ledger_draw_name(b, name);
    }
    uint32_t batch = ledger_add_batch(b, name, is_array);
    b->batches[batch].shape = shape;
    for (uint32_t i = 0; i < (is_array ? n : 1); i++) {
        uint32_t slot = s->head[array];
        ledger_unwait(b, slot);
        ledger_enter(b, batch, i, slot);
    }
    s->since_ms[array] = b->now_ms;
    submit_batch(b, batch, false);
}

/* The test excludes no node. */
static void test_shape(struct slurm_book *b, uint32_t shape)
{
    b->testing = shape;
    acts_add(b, SLURM_ACT_TEST)->shape = shape;
}

void submit_call(struct slurm_book *b)
{
    uint32_t shape = 0;
    bool array = false;
    int64_t due = 0;
    if (has_again(b) && b->shapes[b->batches[b->again.at[0]].shape].doubted) {
        test_shape(b, b->batches[b->again.at[0]].shape);
        return;
    }
    if (has_again(b)) {
        uint32_t batch = b->again.at[0];
        memmove(b->again.at, b->again.at + 1, --b->again.n * sizeof(*b->again.at));
        submit_batch(b, batch, !b->batches[batch].adopted);
        return;
    }
    bool found = choose_list(b, &shape, &array, &due);
    assert(found && due <= b->now_ms);
    if (!b->shapes[shape].tested) {
        test_shape(b, shape); /* rule 23: once for each shape */
        return;
    }
    submit_list(b, shape, array);
}

/* ---- answers ---- */

static void end_entries(struct slurm_book *b, uint32_t batch, const char *why)
{
    struct batch_record *r = &b->batches[batch];
    for (uint32_t i = 0; i < r->n_entries; i++) {
        if (r->entries[i] < ENTRY_STRAY) {
            acts_end_without(b, r->entries[i], END_NEVER_LAUNCHED, why);
        }
    }
    r->state = BATCH_REFUSED;
}

/* Batches that keep their names are certainly not in the queue, either. */
static void end_again(struct slurm_book *b, uint32_t shape, const char *why)
{
    for (size_t i = 0; i < b->again.n; i++) {
        const struct batch_record *r = &b->batches[b->again.at[i]];
        if (r->state == BATCH_AGAIN && r->shape == shape) {
            end_entries(b, b->again.at[i], why);
        }
    }
}

/* The cluster or [run] is at fault, not the task: it costs the program a failed start, and the task
 * nothing. */
static void refuse_shape(struct slurm_book *b, uint32_t shape, const char *why)
{
    struct shape_record *s = &b->shapes[shape];
    free(s->why);
    s->why = xstrdup(why);
    s->refused = true;
    s->tested = false;
    s->doubted = false;
    s->retest_ms = b->now_ms + RETEST_MS;
    for (unsigned k = 0; k < 2; k++) {
        while (s->head[k] != NOWHERE) {
            acts_end_without(b, s->head[k], END_NEVER_LAUNCHED, s->why);
        }
    }
    end_again(b, shape, s->why);
}

static void refuse_by_slurm(struct slurm_book *b, uint32_t shape, const char *why)
{
    refuse_shape(b, shape,
                 arena_printf(&b->out->texts, "Slurm refuses the job: %s",
                              why != NULL ? why : "no reason given"));
}

static bool has_bad_nodes(const struct slurm_book *b)
{
    bool has = false;
    for (uint32_t i = 1; i < b->nodes.names.n; i++) {
        has = has || nodes_is_excluded(&b->nodes, (uint16_t)i, b->now_ms);
    }
    return has;
}

/* No node is left that has what is pinned, as far as is known. They are tried again later: one may
 * have been given another GPU. */
static void refuse_unfit(struct slurm_book *b, uint32_t shape)
{
    struct strbuf words = STRBUF_INIT;
    unfit_words(b, shape, &words);
    unfit_forget(b, shape);
    refuse_shape(b, shape,
                 arena_printf(&b->out->texts, "no node has the GPU that is pinned: %s", words.buf));
    strbuf_release(&words);
}

/* A job with excluded nodes was refused, and the test without them was not. --test-only does not
 * know for certain (rule 23): sbatch is asked without the nodes that have failed. */
static void resolve_doubt(struct slurm_book *b, uint32_t shape)
{
    struct shape_record *s = &b->shapes[shape];
    s->doubted = false;
    if (has_bad_nodes(b)) {
        s->bare = true;
    } else if (s->unfit.n > 0) {
        refuse_unfit(b, shape);
    }
}

/* Rule 24: no node may be left that is not excluded. A bad one is better than none. */
static void forgive(struct slurm_book *b, uint32_t batch)
{
    b->shapes[b->batches[batch].shape].bare = false;
    if (nodes_forgive(&b->nodes, b->now_ms)) {
        acts_note(b, "the nodes that are left cannot run the job: none is excluded any more");
    }
}

void submit_tested(struct slurm_book *b, const struct slurm_event *ev)
{
    if (b->testing == NOWHERE || ev->shape != b->testing) {
        return;
    }
    struct shape_record *s = &b->shapes[b->testing];
    b->testing = NOWHERE;
    if (ev->submit == SLURM_SUBMIT_NEVER) {
        refuse_by_slurm(b, ev->shape, ev->text);
        return;
    }
    bool clear = ev->submit == SLURM_SUBMIT_DONE || ev->submit == SLURM_SUBMIT_FULL;
    s->n_unclear = (uint8_t)(clear ? 0 : s->n_unclear + 1);
    s->tested = clear || s->n_unclear >= UNCLEAR_MAX;
    s->refused = false;
    if (!s->tested) {
        b->hold_ms = b->now_ms + wait_ms(b, s->n_unclear);
    } else if (clear && s->doubted) {
        resolve_doubt(b, ev->shape);
    }
    s->doubted = s->doubted && !s->tested;
}

/* Puts a batch that was certainly not accepted back into its list, in order. */
static void dissolve(struct slurm_book *b, uint32_t batch, uint32_t entry)
{
    struct batch_record *r = &b->batches[batch];
    r->state = BATCH_REFUSED;
    for (uint32_t i = r->n_entries; i-- > 0;) {
        uint32_t slot = r->entries[i];
        if (slot >= ENTRY_STRAY) {
            continue;
        }
        ledger_leave(b, slot, entry);
        ledger_at(b, slot)->phase = PHASE_UNSURE;
        ledger_at(b, slot)->written = !r->array;
        if (ledger_at(b, slot)->want != WANT_NOTHING) {
            acts_end_without(b, slot, END_PREEMPTED, "ended before it was submitted");
        } else {
            ledger_wait(b, slot, true);
        }
    }
    if (r->array) {
        acts_forget(b, batch);
    } else {
        ledger_remove_batch(b, batch); /* it comes again under the same name */
    }
}

/* An earlier sbatch of the batch was not answered: it keeps its name, and comes again. */
static void keep_name(struct slurm_book *b, uint32_t batch)
{
    struct batch_record *r = &b->batches[batch];
    for (uint32_t i = 0; i < r->n_entries; i++) {
        const uint32_t slot = r->entries[i];
        if (slot >= ENTRY_STRAY) {
            continue;
        }
        if (ledger_at(b, slot)->want != WANT_NOTHING) {
            acts_end_without(b, slot, END_PREEMPTED, "ended before Slurm had accepted it");
        } else {
            ledger_at(b, slot)->phase = PHASE_AGAIN;
            r->n_again++;
        }
    }
    r->state = r->n_live > 0 ? BATCH_AGAIN : BATCH_REFUSED;
    if (r->n_live > 0) {
        list_add(&b->again, batch);
    }
}

/* This sbatch has submitted nothing: its attempts wait again. */
static void put_back(struct slurm_book *b, uint32_t batch, uint32_t entry)
{
    if (b->batches[batch].n_tries > 0) {
        keep_name(b, batch);
    } else {
        dissolve(b, batch, entry);
    }
}

/* Rule 11: back-pressure. */
static void on_full(struct slurm_book *b, uint32_t batch)
{
    struct batch_record *r = &b->batches[batch];
    if (!b->full) {
        b->full = true;
        acts_add(b, SLURM_ACT_FULL);
    }
    b->n_full++;
    b->hold_ms = b->now_ms + wait_ms(b, b->n_full);
    if (r->n_tries == 0) {
        b->batch_most = r->n_live > 1 ? r->n_live / 2 : 1;
    }
    put_back(b, batch, ENTRY_STRAY);
}

/* A full disk is not the task's fault: it ends as what pauses its program. */
static void on_not_made(struct slurm_book *b, uint32_t batch, const struct slurm_event *ev)
{
    const enum end_reason reason = ev->no_space ? END_DISK : END_NEVER_LAUNCHED;
    const char *why = ev->text != NULL ? ev->text : "its job could not be written";
    struct batch_record *r = &b->batches[batch];
    b->n_not_made++;
    b->hold_ms = b->now_ms + wait_ms(b, b->n_not_made);
    const bool over = ev->no_space || b->n_not_made >= NOT_MADE_MAX;
    for (uint32_t i = 0; over && i < r->n_entries; i++) {
        if (r->entries[i] < ENTRY_STRAY) {
            acts_end_without(b, r->entries[i], reason, why);
        }
    }
    put_back(b, batch, ENTRY_OVER);
}

static void enter_phase(struct slurm_book *b, struct batch_record *r, enum attempt_phase phase)
{
    for (uint32_t i = 0; i < r->n_entries; i++) {
        if (r->entries[i] < ENTRY_STRAY) {
            struct attempt_record *a = ledger_at(b, r->entries[i]);
            a->phase = (uint8_t)phase;
            a->state = SLURM_UNKNOWN;
            a->row = NOWHERE;
        }
    }
}

static void on_done(struct slurm_book *b, uint32_t batch)
{
    struct batch_record *r = &b->batches[batch];
    if (r->bare) {
        forgive(b, batch);
    }
    r->state = BATCH_HELD;
    enter_phase(b, r, PHASE_HELD);
    b->n_full = b->n_not_made = 0;
    b->batch_most =
        b->batch_most < b->config.max_array / 2 ? b->batch_most * 2 : b->config.max_array;
    if (b->full) {
        b->full = false;
        acts_add(b, SLURM_ACT_ROOM);
    }
    for (uint32_t i = 0; i < r->n_entries; i++) {
        if (r->entries[i] < ENTRY_STRAY && ledger_at(b, r->entries[i])->want != WANT_NOTHING) {
            ledger_ask_soon(b, batch);
            break;
        }
    }
}

/* With nodes excluded the exclusion may be the reason: a test without it decides, and then an
 * sbatch without it (resolve_doubt()). Nodes are forgiven once that is accepted, and not before. */
static void on_never(struct slurm_book *b, uint32_t batch, const char *why)
{
    struct batch_record *r = &b->batches[batch];
    struct shape_record *s = &b->shapes[r->shape];
    if (r->excludes && !r->bare) {
        s->doubted = true;
        s->tested = false;
        b->hold_ms = b->now_ms + wait_ms(b, 1);
        put_back(b, batch, ENTRY_OVER);
        return;
    }
    s->bare = false;
    if (r->excludes) {
        refuse_unfit(b, r->shape);
    } else {
        refuse_by_slurm(b, r->shape, why);
    }
    end_entries(b, batch, s->why);
}

void submit_answered(struct slurm_book *b, const struct slurm_event *ev)
{
    uint32_t batch = b->submitting;
    if (batch == NOWHERE || ev->name == NULL || strcmp(b->batches[batch].name, ev->name) != 0) {
        return;
    }
    struct batch_record *r = &b->batches[batch];
    enum slurm_submit_answer answer = ev->submit;
    b->submitting = NOWHERE;
    r->submitted_ms = b->now_ms;
    if (r->seen) {
        answer = SLURM_SUBMIT_DONE; /* the queue knows better */
    }
    switch (answer) {
    case SLURM_SUBMIT_DONE: on_done(b, batch); return;
    case SLURM_SUBMIT_FULL: on_full(b, batch); return;
    case SLURM_SUBMIT_NEVER: on_never(b, batch, ev->text); return;
    case SLURM_SUBMIT_NOT_MADE: on_not_made(b, batch, ev); return;
    case SLURM_SUBMIT_UNKNOWN: break;
    }
    /* Rules 1, 5, 6: never failed, only unknown. Nothing else is submitted until Slurm answers. */
    r->state = BATCH_UNSURE;
    r->n_tries++;
    enter_phase(b, r, PHASE_UNSURE);
    if (ev->text != NULL && ev->text[0] != '\0') {
        acts_note(b, arena_printf(&b->out->texts,
                                  "sbatch failed, and the queue is asked whether it has the jobs "
                                  "all the same: %s",
                                  ev->text));
    }
    b->hold_answer = true;
    ledger_ask_soon(b, batch);
}
