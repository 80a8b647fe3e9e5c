#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/xalloc.h"
#include "worker/eval/csv.h"
#include "worker/eval/pytext.h"

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
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct strbuf out = STRBUF_INIT;
        struct err err = {0};
        assert_int_equal(pytext_capitalize(cases[i][0], &out, &err), 0);
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
        cmocka_unit_test(test_strip),      cmocka_unit_test(test_length),
        cmocka_unit_test(test_capitalize), cmocka_unit_test(test_clean),
        cmocka_unit_test(test_csv),        cmocka_unit_test(test_csv_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
