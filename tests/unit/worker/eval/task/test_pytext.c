#include "base/files/digest.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/eval/items/csv.h"
#include "worker/eval/task/pytext.h"

static void test_strip(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t left, right;
    } cases[] = {
        {"", 0, 0},
        {"a b", 0, 3},
        {" \t\n a\v\f", 4, 5},
        {"\xc2\xa0x\xe3\x80\x80", 2, 3}, /* no-break space, ideographic space */
        {"\x1cx\x1f", 1, 2},             /* Python counts the separators */
        {"x\xe2\x80\x8b", 0, 4},         /* zero width space is none */
        {"   ", 3, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        assert_int_equal(pytext_lstrip(cases[i].text, strlen(cases[i].text)), cases[i].left);
        assert_int_equal(pytext_rstrip(cases[i].text, strlen(cases[i].text)), cases[i].right);
    }
}

static void test_length(void **state)
{
    (void)state;
    assert_int_equal(pytext_length("", 0), 0);
    assert_int_equal(pytext_length("na\xc3\xafve", 6), 5);
    assert_int_equal(pytext_length("\xf0\x9f\x90\xb8", 4), 1);
}

static void test_capitalize(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"HE Said iPhone", "He said iphone"},
        {"\xc3\xa9t\xc3\x89", "\xc3\x89t\xc3\xa9"},
        {"1A", "1a"},
        {"\xc3\x9f"
         "A",
         "Ssa"},                                  /* sharp s */
        {"\xef\xac\x81x", "Fix"},                 /* ligature fi */
        {"\xc4\xb0S", "\xc4\xb0s"},               /* dotted I at the start stays */
        {"x\xc4\xb0", "Xi\xcc\x87"},              /* and becomes two elsewhere */
        {"\xc7\x86", "\xc7\x85"},                 /* title case is not upper case */
        {"\xce\x91\xce\xa3", "\xce\x91\xcf\x82"}, /* final sigma */
        {"\xce\x91\xce\xa3.\xce\x92", "\xce\x91\xcf\x83.\xce\xb2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        struct strbuf out = STRBUF_INIT;
        pytext_capitalize(cases[i][0], &out);
        assert_string_equal(out.buf, cases[i][1]);
        strbuf_release(&out);
    }
}

static size_t put_utf8(char *s, uint32_t cp)
{
    size_t n = 0;
    if (cp < 0x80) {
        s[n++] = (char)cp;
    } else if (cp < 0x800) {
        s[n++] = (char)(0xc0 | cp >> 6);
    } else if (cp < 0x10000) {
        s[n++] = (char)(0xe0 | cp >> 12);
        s[n++] = (char)(0x80 | (cp >> 6 & 0x3f));
    } else {
        s[n++] = (char)(0xf0 | cp >> 18);
        s[n++] = (char)(0x80 | (cp >> 12 & 0x3f));
        s[n++] = (char)(0x80 | (cp >> 6 & 0x3f));
    }
    if (cp >= 0x80)
        s[n++] = (char)(0x80 | (cp & 0x3f));
    s[n] = '\0';
    return n;
}

/* Every character alone, behind another, before a capital sigma and behind one: the digest of what
 * Python 3.11 makes of them, a line each. */
static void test_every_character(void **state)
{
    (void)state;
    struct digest_stream stream;
    struct strbuf text = STRBUF_INIT;
    struct strbuf out = STRBUF_INIT;
    char hex[DIGEST_HEX_SIZE];
    digest_start(&stream);
    for (uint32_t cp = 1; cp < 0x110000; cp++) {
        static const char *const around[][2] = {
            {"", ""}, {"x", ""}, {"", "\xce\xa3"}, {"a\xce\xa3", ""}};
        char character[5];
        if (cp >= 0xd800 && cp <= 0xdfff)
            continue;
        put_utf8(character, cp);
        strbuf_clear(&out);
        for (size_t i = 0; i < ARRAY_LEN(around); i++) {
            strbuf_clear(&text);
            strbuf_addf(&text, "%s%s%s", around[i][0], character, around[i][1]);
            pytext_capitalize(text.buf, &out);
            strbuf_addc(&out, '\n');
        }
        digest_add(&stream, out.buf, out.len);
    }
    const struct digest found = digest_finish(&stream);
    digest_hex(&found, hex);
    assert_string_equal(hex, "772325c74fd1f55282c9b8176f434121622898df082d90b07a81dbc7d82ad899");
    strbuf_release(&text);
    strbuf_release(&out);
}

static void test_lower_first(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"The Toilet", "the Toilet"},
        {"\xc4\xb0X", "i\xcc\x87X"},
        {"\xce\xa3\xce\x91", "\xcf\x83\xce\x91"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        struct strbuf out = STRBUF_INIT;
        pytext_lower_first(cases[i][0], &out);
        assert_string_equal(out.buf, cases[i][1]);
        strbuf_release(&out);
    }
}

static void test_clean(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"Personal Care: [header] How to shave [title] Wash. [step] Use water. ",
         "Personal Care: How to shave. Wash. Use water."},
        {"[step] Do it.  Then   stop.", " Do it. Then  stop."},
        {"a [open", "a [open"},
        {"a [x\ny] b", "a [x\ny] b"}, /* the dot does not match a line feed */
        {"a [[x] y] b", "a y] b"},
        {"a [title] [title]", "a. . "},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        struct strbuf out = STRBUF_INIT;
        pytext_clean_hellaswag(cases[i][0], &out);
        assert_string_equal(out.buf, cases[i][1]);
        strbuf_release(&out);
    }
}

static void test_csv(void **state)
{
    (void)state;
    const char *text = "a,\"b,\"\"c\"\"\",\r\n\n\"two\nlines\",,3";
    static const char *const expected[2][3] = {{"a", "b,\"c\"", ""}, {"two\nlines", "", "3"}};
    static const unsigned lines[2] = {1, 3};
    struct arena arena;
    struct csv_reader reader;
    struct csv_record record;
    struct err err = {0};
    bool got = false;
    arena_init(&arena);
    assert_int_equal(csv_start(&reader, text, strlen(text), &err), 0);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(csv_next(&reader, &arena, &record, &got, &err), 0);
        assert_true(got);
        assert_int_equal(reader.line, lines[r]);
        assert_int_equal(record.n, 3);
        for (int f = 0; f < 3; f++)
            assert_string_equal(record.fields[f], expected[r][f]);
    }
    assert_int_equal(csv_next(&reader, &arena, &record, &got, &err), 0);
    assert_false(got);
    arena_release(&arena);
}

static void test_csv_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
    } cases[] = {{"a,\"b", 4}, {"a\n\"b\"c", 6}, {"\xff", 1}, {"a\0b", 3}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct arena arena;
        struct csv_reader reader;
        struct csv_record record;
        struct err err = {0};
        bool got = true;
        arena_init(&arena);
        int rc = csv_start(&reader, cases[i].text, cases[i].len, &err);
        while (rc == 0 && got)
            rc = csv_next(&reader, &arena, &record, &got, &err);
        assert_int_equal(rc, ERR_SYNTAX);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strip),       cmocka_unit_test(test_length),
        cmocka_unit_test(test_capitalize),  cmocka_unit_test(test_every_character),
        cmocka_unit_test(test_lower_first), cmocka_unit_test(test_clean),
        cmocka_unit_test(test_csv),         cmocka_unit_test(test_csv_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
