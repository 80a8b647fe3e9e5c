/* Regular expressions of filters, against what Python's re gives. */
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/eval/task/pattern.h"

#define STRICT   "#### (\\-?[0-9\\.\\,]+)"
#define FLEXIBLE "(-?[$0-9.,]{2,})|(-?[0-9]+)"

static const struct {
    const char *pattern;
    int select;
    const char *text;
    const char *found; /* NULL: none */
} finds[] = {
    {STRICT, 0, " #### -5.", "-5."},
    {FLEXIBLE, -1, " #### -5.", "-5."},
    {STRICT, 0, " The answer is 7.", NULL},
    {FLEXIBLE, -1, " The answer is 7.", "7."},
    {FLEXIBLE, -1, " It costs $1,234.50.", "$1,234.50."},
    {FLEXIBLE, -1, " a ... b 3", "3"},
    {FLEXIBLE, -1, " 3 and so on...", "..."},
    {STRICT, 0, " #### 72\n#### 73", "72"},
    {STRICT, -1, " #### 72\n#### 73", "73"},
    {STRICT, 2, " #### 72\n#### 73", NULL},
    {STRICT, -3, " #### 72\n#### 73", NULL},
    {FLEXIBLE, -1, "", NULL},
    {FLEXIBLE, -1, "--5", "-5"},
    {"a*", 0, "baac", ""}, /* findall gives '', 'aa', '', '' */
    {"a*", 1, "baac", "aa"},
    {"a*", 2, "baac", ""},
    {"a*", 3, "baac", ""},
    {"a*", 4, "baac", NULL},
    {"a(x)?", 0, "ab", ""}, /* one group: its text, also when it took no part */
    {"(a)(b)?", 0, "ab", "a"},
    {"(x)?(b)", 0, "b", "b"},
    {"\\d+", 0, "\xd9\xa3\xd9\xa4", "\xd9\xa3\xd9\xa4"}, /* Arabic digits */
    {"[^#]+", 0, "\xc2\xa0 a b\t#", "a b"},              /* white space at the ends goes */
    {"b\\Z", 0, "ab", "b"},
    {"b\\Z", 0, "ab\n", NULL},
    {"b$", 0, "ab\n", "b"},
    {"\\\\Z", 0, "\\Z", "\\Z"},
    {".", 0, "\n\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
};

static void test_find(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(finds); i++) {
        CHECK_ROW("%s", finds[i].pattern);
        struct pattern *p = NULL;
        struct strbuf out = STRBUF_INIT;
        struct err err = {0};
        bool found = false;
        assert_int_equal(pattern_compile(finds[i].pattern, &p, &err), 0);
        assert_int_equal(pattern_find(p, finds[i].text, finds[i].select, &out, &found, &err), 0);
        if (found != (finds[i].found != NULL) || (found && strcmp(out.buf, finds[i].found) != 0))
            fail_msg("%s in '%s': '%s'", finds[i].pattern, finds[i].text, found ? out.buf : "-");
        strbuf_release(&out);
        pattern_free(p);
    }
}

static void test_delete(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {",", "1,072,5", "10725"},
        {"\\$", "$1$", "1"},
        {"(?s).*#### ", "a#### b\n#### c", "c"},
        {"\\.$", "1072.", "1072"},
        {"\\.$", "1072.\n", "1072\n"},
        {"\\.$", "10.7", "10.7"},
        {"x*", "axb", "ab"},
        {"\xc3\xa9", "caf\xc3\xa9!", "caf!"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        struct pattern *p = NULL;
        struct strbuf out = STRBUF_INIT;
        struct err err = {0};
        assert_int_equal(pattern_compile(cases[i][0], &p, &err), 0);
        assert_int_equal(pattern_delete(p, cases[i][1], &out, &err), 0);
        assert_string_equal(out.buf, cases[i][2]);
        strbuf_release(&out);
        pattern_free(p);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"(", "[", "a{2,1}", "\\C", "\xff"};
    struct pattern *p = NULL;
    struct err err = {0};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("%s", bad[i]);
        assert_int_equal(pattern_compile(bad[i], &p, &err), ERR_SYNTAX);
    }
    /* an expression that would take for ever says so */
    struct strbuf out = STRBUF_INIT;
    bool found = false;
    assert_int_equal(pattern_compile("(a|aa)+$", &p, &err), 0);
    assert_int_equal(
        pattern_find(p, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", 0, &out, &found, &err),
        ERR_RANGE);
    strbuf_release(&out);
    pattern_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_delete),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
