/* RFC 8785: its own examples, numbers as ECMAScript writes them, keys by UTF-16 code units. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_arena.h"
#include "base/rng.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"

static void test_numbers(void **state)
{
    (void)state;
    /* RFC 8785, appendix B, and the edges around them */
    static const struct {
        uint64_t bits;
        const char *text;
    } cases[] = {
        {0x0000000000000000, "0"},
        {0x8000000000000000, "0"},
        {0x0000000000000001, "5e-324"},
        {0x8000000000000001, "-5e-324"},
        {0x7fefffffffffffff, "1.7976931348623157e+308"},
        {0xffefffffffffffff, "-1.7976931348623157e+308"},
        {0x4340000000000000, "9007199254740992"},
        {0xc340000000000000, "-9007199254740992"},
        {0x4430000000000000, "295147905179352830000"},
        {0x44b52d02c7e14af5, "9.999999999999997e+22"},
        {0x44b52d02c7e14af6, "1e+23"},
        {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
        {0x444b1ae4d6e2ef4e, "999999999999999700000"},
        {0x444b1ae4d6e2ef4f, "999999999999999900000"},
        {0x444b1ae4d6e2ef50, "1e+21"},
        {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
        {0x3eb0c6f7a0b5ed8d, "0.000001"},
        {0x41b3de4355555553, "333333333.3333332"},
        {0x41b3de4355555554, "333333333.33333325"},
        {0x41b3de4355555555, "333333333.3333333"},
        {0x41b3de4355555556, "333333333.3333334"},
        {0x41b3de4355555557, "333333333.33333343"},
        {0xbecbf647612f3696, "-0.0000033333333333333333"},
        {0x43143ff3c1cb0959, "1424953923781206.2"},
        {0x3e70000000000000, "5.960464477539063e-8"}, /* 2^-24: not ...0625 */
        {0x3f50624dd2f1a9fc, "0.001"},
        {0x3fd3333333333333, "0.3"},
        {0x3fd3333333333334, "0.30000000000000004"},     /* 17 digits */
        {0x3feffffffffffffe, "0.9999999999999998"},      /* 16 */
        {0x0010000000000000, "2.2250738585072014e-308"}, /* the smallest normal one */
        {0x000fffffffffffff, "2.225073858507201e-308"},
        {0x0000000000000002, "1e-323"},
        {0x42d6bcc41e900000, "100000000000000"},
        {0x430c6bf526340000, "1000000000000000"},
        {0x4341c37937e08000, "10000000000000000"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        double v;
        char text[JSON_NUMBER_MAX];
        memcpy(&v, &cases[i].bits, sizeof(v));
        json_number_text(v, text);
        assert_string_equal(text, cases[i].text);
    }
}

/* The significant digits of a number's text, and how many there are. */
static int digits_of(const char *text, char digits[40])
{
    int n = 0;
    for (; *text != '\0' && *text != 'e' && n < 39; text++) {
        if (*text >= (n == 0 ? '1' : '0') && *text <= '9') {
            digits[n++] = *text;
        }
    }
    while (n > 0 && digits[n - 1] == '0') {
        n--;
    }
    digits[n] = '\0';
    return n;
}

/* What is written reads back; one digit less does not, and as many digits are those nearest to the
 * number wherever these read back as well. */
static void check_shortest(double v)
{
    char text[JSON_NUMBER_MAX];
    char ours[40];
    char nearest[40];
    char other[40];
    json_number_text(v, text);
    assert_true(strtod(text, NULL) == v);
    assert_true(json_number_read(text, strlen(text)) == v);
    const int n = digits_of(text, ours);
    if (n > 1) {
        (void)snprintf(other, sizeof(other), "%.*e", n - 2, v);
        assert_false(strtod(other, NULL) == v);
    }
    if (n > 0) {
        (void)snprintf(other, sizeof(other), "%.*e", n - 1, v);
        (void)digits_of(other, nearest);
        assert_true(strcmp(ours, nearest) == 0 || strtod(other, NULL) != v);
    }
}

/* Numbers of any size, powers of two and such as measures have. PREREGD_LONG takes a hundred times
 * as many. */
static void test_shortest(void **state)
{
    (void)state;
    const int n = getenv("PREREGD_LONG") != NULL ? 4000000 : 40000;
    struct rng rng;
    rng_seed(&rng, 7);
    for (int i = 0; i < n; i++) {
        const uint64_t bits = rng_next(&rng);
        double v;
        memcpy(&v, &bits, sizeof(v));
        if (i % 4 == 1) {
            v = ldexp(1, (int)(bits % 2098) - 1074);
        } else if (i % 2 == 0) {
            v = (double)(bits % 100000) / (double)(1 + (bits >> 32) % 1000) - 20;
        }
        if (isfinite(v)) {
            check_shortest(v);
        }
    }
}

static void test_read(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "0",
        "-0",
        "1",
        "-1.5",
        "0.1",
        "0.30000000000000004",
        "123456789012345678",
        "9007199254740991",
        "9007199254740993",
        "900719925474099.3",
        "0.0000000000000000000001",
        "0.00000000000000000000001",
        "0.12345678901234567890123",
        "1e23",
        "1E-5",
        "4.9e-324",
        "2.2250738585072011e-308",
        "2e-324",
        "3e-324",
        "-1e-400",
        "179769313486231580000000000000000000000000000000e261",
        "9007199254740993.00000000000000000000000000000000000000000001",
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i]);
        const double v = json_number_read(cases[i], strlen(cases[i]));
        const double want = strtod(cases[i], NULL);
        assert_memory_equal(&v, &want, sizeof(v));
    }
    assert_true(json_number_read("12.5]", 4) == 12.5);
    const double beyond = json_number_read("1e400", 5);
    assert_true(isinf(beyond));
}

static void test_canonical_texts(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        /* RFC 8785, 3.2.2 */
        {"{\"numbers\":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"
         "\"string\":\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\","
         "\"literals\":[null,true,false]}",
         "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],"
         "\"string\":\"\xE2\x82\xAC$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}"},
        /* RFC 8785, 3.2.3: sorted by UTF-16 code units */
        {"{\"\\u20ac\":\"Euro Sign\",\"\\r\":\"Carriage Return\",\"\\ufb33\":\"Hebrew Letter "
         "Dalet\","
         "\"1\":\"One\",\"\\ud83d\\ude00\":\"Emoji\",\"\\u0080\":\"Control\",\"\\u00f6\":\"o\"}",
         "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xC2\x80\":\"Control\",\"\xC3\xB6\":\"o\","
         "\"\xE2\x82\xAC\":\"Euro Sign\",\"\xF0\x9F\x98\x80\":\"Emoji\","
         "\"\xEF\xAC\xB3\":\"Hebrew Letter Dalet\"}"},
        {" [ ] ", "[]"},
        {"{\"b\":{},\"a\":[{\"d\":1,\"c\":2}]}", "{\"a\":[{\"c\":2,\"d\":1}],\"b\":{}}"},
        {"{\"aa\":1,\"a\":2,\"\":3}", "{\"\":3,\"a\":2,\"aa\":1}"},
        {"\"\\b\\f\\t\\u001f\\u007f\"", "\"\\b\\f\\t\\u001f\x7F\""},
        {"-0.0", "0"},
        {"1.0", "1"},
        {"9007199254740991", "9007199254740991"},
        {"[9007199254740992,-9007199254740994,1e20,1e21]",
         "[9007199254740992,-9007199254740994,100000000000000000000,1e+21]"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        struct strbuf out = STRBUF_INIT;
        struct err err = {0};
        cJSON *v = NULL;
        assert_int_equal(json_parse(cases[i][0], strlen(cases[i][0]), &v, &err), 0);
        assert_int_equal(json_canonical(v, &out, &err), 0);
        assert_string_equal(out.buf, cases[i][1]);
        strbuf_release(&out);
        cJSON_Delete(v);
    }
}

static void test_refused(void **state)
{
    (void)state;
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    cJSON *bad = cJSON_CreateString("\xC3");
    cJSON *infinite = cJSON_CreateNumber(1e308 * 10);
    assert_int_equal(json_canonical(bad, &out, &err), ERR_SYNTAX);
    assert_int_equal(json_canonical(infinite, &out, &err), ERR_RANGE);
    cJSON_Delete(bad);
    cJSON_Delete(infinite);
    strbuf_release(&out);
}

static void test_other_styles(void **state)
{
    (void)state;
    static const char text[] = "{\"b\":[1,{}],\"a\":{\"x\":0.5}}";
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    cJSON *v = NULL;
    assert_int_equal(json_parse(text, sizeof(text) - 1, &v, &err), 0);
    assert_int_equal(json_line(v, &out, &err), 0);
    assert_string_equal(out.buf, text);
    strbuf_clear(&out);
    assert_int_equal(json_pretty(v, &out, &err), 0);
    assert_string_equal(out.buf,
                        "{\n  \"b\": [\n    1,\n    {}\n  ],\n  \"a\": {\n    \"x\": 0.5\n  }\n}");
    strbuf_release(&out);
    cJSON_Delete(v);
}

static cJSON *square(const void *ctx, size_t i, struct arena *arena)
{
    const size_t *offset = ctx;
    cJSON *o = json_arena_new(arena, cJSON_Object);
    json_arena_add(o, "i", json_arena_number(arena, (double)i));
    json_arena_add(o, "square", json_arena_number(arena, (double)(i * i + *offset)));
    return o;
}

/* What is made while it is written is written as if it had been in the tree. */
/* What was a member of an object, and is an element now, has no key. */
static void test_element_with_a_key(void **state)
{
    static int (*const writers[])(const cJSON *v, struct strbuf *out,
                                  struct err *err) = {json_canonical, json_line};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(writers); i++) {
        CHECK_ROW("writers[%zu]", i);
        struct strbuf out = STRBUF_INIT;
        struct err err;
        cJSON *list = json_array();
        cJSON *object = json_object();
        json_put_int(object, "one", 1);
        json_put_int(object, "two", 2);
        json_push(list, cJSON_DetachItemFromObjectCaseSensitive(object, "one"));
        json_push(list, json_copy(json_member(object, "two")));
        assert_int_equal(writers[i](list, &out, &err), 0);
        assert_string_equal(out.buf, "[1,2]");
        cJSON_Delete(object);
        cJSON_Delete(list);
        strbuf_release(&out);
    }
}

static void test_lists(void **state)
{
    static const size_t lengths[] = {0, 1, 3};
    const size_t offset = 7;
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
        CHECK_ROW("lengths[%zu]", k);
        struct strbuf got = STRBUF_INIT;
        struct strbuf want = STRBUF_INIT;
        struct arena arena;
        struct err err = {0};
        cJSON *root = json_object();
        cJSON *inner = json_object();
        cJSON *place = json_array();
        json_put(inner, "list", place);
        json_put(root, "inner", inner);
        json_put(root, "other", json_array());
        const struct json_list list = {
            .place = place, .n = lengths[k], .element = square, .ctx = &offset};
        assert_int_equal(json_pretty_lists(root, &list, 1, &got, &err), 0);
        arena_init(&arena);
        for (size_t i = 0; i < lengths[k]; i++) {
            json_push(place, json_copy(square(&offset, i, &arena)));
        }
        assert_int_equal(json_pretty(root, &want, &err), 0);
        assert_string_equal(got.buf, want.buf);
        arena_release(&arena);
        cJSON_Delete(root);
        strbuf_release(&got);
        strbuf_release(&want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_shortest),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_element_with_a_key),
        cmocka_unit_test(test_canonical_texts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_other_styles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
