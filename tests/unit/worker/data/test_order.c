/* Order and hold-out as functions of text, seed and position alone; the words of a progress bar. */
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/data/order.h"
#include "worker/data/progress.h"

#define DOCUMENTS 200

/* In every block each source has its exact share, and each of its places once. */
static void test_slots(void **state)
{
    (void)state;
    static const uint32_t parts[] = {5800, 3000, 1199, 1};
    const size_t n = ARRAY_LEN(parts);
    size_t same = 0;

    for (uint64_t block = 0; block < 3; block++) {
        char *seen = xcalloc(n * ORDER_BLOCK, 1);
        for (uint64_t i = 0; i < ORDER_BLOCK; i++) {
            uint64_t slot = block * ORDER_BLOCK + i;
            struct order_place p = order_slot(7, slot, parts, n);
            assert_true(p.source < n);
            assert_true(p.k >= block * parts[p.source] && p.k < (block + 1) * parts[p.source]);
            char *cell = &seen[p.source * ORDER_BLOCK + p.k - block * parts[p.source]];
            assert_int_equal(*cell, 0);
            *cell = 1;
            struct order_place other = order_slot(8, slot, parts, n);
            same += other.source == p.source && other.k == p.k;
        }
        free(seen);
    }
    assert_true(same < ORDER_BLOCK / 100);
}

/* Every window of an epoch comes once, inside the text, the token after it too. */
static void test_windows(void **state)
{
    (void)state;
    static const struct {
        size_t tokens, context;
        uint64_t windows;
    } cases[] = {{15, 8, 0}, {16, 8, 1}, {23, 8, 1}, {24, 8, 2}, {1000, 7, 141}, {100, 1, 99}};

    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        CHECK_ROW("cases[%zu]", c);
        size_t context = cases[c].context;
        uint64_t n = order_windows(cases[c].tokens, context);
        assert_int_equal(n, cases[c].windows);
        for (uint64_t epoch = 0; n > 0 && epoch < 5; epoch++) {
            char *seen = xcalloc(n, 1);
            size_t offset = SIZE_MAX;
            for (uint64_t i = 0; i < n; i++) {
                struct order_place p = {.source = 3, .k = epoch * n + i};
                size_t start = order_start(5, p, n, context);
                assert_true(start + context < cases[c].tokens);
                offset = offset == SIZE_MAX ? start % context : offset;
                assert_int_equal(start % context, offset);
                assert_int_equal(seen[start / context], 0);
                seen[start / context] = 1;
            }
            free(seen);
        }
    }
}

static void fill(struct corpus *c, const struct tokenizer *tok, bool backwards)
{
    struct err err = {0};

    corpus_init(c);
    for (int i = 0; i < DOCUMENTS; i++) {
        char text[64];
        int n =
            snprintf(text, sizeof(text), "document number %d", backwards ? DOCUMENTS - 1 - i : i);
        assert_int_equal(corpus_add(c, tok, text, (size_t)n, &err), 0);
    }
}

/* The same documents whatever the order of files and the tokenizer; at least one. */
static void test_holdout(void **state)
{
    (void)state;
    static const char json[] =
        "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"model\":{"
        "\"vocab\":{\"d\":0,\"o\":1,\"do\":2,\"</s>\":3},\"merges\":[\"d o\"]}}";
    char path[] = "/tmp/prereg-order-XXXXXX";
    struct tokenizer *bytes = NULL, *bpe = NULL;
    struct corpus a, b;
    struct err err = {0};
    FILE *f = fdopen(mkstemp(path), "w");

    assert_true(f != NULL && fputs(json, f) >= 0 && fclose(f) == 0);
    assert_int_equal(tokenizer_open(TOKENIZER_BYTES, &bytes, &err), 0);
    assert_int_equal(tokenizer_open(path, &bpe, &err), 0);
    (void)remove(path);
    fill(&a, bytes, false);
    fill(&b, bpe, true);
    assert_true(a.n_tokens > b.n_tokens);
    uint64_t limit = order_holdout_limit(&a, 0.1);
    assert_true(limit == order_holdout_limit(&b, 0.1));
    size_t held = 0;
    for (size_t i = 0; i < DOCUMENTS; i++) {
        assert_true(a.documents[i].hash == b.documents[DOCUMENTS - 1 - i].hash);
        held += a.documents[i].hash <= limit;
    }
    assert_in_range(held, DOCUMENTS / 20, DOCUMENTS / 5);
    limit = order_holdout_limit(&a, 0.0);
    held = 0;
    for (size_t i = 0; i < DOCUMENTS; i++)
        held += a.documents[i].hash <= limit;
    assert_int_equal(held, 1);
    corpus_release(&a);
    corpus_release(&b);
    tokenizer_free(bytes);
    tokenizer_free(bpe);
}

static void test_progress_text(void **state)
{
    (void)state;
    static const struct {
        enum progress_unit unit;
        double total, done, seconds;
        int bar;
        const char *text;
    } cases[] = {
        {PROGRESS_BYTES, 4e6, 1e6, 2.0, 8, "x  [##......]  25 %  0.5 MB/s  ETA 6.0 s"},
        {PROGRESS_BYTES, 4e6, 1e6, 2.0, 0, "x   25 %  0.5 MB/s  ETA 6.0 s"},
        {PROGRESS_THINGS, 100, 100, 1.0, 4, "x  [####] 100 %  100/s  ETA 0.0 s"},
        {PROGRESS_THINGS, 0, 0, 0.0, 0, "x  100 %  0/s  ETA ?"},
        {PROGRESS_BYTES, 1e6, 3e6, 1.0, 2, "x  [##] 100 %  3.0 MB/s  ETA 0.0 s"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct progress p = {.what = "x", .unit = cases[i].unit, .total = cases[i].total};
        char text[128];
        progress_text(&p, cases[i].done, cases[i].seconds, cases[i].bar, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_holdout),
        cmocka_unit_test(test_progress_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
