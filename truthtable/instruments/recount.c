/*
 * One pass over the items, with two running sums for each metric that has a value: over the member
 * of its whole name, and over what its name makes of other members (a group, a perplexity). The
 * first wins where any item has such a member. Every sum follows the order of the file, and items
 * named more than once are an error, so a line cannot count twice.
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

/* One metric with a value. */
struct metric {
    const char *name; /* borrowed from the result, as `stated` */
    struct evidence_value stated;
    char *base;             /* before its last colon */
    const char *group;      /* behind it; NULL: it has none */
    enum recount_rule rule; /* of `parts` */
    const char *weight;
    struct sums whole; /* of the member of its whole name */
    struct sums parts;
};

struct counting {
    struct metric *metrics;
    size_t n;
    struct items_table seen; /* items, for those named twice */
};

void recount_init(struct recount *r)
{
    *r = (struct recount){0};
    strbuf_init(&r->other);
}

void recount_release(struct recount *r)
{
    strbuf_release(&r->other);
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

/* Those that state a number; a null one has nothing to be counted again. */
static void counting_init(struct counting *c, const cJSON *metrics)
{
    const cJSON *entry = NULL;
    *c = (struct counting){0};
    c->metrics = xcalloc((size_t)cJSON_GetArraySize(metrics) + 1, sizeof(*c->metrics));
    items_table_init(&c->seen);
    items_table_begin(&c->seen, 1);
    cJSON_ArrayForEach(entry, metrics)
    {
        const struct evidence_value stated = evidence_value_of(entry);
        if (entry->string != NULL && stated.state == VALUE_KNOWN) {
            c->metrics[c->n++] = metric_of(entry, &stated);
        }
    }
}

static void counting_release(struct counting *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->metrics[i].base);
    }
    free(c->metrics);
    items_table_release(&c->seen);
}

/* ---- a line ---- */

/* A number or truth value of a line; false for anything else. */
static bool value_of(const cJSON *line, const char *member, double *out)
{
    const cJSON *v = json_member(line, member);
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

/* Adds the line to both sums of a metric, where it has what they need. */
static void add_line(struct metric *m, const cJSON *line)
{
    const cJSON *group = json_member(line, "group");
    double value = 0;
    double weight = 0;
    if (value_of(line, m->name, &value)) {
        add(&m->whole, value, 0);
    }
    if (m->group != NULL && (!cJSON_IsString(group) || strcmp(group->valuestring, m->group) != 0)) {
        return;
    }
    if (m->rule == RULE_MEAN) {
        if (m->group != NULL && value_of(line, m->base, &value)) {
            add(&m->parts, value, 0);
        }
    } else if (likelihood_of(line, &value) &&
               (m->weight == NULL || value_of(line, m->weight, &weight))) {
        add(&m->parts, value, weight);
    }
}

/* An items_take: an item that occurs twice ends the reading. */
static int take_item(void *ctx, const struct items_line *line, struct err *err)
{
    struct counting *c = ctx;
    return items_table_take(&c->seen, line, err);
}

/* An items_take_tree: an item at fault has no value. */
static int take_line(void *ctx, const cJSON *line, struct err *err)
{
    struct counting *c = ctx;
    (void)err;
    for (size_t i = 0; i < c->n && json_member(line, "fault") == NULL; i++) {
        add_line(&c->metrics[i], line);
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

/* Value and n of one metric against what the items give. */
static int compare(const struct metric *m, struct recount *r, struct err *err)
{
    const bool is_whole = m->whole.n > 0;
    const struct sums *s = is_whole ? &m->whole : &m->parts;
    char texts[2][JSON_NUMBER_MAX];
    char what[120];
    if (s->n == 0) {
        r->n_others++;
        if (r->other.len == 0) {
            strbuf_adds(&r->other, m->name);
        }
        return 0;
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
    return 0;
}

int recount_items(const char *path, const struct digest *said, const cJSON *metrics,
                  struct recount *r, struct err *err)
{
    struct counting c;
    struct items_stream s;
    struct digest found = {0};
    counting_init(&c, metrics);
    items_stream_init(&s, "", NULL, take_item, &c);
    s.take_tree = take_line;
    int rc = items_file_read(&s, path, &found, err);
    if (rc == 0 && !digest_equal(said, &found)) {
        rc = err_set(err, ERR_CORRUPT, "the items are not those that the result is of");
    }
    for (size_t i = 0; rc == 0 && i < c.n; i++) {
        rc = compare(&c.metrics[i], r, err);
    }
    items_stream_release(&s);
    counting_release(&c);
    return rc;
}
