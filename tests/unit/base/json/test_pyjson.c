/* Python's layout of JSON, byte for byte: expected texts are what CPython 3.11 printed. */
#include <math.h>
#include <string.h>

#include "base/files/digest.h"
#include "base/json/pyjson.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"

static void test_floats(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1.0, "1.0"},
        {-12.0, "-12.0"},
        {100.0, "100.0"},
        {0.1, "0.1"},
        {0.25, "0.25"},
        {-111.1761474609375, "-111.1761474609375"},
        {0.0001, "0.0001"},
        {0.00012, "0.00012"},
        {0.00001, "1e-05"},
        {0.000099999, "9.9999e-05"},
        {1.5e-7, "1.5e-07"},
        {1e15, "1000000000000000.0"},
        {123456789012345680.0, "1.2345678901234568e+17"},
        {9999999999999998.0, "9999999999999998.0"},
        {1e16, "1e+16"},
        {1.5e16, "1.5e+16"},
        {1e22, "1e+22"},
        {1e23, "1e+23"},
        {1e100, "1e+100"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {5.960464477539063e-8, "5.960464477539063e-08"},
        {3.141592653589793, "3.141592653589793"},
        {(double)INFINITY, "inf"},
        {-(double)INFINITY, "-inf"},
        {(double)NAN, "nan"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct strbuf text = STRBUF_INIT;
        pyjson_add_float(&text, cases[i].value);
        assert_string_equal(text.buf, cases[i].text);
        strbuf_release(&text);
    }
}

/* Every call once. */
static void write_all(struct pyjson *w)
{
    struct err err = {0};
    static const char relaid[] = " {\"n\" : [ 1,2.50,1E2 , -0] } ";
    pyjson_open(w, '{');
    pyjson_key(w, "s");
    pyjson_string(w, "é\"\\\x01\x7f\n");
    pyjson_key(w, "none");
    pyjson_string(w, NULL);
    pyjson_key(w, "empty");
    pyjson_open(w, '[');
    pyjson_open(w, '{');
    pyjson_close(w, '}');
    pyjson_open(w, '[');
    pyjson_close(w, ']');
    pyjson_close(w, ']');
    pyjson_key(w, "text");
    assert_int_equal(pyjson_text(w, relaid, strlen(relaid), &err), 0);
    pyjson_key(w, "i");
    pyjson_int(w, -9223372036854775807LL);
    pyjson_key(w, "f");
    pyjson_float(w, 12);
    pyjson_key(w, "nan");
    pyjson_float(w, (double)NAN);
    pyjson_key(w, "inf");
    pyjson_float(w, -(double)INFINITY);
    pyjson_key(w, "b");
    pyjson_bool(w, true);
    pyjson_close(w, '}');
}

static void test_layout(void **state)
{
    (void)state;
    static const char line[] =
        "{\"s\": \"é\\\"\\\\\\u0001\x7f\\n\", \"none\": null, \"empty\": [{}, []], \"text\": "
        "{\"n\": "
        "[1, 2.5, 100.0, 0]}, \"i\": -9223372036854775807, \"f\": 12.0, \"nan\": NaN, \"inf\": "
        "-Infinity, \"b\": true}";
    static const char indented[] =
        "{\n  \"s\": \"é\\\"\\\\\\u0001\x7f\\n\",\n  \"none\": null,\n  \"empty\": [\n    {},\n    "
        "[]\n  ],\n  \"text\": {\n    \"n\": [\n      1,\n      2.5,\n      100.0,\n      0\n    "
        "]\n  },\n  \"i\": -9223372036854775807,\n  \"f\": 12.0,\n  \"nan\": NaN,\n  \"inf\": "
        "-Infinity,\n  \"b\": true\n}";
    for (int indent = 0; indent <= 2; indent += 2) {
        struct strbuf out = STRBUF_INIT;
        struct pyjson w;
        pyjson_init(&w, &out, indent);
        write_all(&w);
        assert_string_equal(out.buf, indent == 0 ? line : indented);
        strbuf_release(&out);
    }
}

static void test_texts(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"\"\\u00e9\\u2028\\ud83d\\ude00\\/\\b\\f\\n\\r\\t\\u001f\\u007f\\u0800\"",
         "\"é\u2028\U0001F600/\\b\\f\\n\\r\\t\\u001f\x7f\u0800\""},
        {"123456789012345678901234567890", "123456789012345678901234567890"},
        {"[-0,-0.0,0e0]", "[0, -0.0, 0.0]"},
        {"[]", "[]"},
        {" { } ", "{}"},
        {"[[],[{}]]", "[[], [{}]]"},
        {"{\"a\":{\"b\":{\"c\":null}},\"d\":\"\"}", "{\"a\": {\"b\": {\"c\": null}}, \"d\": \"\"}"},
        {"true", "true"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        struct strbuf out = STRBUF_INIT;
        struct err err = {0};
        struct pyjson w;
        pyjson_init(&w, &out, 0);
        assert_int_equal(pyjson_text(&w, cases[i][0], strlen(cases[i][0]), &err), 0);
        assert_string_equal(out.buf, cases[i][1]);
        strbuf_release(&out);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {"", "[1,", "{\"a\":}", "[NaN]", "\"\\ud800\"", "1 2"};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i]);
        struct strbuf out = STRBUF_INIT;
        struct err err = {0};
        struct pyjson w;
        pyjson_init(&w, &out, 2);
        assert_int_equal(pyjson_text(&w, cases[i], strlen(cases[i]), &err), ERR_SYNTAX);
        assert_int_equal(out.len, 0);
    }
}

/* lm-evaluation-harness's doc_hash of this document, and its target_hash of 1. */
static void test_hash(void **state)
{
    (void)state;
    static const char doc[] = "{\"q\":\"\\u00e9\",\"choices\":[\"a\",\"b\"],\"answer\":1}";
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    struct pyjson w;
    char hex[DIGEST_HEX_SIZE];
    pyjson_init(&w, &out, 2);
    assert_int_equal(pyjson_text(&w, doc, strlen(doc), &err), 0);
    const struct digest d = digest_bytes(out.buf, out.len);
    digest_hex(&d, hex);
    assert_string_equal(hex, "95395bbc21e6d6c62668472b4f76376760e80a8e90d2adc8c5830168245da758");
    strbuf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),  cmocka_unit_test(test_layout), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
