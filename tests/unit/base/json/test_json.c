/* Strict reading: what is accepted, what is refused and where. */
#include <math.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"

static void test_accepted(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "0",
        "-0",
        "1e5",
        "1E+5",
        "-1.5e-5",
        "true",
        "null",
        "\"\"",
        "[]",
        "{}",
        " [1 ] ",
        "[1,2,[3]]",
        "{\"a\":{\"a\":1}}",
        "\"\\ud83d\\ude00\"",
        "\"\xF0\x9F\x98\x80\"",
        "\"\\/\"",
        "1e-400",
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = {0};
        cJSON *v = NULL;
        if (json_parse(cases[i], strlen(cases[i]), &v, &err) != 0) {
            fail_msg("%s: %s", cases[i], err.msg);
        }
        cJSON_Delete(v);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
        const char *said;
    } cases[] = {
        {"", ERR_SYNTAX, "line 1, column 1: text ends"},
        {"{\"a\":1,}", ERR_SYNTAX, "line 1, column 8: expected a key"},
        {"[1,\n2,]", ERR_SYNTAX, "line 2, column 3:"},
        {"[1] 2", ERR_SYNTAX, "text after the JSON value"},
        {"{a:1}", ERR_SYNTAX, "expected a key in quotes"},
        {"{\"a\" 1}", ERR_SYNTAX, "expected ':'"},
        {"{\"a\":1,\"b\":2,\"a\":3}", ERR_SYNTAX, "key \"a\" is duplicated"},
        {"[{\"x\":[{\"b\":1,\"b\":1}]}]", ERR_SYNTAX, "key \"b\" is duplicated"},
        {"01", ERR_SYNTAX, "malformed number"},
        {"+1", ERR_SYNTAX, "malformed number"},
        {"1.", ERR_SYNTAX, "malformed number"},
        {".5", ERR_SYNTAX, "malformed number"},
        {"1e", ERR_SYNTAX, "malformed number"},
        {"0x10", ERR_SYNTAX, "text after"},
        {"NaN", ERR_SYNTAX, "malformed number"},
        {"-Infinity", ERR_SYNTAX, "malformed number"},
        {"1e400", ERR_RANGE, "outside the range of a double"},
        {"'a'", ERR_SYNTAX, "malformed number"},
        {"\"a", ERR_SYNTAX, "string without an end"},
        {"\"a\nb\"", ERR_SYNTAX, "control character"},
        {"\"\\x\"", ERR_SYNTAX, "unknown escape"},
        {"\"\\u12g4\"", ERR_SYNTAX, "malformed \\u escape"},
        {"\"\\u0000\"", ERR_SYNTAX, "\\u0000"},
        {"\"\\ud800\"", ERR_SYNTAX, "lone surrogate"},
        {"\"\\udc00\"", ERR_SYNTAX, "lone surrogate"},
        {"\"\\ud800\\u0041\"", ERR_SYNTAX, "lone surrogate"},
        {"\"\xC0\x80\"", ERR_SYNTAX, "not UTF-8"},
        {"\"\xED\xA0\x80\"", ERR_SYNTAX, "not UTF-8"},
        {"\"\xF4\x90\x80\x80\"", ERR_SYNTAX, "not UTF-8"},
        {"// comment\n1", ERR_SYNTAX, "line 1, column 1"},
        {"\xEF\xBB\xBF"
         "1",
         ERR_SYNTAX, "line 1, column 1"},
        {"tru", ERR_SYNTAX, "expected a JSON value"},
        {"nullx", ERR_SYNTAX, "text after"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct err err = {0};
        cJSON *v = NULL;
        int rc = json_parse(cases[i].text, strlen(cases[i].text), &v, &err);
        if (rc != cases[i].code || strstr(err.msg, cases[i].said) == NULL) {
            fail_msg("%s: %d \"%s\"", cases[i].text, rc, err.msg);
        }
        assert_null(v);
    }
}

static void test_length_counts_and_not_a_nul(void **state)
{
    (void)state;
    struct err err = {0};
    cJSON *v = NULL;
    assert_int_equal(json_parse("[1]garbage", 3, &v, &err), 0);
    cJSON_Delete(v);
    assert_int_equal(json_parse("1\0", 2, &v, &err), ERR_SYNTAX);
    assert_int_equal(json_parse("\"a\0b\"", 5, &v, &err), ERR_SYNTAX);
}

/* What a worker wrote: values that are not finite are null, the same letters in a string or a name
 * are not. */
static void test_lax(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *canonical; /* NULL: refused */
    } cases[] = {
        {"{\"value\":NaN}", "{\"value\":null}"},
        {"[-Infinity, Infinity,NaN , 1]", "[null,null,null,1]"},
        {"NaN", "null"},
        {"{\"NaN\":\"a NaN, \\\" NaN,\"}", "{\"NaN\":\"a NaN, \\\" NaN,\"}"},
        {"[NaNs]", NULL},
        {"[nan]", NULL},
        {"[+Infinity]", NULL},
        {"\"a\\", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct err err = {0};
        struct strbuf text = STRBUF_INIT;
        cJSON *v = NULL;
        int rc = json_parse_lax(cases[i].text, strlen(cases[i].text), &v, &err);
        assert_int_equal(rc == 0, cases[i].canonical != NULL);
        assert_int_equal(rc == 0, err.msg[0] == '\0');
        if (rc == 0) {
            assert_int_equal(json_canonical(v, &text, &err), 0);
            assert_string_equal(text.buf, cases[i].canonical);
        }
        strbuf_release(&text);
        cJSON_Delete(v);
    }
}

static void test_depth(void **state)
{
    (void)state;
    char text[200];
    struct err err = {0};
    cJSON *v = NULL;
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    assert_int_equal(json_parse(text, 130, &v, &err), 0);
    cJSON_Delete(v);
    memset(text, '[', 66);
    memset(text + 66, ']', 66);
    assert_int_equal(json_parse(text, 132, &v, &err), ERR_RANGE);
}

static void test_members(void **state)
{
    (void)state;
    static const char text[] =
        "{\"s\":\"x\",\"n\":1.5,\"i\":7,\"b\":true,\"o\":{},\"a\":[],\"z\":null}";
    struct err err = {0};
    cJSON *v = NULL;
    const char *s = "old";
    double n = 0;
    int64_t i = 5;
    bool b = false;
    const cJSON *part = NULL;
    assert_int_equal(json_parse(text, sizeof(text) - 1, &v, &err), 0);
    assert_int_equal(json_get_string(v, "s", &s, &err), 0);
    assert_string_equal(s, "x");
    assert_int_equal(json_get_string(v, "S", &s, &err), ERR_SYNTAX);
    assert_string_equal(err.msg, "\"S\" is missing");
    assert_int_equal(json_get_string(v, "n", &s, &err), ERR_SYNTAX);
    assert_int_equal(json_opt_string(v, "none", &s, &err), 0);
    assert_int_equal(json_opt_string(v, "z", &s, &err), 0);
    assert_string_equal(s, "x");
    assert_int_equal(json_get_number(v, "n", &n, &err), 0);
    assert_true(n > 1.4);
    assert_int_equal(json_get_int(v, "i", 0, 7, &i, &err), 0);
    assert_int_equal(i, 7);
    assert_int_equal(json_get_int(v, "i", 0, 6, &i, &err), ERR_RANGE);
    assert_int_equal(json_get_int(v, "n", 0, 6, &i, &err), ERR_SYNTAX);
    assert_int_equal(json_opt_bool(v, "b", &b, &err), 0);
    assert_true(b);
    assert_int_equal(json_opt_bool(v, "s", &b, &err), ERR_SYNTAX);
    assert_int_equal(json_get_object(v, "o", &part, &err), 0);
    assert_int_equal(json_get_object(v, "a", &part, &err), ERR_SYNTAX);
    assert_int_equal(json_get_array(v, "a", &part, &err), 0);
    cJSON_Delete(v);
}

/* What cannot be written is bounded or null: no value ends a process. */
static void test_numbers_out_of_bounds(void **state)
{
    (void)state;
    char text[JSON_NUMBER_MAX];
    struct strbuf line = STRBUF_INIT;
    struct err err = {0};
    cJSON *o = json_object();
    json_put_int(o, "a", INT64_MAX);
    json_put_int(o, "b", INT64_MIN);
    json_put_int(o, "c", JSON_INT_MAX + 1);
    json_put_number(o, "d", (double)INFINITY);
    json_put_number(o, "e", 1e300);
    assert_int_equal(json_line(o, &line, &err), 0);
    assert_string_equal(line.buf, "{\"a\":9007199254740991,\"b\":-9007199254740991,"
                                  "\"c\":9007199254740991,\"d\":null,\"e\":1e+300}");
    json_number_text((double)NAN, text);
    assert_string_equal(text, "null");
    json_number_text(-(double)INFINITY, text);
    assert_string_equal(text, "null");
    strbuf_release(&line);
    cJSON_Delete(o);
}

/* Exactly: two whole numbers beyond 2^52 that differ by 1 are two. */
static void test_equal(void **state)
{
    static const struct {
        const char *a;
        const char *b;
        bool same;
    } cases[] = {
        {"4503599627370497", "4503599627370498", false},
        {"9007199254740991", "9007199254740990", false},
        {"0.1", "0.10000000000000002", false},
        {"1", "1.0", true},
        {"1", "\"1\"", false},
        {"0", "false", false},
        {"null", "null", true},
        {"true", "false", false},
        {"[1,2]", "[1,2]", true},
        {"[1,2]", "[2,1]", false},
        {"[1]", "[1,2]", false},
        {"[1,2]", "[1]", false},
        {"{\"a\":1,\"b\":[2]}", "{\"b\":[2],\"a\":1}", true},
        {"{\"a\":1,\"b\":2,\"c\":3}", "{\"c\":3,\"a\":1,\"b\":2}", true},
        {"{\"a\":1}", "{\"b\":2,\"a\":1}", false},
        {"{\"a\":1}", "{\"a\":1,\"b\":2}", false},
        {"{\"a\":1,\"b\":2}", "{\"a\":1}", false},
        {"{\"a\":1}", "{\"A\":1}", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].a);
        cJSON *a = NULL;
        cJSON *b = NULL;
        struct err err;
        assert_int_equal(json_parse(cases[i].a, strlen(cases[i].a), &a, &err), 0);
        assert_int_equal(json_parse(cases[i].b, strlen(cases[i].b), &b, &err), 0);
        assert_int_equal(json_equal(a, b), cases[i].same);
        assert_int_equal(json_equal(b, a), cases[i].same);
        assert_false(json_equal(a, NULL) || json_equal(NULL, b));
        cJSON_Delete(a);
        cJSON_Delete(b);
    }
    assert_false(json_equal(NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_out_of_bounds),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_length_counts_and_not_a_nul),
        cmocka_unit_test(test_lax),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
