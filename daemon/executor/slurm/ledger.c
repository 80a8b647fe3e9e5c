/* Records live in growing arrays and are named by their place, which a free list gives out again.
 * Buckets chain them; there are at least as many buckets as records. */
#include "daemon/executor/slurm/ledger.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define BUCKETS_FIRST 64u

void list_add(struct list *l, uint32_t value)
{
    ARRAY_GROW(l->at, l->n, l->cap);
    l->at[l->n++] = value;
}

static uint32_t *make_buckets(uint32_t n)
{
    uint32_t *buckets = xreallocarray(NULL, n, sizeof(*buckets));
    memset(buckets, 0xff, n * sizeof(*buckets));
    return buckets;
}

void ledger_init(struct slurm_book *b)
{
    b->n_keys = b->n_names = BUCKETS_FIRST;
    b->keys = make_buckets(b->n_keys);
    b->names = make_buckets(b->n_names);
    b->free_attempt = b->free_batch = NOWHERE;
}

void ledger_release(struct slurm_book *b)
{
    for (uint32_t i = 0; i < b->n_batches; i++) {
        free(b->batches[i].entries);
    }
    for (uint32_t i = 0; i < b->n_shapes; i++) {
        free(b->shapes[i].why);
        unfit_release(&b->shapes[i].unfit);
    }
    free(b->attempts);
    free(b->batches);
    free(b->shapes);
    free(b->keys);
    free(b->names);
}

/* ---- attempts ---- */

static uint32_t key_bucket(const struct slurm_book *b, const struct attempt_key *key)
{
    uint64_t h = key->program * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ key->task) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 29) ^ key->no) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(h >> 32) & (b->n_keys - 1);
}

static bool same_key(const struct attempt_key *x, const struct attempt_key *y)
{
    return x->program == y->program && x->task == y->task && x->no == y->no;
}

uint32_t ledger_find(const struct slurm_book *b, const struct attempt_key *key)
{
    uint32_t slot = b->keys[key_bucket(b, key)];
    while (slot != NOWHERE && !same_key(&b->attempts[slot].key, key)) {
        slot = b->attempts[slot].chain;
    }
    return slot;
}

static void chain_attempt(struct slurm_book *b, uint32_t slot)
{
    uint32_t *bucket = &b->keys[key_bucket(b, &b->attempts[slot].key)];
    b->attempts[slot].chain = *bucket;
    *bucket = slot;
}

static void grow_keys(struct slurm_book *b)
{
    free(b->keys);
    b->n_keys *= 2;
    b->keys = make_buckets(b->n_keys);
    for (uint32_t i = 0; i < b->n_attempts; i++) {
        if (b->attempts[i].phase != PHASE_FREE) {
            chain_attempt(b, i);
        }
    }
}

static unsigned hex_value(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void pack_id(const char *text, uint8_t id[16])
{
    size_t n = 0;
    assert(uuid_is_valid(text));
    for (size_t i = 0; text[i] != '\0' && n < 16; i += 2) {
        i += text[i] == '-';
        id[n++] = (uint8_t)(hex_value(text[i]) << 4 | hex_value(text[i + 1]));
    }
}

static void unpack_id(const uint8_t id[16], char text[UUID_TEXT_SIZE])
{
    static const char HEX[] = "0123456789abcdef";
    size_t at = 0;
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            text[at++] = '-';
        }
        text[at++] = HEX[id[i] >> 4];
        text[at++] = HEX[id[i] & 15];
    }
    text[at] = '\0';
}

void ledger_id(const struct attempt_record *a, char text[UUID_TEXT_SIZE])
{
    unpack_id(a->id, text);
}

uint32_t ledger_add(struct slurm_book *b, const struct attempt_key *key, const char *id)
{
    uint32_t slot = b->free_attempt;
    assert(ledger_find(b, key) == NOWHERE);
    if (slot != NOWHERE) {
        b->free_attempt = b->attempts[slot].chain;
    } else {
        ARRAY_GROW(b->attempts, b->n_attempts, b->cap_attempts);
        slot = b->n_attempts++;
    }
    struct attempt_record *a = &b->attempts[slot];
    *a = (struct attempt_record){.key = *key,
                                 .next = NOWHERE,
                                 .prev = NOWHERE,
                                 .batch = NOWHERE,
                                 .row = NOWHERE,
                                 .phase = PHASE_UNSURE,
                                 .beat_ms = LONG_AGO,
                                 .waits_ms = LONG_AGO,
                                 .gone_ms = LONG_AGO,
                                 .absent_ms = LONG_AGO,
                                 .look_ms = LONG_AGO,
                                 .good_look_ms = LONG_AGO,
                                 .signal_ms = LONG_AGO};
    pack_id(id, a->id);
    if (++b->n_live > b->n_keys) {
        grow_keys(b);
    } else {
        chain_attempt(b, slot);
    }
    return slot;
}

void ledger_remove(struct slurm_book *b, uint32_t slot, uint32_t entry)
{
    struct attempt_record *a = &b->attempts[slot];
    assert(a->phase != PHASE_FREE);
    if (a->phase == PHASE_WAITING) {
        ledger_unwait(b, slot);
    }
    if (a->batch != NOWHERE) {
        ledger_leave(b, slot, entry);
    }
    uint32_t *at = &b->keys[key_bucket(b, &a->key)];
    while (*at != slot) {
        at = &b->attempts[*at].chain;
    }
    *at = a->chain;
    a->phase = PHASE_FREE;
    a->chain = b->free_attempt;
    b->free_attempt = slot;
    b->n_live--;
}

/* ---- waiting lists ---- */

struct shape_record *ledger_shape(struct slurm_book *b, uint32_t shape)
{
    assert(shape < 1u << 20);
    if (shape >= b->n_shapes) {
        uint32_t n = shape + 1;
        b->shapes = xreallocarray(b->shapes, n, sizeof(*b->shapes));
        memset(b->shapes + b->n_shapes, 0, (n - b->n_shapes) * sizeof(*b->shapes));
        b->n_shapes = n;
    }
    struct shape_record *s = &b->shapes[shape];
    if (!s->known) {
        s->known = true;
        s->head[0] = s->head[1] = s->tail[0] = s->tail[1] = NOWHERE;
    }
    return s;
}

void ledger_wait(struct slurm_book *b, uint32_t slot, bool first)
{
    struct attempt_record *a = &b->attempts[slot];
    struct shape_record *s = ledger_shape(b, a->shape);
    uint32_t *ends[2] = {&s->head[a->array], &s->tail[a->array]};
    uint32_t other = first ? *ends[0] : *ends[1];
    assert(a->phase != PHASE_WAITING && a->batch == NOWHERE);
    a->phase = PHASE_WAITING;
    a->next = first ? other : NOWHERE;
    a->prev = first ? NOWHERE : other;
    if (other == NOWHERE) {
        *ends[0] = *ends[1] = slot;
        s->since_ms[a->array] = b->now_ms;
    } else if (first) {
        b->attempts[other].prev = *ends[0] = slot;
    } else {
        b->attempts[other].next = *ends[1] = slot;
    }
    s->n_waiting[a->array]++;
    b->n_waiting++;
}

void ledger_unwait(struct slurm_book *b, uint32_t slot)
{
    struct attempt_record *a = &b->attempts[slot];
    struct shape_record *s = ledger_shape(b, a->shape);
    assert(a->phase == PHASE_WAITING && b->n_waiting > 0);
    *(a->prev == NOWHERE ? &s->head[a->array] : &b->attempts[a->prev].next) = a->next;
    *(a->next == NOWHERE ? &s->tail[a->array] : &b->attempts[a->next].prev) = a->prev;
    a->next = a->prev = NOWHERE;
    a->phase = PHASE_UNSURE;
    s->n_waiting[a->array]--;
    b->n_waiting--;
}

/* ---- batches ---- */

static uint32_t name_bucket(const struct slurm_book *b, const char *name)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; name[i] != '\0'; i++) {
        h = (h ^ (unsigned char)name[i]) * 16777619u;
    }
    return (h ^ (h >> 15)) & (b->n_names - 1);
}

uint32_t ledger_find_batch(const struct slurm_book *b, const char *name)
{
    uint32_t at = b->names[name_bucket(b, name)];
    while (at != NOWHERE && strcmp(b->batches[at].name, name) != 0) {
        at = b->batches[at].chain;
    }
    return at;
}

static void chain_batch(struct slurm_book *b, uint32_t batch)
{
    uint32_t *bucket = &b->names[name_bucket(b, b->batches[batch].name)];
    b->batches[batch].chain = *bucket;
    *bucket = batch;
}

static void grow_names(struct slurm_book *b)
{
    free(b->names);
    b->n_names *= 2;
    b->names = make_buckets(b->n_names);
    for (uint32_t i = 0; i < b->n_batches; i++) {
        if (b->batches[i].name[0] != '\0') {
            chain_batch(b, i);
        }
    }
}

uint32_t ledger_add_batch(struct slurm_book *b, const char *name, bool array)
{
    uint32_t at = b->free_batch;
    assert(uuid_is_valid(name) && ledger_find_batch(b, name) == NOWHERE);
    if (at != NOWHERE) {
        b->free_batch = b->batches[at].chain;
    } else {
        ARRAY_GROW(b->batches, b->n_batches, b->cap_batches);
        at = b->n_batches++;
    }
    struct batch_record *r = &b->batches[at];
    *r = (struct batch_record){.array = array,
                               .cancel = {NOWHERE, NOWHERE},
                               .submitted_ms = LONG_AGO,
                               .over_ms = b->now_ms};
    memcpy(r->name, name, UUID_TEXT_SIZE);
    if (++b->n_used_batches > b->n_names) {
        grow_names(b);
    } else {
        chain_batch(b, at);
    }
    return at;
}

uint32_t *ledger_entry(struct slurm_book *b, const struct slurm_row *row, uint32_t *batch)
{
    *batch = ledger_find_batch(b, row->name);
    if (*batch == NOWHERE) {
        return NULL;
    }
    struct batch_record *r = &b->batches[*batch];
    uint32_t index = r->array ? row->index : 0;
    if (r->array != (row->index != SLURM_INDEX_NONE) || index >= r->n_entries) {
        return NULL;
    }
    return &r->entries[index];
}

void ledger_ask_soon(struct slurm_book *b, uint32_t batch)
{
    if (!b->batches[batch].listed) {
        b->batches[batch].listed = true;
        list_add(&b->want_names, batch);
    }
}

void ledger_enter(struct slurm_book *b, uint32_t batch, uint32_t index, uint32_t slot)
{
    struct batch_record *r = &b->batches[batch];
    if (index >= r->n_entries) {
        uint32_t n = index + 1 > r->n_entries * 2 ? index + 1 : r->n_entries * 2;
        r->entries = xreallocarray(r->entries, n, sizeof(*r->entries));
        memset(r->entries + r->n_entries, 0xff, (n - r->n_entries) * sizeof(*r->entries));
        r->n_entries = n;
    }
    assert(r->entries[index] == ENTRY_OVER && b->attempts[slot].batch == NOWHERE);
    r->entries[index] = slot;
    r->n_live++;
    b->attempts[slot].batch = batch;
    b->attempts[slot].index = index;
}

void ledger_leave(struct slurm_book *b, uint32_t slot, uint32_t entry)
{
    struct attempt_record *a = &b->attempts[slot];
    struct batch_record *r = &b->batches[a->batch];
    assert(r->entries[a->index] == slot && r->n_live > 0);
    r->entries[a->index] = entry;
    r->n_again -= a->phase == PHASE_AGAIN;
    r->n_live--;
    r->over_ms = b->now_ms;
    a->batch = NOWHERE;
}

void ledger_remove_batch(struct slurm_book *b, uint32_t batch)
{
    struct batch_record *r = &b->batches[batch];
    assert(r->n_live == 0);
    uint32_t *at = &b->names[name_bucket(b, r->name)];
    while (*at != batch) {
        at = &b->batches[*at].chain;
    }
    *at = r->chain;
    free(r->entries);
    *r = (struct batch_record){.chain = b->free_batch};
    b->free_batch = batch;
    b->n_used_batches--;
}

/* A version 4 UUID from the book's own generator: the same seed, the same names. */
void ledger_draw_name(struct slurm_book *b, char name[UUID_TEXT_SIZE])
{
    uint8_t id[16];
    uint64_t words[2] = {rng_next(&b->rng), rng_next(&b->rng)};
    memcpy(id, words, sizeof(id));
    id[6] = (uint8_t)((id[6] & 0x0f) | 0x40);
    id[8] = (uint8_t)((id[8] & 0x3f) | 0x80);
    unpack_id(id, name);
}
