#include "truthtable/evidence.h"

#include <math.h>
#include <string.h>

#include "base/xalloc.h"

enum slot_kind { SLOT_METRIC, SLOT_FACT };

struct slot {
    struct slot *next; /* of the same bucket */
    size_t task;
    enum slot_kind kind;
    const char *name;
    struct evidence_value value;
};

/* Chained hash table; grows so that buckets stay short. */
struct slot_index {
    struct slot **buckets;
    size_t n_buckets; /* a power of two */
    size_t n_slots;
};

#define BUCKETS_MIN 64

static const struct evidence_value missing = {.state = VALUE_MISSING};

static uint64_t hash_of(size_t task, enum slot_kind kind, const char *name)
{
    uint64_t h = 1469598103934665603ULL ^ (task * 2 + (size_t)kind); /* FNV-1a */
    for (; *name != '\0'; name++) {
        h = (h ^ (unsigned char)*name) * 1099511628211ULL;
    }
    return h ^ (h >> 29);
}

static struct slot **bucket_of(const struct slot_index *ix, size_t task, enum slot_kind kind,
                               const char *name)
{
    return &ix->buckets[hash_of(task, kind, name) & (ix->n_buckets - 1)];
}

static struct slot *slot_find(const struct slot_index *ix, size_t task, enum slot_kind kind,
                              const char *name)
{
    struct slot *s = *bucket_of(ix, task, kind, name);
    while (s != NULL && (s->task != task || s->kind != kind || strcmp(s->name, name) != 0)) {
        s = s->next;
    }
    return s;
}

static void index_grow(struct evidence *e, struct slot_index *ix)
{
    struct slot **old = ix->buckets;
    size_t n_old = ix->n_buckets;
    ix->n_buckets = n_old == 0 ? BUCKETS_MIN : n_old * 2;
    ix->buckets = arena_array(&e->arena, ix->n_buckets, sizeof(struct slot *));
    for (size_t i = 0; i < n_old; i++) {
        for (struct slot *s = old[i]; s != NULL;) {
            struct slot *next = s->next;
            struct slot **bucket = bucket_of(ix, s->task, s->kind, s->name);
            s->next = *bucket;
            *bucket = s;
            s = next;
        }
    }
}

void evidence_init(struct evidence *e, const struct program *p)
{
    *e = (struct evidence){.program = p};
    arena_init(&e->arena);
    e->tasks = arena_array(&e->arena, program_n_tasks(p), sizeof(*e->tasks));
    struct slot_index *ix = arena_alloc(&e->arena, sizeof(*ix));
    index_grow(e, ix);
    e->index = ix;
}

void evidence_release(struct evidence *e)
{
    arena_release(&e->arena);
    *e = (struct evidence){0};
}

void evidence_set_task(struct evidence *e, size_t cell, size_t stage, enum task_end end,
                       const char *cause)
{
    struct evidence_task *t = &e->tasks[cell * e->program->n_stages + stage];
    t->end = end;
    bool has_cause = end == TASK_END_BLOCKED || end == TASK_END_NEVER_RUN;
    t->cause = has_cause && cause != NULL ? arena_strdup(&e->arena, cause) : NULL;
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

static void slot_add(struct evidence *e, size_t task, enum slot_kind kind, const char *name,
                     const struct evidence_value *v)
{
    struct slot_index *ix = e->index;
    struct slot *s = slot_find(ix, task, kind, name);
    if (s != NULL) {
        s->value =
            (struct evidence_value){.state = VALUE_DOUBLED, .why = "recorded more than once"};
        return;
    }
    if (ix->n_slots >= ix->n_buckets) {
        index_grow(e, ix);
    }
    s = arena_alloc(&e->arena, sizeof(*s));
    *s = (struct slot){.task = task, .kind = kind, .value = admitted(e, v)};
    s->name = arena_strdup(&e->arena, name);
    struct slot **bucket = bucket_of(ix, task, kind, name);
    s->next = *bucket;
    *bucket = s;
    ix->n_slots++;
}

void evidence_add_metric(struct evidence *e, size_t cell, size_t stage, const char *metric,
                         const struct evidence_value *v)
{
    slot_add(e, cell * e->program->n_stages + stage, SLOT_METRIC, metric, v);
}

void evidence_add_fact(struct evidence *e, size_t cell, size_t stage, const char *fact,
                       const struct evidence_value *v)
{
    slot_add(e, cell * e->program->n_stages + stage, SLOT_FACT, fact, v);
}

static const struct evidence_value *slot_value(const struct evidence *e, size_t task,
                                               enum slot_kind kind, const char *name)
{
    const struct slot *s = slot_find(e->index, task, kind, name);
    return s == NULL ? &missing : &s->value;
}

const struct evidence_value *evidence_metric(const struct evidence *e, size_t cell, size_t stage,
                                             const char *metric)
{
    return slot_value(e, cell * e->program->n_stages + stage, SLOT_METRIC, metric);
}

const struct evidence_value *evidence_fact(const struct evidence *e, size_t cell, size_t stage,
                                           const char *fact)
{
    return slot_value(e, cell * e->program->n_stages + stage, SLOT_FACT, fact);
}
