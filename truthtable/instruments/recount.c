/*
 * One pass over the items, with two running sums for each metric that has a value: over the member
 * of its whole name, and over what its name makes of other members (a group, a perplexity). The
 * first wins where any item has such a member. Every sum follows the order of the file, and items
 * named more than once are an error, so a line cannot count twice. Metrics are looked up by the
 * names of a line's members, never the other way around, and numbers of items that do not rise are
 * sorted, not hashed: the work is that of reading the file, whatever a stranger wrote into it.
 */
#include "truthtable/instruments/recount.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/math/elementary.h"
#include "base/xalloc.h"
#include "truthtable/evidence/evidence.h"
#include "truthtable/instruments/items_table.h"

/* How a metric follows from sums over items (docs/evaluation.md, "Perplexities"). */
enum recount_rule {
    RULE_MEAN,       /* sum / n */
    RULE_PERPLEXITY, /* exp(-sum / n) */
    RULE_WEIGHTED,   /* exp(-sum / weight) */
    RULE_BITS,       /* -sum / weight / ln 2 */
};

/* The metrics that are made of "ll", by their names. */
static const struct {
    const char *name;
    enum recount_rule rule;
    const char *weight; /* the member that is summed up with it; NULL: none */
} perplexities[] = {{"perplexity", RULE_PERPLEXITY, NULL},
                    {"word_perplexity", RULE_WEIGHTED, "words"},
                    {"byte_perplexity", RULE_WEIGHTED, "bytes"},
                    {"bits_per_byte", RULE_BITS, "bytes"}};

struct sums {
    double value;
    double weight;
    int64_t n;
};

/* A group's name is no longer; items of another name are of no metric's group. */
#define GROUP_MAX ((size_t)256)

/* One metric with a value. */
struct metric {
    const char *name; /* borrowed from the result, as `stated` */
    struct evidence_value stated;
    char *base;             /* before its last colon */
    const char *group;      /* behind it; NULL: it has none */
    enum recount_rule rule; /* of `parts` */
    const char *weight;
    bool binds;        /* the verdict rests on it */
    struct sums whole; /* of the member of its whole name */
    struct sums parts;
};

/* The items of a group that are not at fault. */
struct group_items {
    const char *name;
    int64_t n;
};

struct counting {
    struct metric *metrics; /* as the result has them */
    struct metric **sorted; /* by name */
    size_t n;
    size_t name_max;            /* bytes of the longest name */
    bool has_perplexities;      /* some metric is made of "ll" */
    struct group_items *groups; /* of metrics that bind; by name, each once */
    size_t n_groups;
    struct strbuf key; /* a name that is looked up */
    int64_t n_items;   /* that are not at fault */
    int64_t n_faulty;
    int64_t *seen; /* items, for those named twice */
    size_t n_seen;
    size_t cap_seen;
    bool rises; /* every item so far is greater than the one before */
};

void recount_init(struct recount *r)
{
    *r = (struct recount){0};
    strbuf_init(&r->other);
    strbuf_init(&r->missed);
    strbuf_init(&r->empty);
}

void recount_release(struct recount *r)
{
    strbuf_release(&r->other);
    strbuf_release(&r->missed);
    strbuf_release(&r->empty);
    *r = (struct recount){0};
}

/* ---- the metrics of a result ---- */

/* Splits the name, and finds the rule of its base. */
static struct metric metric_of(const cJSON *entry, const struct evidence_value *stated)
{
    struct metric m = {.name = entry->string, .stated = *stated, .rule = RULE_MEAN};
    const char *colon = strrchr(m.name, ':');
    m.base = colon == NULL ? xstrdup(m.name) : xstrndup(m.name, (size_t)(colon - m.name));
    m.group = colon == NULL ? NULL : colon + 1;
    for (size_t i = 0; i < ARRAY_LEN(perplexities); i++) {
        if (strcmp(m.base, perplexities[i].name) == 0) {
            m.rule = perplexities[i].rule;
            m.weight = perplexities[i].weight;
        }
    }
    return m;
}

/* Orders pointers to metrics by name. */
static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct metric *const *)a)->name, (*(struct metric *const *)b)->name);
}

static int by_group(const void *a, const void *b)
{
    return strcmp(((const struct group_items *)a)->name, ((const struct group_items *)b)->name);
}

/* The metric of that name; NULL: none has it. */
static struct metric *find(const struct counting *c, const char *name)
{
    const struct metric key = {.name = name};
    const struct metric *wanted = &key;
    struct metric **found = bsearch(&wanted, c->sorted, c->n, sizeof(*c->sorted), by_name);
    return found == NULL ? NULL : *found;
}

static struct group_items *find_group(const struct counting *c, const char *name)
{
    const struct group_items key = {.name = name};
    return bsearch(&key, c->groups, c->n_groups, sizeof(*c->groups), by_group);
}

/* The metric "MEMBER:GROUP", where the group's name has no colon: a name is split at its last. */
static struct metric *find_in_group(struct counting *c, const char *member, const char *group)
{
    const size_t len = strlen(member);
    if (group == NULL || len + 1 + strlen(group) > c->name_max) {
        return NULL;
    }
    strbuf_clear(&c->key);
    strbuf_add(&c->key, member, len);
    strbuf_addc(&c->key, ':');
    strbuf_adds(&c->key, group);
    return find(c, c->key.buf);
}

/* Marks the metrics that bind, and lists their groups. */
static void mark_binding(struct counting *c, const struct recount_result *of)
{
    size_t n = 0;
    for (size_t i = 0; i < of->n_binding; i++) {
        struct metric *m = find(c, of->binding[i]);
        if (m != NULL) {
            m->binds = true;
            if (m->group != NULL) {
                c->groups[n++].name = m->group;
            }
        }
    }
    qsort(c->groups, n, sizeof(*c->groups), by_group);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || by_group(&c->groups[c->n_groups - 1], &c->groups[i]) != 0) {
            c->groups[c->n_groups++] = c->groups[i];
        }
    }
}

/* Those that state a number; a null one has nothing to be counted again. */
static void counting_init(struct counting *c, const struct recount_result *of)
{
    const cJSON *entry = NULL;
    const size_t n = (size_t)cJSON_GetArraySize(of->metrics);
    *c = (struct counting){0};
    c->metrics = xcalloc(n + 1, sizeof(*c->metrics));
    c->sorted = xcalloc(n + 1, sizeof(struct metric *));
    c->groups = xcalloc(of->n_binding + 1, sizeof(*c->groups));
    strbuf_init(&c->key);
    c->rises = true;
    cJSON_ArrayForEach(entry, of->metrics)
    {
        const struct evidence_value stated = evidence_value_of(entry);
        if (entry->string != NULL && stated.state == VALUE_KNOWN) {
            const size_t len = strlen(entry->string);
            struct metric *m = &c->metrics[c->n];
            *m = metric_of(entry, &stated);
            c->sorted[c->n++] = m;
            c->name_max = len > c->name_max ? len : c->name_max;
            c->has_perplexities |= m->rule != RULE_MEAN;
        }
    }
    qsort(c->sorted, c->n, sizeof(struct metric *), by_name);
    mark_binding(c, of);
}

static void counting_release(struct counting *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->metrics[i].base);
    }
    free(c->metrics);
    free(c->sorted);
    free(c->groups);
    strbuf_release(&c->key);
    free(c->seen);
}

/* ---- a line ---- */

/* A number or truth value; false for anything else. */
static bool value_of(const cJSON *v, double *out)
{
    if (cJSON_IsBool(v)) {
        *out = cJSON_IsTrue(v) ? 1 : 0;
        return true;
    }
    *out = cJSON_IsNumber(v) ? v->valuedouble : (double)NAN;
    return isfinite(*out);
}

/* The log-likelihood of an item with one continuation. */
static bool likelihood_of(const cJSON *line, double *out)
{
    const cJSON *ll = json_member(line, "ll");
    const cJSON *only = cJSON_GetArraySize(ll) == 1 ? ll->child : NULL;
    *out = cJSON_IsNumber(only) ? only->valuedouble : (double)NAN;
    return cJSON_IsArray(ll) && isfinite(*out);
}

static void add(struct sums *s, double value, double weight)
{
    s->value += value;
    s->weight += weight;
    s->n++;
}

/* Adds a member to the metric of its name, and to that of its name in the line's group. */
static void add_member(struct counting *c, const cJSON *member, const char *group)
{
    struct metric *m = NULL;
    double value = 0;
    if (!value_of(member, &value)) {
        return;
    }
    if (strlen(member->string) <= c->name_max && (m = find(c, member->string)) != NULL) {
        add(&m->whole, value, 0);
    }
    if ((m = find_in_group(c, member->string, group)) != NULL && m->rule == RULE_MEAN) {
        add(&m->parts, value, 0);
    }
}

/* Adds the line to the metrics that are made of "ll", where it has what they need. */
static void add_perplexities(struct counting *c, const cJSON *line, const char *group)
{
    double ll = 0;
    if (!likelihood_of(line, &ll)) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(perplexities); i++) {
        const char *by = perplexities[i].weight;
        struct metric *both[2] = {find(c, perplexities[i].name),
                                  find_in_group(c, perplexities[i].name, group)};
        double weight = 0;
        for (size_t k = 0; k < ARRAY_LEN(both); k++) {
            if (both[k] != NULL && (by == NULL || value_of(json_member(line, by), &weight))) {
                add(&both[k]->parts, ll, weight);
            }
        }
    }
}

/* The group of a line, as a metric's name may end; NULL: of none. */
static const char *group_of(const cJSON *line)
{
    const cJSON *group = json_member(line, "group");
    const char *name = cJSON_IsString(group) ? group->valuestring : NULL;
    return name != NULL && strlen(name) <= GROUP_MAX && strchr(name, ':') == NULL ? name : NULL;
}

/* An items_take: keeps the number. */
static int take_item(void *ctx, const struct items_line *line, struct err *err)
{
    struct counting *c = ctx;
    if (c->n_seen >= ITEMS_MAX) {
        return err_set(err, ERR_RANGE, "more than %zu items", ITEMS_MAX);
    }
    c->rises = c->rises && (c->n_seen == 0 || line->item > c->seen[c->n_seen - 1]);
    ARRAY_GROW(c->seen, c->n_seen, c->cap_seen);
    c->seen[c->n_seen++] = line->item;
    return 0;
}

/* Orders numbers of items. */
static int by_item(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y ? 1 : 0;
}

/* After the last line: an item that occurs twice would count twice. */
static int check_twice(struct counting *c, struct err *err)
{
    if (!c->rises) {
        qsort(c->seen, c->n_seen, sizeof(*c->seen), by_item);
    }
    for (size_t i = 1; !c->rises && i < c->n_seen; i++) {
        if (c->seen[i] == c->seen[i - 1]) {
            return err_set(err, ERR_LOCK, "item %lld occurs more than once", (long long)c->seen[i]);
        }
    }
    return 0;
}

/* An items_take_tree: an item at fault has no value. */
static int take_line(void *ctx, const cJSON *line, struct err *err)
{
    struct counting *c = ctx;
    const char *group = group_of(line);
    struct group_items *of_group = group == NULL ? NULL : find_group(c, group);
    const cJSON *member = NULL;
    (void)err;
    if (json_member(line, "fault") != NULL) {
        c->n_faulty++;
        return 0;
    }
    c->n_items++;
    if (of_group != NULL) {
        of_group->n++;
    }
    cJSON_ArrayForEach(member, line)
    {
        add_member(c, member, group);
    }
    if (c->has_perplexities) {
        add_perplexities(c, line, group);
    }
    return 0;
}

/* ---- comparing ---- */

static double value_by(enum recount_rule rule, const struct sums *s)
{
    switch (rule) {
    case RULE_PERPLEXITY: return elementary_exp(-s->value / (double)s->n);
    case RULE_WEIGHTED: return elementary_exp(-s->value / s->weight);
    case RULE_BITS: return -s->value / s->weight / ELEMENTARY_LN_2;
    case RULE_MEAN:
    default: return s->value / (double)s->n;
    }
}

/* A metric of which the items say nothing. */
static void take_other(const struct metric *m, struct recount *r)
{
    r->n_others++;
    if (r->other.len == 0) {
        strbuf_adds(&r->other, m->name);
    }
    r->n_missed += m->binds ? 1 : 0;
    if (m->binds && r->missed.len == 0) {
        strbuf_adds(&r->missed, m->name);
    }
}

/* How many items there are of a binding metric's group. */
static int64_t items_of(const struct counting *c, const char *name)
{
    const struct group_items *group = find_group(c, name);
    return group == NULL ? 0 : group->n;
}

/* Counts the items that a binding score leaves out: they are not at fault, and have no value. */
static void take_empty(const struct metric *m, int64_t n_items, int64_t n, struct recount *r)
{
    if (m->binds && n_items > n) {
        r->n_empty += (size_t)(n_items - n);
        if (r->empty.len == 0) {
            strbuf_adds(&r->empty, m->name);
        }
    }
}

/* Value and n of one metric against what the items give. */
static int compare(const struct counting *c, const struct metric *m, struct recount *r,
                   struct err *err)
{
    const bool is_whole = m->whole.n > 0;
    const struct sums *s = is_whole ? &m->whole : &m->parts;
    char texts[2][JSON_NUMBER_MAX];
    char what[120];
    if (s->n == 0) {
        take_other(m, r);
        return 0;
    }
    if (m->binds && !m->stated.has_n) {
        (void)snprintf(what, sizeof(what), "n of %.60s, on which the verdict rests", m->name);
        (void)snprintf(texts[0], sizeof(texts[0]), "%lld", (long long)s->n);
        return err_differs(err, what, texts[0], NULL);
    }
    if (m->stated.has_n && m->stated.n != s->n) {
        (void)snprintf(what, sizeof(what), "n of %.60s, counted again from the items", m->name);
        return err_differs_int(err, what, (long long)s->n, (long long)m->stated.n);
    }
    const double counted = value_by(is_whole ? RULE_MEAN : m->rule, s);
    if (!(fabs(counted - m->stated.value) <= RECOUNT_NEAR * fmax(1.0, fabs(counted)))) {
        (void)snprintf(what, sizeof(what), "%.60s, counted again from the items", m->name);
        json_number_text(isfinite(counted) ? counted : 0, texts[0]);
        json_number_text(m->stated.value, texts[1]);
        return err_differs(err, what, isfinite(counted) ? texts[0] : "a number", texts[1]);
    }
    r->n_scores++;
    take_empty(m, is_whole || m->group == NULL ? c->n_items : items_of(c, m->group), s->n, r);
    return 0;
}

int recount_items(const char *path, const struct recount_result *of, struct recount *r,
                  struct err *err)
{
    struct counting c;
    struct items_stream s;
    struct digest found = {0};
    counting_init(&c, of);
    items_stream_init(&s, "", NULL, take_item, &c);
    s.take_tree = take_line;
    int rc = items_file_read(&s, path, &found, err);
    if (rc == 0 && !digest_equal(of->said, &found)) {
        rc = err_set(err, ERR_CORRUPT, "the items are not those that the result is of");
    }
    rc = rc == 0 ? check_twice(&c, err) : rc;
    for (size_t i = 0; rc == 0 && i < c.n; i++) {
        rc = compare(&c, &c.metrics[i], r, err);
    }
    r->n_items += (size_t)(c.n_items + c.n_faulty);
    r->n_faulty += (size_t)c.n_faulty;
    items_stream_release(&s);
    counting_release(&c);
    return rc;
}
