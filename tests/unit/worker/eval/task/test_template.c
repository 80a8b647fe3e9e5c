/* Templates and their filters: what they make of a record, and what they say is wrong. */
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/eval/task/template.h"

static const char record_text[] =
    "{\"q\":\" Who? \",\"n\":3,\"yes\":true,\"half\":0.5,\"empty\":\"\",\"none\":null,"
    "\"choices\":{\"text\":[\"red\",\"Green\"],\"label\":[\"A\",\"B\"]},"
    "\"pairs\":[{\"t\":\"x\"},{\"t\":\"y\"}],\"mixed\":[\"a\",1],"
    "\"key\":\"B\",\"words\":\"one two  three\",\"blank\":\"Ann _ late _\"}";

static int fill(const char *source, struct arena *arena, struct value *v, struct err *err)
{
    const struct template *t = NULL;
    cJSON *record = NULL;
    assert_int_equal(json_parse(record_text, strlen(record_text), &record, err), 0);
    const struct template_input in = {record, "world_facts", arena};
    int rc = template_compile(arena, source, &t, err);
    if (rc == 0)
        rc = template_fill(t, &in, v, err);
    if (rc == 0 && v->kind == VALUE_TEXT)
        v->text = arena_strdup(arena, v->text);
    cJSON_Delete(record);
    return rc;
}

static void test_texts(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"plain", "plain"},
        {"{{{q}}}", "{ Who? }"},
        {"{q|strip}", "Who?"},
        {"{ q | lstrip }|", "Who? |"},
        {"{q|rstrip}", " Who?"},
        {"{n} and {yes}", "3 and 1"},
        {"{choices.text[1]}", "Green"},
        {"{pairs[1].t}", "y"},
        {"{@group|replace('_', ' ')}", "world facts"},
        {"{words|words_but_last}/{words|last_word}", "one two /three"},
        {"{key|last_word}{key|words_but_last}", "B"},
        {"{blank|before('_')}|{blank|after('_')|strip}", "Ann |late _"},
        {"{key|map('A', 'first', 'B', 'second')}", "second"},
        {"{words|map_end(' two', '2', ' three', '3')}", "one two 3"},
        {"{words|without_prefix('one ')}", "two  three"},
        {"{key|prefix('it''s ')}", "it's B"},
        {"{choices.text[1]|lower_first}", "green"},
        {"{choices.text[0]|capitalize}", "Red"},
        {"{q|strip|drop_last}", "Who"},
        {"{empty|drop_last}{empty|strip}{empty|capitalize}", ""},
        {"{words|replace('  ', ' ')}", "one two three"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        struct arena arena;
        struct value v = {0};
        struct err err = {0};
        arena_init(&arena);
        if (fill(cases[i][0], &arena, &v, &err) != 0)
            fail_msg("%s: %s", cases[i][0], err.msg);
        assert_int_equal(v.kind, VALUE_TEXT);
        assert_string_equal(v.text, cases[i][1]);
        arena_release(&arena);
    }
}

/* A template that is one column alone keeps its kind. */
static void test_kinds(void **state)
{
    (void)state;
    struct arena arena;
    struct value v = {0};
    struct err err = {0};
    arena_init(&arena);
    assert_int_equal(fill("{n}", &arena, &v, &err), 0);
    assert_int_equal(v.kind, VALUE_NUMBER);
    assert_int_equal(v.number, 3);
    assert_int_equal(fill("{key|index(choices.label)}", &arena, &v, &err), 0);
    assert_int_equal(v.kind, VALUE_NUMBER);
    assert_int_equal(v.number, 1);
    assert_int_equal(fill("{n|index('2', '3')}", &arena, &v, &err), 0);
    assert_int_equal(v.number, 1);
    assert_int_equal(fill("{n|number}", &arena, &v, &err), 0);
    assert_int_equal(v.number, 3);
    assert_int_equal(fill("{choices.text|lower_first|prefix(' ')}", &arena, &v, &err), 0);
    assert_int_equal(v.kind, VALUE_LIST);
    assert_int_equal(v.n, 2);
    assert_string_equal(v.list[0], " red");
    assert_string_equal(v.list[1], " green");
    assert_int_equal(fill("{pairs.t|prefix('-')}", &arena, &v, &err), 0);
    assert_int_equal(v.n, 2);
    assert_string_equal(v.list[1], "-y");
    arena_release(&arena);
}

static void test_faults(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a } b", "column 3: a } without its {"},
        {"{q", "column 3: expected | or }"},
        {"{}", "column 2: expected a column's name"},
        {"{q|stirp}", "column 4: no filter 'stirp'; did you mean 'strip'?"},
        {"{q|}", "column 4: expected a filter's name"},
        {"{q|before}", "before takes 1 arguments, not 0"},
        {"{q|strip('x')}", "strip takes 0 arguments, not 1"},
        {"{q|map('a')}", "map takes its arguments in pairs"},
        {"{q|before('x}", "a ' is never closed"},
        {"{q|before(key)}", "expected a text in '...'"},
        {"{q|replace('a' 'b')}", "expected , or )"},
        {"{q[}", "expected a number and ]"},
        {"{q[999999999999]}", "an index of 256 or more"},
        {"{nothing}", "there is no 'nothing'"},
        {"{none}", "none: is not a text, a whole number or a list of texts"},
        {"{half}", "half: is not a text"},
        {"{choices}", "choices: is not a text"},
        {"{choices.colour}", "choices: no 'colour'"},
        {"{choices.text[2]}", "choices: no member [2]"},
        {"{pairs.u}", "pairs: member 0 has no 'u'"},
        {"{mixed}", "mixed: [1] is not a string"},
        {"x{choices.text}", "choices is a list inside a text"},
        {"{q|before('_')}", "q: before: has no _"},
        {"{q|without_prefix('x')}", "does not begin with 'x'"},
        {"{q|map('a', 'b')}", "is none of those it may be"},
        {"{q|index('a', 'b')}", "is \" Who? \", not one of \"a\", \"b\""},
        {"{q|number}", "is not a whole number"},
        {"{q|integer}", "is not a whole number"},
        {"{q|index(key)}", "key is not a list"},
        {"{choices.text|index('a')}", "index: of a list"},
        {"{empty|lower_first}", "the text is empty"},
        {"{q|replace('', 'x')}", "nothing to replace"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        struct arena arena;
        struct value v = {0};
        struct err err = {0};
        arena_init(&arena);
        assert_int_equal(fill(cases[i][0], &arena, &v, &err), ERR_SYNTAX);
        if (strstr(err.msg, cases[i][1]) == NULL)
            fail_msg("%s: '%s' does not say '%s'", cases[i][0], err.msg, cases[i][1]);
        arena_release(&arena);
    }
}

static void on_column(void *self, const char *name)
{
    struct strbuf *names = self;
    strbuf_addf(names, "%s ", name);
}

static void test_columns(void **state)
{
    (void)state;
    struct arena arena;
    struct strbuf names = STRBUF_INIT;
    const struct template *t = NULL;
    struct err err = {0};
    arena_init(&arena);
    assert_int_equal(
        template_compile(&arena, "{@group}{a.b}: {key|index(choices.label)}", &t, &err), 0);
    template_each_column(t, on_column, &names);
    assert_string_equal(names.buf, "a key choices ");
    strbuf_release(&names);
    arena_release(&arena);
}

/* What Python's preprocess_wikitext.py makes of them. */
static void test_wikitext(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"the dogs ' home", "the dogs' home"},
        {"1 @,@ 000 @.@ 5 well @-@ known", "1,000.5 well-known"},
        {" = = = Head = = = \n x ; y : z . A ! B ? C , D ", " === Head ===\nx; y: z. A! B? C, D "},
        {"( a b ) [ c\n] { } \" q \" ' r '", "(a b) [c] {} \"q\" 'r'"},
        {"( open [ x )", "(open [ x)"},
        {"/' 7/ N of 5 \xc2\xb0 C", "/'[0-9]/ 1 of 5\xc2\xb0"
                                    "C"},
        {"it 's", "it's"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        struct arena arena;
        const struct template *t = NULL;
        const char *text = NULL;
        struct err err = {0};
        cJSON *record = json_object();
        json_put_string(record, "page", cases[i][0]);
        arena_init(&arena);
        const struct template_input in = {record, "", &arena};
        assert_int_equal(template_compile(&arena, "{page|wikitext_detokenize}", &t, &err), 0);
        assert_int_equal(template_fill_text(t, &in, &text, &err), 0);
        assert_string_equal(text, cases[i][1]);
        arena_release(&arena);
        cJSON_Delete(record);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),    cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_faults),   cmocka_unit_test(test_columns),
        cmocka_unit_test(test_wikitext),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
