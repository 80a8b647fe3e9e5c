/* The demo corpus: the same bytes for ever, nothing asked that the corpus tells, golds evenly
 * spread. */
#include "base/files/digest.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/data/demo.h"

static void test_golden_bytes(void **state)
{
    (void)state;
    static const char *const expected[DEMO_FILE_NR] = {
        [DEMO_CORPUS] = "8bb049a822fc056a8aafeae258c817b1b2b090d16545074d3c8cc5c178478f71",
        [DEMO_GRAMMAR] = "e48f5d92d61cdc961a596380a5602a188303d21def7f5062869d2fb1a0cf58e3",
        [DEMO_RECALL] = "15b7bddc06bf728f931603c3ef8fdc6913e4c22a1123be68f038d03eee010e5a",
        [DEMO_GIVING] = "054f93ef8e8e0d6da02330b08505ca93972e82d8e4137d2905a30874d6bc13e9",
        [DEMO_SUMS] = "937f1aba227788988e15fe33199a01662041810e554dcccea0fb27c271552ef7",
    };
    struct demo_file files[DEMO_FILE_NR];
    demo_generate(1, DEMO_SIZE_DEFAULT, files);
    for (int f = 0; f < DEMO_FILE_NR; f++) {
        char hex[DIGEST_HEX_SIZE];
        struct digest d = digest_bytes(files[f].text.buf, files[f].text.len);
        digest_hex(&d, hex);
        assert_string_equal(hex, expected[f]);
    }
    demo_release(files);
}

static void test_seed_and_size(void **state)
{
    (void)state;
    struct demo_file a[DEMO_FILE_NR];
    struct demo_file b[DEMO_FILE_NR];
    struct demo_file longer[DEMO_FILE_NR];
    demo_generate(7, DEMO_SIZE_MIN, a);
    demo_generate(8, DEMO_SIZE_MIN, b);
    demo_generate(7, 2 * DEMO_SIZE_MIN, longer);
    for (int f = 0; f < DEMO_FILE_NR; f++) {
        assert_string_not_equal(a[f].text.buf, b[f].text.buf);
        if (f == DEMO_CORPUS)
            assert_memory_equal(a[f].text.buf, longer[f].text.buf, a[f].text.len);
        else
            assert_string_equal(a[f].text.buf, longer[f].text.buf);
    }
    assert_true(longer[DEMO_CORPUS].text.len >= 2 * (size_t)DEMO_SIZE_MIN);
    demo_release(a);
    demo_release(b);
    demo_release(longer);
}

/* The sentence that the right answer completes: query + " " + choice, or context + " " +
 * continuation. */
static void right_sentence(const cJSON *item, struct strbuf *out, int *gold)
{
    struct err err = {0};
    const char *left = NULL;
    const char *right = NULL;
    const cJSON *list = NULL;
    int64_t at = 0;
    const bool schema = json_member(item, "continuation") != NULL;
    assert_int_equal(json_get_array(item, schema ? "context_options" : "choices", &list, &err), 0);
    assert_int_equal(json_get_int(item, "gold", 0, cJSON_GetArraySize(list) - 1, &at, &err), 0);
    const char *chosen = cJSON_GetArrayItem(list, (int)at)->valuestring;
    assert_int_equal(
        json_get_string(item, schema ? "continuation" : "query", schema ? &right : &left, &err), 0);
    strbuf_clear(out);
    strbuf_addf(out, "%s %s", schema ? chosen : left, schema ? right : chosen);
    *gold = (int)at;
}

/* Whether the sentence stands in the corpus with nothing but a sentence's or document's edge before
 * it. */
static bool tells(const char *corpus, const char *sentence)
{
    for (const char *at = corpus; (at = strstr(at, sentence)) != NULL; at++)
        if (at == corpus || at[-1] == '\n' || (at[-1] == ' ' && at[-2] == '.'))
            return true;
    return false;
}

static void check_items(const struct demo_file *file, const char *corpus)
{
    unsigned counts[4] = {0};
    unsigned n = 0;
    int n_choices = 0;
    struct strbuf sentence = STRBUF_INIT;
    for (const char *at = file->text.buf; *at != '\0'; n++) {
        const char *end = strchr(at, '\n');
        assert_non_null(end);
        struct err err = {0};
        cJSON *item = NULL;
        assert_int_equal(json_parse(at, (size_t)(end - at), &item, &err), 0);
        int gold = 0;
        right_sentence(item, &sentence, &gold);
        assert_false(tells(corpus, sentence.buf));
        counts[gold]++;
        n_choices = json_member(item, "continuation") != NULL ? 2 : 4;
        cJSON_Delete(item);
        char *line = xstrndup(at, (size_t)(end - at));
        assert_null(strstr(end, line)); /* no item comes twice */
        free(line);
        at = end + 1;
    }
    assert_int_equal(n, DEMO_ITEMS);
    for (int i = 0; i < n_choices; i++)
        assert_int_equal(counts[i], DEMO_ITEMS / n_choices);
    strbuf_release(&sentence);
}

static void test_items(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct demo_file files[DEMO_FILE_NR];
        demo_generate(seed, DEMO_SIZE_DEFAULT, files);
        for (int f = DEMO_CORPUS + 1; f < DEMO_FILE_NR; f++)
            check_items(&files[f], files[DEMO_CORPUS].text.buf);
        demo_release(files);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_bytes),
        cmocka_unit_test(test_seed_and_size),
        cmocka_unit_test(test_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
