/*
 * The scoring engine against the plain forward pass, and against itself: what a request gets does
 * not depend on what is asked beside it. Built in float and in double.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/worker/model/subject.h"

#define REQUESTS 60

static struct err err;

static void no_error(int rc)
{
    subject_err_none(rc, &err);
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
    for (size_t k = 0; k < N_SHAPES; k++) {
        struct subject s;
        struct score_request r[REQUESTS];
        double worst = 0;
        size_t greedy = 0;
        subject_open(&s, &SHAPES[k]);
        subject_draw_requests(&s, r, REQUESTS);
        no_error(engine_score(s.engine, r, REQUESTS, NULL, &err));
        for (size_t i = 0; i < REQUESTS; i++) {
            struct score_request plain = r[i];
            subject_score_plainly(&s, &plain);
            worst = fmax(worst, fabs(plain.sum - r[i].sum));
            greedy += r[i].greedy;
            assert_true(isfinite(r[i].sum));
            assert_int_equal(plain.greedy, r[i].greedy);
        }
        print_message("  %s: at most %.2g apart, %zu greedy\n", SHAPES[k].name, worst, greedy);
        assert_true(worst < SUM_BOUND);
        subject_release_requests(r, REQUESTS);
        subject_close(&s);
    }
}

/* The buffers of an engine, in the order of their places, as large as engine_private.h says. */
static void test_buffers_are_apart(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_SHAPES; k++) {
        struct subject s;
        subject_open(&s, &SHAPES[k]);
        const struct engine *e = s.engine;
        const struct model_config *cfg = &s.cfg;
        size_t n = ENGINE_CHUNK, c = (size_t)cfg->width, experts = (size_t)cfg->experts;
        size_t top = n * (size_t)cfg->top_k, context = (size_t)cfg->context;
        const struct {
            const void *at;
            size_t bytes;
        } buffers[] = {
            {e->path_cache.at, (size_t)cfg->layers * attend_cache(&e->dims) * sizeof(real)},
            {e->hidden, context * c * sizeof(real)},
            {e->ids, n * sizeof(uint32_t)},
            {e->x, n * c * sizeof(real)},
            {e->xn, n * c * sizeof(real)},
            {e->qkv, n * model_config_qkv(cfg) * sizeof(real)},
            {e->att, n * c * sizeof(real)},
            {e->gu, n * 2 * (size_t)cfg->ffn * sizeof(real)},
            {e->h, n * (size_t)cfg->ffn * sizeof(real)},
            {e->rstd, n * sizeof(real)},
            {e->rope, context * e->dims.dim * sizeof(real)},
            {e->attention, attend_scratch(&e->dims) * sizeof(real)},
            {e->head.x, ENGINE_HEAD_ROWS * c * sizeof(real)},
            {e->head.logits, (size_t)ENGINE_HEAD_ROWS * ENGINE_HEAD_COLS * sizeof(real)},
            {e->head.sums, ENGINE_HEAD_ROWS * sizeof(struct logsum)},
            {e->p, n * experts * sizeof(real)},
            {e->route_w, top * sizeof(real)},
            {e->chosen, top * sizeof(uint32_t)},
            {e->counts, experts * sizeof(uint32_t)},
            {e->place, top * sizeof(uint32_t)},
            {e->begins, (experts + 1) * sizeof(uint32_t)},
            {e->grouped, top * c * sizeof(real)},
        };
        uintptr_t end = (uintptr_t)e->memory;
        for (size_t i = 0; i < (experts > 0 ? sizeof(buffers) / sizeof(buffers[0]) : 15); i++) {
            if ((uintptr_t)buffers[i].at < end || (uintptr_t)buffers[i].at % 64 != 0)
                fail_msg("%s: buffer %zu is at %p", SHAPES[k].name, i, buffers[i].at);
            end = (uintptr_t)buffers[i].at + buffers[i].bytes;
        }
        assert_true((double)(end - (uintptr_t)e->memory) <= engine_bytes(cfg));
        subject_close(&s);
    }
}

static void shuffle(struct score_request *r, size_t *from, size_t n)
{
    for (size_t i = n; i-- > 1;) {
        size_t j = subject_draw((uint32_t)i + 1), at = from[i];
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
    for (size_t k = 0; k < N_SHAPES; k++) {
        struct subject s;
        struct score_request r[REQUESTS], other[REQUESTS], back[REQUESTS];
        size_t from[REQUESTS];
        subject_open(&s, &SHAPES[k]);
        subject_draw_requests(&s, r, REQUESTS);
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
        subject_release_requests(r, REQUESTS);
        subject_close(&s);
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
    subject_open(&s, &SHAPES[2]);
    subject_draw_requests(&s, r, REQUESTS);
    no_error(engine_score(s.engine, r, REQUESTS, never, &err));
    memcpy(again, r, sizeof(r));
    assert_int_equal(engine_score(s.engine, again, REQUESTS, at_once, &err), ERR_BUSY);
    no_error(engine_score(s.engine, again, REQUESTS, NULL, &err));
    same_bits(r, again, REQUESTS, "after a stop");
    /* Nobody is asked when everything is done. */
    struct score_request last = {.tokens = r[0].tokens, .n = 2, .first = 1};
    no_error(engine_score(s.engine, &last, 1, at_once, &err));
    subject_release_requests(r, REQUESTS);
    subject_close(&s);
}

/* The logits after a request's last token but one give what the request gets for its last. */
static void test_logits(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_SHAPES; k++) {
        struct subject s;
        struct score_request r[REQUESTS];
        subject_open(&s, &SHAPES[k]);
        subject_draw_requests(&s, r, REQUESTS);
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
        subject_release_requests(r, REQUESTS);
        subject_close(&s);
    }
}

/* Measuring writes over what the path held; no score is the worse for it. */
static void test_measure(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_SHAPES; k++) {
        struct subject s;
        struct score_request r[REQUESTS], again[REQUESTS];
        struct score_rates rates;
        subject_open(&s, &SHAPES[k]);
        subject_draw_requests(&s, r, REQUESTS);
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
        subject_release_requests(r, REQUESTS);
        subject_close(&s);
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
        CHECK_ROW("contexts[%zu]", k);
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
    subject_open(&s, &SHAPES[0]);
    const struct {
        size_t n, first;
        int rc;
    } cases[] = {{71, 70, 0},        {71, 1, 0},         {2, 1, 0},         {72, 71, ERR_RANGE},
                 {5, 0, ERR_RANGE},  {5, 5, ERR_RANGE},  {1, 1, ERR_RANGE}, {0, 0, ERR_RANGE},
                 {72, 1, ERR_RANGE}, {71, 72, ERR_RANGE}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
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
    subject_close(&s);
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
        CHECK_ROW("what[%zu]", k);
        subject_open(&s, &SHAPES[1]);
        subject_draw_requests(&s, r, REQUESTS);
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
        subject_release_requests(r, REQUESTS);
        subject_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_plain_pass),
        cmocka_unit_test(test_buffers_are_apart),
        cmocka_unit_test(test_company_does_not_matter),
        cmocka_unit_test(test_stop_and_go_on),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_logits),
        cmocka_unit_test(test_measure),
        cmocka_unit_test(test_slots_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
