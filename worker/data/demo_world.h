/*
 * The world of the demo corpus: its words, its facts, and how its sentences are put together. Both
 * the corpus and the items are made from here, so that they cannot drift apart.
 *
 * A sentence is described by small integers (indices into the word lists). `*_draw` draws one,
 * `*_reserved` says whether its combination belongs to the items, and the other functions append
 * its parts as text.
 */
#ifndef WORKER_DATA_DEMO_WORLD_H
#define WORKER_DATA_DEMO_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/strbuf.h"

#define DEMO_NAMES      24
#define DEMO_PROPERTIES 4
#define DEMO_VALUES     8 /* of each property */
#define DEMO_PHRASES    8 /* ways to open a fact */
#define DEMO_MODULUS    31

struct demo_world {
    uint64_t seed;
    unsigned char facts[DEMO_NAMES][DEMO_PROPERTIES]; /* index of the value */
};

void demo_world_init(struct demo_world *w, uint64_t seed);

/* "the small dogs near the cat" + " sleep" + " by the lake."; half of the clauses have another noun
 * between subject and verb, which the verb must not follow. */
struct demo_clause {
    unsigned adjective, noun, verb, place;
    bool plural;
    bool has_other;
    unsigned other; /* noun */
    bool other_plural;
};

void demo_clause_draw(struct demo_clause *c, struct rng *rng);
bool demo_clause_reserved(const struct demo_world *w, const struct demo_clause *c);
/* A number of its own for every sentence. */
uint64_t demo_clause_key(const struct demo_clause *c);
void demo_clause_subject(const struct demo_clause *c, struct strbuf *out);
/* The predicate with the verb in the given number, without a leading space. */
void demo_clause_predicate(const struct demo_clause *c, bool plural, struct strbuf *out);
/* The same words in an ungrammatical order: kind 0 or 1. */
void demo_clause_scrambled(const struct demo_clause *c, unsigned kind, struct strbuf *out);

/* "every day anna drinks" + " tea." */
struct demo_fact {
    unsigned name, property, phrase;
};

/* Any fact in any phrase; whether it is reserved is a separate question. */
void demo_fact_draw(struct demo_fact *f, struct rng *rng);
bool demo_fact_reserved(const struct demo_world *w, const struct demo_fact *f);
/* The phrase, the name and the verb. */
void demo_fact_opening(const struct demo_fact *f, struct strbuf *out);
const char *demo_fact_value(unsigned property, unsigned value);

/* "tom gave the ball to sam, so now" + " sam" + " has the ball." */
struct demo_gift {
    unsigned subject, other, object;
    bool taken;   /* took … from, instead of gave … to */
    bool lacking; /* the sentence tells who lacks it */
};

void demo_gift_draw(struct demo_gift *g, struct rng *rng);
bool demo_gift_reserved(const struct demo_world *w, const struct demo_gift *g);
uint64_t demo_gift_key(const struct demo_gift *g);
/* "tom gave the ball to sam, so now", without a space at the end. */
void demo_gift_opening(const struct demo_gift *g, struct strbuf *out);
/* "holds the ball." or "wants the ball." */
void demo_gift_ending(const struct demo_gift *g, struct strbuf *out);
const char *demo_name(unsigned name);
/* Whether the ending is about the subject. */
bool demo_gift_about_subject(const struct demo_gift *g);

/* "17 plus 25 is" + " 11." */
struct demo_sum {
    unsigned a, b;
};

void demo_sum_draw(struct demo_sum *s, struct rng *rng);
bool demo_sum_reserved(const struct demo_world *w, const struct demo_sum *s);

#endif
