/*
 * GPUs of this machine: which are there, what attempts hold of them, and which ones the next
 * attempt is given. A whole GPU has 1000 thousandths. What a share declares of memory is reserved
 * from its start to its end and never measured: two workers that start together would both see the
 * memory free. What others use of a GPU's memory cannot be declared, so it is not given.
 *
 * What attempts hold is counted by UUID, from their rows, so that after a restart it is known
 * before the GPUs themselves are. A GPU that is no longer listed keeps its entry while it is held.
 * Attempts get GPUs of one model each, and of those that suffice the ones with the least memory; a
 * share goes where the least is left. A part of a GPU (MIG) is not joined with another, since a
 * process can use only one.
 */
#include "daemon/core/gpus.h"

#include <assert.h>

#include "daemon/core/internal.h"

#define WHOLE         1000
#define MEMORY_WEIGHT (INT64_C(1) << 47) /* no GPU has so many bytes */
#define PART          "MIG-"

struct gpu_choice {
    uint32_t of[PLACEMENT_GPUS_MAX]; /* indices into the core's list */
    uint32_t n;
    int64_t cost; /* the lowest is taken: memory of all, or what a share leaves */
};

static struct gpu_state *find(const struct core *c, const char *uuid)
{
    for (uint32_t i = 0; i < c->n_gpus; i++) {
        if (strcmp(c->gpus[i].is.uuid, uuid) == 0) {
            return &c->gpus[i];
        }
    }
    return NULL;
}

static struct gpu_state *add(struct core *c, const char *uuid)
{
    ARRAY_GROW(c->gpus, c->n_gpus, c->cap_gpus);
    struct gpu_state *g = &c->gpus[c->n_gpus++];
    *g = (struct gpu_state){0};
    (void)snprintf(g->is.uuid, sizeof(g->is.uuid), "%s", uuid);
    return g;
}

/* The new list in its order, then those that are held and no longer listed. */
void gpus_set(struct core *c, const struct core_gpu *list, size_t n)
{
    struct gpu_state *old = c->gpus;
    const uint32_t n_old = c->n_gpus;
    assert(n <= GPU_LIST_MAX);
    c->gpus = NULL;
    c->n_gpus = c->cap_gpus = 0;
    for (size_t i = 0; i < n; i++) {
        struct gpu_state *g = add(c, list[i].uuid);
        g->is = list[i];
        g->present = true;
    }
    for (uint32_t i = 0; i < n_old; i++) {
        if (old[i].n_holders == 0) {
            continue;
        }
        struct gpu_state *g = find(c, old[i].is.uuid);
        g = g != NULL ? g : add(c, old[i].is.uuid);
        g->used_thousandths = old[i].used_thousandths;
        g->used_memory = old[i].used_memory;
        g->n_holders = old[i].n_holders;
    }
    free(old);
}

void gpus_free_limits(struct core_program *p)
{
    assert(p != NULL);
    for (size_t i = 0; i < p->n_gpu_words; i++) {
        free(p->gpu_words[i]);
    }
    free(p->gpu_words);
    free(p->gpu_model);
    p->gpu_words = NULL;
    p->gpu_model = NULL;
    p->n_gpu_words = 0;
}

void gpus_take_limits(struct core_program *p, const struct core_plan *plan)
{
    assert(p != NULL && plan != NULL);
    gpus_free_limits(p);
    p->gpus_listed = plan->gpus_listed;
    p->gpu_words = xcalloc(plan->n_gpus + 1, sizeof(*p->gpu_words));
    for (size_t i = 0; i < plan->n_gpus; i++) {
        p->gpu_words[p->n_gpu_words++] = xstrdup(plan->gpus[i]);
    }
    p->gpu_model = plan->gpu_model == NULL ? NULL : xstrdup(plan->gpu_model);
}

/* ---- what is held ---- */

static int64_t each_thousandths(int64_t thousandths)
{
    return thousandths < WHOLE ? thousandths : WHOLE;
}

bool gpus_next_uuid(const char **at, char uuid[GPU_UUID_SIZE])
{
    const size_t n = strcspn(*at, ",");
    if (n == 0 || n >= GPU_UUID_SIZE) {
        return false;
    }
    memcpy(uuid, *at, n);
    uuid[n] = '\0';
    *at += (*at)[n] == ',' ? n + 1 : n;
    return true;
}

bool gpus_text_is_sound(const char *gpus)
{
    assert(gpus != NULL);
    char uuid[GPU_UUID_SIZE];
    uint32_t n = 0;
    while (*gpus != '\0') {
        if (!gpus_next_uuid(&gpus, uuid) || !gpu_uuid_is_valid(uuid) || ++n > PLACEMENT_GPUS_MAX) {
            return false;
        }
    }
    return true;
}

void gpus_hold(struct core *c, struct core_program *p, const struct placement *at)
{
    assert(c != NULL && p != NULL && at != NULL);
    char uuid[GPU_UUID_SIZE];
    for (const char *rest = at->gpus; gpus_next_uuid(&rest, uuid);) {
        struct gpu_state *g = find(c, uuid);
        g = g != NULL ? g : add(c, uuid);
        g->used_thousandths += each_thousandths(at->gpu_thousandths);
        g->used_memory += at->gpu_memory_bytes;
        g->n_holders++;
        p->used_gpus += each_thousandths(at->gpu_thousandths);
    }
}

void gpus_let_go(struct core *c, struct core_program *p, const struct placement *at)
{
    char uuid[GPU_UUID_SIZE];
    for (const char *rest = at->gpus; gpus_next_uuid(&rest, uuid);) {
        struct gpu_state *g = find(c, uuid);
        assert(g != NULL && g->n_holders > 0);
        g->used_thousandths -= each_thousandths(at->gpu_thousandths);
        g->used_memory -= at->gpu_memory_bytes;
        g->n_holders--;
        p->used_gpus -= each_thousandths(at->gpu_thousandths);
    }
}

/* ---- what may be given ---- */

static uint32_t n_wanted(const struct core_stage *s)
{
    return s->gpu_thousandths < WHOLE ? 1 : (uint32_t)(s->gpu_thousandths / WHOLE);
}

static bool is_listed(const struct core_program *p, const struct gpu_state *g)
{
    bool listed = !p->gpus_listed;
    for (size_t i = 0; !listed && i < p->n_gpu_words; i++) {
        listed = gpu_is_named(g->is.uuid, g->is.index, p->gpu_words[i]);
    }
    return listed;
}

/* Whether the stage could use it, were it free. */
static bool is_suitable(const struct core_program *p, const struct core_stage *s,
                        const struct gpu_state *g)
{
    return g->present && is_listed(p, g) &&
           (p->gpu_model == NULL || gpu_model_is(g->is.model, p->gpu_model)) &&
           g->is.memory_bytes >= s->gpu_memory_bytes &&
           (n_wanted(s) == 1 || strncmp(g->is.uuid, PART, strlen(PART)) != 0);
}

/* What is not used by others of its memory, as far as that is known. */
static int64_t memory_for_us(const struct gpu_state *g)
{
    return g->is.memory_bytes - g->is.others_bytes;
}

/* Whether it would be free if all of our attempts ended. */
static bool is_left_to_us(const struct core_stage *s, const struct gpu_state *g)
{
    return g->is.used_by[0] == '\0' &&
           (s->gpu_memory_bytes == 0 || s->gpu_memory_bytes <= memory_for_us(g));
}

static bool is_free(const struct core_stage *s, const struct gpu_state *g)
{
    if (!is_left_to_us(s, g)) {
        return false;
    }
    if (s->gpu_thousandths >= WHOLE) {
        return g->n_holders == 0;
    }
    return g->used_thousandths + s->gpu_thousandths <= WHOLE &&
           g->used_memory + s->gpu_memory_bytes <= memory_for_us(g);
}

enum gpu_rule { RULE_FREE, RULE_OURS, RULE_THERE }; /* free now; free of others; there at all */

struct gpu_question {
    const struct core *c;
    const struct core_program *p;
    const struct core_stage *s;
    enum gpu_rule rule;
};

static bool may_have(const struct gpu_question *q, const struct gpu_state *g)
{
    return is_suitable(q->p, q->s, g) && (q->rule != RULE_FREE || is_free(q->s, g)) &&
           (q->rule != RULE_OURS || is_left_to_us(q->s, g));
}

static void choose_share(const struct gpu_question *q, struct gpu_choice *best)
{
    for (uint32_t i = 0; i < q->c->n_gpus; i++) {
        const struct gpu_state *g = &q->c->gpus[i];
        if (!may_have(q, g)) {
            continue;
        }
        const int64_t left = memory_for_us(g) - g->used_memory;
        const int64_t cost = (WHOLE - g->used_thousandths) * MEMORY_WEIGHT + left;
        if (best->n == 0 || cost < best->cost) {
            *best = (struct gpu_choice){.of = {i}, .n = 1, .cost = cost};
        }
    }
}

/* Inserts one in the order of memory; beyond `n` the largest falls out. */
static void insert(const struct core *c, struct gpu_choice *set, uint32_t n, uint32_t i)
{
    const int64_t memory = c->gpus[i].is.memory_bytes;
    uint32_t at = set->n;
    while (at > 0 && c->gpus[set->of[at - 1]].is.memory_bytes > memory) {
        at--;
    }
    if (at == n) {
        return;
    }
    set->n += set->n < n;
    for (uint32_t k = set->n - 1; k > at; k--) {
        set->of[k] = set->of[k - 1];
    }
    set->of[at] = i;
}

/* The smallest ones of the model of GPU `first`. */
static void choose_model(const struct gpu_question *q, uint32_t first, struct gpu_choice *set)
{
    const struct gpu_state *gpus = q->c->gpus;
    *set = (struct gpu_choice){0};
    for (uint32_t i = 0; i < q->c->n_gpus; i++) {
        if (strcmp(gpus[i].is.model, gpus[first].is.model) == 0 && may_have(q, &gpus[i])) {
            insert(q->c, set, n_wanted(q->s), i);
        }
    }
    for (uint32_t i = 0; i < set->n; i++) {
        set->cost += gpus[set->of[i]].is.memory_bytes;
    }
}

/* Fills *best; without enough of them its n is 0. */
static void choose(const struct gpu_question *q, struct gpu_choice *best)
{
    *best = (struct gpu_choice){0};
    if (!q->c->gpus_known || n_wanted(q->s) > PLACEMENT_GPUS_MAX) {
        return;
    }
    if (q->s->gpu_thousandths < WHOLE) {
        choose_share(q, best);
        return;
    }
    for (uint32_t i = 0; i < q->c->n_gpus; i++) {
        struct gpu_choice set;
        if (!may_have(q, &q->c->gpus[i])) {
            continue;
        }
        choose_model(q, i, &set);
        if (set.n == n_wanted(q->s) && (best->n == 0 || set.cost < best->cost)) {
            *best = set;
        }
    }
}

static bool can_have(const struct core *c, const struct core_program *p, const struct core_stage *s,
                     enum gpu_rule rule)
{
    struct gpu_choice choice;
    choose(&(struct gpu_question){c, p, s, rule}, &choice);
    return choice.n > 0;
}

bool gpus_are_wanted(const struct core_stage *s)
{
    assert(s != NULL);
    return s->executor == EXECUTOR_LOCAL && s->gpu_thousandths > 0;
}

bool gpus_fit(const struct core *c, const struct core_program *p, const struct core_stage *s)
{
    assert(c != NULL && p != NULL && s != NULL);
    return !gpus_are_wanted(s) || can_have(c, p, s, RULE_FREE);
}

bool gpus_could_fit(const struct core *c, const struct core_program *p, const struct core_stage *s)
{
    assert(c != NULL && p != NULL && s != NULL);
    return can_have(c, p, s, RULE_OURS);
}

void gpus_assign(const struct core *c, const struct core_program *p, const struct core_stage *s,
                 struct placement *at)
{
    struct gpu_choice choice = {0};
    size_t len = 0;
    if (gpus_are_wanted(s)) {
        choose(&(struct gpu_question){c, p, s, RULE_FREE}, &choice);
        assert(choice.n > 0); /* dispatch asked gpus_fit() */
    }
    for (uint32_t i = 0; i < choice.n; i++) {
        const int n = snprintf(at->gpus + len, sizeof(at->gpus) - len, "%s%s", i == 0 ? "" : ",",
                               c->gpus[choice.of[i]].is.uuid);
        len += (size_t)n;
        assert(len < sizeof(at->gpus));
    }
}

/* ---- why it waits ---- */

/* "2 GPUs with 20 GiB each", "0.25 of a GPU". */
static void text_of_want(const struct core_program *p, const struct core_stage *s,
                         struct strbuf *out)
{
    const uint32_t n = n_wanted(s);
    if (s->gpu_thousandths < WHOLE) {
        strbuf_addf(out, "%g of a GPU", (double)s->gpu_thousandths / WHOLE);
    } else {
        strbuf_addf(out, "%u GPU%s", n, n == 1 ? "" : "s");
    }
    if (p->gpu_model != NULL) {
        strbuf_addf(out, " of the model %s", p->gpu_model);
    }
    if (s->gpu_memory_bytes > 0) {
        strbuf_adds(out, " with ");
        gpu_add_memory(out, s->gpu_memory_bytes);
        strbuf_adds(out, n == 1 ? "" : " each");
    }
}

static uint32_t count(const struct core *c, const struct core_program *p,
                      const struct core_stage *s, enum gpu_rule rule)
{
    const struct gpu_question q = {c, p, s, rule};
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_gpus; i++) {
        n += may_have(&q, &c->gpus[i]);
    }
    return n;
}

static uint32_t n_present(const struct core *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_gpus; i++) {
        n += c->gpus[i].present;
    }
    return n;
}

/* "GPU-4f3a12cd… has 24 GiB, of which attempts of this daemon hold 16 GiB and other processes use 4
 * GiB"; of a share with enough memory, how much of the GPU is given out. */
static void text_of_use(const struct core_stage *s, const struct gpu_state *g, const char *name,
                        struct strbuf *out)
{
    if (g->used_memory + s->gpu_memory_bytes <= memory_for_us(g)) {
        strbuf_adds(out, "; ");
        if (g->used_thousandths < WHOLE) {
            strbuf_addf(out, "%g of ", (double)g->used_thousandths / WHOLE);
        }
        strbuf_addf(out, "%s is given to attempts of this daemon", name);
        return;
    }
    strbuf_addf(out, "; %s has ", name);
    gpu_add_memory(out, g->is.memory_bytes);
    if (g->used_memory > 0) {
        strbuf_adds(out, ", of which attempts of this daemon hold ");
        gpu_add_memory(out, g->used_memory);
    }
    if (g->is.others_bytes > 0) {
        strbuf_adds(out, g->used_memory > 0 ? " and other processes use "
                                            : ", of which other processes use ");
        gpu_add_memory(out, g->is.others_bytes);
    }
}

/* Every suitable GPU that is not free: used by another process, or short of memory. Those that
 * attempts of ours have as a whole are counted. */
static void text_of_users(const struct core *c, const struct core_program *p,
                          const struct core_stage *s, struct strbuf *out)
{
    uint32_t n_given = 0;
    for (uint32_t i = 0; i < c->n_gpus; i++) {
        const struct gpu_state *g = &c->gpus[i];
        const bool given = s->gpu_thousandths >= WHOLE && g->n_holders > 0;
        char name[GPU_SHORT_SIZE];
        if (!is_suitable(p, s, g) || is_free(s, g)) {
            continue;
        }
        gpu_short_name(g->is.uuid, name);
        if (g->is.used_by[0] != '\0') {
            strbuf_addf(out, "; %s is used by %s", name, g->is.used_by);
        } else if (given) {
            n_given++;
        } else {
            text_of_use(s, g, name, out);
        }
    }
    if (n_given > 0) {
        strbuf_addf(out, "; %u %s given to attempts of this daemon", n_given,
                    n_given == 1 ? "is" : "are");
    }
}

void gpus_why_not(const struct core *c, const struct core_program *p, const struct core_stage *s,
                  struct strbuf *out)
{
    assert(c != NULL && p != NULL && s != NULL && out != NULL);
    const uint32_t n = count(c, p, s, RULE_THERE);
    if (!c->gpus_known) {
        strbuf_adds(out, "waits until the GPUs of this machine are known");
    } else if (can_have(c, p, s, RULE_THERE)) {
        strbuf_adds(out, "waits for GPUs: needs ");
        text_of_want(p, s, out);
        strbuf_addf(out, ", %u of %u free", count(c, p, s, RULE_FREE), n);
        text_of_users(c, p, s, out);
    } else {
        strbuf_adds(out, "cannot run on this machine: needs ");
        text_of_want(p, s, out);
        strbuf_addf(out, ", and %u of its %u GPUs would do", n, n_present(c));
    }
}
