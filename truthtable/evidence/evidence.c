/*
 * The evidence in memory: a task table and a hash table of values by (task, name). A name is a
 * metric or a fact and is stored once, so a value costs a small slot; a million records fit. Both
 * tables double when full and only grow. Values are normalized on entry: what is not finite becomes
 * VALUE_NULL, and a second value for the same name makes the first VALUE_DOUBLED, whatever the
 * order.
 */
#include "truthtable/evidence/evidence.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "prereg/task/task_cause.h"

enum slot_kind { SLOT_METRIC, SLOT_FACT };

struct slot {
    struct slot *next; /* of the same bucket */
    uint32_t task;
    uint32_t name; /* index into names */
    struct evidence_value value;
};

struct slot_name {
    const char *text;
    enum slot_kind kind;
    uint32_t next; /* of the same bucket, + 1; 0 at the end */
};

/* A chained table of slots and one of the names that they have; both grow so that chains stay
 * short. Slots and texts live in the evidence's arena. */
struct evidence_index {
    struct slot **buckets;
    size_t n_buckets; /* a power of two */
    size_t n_slots;
    struct slot_name *names;
    size_t n_names;
    size_t names_cap;
    uint32_t *name_buckets; /* n_name_buckets of them: index + 1, or 0 */
    size_t n_name_buckets;  /* a power of two */
};

#define BUCKETS_MIN 64

static const struct evidence_value missing = {.state = VALUE_MISSING};

/* ---- names ---- */

/* The kind is mixed into the hash: a metric and a fact may have the same name. */
static size_t name_bucket(const struct evidence_index *ix, enum slot_kind kind, const char *text)
{
    uint64_t h = 1469598103934665603ULL ^ (uint64_t)kind; /* FNV-1a */
    for (; *text != '\0'; text++) {
        h = (h ^ (unsigned char)*text) * 1099511628211ULL;
    }
    return (h ^ (h >> 29)) & (ix->n_name_buckets - 1);
}

/* False when no slot has the name. */
static bool name_find(const struct evidence_index *ix, enum slot_kind kind, const char *text,
                      uint32_t *out)
{
    uint32_t i = ix->name_buckets[name_bucket(ix, kind, text)];
    while (i != 0 && (ix->names[i - 1].kind != kind || strcmp(ix->names[i - 1].text, text) != 0)) {
        i = ix->names[i - 1].next;
    }
    *out = i - 1;
    return i != 0;
}

/* Puts a name at the head of its chain. */
static void name_link(struct evidence_index *ix, uint32_t i)
{
    struct slot_name *n = &ix->names[i];
    uint32_t *bucket = &ix->name_buckets[name_bucket(ix, n->kind, n->text)];
    n->next = *bucket;
    *bucket = i + 1;
}

/* Doubles the buckets and links all names again. */
static void names_grow(struct evidence_index *ix)
{
    free(ix->name_buckets);
    ix->n_name_buckets = ix->n_name_buckets == 0 ? BUCKETS_MIN : ix->n_name_buckets * 2;
    ix->name_buckets = xcalloc(ix->n_name_buckets, sizeof(*ix->name_buckets));
    for (size_t i = 0; i < ix->n_names; i++) {
        name_link(ix, (uint32_t)i);
    }
}

/* Finds or adds a name. */
static uint32_t name_take(struct evidence *e, enum slot_kind kind, const char *text)
{
    struct evidence_index *ix = e->index;
    uint32_t i;
    if (name_find(ix, kind, text, &i)) {
        return i;
    }
    if (ix->n_names >= ix->n_name_buckets) {
        names_grow(ix);
    }
    assert(ix->n_names < UINT32_MAX - 1);
    ARRAY_GROW(ix->names, ix->n_names, ix->names_cap);
    i = (uint32_t)ix->n_names++;
    ix->names[i] = (struct slot_name){.text = arena_strdup(&e->arena, text), .kind = kind};
    name_link(ix, i);
    return i;
}

/* ---- slots ---- */

/* Neighbours stay neighbours: what is read task by task is found in order. */
static struct slot **bucket_of(const struct evidence_index *ix, uint32_t task, uint32_t name)
{
    return &ix->buckets[(task + (uint64_t)name * 2654435761U) & (ix->n_buckets - 1)];
}

/* The value of a task under a name; NULL if there is none. */
static struct slot *slot_find(const struct evidence_index *ix, size_t task, uint32_t name)
{
    struct slot *s = *bucket_of(ix, (uint32_t)task, name);
    while (s != NULL && (s->task != task || s->name != name)) {
        s = s->next;
    }
    return s;
}

/* Doubles the buckets and moves every slot. */
static void index_grow(struct evidence_index *ix)
{
    struct slot **old = ix->buckets;
    size_t n_old = ix->n_buckets;
    ix->n_buckets = n_old == 0 ? BUCKETS_MIN : n_old * 2;
    ix->buckets = xcalloc(ix->n_buckets, sizeof(struct slot *));
    for (size_t i = 0; i < n_old; i++) {
        for (struct slot *s = old[i]; s != NULL;) {
            struct slot *next = s->next;
            struct slot **bucket = bucket_of(ix, s->task, s->name);
            s->next = *bucket;
            *bucket = s;
            s = next;
        }
    }
    free(old);
}

/* Task numbers must fit the slots' 32 bits. */
void evidence_init(struct evidence *e, const struct plan_program *p)
{
    assert(p != NULL);
    assert(program_n_tasks(p) <= UINT32_MAX);
    *e = (struct evidence){.program = p, .index = xcalloc(1, sizeof(*e->index))};
    arena_init(&e->arena);
    e->tasks = arena_array(&e->arena, program_n_tasks(p), sizeof(*e->tasks));
    e->checks = arena_array(&e->arena, p->n_apparatus + 1, sizeof(*e->checks));
    index_grow(e->index);
    names_grow(e->index);
}

void evidence_release(struct evidence *e)
{
    if (e->index != NULL) {
        free(e->index->buckets);
        free(e->index->names);
        free(e->index->name_buckets);
        free(e->index);
    }
    arena_release(&e->arena);
    *e = (struct evidence){0};
}

void evidence_set_check(struct evidence *e, size_t i, enum task_end end, const char *cause)
{
    assert(i < e->program->n_apparatus);
    e->checks[i] = (struct evidence_check){
        .end = end, .cause = cause == NULL ? NULL : arena_strdup(&e->arena, cause)};
}

/* One that was not run for want of a score to guard has not failed: its cause is
 * "dependency". */
size_t evidence_failed_check(const struct evidence *e)
{
    for (size_t i = 0; i < e->program->n_apparatus; i++) {
        const size_t first = e->program->apparatus[i].first;
        const struct evidence_check *c = &e->checks[i];
        const bool ended = c->end == TASK_END_BLOCKED || c->end == TASK_END_NEVER_RUN;
        if (first != INDEX_NONE && e->checks[first].end == TASK_END_DONE && ended &&
            (c->cause == NULL || strcmp(c->cause, cause_name(CAUSE_DEPENDENCY)) != 0)) {
            return i;
        }
    }
    return INDEX_NONE;
}

/* A cause is kept only for an end that has one. */
void evidence_set_task(struct evidence *e, size_t cell, size_t stage, enum task_end end,
                       const char *cause)
{
    assert(cell < e->program->n_cells && stage < e->program->n_stages);
    struct evidence_task *t = &e->tasks[cell * e->program->n_stages + stage];
    t->end = end;
    bool has_cause = end == TASK_END_BLOCKED || end == TASK_END_NEVER_RUN;
    t->cause = has_cause && cause != NULL ? arena_strdup(&e->arena, cause) : NULL;
}

void evidence_set_narrower(struct evidence *e, size_t cell, size_t stage, const char *limits)
{
    assert(cell < e->program->n_cells && stage < e->program->n_stages && limits != NULL);
    /* Many tasks share the same text. */
    if (e->last_narrower == NULL || strcmp(e->last_narrower, limits) != 0) {
        e->last_narrower = arena_strdup(&e->arena, limits);
    }
    e->tasks[cell * e->program->n_stages + stage].narrower = e->last_narrower;
}

/* What is kept of a value: only a finite number passes as KNOWN or as a bound. */
static struct evidence_value admitted(struct evidence *e, const struct evidence_value *v)
{
    struct evidence_value out = *v;
    bool finite = true;
    if (v->state == VALUE_KNOWN) {
        finite = isfinite(v->value);
    } else if (v->state == VALUE_CENSORED) {
        finite = isfinite(v->bound);
    }
    if (!finite) {
        out = (struct evidence_value){.state = VALUE_NULL, .why = "not finite"};
    }
    if (out.why != NULL) {
        out.why = arena_strdup(&e->arena, out.why);
    }
    return out;
}

/* Adds a value; a second one for the same name is not compared but marked as doubled. */
static void slot_add(struct evidence *e, size_t task, enum slot_kind kind, const char *text,
                     const struct evidence_value *v)
{
    struct evidence_index *ix = e->index;
    const uint32_t name = name_take(e, kind, text);
    struct slot *s = slot_find(ix, task, name);
    if (s != NULL) {
        s->value =
            (struct evidence_value){.state = VALUE_DOUBLED, .why = "recorded more than once"};
        return;
    }
    if (ix->n_slots >= ix->n_buckets) {
        index_grow(ix);
    }
    s = arena_alloc(&e->arena, sizeof(*s));
    *s = (struct slot){.task = (uint32_t)task, .name = name, .value = admitted(e, v)};
    struct slot **bucket = bucket_of(ix, s->task, name);
    s->next = *bucket;
    *bucket = s;
    ix->n_slots++;
}

void evidence_add_metric(struct evidence *e, size_t cell, size_t stage, const char *metric,
                         const struct evidence_value *v)
{
    assert(cell < e->program->n_cells && stage < e->program->n_stages);
    slot_add(e, cell * e->program->n_stages + stage, SLOT_METRIC, metric, v);
}

void evidence_add_fact(struct evidence *e, size_t cell, size_t stage, const char *fact,
                       const struct evidence_value *v)
{
    assert(cell < e->program->n_cells && stage < e->program->n_stages);
    slot_add(e, cell * e->program->n_stages + stage, SLOT_FACT, fact, v);
}

/* The value, or a shared one of state VALUE_MISSING. */
static const struct evidence_value *slot_value(const struct evidence *e, size_t task,
                                               enum slot_kind kind, const char *text)
{
    uint32_t name;
    const struct slot *s =
        name_find(e->index, kind, text, &name) ? slot_find(e->index, task, name) : NULL;
    return s == NULL ? &missing : &s->value;
}

const struct evidence_value *evidence_metric(const struct evidence *e, size_t cell, size_t stage,
                                             const char *metric)
{
    assert(cell < e->program->n_cells && stage < e->program->n_stages);
    return slot_value(e, cell * e->program->n_stages + stage, SLOT_METRIC, metric);
}

const struct evidence_value *evidence_fact(const struct evidence *e, size_t cell, size_t stage,
                                           const char *fact)
{
    assert(cell < e->program->n_cells && stage < e->program->n_stages);
    return slot_value(e, cell * e->program->n_stages + stage, SLOT_FACT, fact);
}
