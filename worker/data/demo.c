/*
 * The corpus and each benchmark have a random stream of their own, derived from the seed and the
 * file's number; changing the size of the corpus therefore leaves the items as they are. Corpus
 * sentences are redrawn until their combination is free, items until it is reserved and new, so
 * both sides use the same test (demo_world.h) and cannot overlap.
 */
#include "worker/data/demo.h"

#include <assert.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/data/demo_world.h"

static const char *const file_names[DEMO_FILE_NR] = {
    [DEMO_CORPUS] = "corpus.txt",   [DEMO_GRAMMAR] = "grammar.jsonl",
    [DEMO_RECALL] = "recall.jsonl", [DEMO_GIVING] = "giving.jsonl",
    [DEMO_SUMS] = "sums.jsonl",
};

#define SENTENCES_OF_A_DOCUMENT 8
#define CHOICES_MAX             4

/* Every file has a stream of its own, so that the corpus' size does not move the items. */
static void stream_seed(struct rng *rng, uint64_t seed, enum demo_file_kind file)
{
    rng_seed(rng, seed * DEMO_FILE_NR + (uint64_t)file + 1);
}

/* Appends a sentence whose combination is free. */
static void add_clause(const struct demo_world *w, struct rng *rng, struct strbuf *out)
{
    struct demo_clause c;
    do
        demo_clause_draw(&c, rng);
    while (demo_clause_reserved(w, &c));
    demo_clause_subject(&c, out);
    strbuf_addc(out, ' ');
    demo_clause_predicate(&c, c.plural, out);
}

static void add_fact(const struct demo_world *w, struct rng *rng, struct strbuf *out)
{
    struct demo_fact f;
    do
        demo_fact_draw(&f, rng);
    while (demo_fact_reserved(w, &f));
    demo_fact_opening(&f, out);
    strbuf_addf(out, " %s.", demo_fact_value(f.property, w->facts[f.name][f.property]));
}

/* A gift and, in the same sentence, who has or lacks the thing now. */
static void add_gift(const struct demo_world *w, struct rng *rng, struct strbuf *out)
{
    struct demo_gift g;
    do
        demo_gift_draw(&g, rng);
    while (demo_gift_reserved(w, &g));
    demo_gift_opening(&g, out);
    strbuf_addf(out, " %s ", demo_name(demo_gift_about_subject(&g) ? g.subject : g.other));
    demo_gift_ending(&g, out);
}

static void add_sum(const struct demo_world *w, struct rng *rng, struct strbuf *out)
{
    struct demo_sum s;
    do
        demo_sum_draw(&s, rng);
    while (demo_sum_reserved(w, &s));
    strbuf_addf(out, "%u plus %u is %u.", s.a, s.b, (s.a + s.b) % DEMO_MODULUS);
}

/* Documents of eight sentences; the table weighs the kinds of sentences. */
static void generate_corpus(const struct demo_world *w, size_t bytes, struct strbuf *out)
{
    static void (*const add[])(const struct demo_world *, struct rng *, struct strbuf *) = {
        add_clause, add_clause, add_clause, add_fact, add_fact,
        add_fact,   add_fact,   add_gift,   add_gift, add_sum,
    };
    struct rng rng;
    stream_seed(&rng, w->seed, DEMO_CORPUS);
    while (out->len < bytes) {
        for (int i = 0; i < SENTENCES_OF_A_DOCUMENT; i++) {
            if (i > 0)
                strbuf_addc(out, ' ');
            add[rng_below(&rng, ARRAY_LEN(add))](w, &rng, out);
        }
        strbuf_adds(out, "\n<|endoftext|>\n");
    }
}

/* DEMO_ITEMS gold positions, each of n as often as the others, in a drawn order. */
static void draw_golds(struct rng *rng, unsigned n, unsigned char golds[DEMO_ITEMS])
{
    for (unsigned i = 0; i < DEMO_ITEMS; i++)
        golds[i] = (unsigned char)(i % n);
    for (unsigned i = DEMO_ITEMS - 1; i > 0; i--) {
        unsigned j = (unsigned)rng_below(rng, i + 1);
        unsigned char t = golds[i];
        golds[i] = golds[j];
        golds[j] = t;
    }
}

/* One line; choices[0] is the right answer and goes to position gold, the others follow in their
 * order. */
static void add_choices_item(const char *query, const struct strbuf choices[CHOICES_MAX],
                             unsigned gold, struct strbuf *out)
{
    strbuf_adds(out, "{\"query\":");
    json_add_string(out, query);
    strbuf_adds(out, ",\"choices\":[");
    unsigned wrong = 1;
    for (unsigned i = 0; i < CHOICES_MAX; i++) {
        if (i > 0)
            strbuf_addc(out, ',');
        json_add_string(out, choices[i == gold ? 0 : wrong++].buf);
    }
    strbuf_addf(out, "],\"gold\":%u}\n", gold);
}

struct item_maker {
    const struct demo_world *world;
    struct rng rng;
    unsigned char golds[DEMO_ITEMS];
    uint64_t asked[DEMO_ITEMS]; /* the combinations so far: no item comes twice */
    unsigned n_asked;
    struct strbuf query;
    struct strbuf choices[CHOICES_MAX];
    struct strbuf *out;
};

static void maker_init(struct item_maker *m, const struct demo_world *w, enum demo_file_kind file,
                       unsigned n_choices, struct strbuf *out)
{
    m->world = w;
    m->out = out;
    m->n_asked = 0;
    stream_seed(&m->rng, w->seed, file);
    draw_golds(&m->rng, n_choices, m->golds);
    strbuf_init(&m->query);
    for (int i = 0; i < CHOICES_MAX; i++)
        strbuf_init(&m->choices[i]);
}

static void maker_release(struct item_maker *m)
{
    strbuf_release(&m->query);
    for (int i = 0; i < CHOICES_MAX; i++)
        strbuf_release(&m->choices[i]);
}

static void maker_clear(struct item_maker *m)
{
    strbuf_clear(&m->query);
    for (int i = 0; i < CHOICES_MAX; i++)
        strbuf_clear(&m->choices[i]);
}

/* Whether the combination is new; remembers it. */
static bool maker_ask(struct item_maker *m, uint64_t combination)
{
    for (unsigned i = 0; i < m->n_asked; i++)
        if (m->asked[i] == combination)
            return false;
    m->asked[m->n_asked++] = combination;
    return true;
}

/* The three wrong answers are: the other number, and two orders of words. */
static void make_grammar(struct item_maker *m, unsigned i)
{
    struct demo_clause c;
    do
        demo_clause_draw(&c, &m->rng);
    while (!demo_clause_reserved(m->world, &c) || !maker_ask(m, demo_clause_key(&c)));
    demo_clause_subject(&c, &m->query);
    demo_clause_predicate(&c, c.plural, &m->choices[0]);
    demo_clause_predicate(&c, !c.plural, &m->choices[1]);
    demo_clause_scrambled(&c, 0, &m->choices[2]);
    demo_clause_scrambled(&c, 1, &m->choices[3]);
    add_choices_item(m->query.buf, m->choices, m->golds[i], m->out);
}

/* Three different numbers under n, none of them `right`. */
static void draw_wrong(struct rng *rng, unsigned right, unsigned n, unsigned wrong[3])
{
    for (unsigned k = 0; k < 3; k++) {
        bool taken;
        do {
            wrong[k] = (unsigned)rng_below(rng, n);
            taken = wrong[k] == right;
            for (unsigned j = 0; j < k; j++)
                taken = taken || wrong[j] == wrong[k];
        } while (taken);
    }
}

/* The wrong answers are other values of the same property. Every fact is asked once before any is
 * asked in its second reserved phrase. */
static void make_recall(struct item_maker *m, unsigned i)
{
    unsigned fact = i % (DEMO_NAMES * DEMO_PROPERTIES);
    unsigned nth = i / (DEMO_NAMES * DEMO_PROPERTIES);
    struct demo_fact f = {fact / DEMO_PROPERTIES, fact % DEMO_PROPERTIES, 0};
    for (f.phrase = 0; f.phrase < DEMO_PHRASES; f.phrase++)
        if (demo_fact_reserved(m->world, &f) && nth-- == 0)
            break;
    assert(f.phrase < DEMO_PHRASES);
    unsigned right = m->world->facts[f.name][f.property];
    unsigned wrong[3];
    draw_wrong(&m->rng, right, DEMO_VALUES, wrong);
    demo_fact_opening(&f, &m->query);
    for (unsigned k = 0; k < CHOICES_MAX; k++)
        strbuf_addf(&m->choices[k], "%s.",
                    demo_fact_value(f.property, k == 0 ? right : wrong[k - 1]));
    add_choices_item(m->query.buf, m->choices, m->golds[i], m->out);
}

/* The two options name one person each; both orders occur equally often. */
static void make_giving(struct item_maker *m, unsigned i)
{
    struct demo_gift g;
    do
        demo_gift_draw(&g, &m->rng);
    while (!demo_gift_reserved(m->world, &g) || !maker_ask(m, demo_gift_key(&g)));
    unsigned right = demo_gift_about_subject(&g) ? g.subject : g.other;
    unsigned wrong = demo_gift_about_subject(&g) ? g.other : g.subject;
    demo_gift_opening(&g, &m->query);
    demo_gift_ending(&g, &m->choices[0]);
    strbuf_adds(m->out, "{\"context_options\":[");
    for (unsigned k = 0; k < 2; k++) {
        struct strbuf *option = &m->choices[1 + k];
        strbuf_addf(option, "%s %s", m->query.buf, demo_name(k == m->golds[i] ? right : wrong));
        if (k > 0)
            strbuf_addc(m->out, ',');
        json_add_string(m->out, option->buf);
    }
    strbuf_adds(m->out, "],\"continuation\":");
    json_add_string(m->out, m->choices[0].buf);
    strbuf_addf(m->out, ",\"gold\":%u}\n", m->golds[i]);
}

/* Wrong answers are other residues. */
static void make_sum(struct item_maker *m, unsigned i)
{
    struct demo_sum s;
    do
        demo_sum_draw(&s, &m->rng);
    while (!demo_sum_reserved(m->world, &s) || !maker_ask(m, s.a * DEMO_MODULUS + s.b));
    unsigned right = (s.a + s.b) % DEMO_MODULUS;
    unsigned wrong[3];
    draw_wrong(&m->rng, right, DEMO_MODULUS, wrong);
    strbuf_addf(&m->query, "%u plus %u is", s.a, s.b);
    for (unsigned k = 0; k < CHOICES_MAX; k++)
        strbuf_addf(&m->choices[k], "%u.", k == 0 ? right : wrong[k - 1]);
    add_choices_item(m->query.buf, m->choices, m->golds[i], m->out);
}

static void generate_items(const struct demo_world *w, enum demo_file_kind file, struct strbuf *out)
{
    static void (*const make[DEMO_FILE_NR])(struct item_maker *, unsigned) = {
        [DEMO_GRAMMAR] = make_grammar,
        [DEMO_RECALL] = make_recall,
        [DEMO_GIVING] = make_giving,
        [DEMO_SUMS] = make_sum,
    };
    struct item_maker m;
    maker_init(&m, w, file, file == DEMO_GIVING ? 2 : CHOICES_MAX, out);
    for (unsigned i = 0; i < DEMO_ITEMS; i++) {
        maker_clear(&m);
        make[file](&m, i);
    }
    maker_release(&m);
}

void demo_generate(uint64_t seed, size_t corpus_bytes, struct demo_file files[DEMO_FILE_NR])
{
    struct demo_world world;
    demo_world_init(&world, seed);
    for (int f = 0; f < DEMO_FILE_NR; f++) {
        files[f].name = file_names[f];
        strbuf_init(&files[f].text);
        if (f == DEMO_CORPUS)
            generate_corpus(&world, corpus_bytes, &files[f].text);
        else
            generate_items(&world, (enum demo_file_kind)f, &files[f].text);
    }
}

void demo_release(struct demo_file files[DEMO_FILE_NR])
{
    for (int f = 0; f < DEMO_FILE_NR; f++)
        strbuf_release(&files[f].text);
}

int demo_write(uint64_t seed, size_t corpus_bytes, const char *folder, struct err *err)
{
    int rc = dir_make(folder, 0777, err);
    if (rc != 0)
        return rc;
    struct demo_file files[DEMO_FILE_NR];
    demo_generate(seed, corpus_bytes, files);
    for (int f = 0; f < DEMO_FILE_NR && rc == 0; f++) {
        char *path = path_join(folder, files[f].name);
        rc = file_write_atomic(path, files[f].text.buf, files[f].text.len, 0666, err);
        free(path);
    }
    demo_release(files);
    return rc == 0 ? 0 : err_wrap(err, "write the demo corpus");
}
