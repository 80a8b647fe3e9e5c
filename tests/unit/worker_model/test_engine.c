/*
 * The scoring engine against the plain forward pass, and against itself: what a request gets does
 * not depend on what is asked beside it. Built in float and in double.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "worker/model/engine_private.h"
#include "worker/model/run.h"
#include "worker/model/walk.h"

#ifdef NN_F64
#define SUM_BOUND 1e-11 /* of sums of up to 40 terms about ln V each */
#else
#define SUM_BOUND 2e-3
#endif

#define SEED     20261121
#define REQUESTS 60
#define TOKENS   4 /* few different ones, so that requests share a lot */

static struct err err;

static void no_error(int rc)
{
    if (rc < 0)
        fail_msg("%s", err.msg);
}

/* Widths and vocabularies that fill no tile, no panel and no piece of the head. */
static const struct shape {
    const char *name;
    struct model_config cfg;
} SHAPES[] = {
    {"dense, tied",
     {.layers = 2,
      .width = 48,
      .heads = 3,
      .kv_heads = 3,
      .ffn = 40,
      .vocab = 257,
      .context = 70,
      .tie_embeddings = true}},
    {"grouped, own head",
     {.layers = 3,
      .width = 72,
      .heads = 6,
      .kv_heads = 2,
      .ffn = 100,
      .vocab = 2117,
      .context = 140}},
    {"one group, long",
     {.layers = 1,
      .width = 32,
      .heads = 4,
      .kv_heads = 1,
      .ffn = 24,
      .vocab = 64,
      .context = 700,
      .tie_embeddings = true}},
    {"mixture",
     {.layers = 2,
      .width = 40,
      .heads = 2,
      .kv_heads = 2,
      .vocab = 65,
      .context = 70,
      .experts = 5,
      .top_k = 2,
      .expert_ffn = 20,
      .renormalise = true,
      .tie_embeddings = true}},
    {"mixture with a dense block and shared experts",
     {.layers = 3,
      .width = 36,
      .heads = 2,
      .kv_heads = 1,
      .ffn = 28,
      .vocab = 100,
      .context = 90,
      .experts = 9,
      .top_k = 3,
      .expert_ffn = 16,
      .shared = 2,
      .dense_layers = 1}},
};

static uint64_t state_of_draw;

static uint32_t draw(uint32_t below)
{
    state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state_of_draw >> 33) % below;
}

struct subject {
    struct model_config cfg;
    struct weights plain;
    struct weights packed;
    struct engine *engine;
    struct run *run;
};

static void open_subject(struct subject *s, const struct shape *shape)
{
    s->cfg = shape->cfg;
    s->cfg.rope_theta = 10000;
    s->cfg.norm_eps = 1e-5;
    no_error(model_config_validate(&s->cfg, &err));
    no_error(weights_init(&s->plain, &s->cfg, &err));
    no_error(weights_init(&s->packed, &s->cfg, &err));
    weights_randomise(&s->plain, SEED, 0.3);
    weights_randomise(&s->packed, SEED, 0.3);
    for (size_t i = 0; i < weights_n_bias(&s->cfg); i++)
        s->plain.route_bias[i] = s->packed.route_bias[i] = (real)(i * 37 % 11) / 10;
    no_error(engine_create(&s->packed, &s->engine, &err));
    no_error(run_create(&s->cfg, RUN_INFER, (size_t)s->cfg.context, &s->run, &err));
    state_of_draw = SEED;
}

static void close_subject(struct subject *s)
{
    engine_free(s->engine);
    run_free(s->run);
    weights_release(&s->plain);
    weights_release(&s->packed);
}

/* Requests that share beginnings: each goes on somewhere in another. */
static void draw_requests(const struct subject *s, struct score_request *r, size_t n)
{
    size_t most = (size_t)s->cfg.context + 1;

    for (size_t i = 0; i < n; i++) {
        uint32_t *tokens = xcalloc(most, sizeof(*tokens));
        size_t kept = 0;
        if (i > 0) {
            const struct score_request *other = &r[draw((uint32_t)i)];
            kept = draw((uint32_t)other->n + 1);
            memcpy(tokens, other->tokens, kept * sizeof(*tokens));
        }
        size_t len = kept + draw(25);
        len = len < 2 ? 2 : len > most ? most : len;
        if (i % 16 == 7)
            len = most;
        for (size_t t = kept; t < len; t++)
            tokens[t] = draw(TOKENS) * 13 % (uint32_t)s->cfg.vocab;
        size_t tail = 1 + draw(12);
        r[i] = (struct score_request){
            .tokens = tokens, .n = len, .first = tail >= len ? 1 : len - tail};
    }
}

static void release_requests(struct score_request *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((void *)(uintptr_t)r[i].tokens);
}

/* The same by the plain pass. */
static void score_plainly(struct subject *s, struct score_request *r)
{
    struct run_batch batch = {.tokens = r->tokens, .batch = 1, .length = r->n - 1};
    size_t vocab = (size_t)s->cfg.vocab;

    run_forward(s->run, &s->plain, &batch, NULL);
    r->sum = 0;
    r->greedy = true;
    for (size_t i = r->first; i < r->n; i++) {
        const real *logits = run_logits(s->run, &s->plain, i - 1, 1);
        double max = (double)logits[0], sum = 0;
        size_t top = 0;
        for (size_t v = 1; v < vocab; v++)
            if ((double)logits[v] > max) {
                max = (double)logits[v];
                top = v;
            }
        for (size_t v = 0; v < vocab; v++)
            sum += exp((double)logits[v] - max);
        r->sum += (double)logits[r->tokens[i]] - max - log(sum);
        r->greedy = r->greedy && top == r->tokens[i];
    }
}

static uint64_t bits_of(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static void same_bits(const struct score_request *a, const struct score_request *b, size_t n,
                      const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (bits_of(a[i].sum) != bits_of(b[i].sum) || a[i].greedy != b[i].greedy)
            fail_msg("%s: request %zu: %.17g and %.17g", what, i, a[i].sum, b[i].sum);
}

static void test_against_plain_pass(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(SHAPES); k++) {
        struct subject s;
        struct score_request r[REQUESTS];
        double worst = 0;
        size_t greedy = 0;
        open_subject(&s, &SHAPES[k]);
        draw_requests(&s, r, REQUESTS);
        no_error(engine_score(s.engine, r, REQUESTS, NULL, &err));
        for (size_t i = 0; i < REQUESTS; i++) {
            struct score_request plain = r[i];
            score_plainly(&s, &plain);
            worst = fmax(worst, fabs(plain.sum - r[i].sum));
            greedy += r[i].greedy;
            assert_true(isfinite(r[i].sum));
            assert_int_equal(plain.greedy, r[i].greedy);
        }
        print_message("  %s: at most %.2g apart, %zu greedy\n", SHAPES[k].name, worst, greedy);
        assert_true(worst < SUM_BOUND);
        release_requests(r, REQUESTS);
        close_subject(&s);
    }
}

static void shuffle(struct score_request *r, size_t *from, size_t n)
{
    for (size_t i = n; i-- > 1;) {
        size_t j = draw((uint32_t)i + 1), at = from[i];
        struct score_request keep = r[i];
        r[i] = r[j];
        r[j] = keep;
        from[i] = from[j];
        from[j] = at;
    }
}

/* Permuted and cut into calls of every size, on the same engine: the path of one call is what the
 * next one finds. */
static void test_company_does_not_matter(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(SHAPES); k++) {
        struct subject s;
        struct score_request r[REQUESTS], other[REQUESTS], back[REQUESTS];
        size_t from[REQUESTS];
        open_subject(&s, &SHAPES[k]);
        draw_requests(&s, r, REQUESTS);
        no_error(engine_score(s.engine, r, REQUESTS, NULL, &err));
        for (size_t size = 1; size <= REQUESTS; size = size * 3 + 1) {
            for (size_t i = 0; i < REQUESTS; i++) {
                other[i] = r[i];
                other[i].sum = 1;
                from[i] = i;
            }
            shuffle(other, from, REQUESTS);
            for (size_t at = 0; at < REQUESTS; at += size)
                no_error(engine_score(s.engine, other + at,
                                      REQUESTS - at < size ? REQUESTS - at : size, NULL, &err));
            for (size_t i = 0; i < REQUESTS; i++)
                back[from[i]] = other[i];
            same_bits(r, back, REQUESTS, SHAPES[k].name);
        }
        release_requests(r, REQUESTS);
        close_subject(&s);
    }
}

static bool never(void)
{
    return false;
}

static bool at_once(void)
{
    return true;
}

static void test_stop_and_go_on(void **state)
{
    struct subject s;
    struct score_request r[REQUESTS], again[REQUESTS];

    (void)state;
    open_subject(&s, &SHAPES[2]);
    draw_requests(&s, r, REQUESTS);
    no_error(engine_score(s.engine, r, REQUESTS, never, &err));
    memcpy(again, r, sizeof(r));
    assert_int_equal(engine_score(s.engine, again, REQUESTS, at_once, &err), ERR_BUSY);
    no_error(engine_score(s.engine, again, REQUESTS, NULL, &err));
    same_bits(r, again, REQUESTS, "after a stop");
    /* Nobody is asked when everything is done. */
    struct score_request last = {.tokens = r[0].tokens, .n = 2, .first = 1};
    no_error(engine_score(s.engine, &last, 1, at_once, &err));
    release_requests(r, REQUESTS);
    close_subject(&s);
}

/* The logits after a request's last token but one give what the request gets for its last. */
static void test_logits(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(SHAPES); k++) {
        struct subject s;
        struct score_request r[REQUESTS];
        open_subject(&s, &SHAPES[k]);
        draw_requests(&s, r, REQUESTS);
        real *logits = xcalloc((size_t)s.cfg.vocab, sizeof(*logits));
        for (size_t i = 0; i < REQUESTS; i++) {
            double sum = 0;
            r[i].first = r[i].n - 1;
            no_error(engine_score(s.engine, &r[i], 1, NULL, &err));
            no_error(engine_logits(s.engine, r[i].tokens, r[i].n - 1, logits, &err));
            for (int v = 0; v < s.cfg.vocab; v++)
                sum += exp((double)logits[v]);
            assert_true(fabs((double)logits[r[i].tokens[r[i].n - 1]] - log(sum) - r[i].sum) < 1e-5);
        }
        assert_int_equal(engine_logits(s.engine, r[0].tokens, 0, logits, &err), ERR_RANGE);
        free(logits);
        release_requests(r, REQUESTS);
        close_subject(&s);
    }
}

/* Measuring writes over what the path held; no score is the worse for it. */
static void test_measure(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(SHAPES); k++) {
        struct subject s;
        struct score_request r[REQUESTS], again[REQUESTS];
        struct score_rates rates;
        open_subject(&s, &SHAPES[k]);
        draw_requests(&s, r, REQUESTS);
        no_error(engine_score(s.engine, r, REQUESTS, NULL, &err));
        no_error(engine_measure(s.engine, &rates, &err));
        /* Times scatter: what is left for a token when keys took it all may be 0. */
        assert_true(rates.distinct_token >= 0 && rates.head_row > 0 && rates.generated > 0);
        assert_true(rates.key >= 0 && rates.generated_key >= 0);
        assert_true(rates.distinct_token + rates.key > 0);
        assert_true(rates.distinct_token < 1 && rates.head_row < 1 && rates.generated < 1);
        /* What the path held last is asked first. */
        for (size_t i = REQUESTS; i-- > 0;) {
            again[i] = r[i];
            no_error(engine_score(s.engine, &again[i], 1, NULL, &err));
        }
        same_bits(r, again, REQUESTS, "after measuring");
        release_requests(r, REQUESTS);
        close_subject(&s);
    }
}

/* However long a call's generations are, its slots take no more than is announced. */
static void test_slots_fit(void **state)
{
    (void)state;
    const int contexts[] = {1, 64, 700, 4096, 5000, 9000, 70000};
    const struct model_config shape = {
        .layers = 8, .width = 512, .heads = 8, .kv_heads = 8, .ffn = 768, .vocab = 64};

    for (size_t k = 0; k < ARRAY_LEN(contexts); k++) {
        struct model_config cfg = shape;
        double most = 0;
        cfg.context = contexts[k];
        for (int context = 1; context <= contexts[k]; context++) {
            struct attend_dims dims = {
                .heads = 8, .groups = 8, .dim = 64, .context = (size_t)context};
            size_t fit = engine_slots_fitting(&cfg, &dims);
            assert_true(fit >= 1 && fit <= SCORE_SLOTS);
            most = fmax(most, (double)fit * (double)engine_slot_reals(&cfg, &dims) * sizeof(real));
        }
        assert_true(most <= engine_slots_bytes(&cfg));
        assert_true(most > 0.7 * engine_slots_bytes(&cfg));
    }
}

static void test_refusals(void **state)
{
    struct subject s;
    uint32_t tokens[72] = {0};

    (void)state;
    open_subject(&s, &SHAPES[0]);
    const struct {
        size_t n, first;
        int rc;
    } cases[] = {{71, 70, 0},        {71, 1, 0},         {2, 1, 0},         {72, 71, ERR_RANGE},
                 {5, 0, ERR_RANGE},  {5, 5, ERR_RANGE},  {1, 1, ERR_RANGE}, {0, 0, ERR_RANGE},
                 {72, 1, ERR_RANGE}, {71, 72, ERR_RANGE}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct score_request r[2] = {{.tokens = tokens, .n = 3, .first = 1},
                                     {.tokens = tokens, .n = cases[i].n, .first = cases[i].first}};
        assert_int_equal(engine_score(s.engine, r, 2, NULL, &err), cases[i].rc);
        assert_true(cases[i].rc == 0 || strstr(err.msg, "request 1") != NULL);
    }
    tokens[1] = 257;
    struct score_request r = {.tokens = tokens, .n = 3, .first = 2};
    assert_int_equal(engine_score(s.engine, &r, 1, NULL, &err), ERR_RANGE);
    assert_non_null(strstr(err.msg, "token 257"));
    no_error(engine_score(s.engine, NULL, 0, NULL, &err));
    close_subject(&s);
}

/* A token whose embedding is broken spoils the requests that read it, and no others. */
static void test_not_finite(void **state)
{
    struct subject s;
    struct score_request r[REQUESTS], spoilt[REQUESTS];
    size_t n_spoilt = 0;
    const uint32_t bad = 26;
    const real what[] = {(real)NAN, (real)INFINITY};

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(what); k++) {
        open_subject(&s, &SHAPES[1]);
        draw_requests(&s, r, REQUESTS);
        no_error(engine_score(s.engine, r, REQUESTS, NULL, &err));
        weights_at(&s.packed, TENSOR_EMBED, -1)[bad * 72 + 5] = what[k];
        memcpy(spoilt, r, sizeof(r));
        struct score_request other = {.tokens = (const uint32_t[]){1, 2}, .n = 2, .first = 1};
        no_error(engine_score(s.engine, &other, 1, NULL, &err));
        no_error(engine_score(s.engine, spoilt, REQUESTS, NULL, &err));
        n_spoilt = 0;
        for (size_t i = 0; i < REQUESTS; i++) {
            bool reads = false;
            for (size_t t = 0; t + 1 < r[i].n; t++)
                reads = reads || r[i].tokens[t] == bad;
            if (reads)
                assert_true(isnan(spoilt[i].sum));
            else
                same_bits(&r[i], &spoilt[i], 1, "beside a broken one");
            n_spoilt += reads;
        }
        assert_true(n_spoilt > 0 && n_spoilt < REQUESTS);
        release_requests(r, REQUESTS);
        close_subject(&s);
    }
}

/* --- generation --- */

#define PROMPTS 40

static bool over_at_two_alike(void *self, size_t index, const struct token_list *out)
{
    (void)index;
    (*(size_t *)self)++;
    return out->n >= 2 && out->ids[out->n - 1] == out->ids[out->n - 2];
}

/* One generation by whole passes over what there is so far. */
static void generate_plainly(struct subject *s, struct score_generation *g,
                             const struct score_stop *stop)
{
    size_t vocab = (size_t)s->cfg.vocab;
    uint32_t *all = xcalloc(g->n + g->max_tokens, sizeof(*all));

    memcpy(all, g->prompt, g->n * sizeof(*all));
    g->ended = false;
    while (!g->ended && g->out.n < g->max_tokens) {
        size_t n = g->n + g->out.n;
        struct run_batch batch = {.tokens = all, .batch = 1, .length = n};
        run_forward(s->run, &s->plain, &batch, NULL);
        const real *logits = run_logits(s->run, &s->plain, n - 1, 1);
        uint32_t top = 0;
        for (uint32_t v = 1; v < vocab; v++)
            top = logits[v] > logits[top] ? v : top;
        g->ended = top == stop->end_of_text;
        if (g->ended)
            break;
        token_list_add(&g->out, top);
        all[n] = top;
        g->ended = g->out.n >= 2 && top == g->out.ids[g->out.n - 2];
    }
    free(all);
}

static void same_generation(const struct score_generation *a, const struct score_generation *b)
{
    assert_int_equal(a->out.n, b->out.n);
    assert_int_equal(a->ended, b->ended);
    assert_true(a->finite);
    assert_memory_equal(a->out.ids, b->out.ids, a->out.n * sizeof(*a->out.ids));
}

static void draw_prompts(const struct subject *s, struct score_generation *g,
                         struct score_request *r)
{
    draw_requests(s, r, PROMPTS);
    for (size_t i = 0; i < PROMPTS; i++) {
        size_t room = (size_t)s->cfg.context + 1, n = r[i].n < room ? r[i].n : room - 1;
        size_t most = room - n < 30 ? room - n : 30;
        g[i] = (struct score_generation){
            .prompt = r[i].tokens, .n = n, .max_tokens = 1 + draw((uint32_t)most)};
        g[i].max_tokens = g[i].max_tokens > most ? most : g[i].max_tokens;
        /* The same prompt again, and its beginning: on the path altogether. */
        if (i % 5 == 3) {
            g[i].prompt = g[i - 1].prompt;
            g[i].n = g[i - 1].n;
            g[i].max_tokens = g[i - 1].max_tokens;
        }
        if (i % 5 == 4) {
            g[i].prompt = g[i - 1].prompt;
            g[i].n = (g[i - 1].n + 1) / 2;
        }
    }
}

/* What was generated is greedy when it is scored, and with another last token it is not. */
static void check_likeliest(struct subject *s, const struct score_generation *g)
{
    for (size_t i = 0; i < PROMPTS; i++) {
        size_t n = g[i].n + g[i].out.n;
        uint32_t *all = xcalloc(n, sizeof(*all)), *other = xcalloc(n, sizeof(*other));
        if (g[i].out.n > 0) {
            memcpy(all, g[i].prompt, g[i].n * sizeof(*all));
            memcpy(all + g[i].n, g[i].out.ids, g[i].out.n * sizeof(*all));
            memcpy(other, all, n * sizeof(*all));
            other[n - 1] = (other[n - 1] + 1) % (uint32_t)s->cfg.vocab;
            struct score_request r[] = {{.tokens = all, .n = n, .first = g[i].n},
                                        {.tokens = other, .n = n, .first = g[i].n}};
            no_error(engine_score(s->engine, r, 2, NULL, &err));
            assert_true(r[0].greedy);
            assert_false(r[1].greedy);
            assert_true(r[1].sum < r[0].sum);
        }
        free(all);
        free(other);
    }
}

/* A token that some generation comes to after its first: one that ends it. */
static uint32_t find_end(struct subject *s, const struct score_generation *all)
{
    const struct score_stop stop = {.end_of_text = UINT32_MAX};
    uint32_t end = UINT32_MAX;

    for (size_t i = 0; i < PROMPTS; i++) {
        struct score_generation g = all[i];
        no_error(engine_generate(s->engine, &g, 1, &stop, &err));
        for (size_t t = 1; end == UINT32_MAX && t < g.out.n; t++)
            if (g.out.ids[t] != g.out.ids[t - 1])
                end = g.out.ids[t];
        token_list_release(&g.out);
    }
    assert_true(end != UINT32_MAX);
    return end;
}

static void test_generation(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(SHAPES); k++) {
        struct subject s;
        struct score_request r[PROMPTS];
        struct score_generation g[PROMPTS], plain[PROMPTS], alone[PROMPTS];
        size_t ended = 0, tokens = 0, calls = 0;
        open_subject(&s, &SHAPES[k]);
        draw_prompts(&s, g, r);
        memcpy(plain, g, sizeof(g));
        memcpy(alone, g, sizeof(g));
        struct score_stop stop = {
            .end_of_text = find_end(&s, g), .over = over_at_two_alike, .self = &calls};
        size_t by_end = 0;
        no_error(engine_generate(s.engine, g, PROMPTS, &stop, &err));
        for (size_t i = 0; i < PROMPTS; i++) {
            generate_plainly(&s, &plain[i], &stop);
            same_generation(&g[i], &plain[i]);
            tokens += g[i].out.n;
            ended += g[i].ended;
            by_end += g[i].ended && !over_at_two_alike(&(size_t){0}, i, &g[i].out);
        }
        assert_true(by_end > 0);
        assert_int_equal(calls, tokens);
        for (size_t i = PROMPTS; i-- > 0;) {
            no_error(engine_generate(s.engine, &alone[i], 1, &stop, &err));
            same_generation(&g[i], &alone[i]);
        }
        check_likeliest(&s, g);
        print_message("  %s: %zu tokens, %zu of %d ended\n", SHAPES[k].name, tokens, ended,
                      PROMPTS);
        for (size_t i = 0; i < PROMPTS; i++) {
            token_list_release(&g[i].out);
            token_list_release(&plain[i].out);
            token_list_release(&alone[i].out);
        }
        release_requests(r, PROMPTS);
        close_subject(&s);
    }
}

static void test_generation_refusals(void **state)
{
    struct subject s;
    uint32_t tokens[71] = {0};
    const struct {
        size_t n, most;
        int rc;
    } cases[] = {
        {70, 1, 0},         {1, 70, 0},        {70, 2, ERR_RANGE}, {0, 1, ERR_RANGE},
        {71, 1, ERR_RANGE}, {1, 0, ERR_RANGE}, {1, 71, ERR_RANGE}, {1, SIZE_MAX, ERR_RANGE}};

    (void)state;
    open_subject(&s, &SHAPES[0]);
    struct score_stop stop = {.end_of_text = UINT32_MAX};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct score_generation g = {
            .prompt = tokens, .n = cases[i].n, .max_tokens = cases[i].most};
        assert_int_equal(engine_generate(s.engine, &g, 1, &stop, &err), cases[i].rc);
        assert_int_equal(g.out.n, cases[i].rc == 0 ? cases[i].most : 0);
        token_list_release(&g.out);
    }
    stop.asked = at_once;
    struct score_generation g = {.prompt = tokens, .n = 1, .max_tokens = 9};
    assert_int_equal(engine_generate(s.engine, &g, 1, &stop, &err), ERR_BUSY);
    token_list_release(&g.out);
    close_subject(&s);
}

static size_t asks_left;

static bool after_a_while(void)
{
    return asks_left-- == 0;
}

/* Stopped between any two tokens; the same call afterwards is none the worse. */
static void test_generation_stopped_between_tokens(void **state)
{
    struct subject s;
    struct score_request r[PROMPTS];
    struct score_generation g[PROMPTS], again[PROMPTS];
    struct score_stop stop = {.end_of_text = UINT32_MAX};

    (void)state;
    open_subject(&s, &SHAPES[0]);
    draw_prompts(&s, g, r);
    memcpy(again, g, sizeof(g));
    no_error(engine_generate(s.engine, g, PROMPTS, &stop, &err));
    for (size_t asks = 0; asks < 25; asks += 4) {
        asks_left = asks;
        stop.asked = after_a_while;
        assert_int_equal(engine_generate(s.engine, again, PROMPTS, &stop, &err), ERR_BUSY);
        assert_int_equal(asks_left, SIZE_MAX);
        stop.asked = NULL;
        no_error(engine_generate(s.engine, again, PROMPTS, &stop, &err));
        for (size_t i = 0; i < PROMPTS; i++)
            same_generation(&g[i], &again[i]);
    }
    for (size_t i = 0; i < PROMPTS; i++) {
        token_list_release(&g[i].out);
        token_list_release(&again[i].out);
    }
    release_requests(r, PROMPTS);
    close_subject(&s);
}

/* Stopped in the middle of a prompt: what comes next does not take the rest of it for computed. */
static void test_generation_stop(void **state)
{
    struct subject s;
    uint32_t tokens[700];

    (void)state;
    open_subject(&s, &SHAPES[2]);
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++)
        tokens[i] = draw(64);
    struct score_request r = {.tokens = tokens, .n = 700, .first = 650}, again = r;
    struct score_generation g = {.prompt = tokens, .n = 690, .max_tokens = 5};
    struct score_stop stop = {.end_of_text = UINT32_MAX, .asked = at_once};
    no_error(engine_score(s.engine, &r, 1, NULL, &err));
    tokens[0] = (tokens[0] + 1) % 64;
    assert_int_equal(engine_generate(s.engine, &g, 1, &stop, &err), ERR_BUSY);
    no_error(engine_score(s.engine, &again, 1, NULL, &err));
    score_plainly(&s, &r);
    assert_true(fabs(r.sum - again.sum) < SUM_BOUND);
    token_list_release(&g.out);
    close_subject(&s);
}

static void test_generation_not_finite(void **state)
{
    struct subject s;

    (void)state;
    open_subject(&s, &SHAPES[1]);
    weights_at(&s.packed, TENSOR_EMBED, -1)[26 * 72] = (real)NAN;
    struct score_generation g[2] = {
        {.prompt = (const uint32_t[]){1, 26, 3}, .n = 3, .max_tokens = 4},
        {.prompt = (const uint32_t[]){1, 2, 3}, .n = 3, .max_tokens = 1}};
    struct score_stop stop = {.end_of_text = UINT32_MAX};
    no_error(engine_generate(s.engine, g, 2, &stop, &err));
    assert_false(g[0].finite);
    assert_int_equal(g[0].out.n, 0);
    assert_true(g[1].finite);
    assert_int_equal(g[1].out.n, 1);
    token_list_release(&g[1].out);
    close_subject(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_plain_pass),
        cmocka_unit_test(test_company_does_not_matter),
        cmocka_unit_test(test_stop_and_go_on),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_generation),
        cmocka_unit_test(test_generation_refusals),
        cmocka_unit_test(test_generation_not_finite),
        cmocka_unit_test(test_generation_stop),
        cmocka_unit_test(test_logits),
        cmocka_unit_test(test_measure),
        cmocka_unit_test(test_slots_fit),
        cmocka_unit_test(test_generation_stopped_between_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
