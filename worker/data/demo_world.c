/*
 * Word lists and sentence patterns. Whether a combination is reserved is a hash of the seed and the
 * combination's number, so neither the corpus nor the items need a table of the other's. What the
 * hash covers is chosen per kind: a clause is reserved in every place and number, a sum in both
 * orders, since otherwise the corpus would show the answer in another form.
 */
#include "worker/data/demo_world.h"

#include "base/xalloc.h"

static const char *const names[DEMO_NAMES] = {
    "anna", "ben",  "carl", "dora", "emil", "fay",  "gus", "hana", "igor", "jane", "kurt", "lena",
    "max",  "nora", "otto", "pia",  "ron",  "sara", "tom", "una",  "vera", "walt", "yuri", "zoe",
};

struct property {
    const char *verb;
    const char *values[DEMO_VALUES];
};

static const struct property properties[DEMO_PROPERTIES] = {
    {"drinks", {"tea", "milk", "cocoa", "water", "juice", "cider", "broth", "soda"}},
    {"lives in", {"rome", "oslo", "paris", "cairo", "lima", "delhi", "tokyo", "quito"}},
    {"keeps a", {"parrot", "mouse", "pony", "snake", "turtle", "rabbit", "beetle", "gecko"}},
    {"wears", {"red", "blue", "green", "white", "black", "pink", "gold", "violet"}},
};

static const char *const phrases[DEMO_PHRASES] = {
    "",      "every day ", "we know that ", "as a rule ", "they say that ",
    "yes, ", "of course ", "today ",
};

static const char *const adjectives[] = {"old",  "young", "small", "big",
                                         "slow", "quick", "brown", "happy"};
static const char *const nouns[] = {"dog",  "cat",  "bird", "frog", "goat", "duck",
                                    "bear", "crow", "cow",  "owl",  "lamb", "seal"};
static const char *const verbs[] = {"sleep", "sing", "jump", "wait",  "rest", "walk",
                                    "hide",  "swim", "play", "dance", "eat",  "drink"};
static const char *const prepositions[] = {"by", "near", "under", "behind"};
static const char *const places[] = {"lake", "tree", "bridge", "house", "hill", "road"};
static const char *const objects[] = {"ball", "book", "coin", "ring", "key",
                                      "lamp", "cup",  "drum", "kite", "map"};

#define N_PLACES (ARRAY_LEN(prepositions) * ARRAY_LEN(places))

static unsigned draw(struct rng *rng, size_t n)
{
    return (unsigned)rng_below(rng, n);
}

/* A hash of seed and combination, uniform in 0..n-1: the same for corpus and items. */
static uint64_t hash_below(const struct demo_world *w, uint64_t kind, uint64_t combination,
                           uint64_t n)
{
    struct rng rng;
    rng_seed(&rng, w->seed * 1000003 + kind);
    uint64_t mixed = rng_next(&rng) ^ (combination * UINT64_C(0x9e3779b97f4a7c15));
    rng_seed(&rng, mixed);
    return rng_below(&rng, n);
}

void demo_world_init(struct demo_world *w, uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed);
    w->seed = seed;
    for (unsigned name = 0; name < DEMO_NAMES; name++)
        for (unsigned p = 0; p < DEMO_PROPERTIES; p++)
            w->facts[name][p] = (unsigned char)draw(&rng, DEMO_VALUES);
}

void demo_clause_draw(struct demo_clause *c, struct rng *rng)
{
    c->adjective = draw(rng, ARRAY_LEN(adjectives));
    c->noun = draw(rng, ARRAY_LEN(nouns));
    c->verb = draw(rng, ARRAY_LEN(verbs));
    c->place = draw(rng, N_PLACES);
    c->plural = draw(rng, 2) == 1;
    c->has_other = draw(rng, 2) == 1;
    c->other = draw(rng, ARRAY_LEN(nouns));
    c->other_plural = draw(rng, 2) == 1;
}

/* One in eight subject-and-verb combinations, in any place and both numbers. */
bool demo_clause_reserved(const struct demo_world *w, const struct demo_clause *c)
{
    uint64_t combination = (c->adjective * ARRAY_LEN(nouns) + c->noun) * ARRAY_LEN(verbs) + c->verb;
    return hash_below(w, 1, combination, 8) == 0;
}

uint64_t demo_clause_key(const struct demo_clause *c)
{
    uint64_t key = c->adjective * ARRAY_LEN(nouns) + c->noun;
    key = key * ARRAY_LEN(verbs) + c->verb;
    key = (key * N_PLACES + c->place) * 2 + (c->plural ? 1 : 0);
    key = key * (ARRAY_LEN(nouns) + 1) + (c->has_other ? c->other + 1 : 0);
    return key * 2 + (c->has_other && c->other_plural ? 1 : 0);
}

void demo_clause_subject(const struct demo_clause *c, struct strbuf *out)
{
    strbuf_addf(out, "the %s %s%s", adjectives[c->adjective], nouns[c->noun], c->plural ? "s" : "");
    if (c->has_other)
        strbuf_addf(out, " with the %s%s", nouns[c->other], c->other_plural ? "s" : "");
}

static const char *preposition_of(const struct demo_clause *c)
{
    return prepositions[c->place / ARRAY_LEN(places)];
}

static const char *place_of(const struct demo_clause *c)
{
    return places[c->place % ARRAY_LEN(places)];
}

void demo_clause_predicate(const struct demo_clause *c, bool plural, struct strbuf *out)
{
    strbuf_addf(out, "%s%s %s the %s.", verbs[c->verb], plural ? "" : "s", preposition_of(c),
                place_of(c));
}

void demo_clause_scrambled(const struct demo_clause *c, unsigned kind, struct strbuf *out)
{
    const char *s = c->plural ? "" : "s";
    if (kind == 0)
        strbuf_addf(out, "the %s %s %s%s.", place_of(c), preposition_of(c), verbs[c->verb], s);
    else
        strbuf_addf(out, "%s%s the %s %s.", verbs[c->verb], s, preposition_of(c), place_of(c));
}

void demo_fact_draw(struct demo_fact *f, struct rng *rng)
{
    f->name = draw(rng, DEMO_NAMES);
    f->property = draw(rng, DEMO_PROPERTIES);
    f->phrase = draw(rng, DEMO_PHRASES);
}

/* Three of a fact's eight openings: neighbours on the circle, from a place drawn for the fact. */
bool demo_fact_reserved(const struct demo_world *w, const struct demo_fact *f)
{
    uint64_t combination = f->name * DEMO_PROPERTIES + f->property;
    uint64_t first = hash_below(w, 2, combination, DEMO_PHRASES);
    return (f->phrase + DEMO_PHRASES - first) % DEMO_PHRASES < 3;
}

void demo_fact_opening(const struct demo_fact *f, struct strbuf *out)
{
    strbuf_addf(out, "%s%s %s", phrases[f->phrase], names[f->name], properties[f->property].verb);
}

const char *demo_fact_value(unsigned property, unsigned value)
{
    return properties[property].values[value];
}

void demo_gift_draw(struct demo_gift *g, struct rng *rng)
{
    g->subject = draw(rng, DEMO_NAMES);
    g->other = (g->subject + 1 + draw(rng, DEMO_NAMES - 1)) % DEMO_NAMES;
    g->object = draw(rng, ARRAY_LEN(objects));
    g->taken = draw(rng, 2) == 1;
    g->lacking = draw(rng, 2) == 1;
}

/* One in ten triples of two people and a thing, whatever happens between them. */
bool demo_gift_reserved(const struct demo_world *w, const struct demo_gift *g)
{
    uint64_t combination =
        (g->subject * DEMO_NAMES + g->other) * (uint64_t)ARRAY_LEN(objects) + g->object;
    return hash_below(w, 3, combination, 10) == 0;
}

uint64_t demo_gift_key(const struct demo_gift *g)
{
    uint64_t key = (g->subject * DEMO_NAMES + g->other) * (uint64_t)ARRAY_LEN(objects) + g->object;
    return key * 4 + (g->taken ? 2 : 0) + (g->lacking ? 1 : 0);
}

const char *demo_name(unsigned name)
{
    return names[name];
}

bool demo_gift_about_subject(const struct demo_gift *g)
{
    return g->taken != g->lacking;
}

void demo_gift_opening(const struct demo_gift *g, struct strbuf *out)
{
    strbuf_addf(out, "%s %s the %s %s %s, so now", names[g->subject], g->taken ? "took" : "gave",
                objects[g->object], g->taken ? "from" : "to", names[g->other]);
}

void demo_gift_ending(const struct demo_gift *g, struct strbuf *out)
{
    strbuf_addf(out, "%s the %s.", g->lacking ? "wants" : "holds", objects[g->object]);
}

void demo_sum_draw(struct demo_sum *s, struct rng *rng)
{
    s->a = draw(rng, DEMO_MODULUS);
    s->b = draw(rng, DEMO_MODULUS);
}

/* Half of the pairs, in both orders. */
bool demo_sum_reserved(const struct demo_world *w, const struct demo_sum *s)
{
    unsigned low = s->a < s->b ? s->a : s->b;
    unsigned high = s->a < s->b ? s->b : s->a;
    return hash_below(w, 4, low * DEMO_MODULUS + high, 2) == 0;
}
