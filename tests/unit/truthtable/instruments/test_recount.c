/* Scores counted again from items: every rule of recount.h, and what is not the items' score. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "truthtable/instruments/recount.h"

#define ITEMS                                                                                      \
    "{\"engine\":\"x\"}\n"                                                                         \
    "{\"item\":0,\"group\":\"a\",\"acc\":1,\"acc:strict\":true,\"ll\":[-2],\"words\":2,"           \
    "\"bytes\":8}\n"                                                                               \
    "{\"item\":1,\"group\":\"a\",\"acc\":0,\"acc:strict\":false,\"ll\":[-4],\"words\":1,"          \
    "\"bytes\":8}\n"                                                                               \
    "{\"item\":2,\"group\":\"b\",\"acc\":1,\"acc:strict\":false,\"ll\":[-1,-2]}\n"                 \
    "{\"item\":3,\"group\":\"b\",\"acc\":1,\"fault\":\"empty\"}\n"                                 \
    "{\"item\":4,\"group\":\"b\"}\n"

struct recounted {
    int rc;
    size_t n_scores;
    size_t n_others;
    char other[40];
    size_t n_missed, n_items, n_faulty, n_empty;
    char missed[40], empty[40];
    struct err err;
};

static const char *text_of(const struct strbuf *b)
{
    return b->len > 0 ? b->buf : "";
}

/* Counts `metrics` again from `text`, as a file with the digest of `stated`; `binding` binds. */
static struct recounted count_bound(const char *text, const char *stated, const char *metrics,
                                    const char *binding)
{
    struct recounted out = {0};
    struct recount r;
    cJSON *tree = NULL;
    char *folder = scratch_make();
    char *path = path_join(folder, "items.jsonl");
    const struct digest said = digest_bytes(stated, strlen(stated));
    recount_init(&r);
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, &out.err), 0);
    assert_int_equal(json_parse(metrics, strlen(metrics), &tree, &out.err), 0);
    const struct recount_result of = {
        .said = &said, .metrics = tree, .binding = &binding, .n_binding = binding != NULL ? 1 : 0};
    out.rc = recount_items(path, &of, &r, &out.err);
    out.n_scores = r.n_scores;
    out.n_others = r.n_others;
    out.n_missed = r.n_missed;
    out.n_items = r.n_items;
    out.n_faulty = r.n_faulty;
    out.n_empty = r.n_empty;
    (void)snprintf(out.other, sizeof(out.other), "%s", text_of(&r.other));
    (void)snprintf(out.missed, sizeof(out.missed), "%s", text_of(&r.missed));
    (void)snprintf(out.empty, sizeof(out.empty), "%s", text_of(&r.empty));
    recount_release(&r);
    cJSON_Delete(tree);
    scratch_remove(folder);
    free(path);
    return out;
}

static struct recounted count(const char *text, const char *stated, const char *metrics)
{
    return count_bound(text, stated, metrics, NULL);
}

static void test_same(void **state)
{
    static const struct {
        const char *metrics;
        size_t n_scores, n_others;
        const char *other;
    } cases[] = {
        {"{\"acc\":{\"value\":0.66666666666666663,\"n\":3}}", 1, 0, ""},
        {"{\"acc\":0.66666666666666663}", 1, 0, ""},
        {"{\"acc:a\":{\"value\":0.5,\"n\":2},\"acc:b\":{\"value\":1,\"n\":1}}", 2, 0, ""},
        {"{\"acc:strict\":{\"value\":0.33333333333333331,\"n\":3}}", 1, 0, ""},
        {"{\"perplexity\":{\"value\":20.085536923187668,\"n\":2}}", 1, 0, ""},
        {"{\"word_perplexity\":{\"value\":7.3890560989306504}}", 1, 0, ""},
        {"{\"byte_perplexity\":{\"value\":1.4549914146182013}}", 1, 0, ""},
        {"{\"bits_per_byte\":{\"value\":0.54101064033336127}}", 1, 0, ""},
        {"{\"bits_per_byte:a\":{\"value\":0.54101064033336127,\"n\":2}}", 1, 0, ""},
        /* of which the items say nothing, and what has no value */
        {"{\"core\":{\"value\":0.1},\"acc:stem\":{\"value\":0.2},\"x\":{\"value\":null}}", 0, 2,
         "core"},
        {"{}", 0, 0, ""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].metrics);
        const struct recounted r = count(ITEMS, ITEMS, cases[i].metrics);
        assert_int_equal(r.rc, 0);
        assert_int_equal(r.n_scores, cases[i].n_scores);
        assert_int_equal(r.n_others, cases[i].n_others);
        assert_string_equal(r.other, cases[i].other);
    }
}

static void test_other(void **state)
{
    static const struct {
        const char *metrics, *what, *expected, *found;
    } cases[] = {
        {"{\"acc\":{\"value\":0.75,\"n\":3}}", "acc, counted again", "0.6666666666666666", "0.75"},
        {"{\"acc\":{\"value\":0.6666666,\"n\":3}}", "acc, counted again", "0.6666666666666666",
         "0.6666666"},
        {"{\"acc\":{\"value\":0.66666666666666663,\"n\":5}}", "n of acc", "3", "5"},
        {"{\"acc:b\":{\"value\":0.5}}", "acc:b, counted again", "1", "0.5"},
        {"{\"bits_per_byte\":{\"value\":0.6}}", "bits_per_byte, counted again", "0.541", "0.6"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].metrics);
        const struct recounted r = count(ITEMS, ITEMS, cases[i].metrics);
        assert_int_equal(r.rc, ERR_LOCK);
        assert_non_null(strstr(r.err.msg, cases[i].what));
        assert_int_equal(strncmp(r.err.expected, cases[i].expected, strlen(cases[i].expected)), 0);
        assert_string_equal(r.err.found, cases[i].found);
    }
}

/* A metric on which the verdict rests: whether it was counted, and over which lines. */
static void test_binding(void **state)
{
    static const struct {
        const char *metrics, *binding, *missed, *empty;
        size_t n_empty;
    } cases[] = {
        {"{\"acc\":{\"value\":0.66666666666666663,\"n\":3}}", "acc", "", "acc", 1},
        {"{\"acc:a\":{\"value\":0.5,\"n\":2}}", "acc:a", "", "", 0},
        {"{\"acc:b\":{\"value\":1,\"n\":1}}", "acc:b", "", "acc:b", 1},
        {"{\"perplexity\":{\"value\":20.085536923187668,\"n\":2}}", "perplexity", "", "perplexity",
         2},
        {"{\"core\":{\"value\":0.1},\"acc\":0.66666666666666663}", "core", "core", "", 0},
        {"{\"acc\":0.66666666666666663,\"core\":null}", "core", "", "", 0},
        {"{\"acc\":0.66666666666666663}", "other", "", "", 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].metrics);
        const struct recounted r = count_bound(ITEMS, ITEMS, cases[i].metrics, cases[i].binding);
        assert_int_equal(r.rc, 0);
        assert_string_equal(r.missed, cases[i].missed);
        assert_int_equal(r.n_missed, cases[i].missed[0] != '\0');
        assert_string_equal(r.empty, cases[i].empty);
        assert_int_equal(r.n_empty, cases[i].n_empty);
        assert_int_equal(r.n_items, 5);
        assert_int_equal(r.n_faulty, 1);
    }
    const struct recounted r = count_bound(ITEMS, ITEMS, "{\"acc\":0.66666666666666663}", "acc");
    assert_int_equal(r.rc, ERR_LOCK);
    assert_string_equal(r.err.msg, "n of acc, on which the verdict rests");
    assert_string_equal(r.err.expected, "3");
    assert_string_equal(r.err.found, "nothing");
}

/* Bytes that are not those of the result, an item that counts twice, a file that was cut. */
static void test_refused(void **state)
{
    static const char acc[] = "{\"acc\":{\"value\":1}}";
    static const char one[] = "{\"item\":0,\"acc\":1}\n";
    static const char twice[] = "{\"item\":0,\"acc\":1}\n{\"item\":0,\"acc\":1}\n";
    static const char cut[] = "{\"item\":0,\"acc\":1}";
    (void)state;
    assert_int_equal(count(one, one, acc).rc, 0);
    const struct recounted other = count(one, cut, acc);
    assert_int_equal(other.rc, ERR_CORRUPT);
    assert_non_null(strstr(other.err.msg, "not those that the result is of"));
    assert_non_null(strstr(count(twice, twice, acc).err.msg, "item 0"));
    assert_non_null(strstr(count(cut, cut, acc).err.msg, "cut short"));
    static const char falls[] = "{\"item\":7,\"acc\":1}\n{\"item\":3,\"acc\":1}\n";
    static const char apart[] =
        "{\"item\":7,\"acc\":1}\n{\"item\":3,\"acc\":1}\n{\"item\":7,\"acc\":1}\n";
    assert_int_equal(count(falls, falls, acc).rc, 0);
    assert_non_null(strstr(count(apart, apart, acc).err.msg, "item 7 occurs more than once"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_other),
        cmocka_unit_test(test_binding),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
