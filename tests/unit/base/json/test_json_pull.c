/* Reading token by token: what comes in which order, what is passed over, trees in an arena. */
#include <string.h>

#include "base/json/json_pull.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"

/* A letter a token; keys, strings and numbers behind theirs. */
static int trace(const char *text, bool lax, struct strbuf *out, struct err *err)
{
    static const char letters[] = ".{}[]:\"#tfn";
    struct json_pull p;
    enum json_token token = JSON_NULL;
    int rc = 0;
    json_pull_init(&p, text, strlen(text), lax);
    while (rc == 0 && token != JSON_END) {
        rc = json_pull_next(&p, &token, err);
        if (rc != 0) {
            break;
        }
        strbuf_addc(out, letters[token]);
        if (token == JSON_KEY || token == JSON_STRING) {
            strbuf_addf(out, "%s ", p.string.buf);
        } else if (token == JSON_NUMBER) {
            strbuf_addf(out, "%g ", p.number);
        }
    }
    json_pull_release(&p);
    return rc;
}

static void test_tokens(void **state)
{
    static const struct {
        const char *text;
        const char *trace;
    } cases[] = {
        {"0", "#0 ."},
        {" [ ] ", "[]."},
        {"{\"a\":[1,-2.5e1,\"b\"],\"c\":{\"a\":null}}", "{:a [#1 #-25 \"b ]:c {:a n}}."},
        {"[true,false,null,{}]", "[tfn{}]."},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"",
         "\"\"\\/\b\f\n\r\tA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 ."},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct strbuf got = STRBUF_INIT;
        struct err err = {0};
        int rc = trace(cases[i].text, false, &got, &err);
        if (rc != 0 || strcmp(got.buf, cases[i].trace) != 0) {
            fail_msg("%s: %s %s", cases[i].text, got.buf, err.msg);
        }
        strbuf_release(&got);
    }
}

static void test_lax(void **state)
{
    struct strbuf got = STRBUF_INIT;
    struct err err = {0};
    (void)state;
    assert_int_equal(trace("[NaN,-Infinity ,Infinity,-NaN]", true, &got, &err), 0);
    assert_string_equal(got.buf, "[nnnn].");
    strbuf_clear(&got);
    assert_int_equal(trace("[NaN]", false, &got, &err), ERR_SYNTAX);
    assert_int_equal(trace("[NaNs]", true, &got, &err), ERR_SYNTAX);
    assert_int_equal(trace("{NaN:1}", true, &got, &err), ERR_SYNTAX);
    strbuf_release(&got);
}

/* Few keys and many, and a key that two objects have. */
static void test_keys(void **state)
{
    struct strbuf got = STRBUF_INIT;
    struct err err = {0};
    (void)state;
    assert_int_equal(trace("[{\"a\":{\"a\":1}},{\"a\":2}]", false, &got, &err), 0);
    assert_int_equal(trace("{\"a\":{\"b\":1},\n \"a\":1}", false, &got, &err), ERR_SYNTAX);
    assert_string_equal(err.msg, "line 2, column 2: key \"a\" is duplicated in one object");
    assert_int_equal(trace("{\"\\u0061\":1,\"a\":1}", false, &got, &err), ERR_SYNTAX);
    for (int twice = 0; twice < 2; twice++) {
        struct strbuf text = STRBUF_INIT;
        strbuf_adds(&text, "{\"x\":{},");
        for (int i = 0; i < 100; i++) {
            strbuf_addf(&text, "\"k%d\":%d,\n", i, i);
        }
        strbuf_addf(&text, "\"k%d\":{\"k7\":1}}", twice == 0 ? 100 : 63);
        int rc = trace(text.buf, false, &got, &err);
        assert_int_equal(rc, twice == 0 ? 0 : ERR_SYNTAX);
        strbuf_release(&text);
    }
    assert_string_equal(err.msg, "line 101, column 1: key \"k63\" is duplicated in one object");
    strbuf_release(&got);
}

static void test_skip_and_place(void **state)
{
    static const char text[] = "{\"long\":[1,{\"a\":[2]},[]],\n  \"next\":3}";
    struct json_pull p;
    enum json_token token;
    struct err err = {0};
    (void)state;
    json_pull_init(&p, text, strlen(text), false);
    assert_int_equal(json_pull_next(&p, &token, &err), 0);
    assert_int_equal(json_pull_next(&p, &token, &err), 0);
    assert_int_equal(json_pull_next(&p, &token, &err), 0);
    assert_int_equal(token, JSON_ARRAY);
    assert_int_equal(json_pull_skip(&p, token, &err), 0);
    assert_int_equal(json_pull_next(&p, &token, &err), 0);
    assert_int_equal(token, JSON_KEY);
    assert_string_equal(p.string.buf, "next");
    (void)err_set(&err, ERR_INVALID, "no such thing");
    assert_int_equal(json_pull_wrap(&p, p.at, &err), ERR_INVALID);
    assert_string_equal(err.msg, "line 2, column 3: no such thing");
    json_pull_release(&p);
}

/* A tree on the heap and one in an arena are the one that cJSON builds. */
static void test_trees(void **state)
{
    static const char *const cases[] = {
        "1.5",
        "[]",
        "{\"b\":[1,2,{\"c\":null,\"a\":\"x\\u00e9\\n\"}],\"a\":{},\"d\":[true,false]}",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i]);
        struct json_pull p;
        struct arena arena;
        enum json_token token;
        struct err err = {0};
        struct strbuf a = STRBUF_INIT;
        struct strbuf b = STRBUF_INIT;
        cJSON *theirs = cJSON_Parse(cases[i]);
        cJSON *heap = NULL;
        cJSON *ours = NULL;
        arena_init(&arena);
        json_pull_init(&p, cases[i], strlen(cases[i]), false);
        assert_int_equal(json_pull_next(&p, &token, &err), 0);
        assert_int_equal(json_pull_value(&p, token, &arena, &ours, &err), 0);
        assert_int_equal(json_pull_next(&p, &token, &err), 0);
        assert_int_equal(token, JSON_END);
        assert_int_equal(json_parse(cases[i], strlen(cases[i]), &heap, &err), 0);
        assert_true(cJSON_Compare(heap, theirs, true));
        assert_int_equal(json_pretty(ours, &a, &err), 0);
        assert_int_equal(json_pretty(theirs, &b, &err), 0);
        assert_string_equal(a.buf, b.buf);
        assert_true(cJSON_Compare(ours, theirs, true));
        cJSON *copy = json_copy(ours); /* keys too: it outlives the arena */
        arena_clear(&arena);
        memset(arena_alloc(&arena, 4096), 'x', 4096);
        assert_true(cJSON_Compare(copy, theirs, true));
        cJSON_Delete(copy);
        cJSON_Delete(heap);
        cJSON_Delete(theirs);
        strbuf_release(&a);
        strbuf_release(&b);
        json_pull_release(&p);
        arena_release(&arena);
    }
}

/* A member of a tree in an arena, copied alone: nothing of the copy lies in the arena. A number is
 * whole, too, where cJSON's is. */
static void test_member_of_a_tree(void **state)
{
    static const char text[] = "{\"key\":{\"a\":[7,-1.5,1e300,-1e300]}}";
    static const int whole[] = {7, -1, INT32_MAX, INT32_MIN};
    struct json_pull p;
    struct arena arena;
    enum json_token token;
    struct err err = {0};
    cJSON *tree = NULL;
    (void)state;
    arena_init(&arena);
    json_pull_init(&p, text, strlen(text), false);
    assert_int_equal(json_pull_next(&p, &token, &err), 0);
    assert_int_equal(json_pull_value(&p, token, &arena, &tree, &err), 0);
    cJSON *copy = json_copy(json_member(tree, "key"));
    assert_null(copy->string);
    const cJSON *list = json_member(copy, "a");
    for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
        CHECK_ROW("whole[%zu]", i);
        const cJSON *in_arena = json_member(json_member(tree, "key"), "a");
        assert_int_equal(cJSON_GetArrayItem(in_arena, (int)i)->valueint, whole[i]);
        assert_int_equal(cJSON_GetArrayItem(list, (int)i)->valueint, whole[i]);
    }
    json_pull_release(&p);
    arena_release(&arena);
    assert_string_equal(json_member(copy, "a")->string, "a");
    cJSON_Delete(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens), cmocka_unit_test(test_lax),
        cmocka_unit_test(test_keys),   cmocka_unit_test(test_skip_and_place),
        cmocka_unit_test(test_trees),  cmocka_unit_test(test_member_of_a_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
