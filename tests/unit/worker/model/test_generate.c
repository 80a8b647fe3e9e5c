/*
 * Generations of the scoring engine against the plain forward pass, alone and together, ended,
 * stopped and refused. Built in float and in double.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/worker/model/subject.h"

static struct err err;

static void no_error(int rc)
{
    subject_err_none(rc, &err);
}

#define PROMPTS 40

static bool at_once(void)
{
    return true;
}

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
    subject_draw_requests(s, r, PROMPTS);
    for (size_t i = 0; i < PROMPTS; i++) {
        size_t room = (size_t)s->cfg.context + 1, n = r[i].n < room ? r[i].n : room - 1;
        size_t most = room - n < 30 ? room - n : 30;
        g[i] = (struct score_generation){
            .prompt = r[i].tokens, .n = n, .max_tokens = 1 + subject_draw((uint32_t)most)};
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
    for (size_t k = 0; k < N_SHAPES; k++) {
        struct subject s;
        struct score_request r[PROMPTS];
        struct score_generation g[PROMPTS], plain[PROMPTS], alone[PROMPTS];
        size_t ended = 0, tokens = 0, calls = 0;
        subject_open(&s, &SHAPES[k]);
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
        subject_release_requests(r, PROMPTS);
        subject_close(&s);
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
    subject_open(&s, &SHAPES[0]);
    struct score_stop stop = {.end_of_text = UINT32_MAX};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
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
    subject_close(&s);
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
    subject_open(&s, &SHAPES[0]);
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
    subject_release_requests(r, PROMPTS);
    subject_close(&s);
}

/* Stopped in the middle of a prompt: what comes next does not take the rest of it for computed. */
static void test_generation_stop(void **state)
{
    struct subject s;
    uint32_t tokens[700];

    (void)state;
    subject_open(&s, &SHAPES[2]);
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++)
        tokens[i] = subject_draw(64);
    struct score_request r = {.tokens = tokens, .n = 700, .first = 650}, again = r;
    struct score_generation g = {.prompt = tokens, .n = 690, .max_tokens = 5};
    struct score_stop stop = {.end_of_text = UINT32_MAX, .asked = at_once};
    no_error(engine_score(s.engine, &r, 1, NULL, &err));
    tokens[0] = (tokens[0] + 1) % 64;
    assert_int_equal(engine_generate(s.engine, &g, 1, &stop, &err), ERR_BUSY);
    no_error(engine_score(s.engine, &again, 1, NULL, &err));
    subject_score_plainly(&s, &r);
    assert_true(fabs(r.sum - again.sum) < SUM_BOUND);
    token_list_release(&g.out);
    subject_close(&s);
}

static void test_generation_not_finite(void **state)
{
    struct subject s;

    (void)state;
    subject_open(&s, &SHAPES[1]);
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
    subject_close(&s);
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generation),
        cmocka_unit_test(test_generation_refusals),
        cmocka_unit_test(test_generation_not_finite),
        cmocka_unit_test(test_generation_stop),
        cmocka_unit_test(test_generation_stopped_between_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
