/* Verdicts on raw answers, second keys, and whether a model generates at all. */
#include <string.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "worker/eval/score/generate.h"
#include "worker/eval/score/judge.h"
#include "worker/eval/score/viability.h"

struct fixture {
    struct task_spec *spec;
    struct item_set set;
    struct judge judge;
    struct item_outcome outcome;
};

static void fixture_open(struct fixture *f, const char *task, const char *lines)
{
    struct err err = {0};
    int rc = task[0] == '{' ? task_spec_parse(task, strlen(task), "task", &f->spec, &err)
                            : task_builtin_read(task, &f->spec, &err);
    item_set_init(&f->set);
    if (rc == 0)
        rc = item_set_parse_jsonl(&f->set, f->spec, lines, strlen(lines), &err);
    if (rc == 0)
        rc = judge_init(&f->judge, &f->set, NULL, &err);
    if (rc != 0)
        fail_msg("%s", err.msg);
    outcome_init(&f->outcome);
}

static void fixture_close(struct fixture *f)
{
    outcome_release(&f->outcome);
    judge_release(&f->judge);
    item_set_release(&f->set);
    task_spec_free(f->spec);
}

static void judge_text(struct fixture *f, const char *text)
{
    outcome_clear(&f->outcome);
    strbuf_adds(&f->outcome.text, text);
    judge_item(&f->judge, 0, &f->outcome);
    assert_string_equal(f->outcome.fault, "");
}

#define SUM "{\"question\":\"q\",\"answer\":\"Some working <<5*2=10>>.\\n#### 1,072\"}"

static void test_filters(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {" #### -5.", "-5.", "-5."},
        {" The answer is 7.", "[invalid]", "7."},
        {" It costs $1,234.50.", "[invalid]", "$1,234.50."},
        {" a ... b 3", "[invalid]", "3"},
        {" #### 72\n#### 73", "72", "73"},
        {"#### x #### 4", "4", "4"},
        {"--5", "[invalid]", "-5"},
        {"no number", "[invalid]", "[invalid]"},
        {"", "[invalid]", "[invalid]"},
        {"12 and so on...", "[invalid]", "..."},
    };
    struct fixture f;
    fixture_open(&f, "gsm8k", SUM);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        judge_text(&f, cases[i][0]);
        assert_string_equal(f.outcome.verdicts[0].answer.buf, cases[i][1]);
        assert_string_equal(f.outcome.verdicts[1].answer.buf, cases[i][2]);
    }
    judge_text(&f, "so #### 1072.");
    assert_true(f.outcome.verdicts[0].value == 1.0 && f.outcome.verdicts[1].value == 1.0);
    judge_text(&f, "#### 7 or 1,072");
    assert_true(f.outcome.verdicts[0].value == 0.0 && f.outcome.verdicts[1].value == 1.0);
    fixture_close(&f);
}

/* The comparison alone: a task without filters. */
static void test_exact_match(void **state)
{
    (void)state;
    static const char task[] =
        "{\"task\":\"exact\",\"kind\":\"generate\",\"version\":\"1\",\"split\":\"test\","
        "\"metrics\":"
        "[\"exact_match\"],\"ignores\":[\",\",\"\\\\$\",\"(?s).*#### \",\"\\\\.$\"],"
        "\"ignores_case\":true,\"until\":[\"Q:\"],\"max_tokens\":8,\"filters\":[{\"name\":\"all\","
        "\"key\":\"all\",\"pattern\":\"(?s).*\"}],\"forms\":[{\"context\":\"{question}\","
        "\"target\":\"{answer}\"}]}";
    static const struct {
        const char *answer;
        bool same;
    } cases[] = {{"1072", true},
                 {"1,072", true},
                 {"$1072", true},
                 {"1072.", true},
                 {"#### x #### 1072", true},
                 {"1072.0", false},
                 {"[invalid]", false},
                 {"", false}};
    struct fixture f;
    fixture_open(&f, task, SUM);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].answer);
        judge_text(&f, cases[i].answer);
        if ((f.outcome.verdicts[0].value == 1.0) != cases[i].same)
            fail_msg("'%s'", cases[i].answer);
    }
    fixture_close(&f);
    fixture_open(&f, task, "{\"question\":\"q\",\"answer\":\"\xc3\x84pfel.\\n\"}");
    judge_text(&f, "\xc3\xa4PFEL\n.");
    assert_true(f.outcome.verdicts[0].value == 1.0); /* a full stop before the last line feed */
    judge_text(&f, "\xc3\xa4PFEL");
    assert_true(f.outcome.verdicts[0].value == 0.0);
    fixture_close(&f);
    fixture_open(&f, task, "{\"question\":\"q\",\"answer\":\"\xc3\x84pfel.\"}");
    judge_text(&f, "\xc3\xa4PFEL");
    assert_true(f.outcome.verdicts[0].value == 1.0);
    fixture_close(&f);
}

/* An expression that gives up makes a fault that names the filter. */
static void test_gives_up(void **state)
{
    (void)state;
    static const char task[] =
        "{\"task\":\"slow\",\"kind\":\"generate\",\"version\":\"1\",\"split\":\"test\",\"metrics\":"
        "[\"exact_match\"],\"until\":[],\"max_tokens\":8,\"filters\":[{\"name\":\"slow\",\"key\":"
        "\"slow\",\"pattern\":\"(a|aa)+$\"}],\"forms\":[{\"context\":\"{question}\",\"target\":"
        "\"{answer}\"}]}";
    struct fixture f;
    fixture_open(&f, task, SUM);
    strbuf_adds(&f.outcome.text, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac");
    judge_item(&f.judge, 0, &f.outcome);
    assert_non_null(strstr(f.outcome.fault, "filter slow"));
    fixture_close(&f);
}

static void test_words(void **state)
{
    (void)state;
    assert_int_equal(judge_count_words(" a b\n"), 4);
    assert_int_equal(judge_count_words(""), 1);
    assert_int_equal(judge_count_words("a"), 1);
    assert_int_equal(judge_count_words("a\xc2\xa0\n b"), 2);
}

static void test_texts(void **state)
{
    (void)state;
    static const char *const broken[][2] = {
        {"a\xe2\x82\xac", "a\xe2\x82\xac"},
        {"a\xe2\x82", "a\xef\xbf\xbd"}, /* one for a beginning */
        {"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe2\x28", "\xef\xbf\xbd("},
        {"\xf0\x9f\x98", "\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
        {"\xc3", "\xef\xbf\xbd"},
    };
    static const char *const tidy[][2] = {
        {"I do n't , well . It 's fine !", "I don't, well. It's fine!"},
        {"a ' b", "a'b"},
        {"we 've they 're I 'm ok ?", "we've they're I'm ok?"},
        {" plain", " plain"},
    };
    struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        CHECK_ROW("%s", broken[i][0]);
        strbuf_clear(&out);
        generate_add_utf8(broken[i][0], strlen(broken[i][0]), &out);
        assert_string_equal(out.buf, broken[i][1]);
    }
    for (size_t i = 0; i < ARRAY_LEN(tidy); i++) {
        CHECK_ROW("%s", tidy[i][0]);
        strbuf_clear(&out);
        generate_tidy_spaces(tidy[i][0], &out);
        assert_string_equal(out.buf, tidy[i][1]);
    }
    strbuf_release(&out);
}

static void test_degenerate(void **state)
{
    (void)state;
    assert_true(viability_is_empty("") && viability_is_empty(" \n\xc2\xa0"));
    assert_false(viability_is_empty(" a"));
    static const struct {
        const char *text;
        bool repeats;
    } cases[] = {
        {"the the the the the the the the", true},
        {"So we have that 12 12 12 12 12 12 12 12 12 12 12 12 ", true},
        {"xxxxxxxxxxxxxxxxxxxxxxxxx", true},
        {"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xef\xbf\xbd",
         true},
        {"xxxxxxx", false}, /* too little to say so */
        {"She has 3 apples and buys 4 more, so she has 7 apples.", false},
        {"one two three four one two three four", false}, /* twice is not endless */
        {"a long way to a loop loop", false},
        {"", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (viability_repeats(cases[i].text) != cases[i].repeats)
            fail_msg("'%s'", cases[i].text);
}

static void add_generation(struct viability *v, struct fixture *f, const char *text, bool ended)
{
    outcome_clear(&f->outcome);
    strbuf_adds(&f->outcome.text, text);
    f->outcome.ended = ended;
    judge_item(&f->judge, 0, &f->outcome);
    viability_add(v, &f->judge, 0, &f->outcome);
}

#define LOOP "and and and and and and and and"

static void test_viability(void **state)
{
    (void)state;
    const struct viability_rules rules = {.items = 4, .least = 1, .degenerate = 0.5};
    struct viability v;
    struct fixture f;
    struct err err = {0};
    fixture_open(&f, "gsm8k", SUM);
    viability_init(&v, &rules);
    assert_int_equal(viability_check(&v, 0, 9, &err), 0);
    add_generation(&v, &f, "", true);
    add_generation(&v, &f, LOOP, false);
    add_generation(&v, &f, LOOP, true);                   /* it came to an end */
    assert_int_equal(viability_check(&v, 3, 9, &err), 0); /* not yet */
    add_generation(&v, &f, "7", true);
    assert_int_equal(viability_check(&v, 4, 9, &err), 0); /* half is allowed, one is answered */
    add_generation(&v, &f, "", true);                     /* no longer looked at */
    assert_int_equal(v.n, 4);
    assert_int_equal(viability_write(&v, &err), 0);
    struct strbuf text = STRBUF_INIT;
    assert_int_equal(file_read(VIABILITY_FILE, 1u << 16, &text, &err), 0);
    assert_non_null(strstr(text.buf, "\"endless_repetition\": 1"));
    assert_non_null(strstr(text.buf, LOOP));
    strbuf_release(&text);
    viability_release(&v);

    viability_init(&v, &rules);
    add_generation(&v, &f, "7", true);
    add_generation(&v, &f, LOOP, false);
    add_generation(&v, &f, " ", true);
    assert_int_equal(viability_check(&v, 3, 3, &err), ERR_REFUSED); /* there are no more */
    assert_non_null(strstr(err.msg, "of the first 3 generations 1 are empty and 1 endless"));
    viability_release(&v);

    viability_init(&v, &rules); /* none is answered: two have no number, two never end */
    add_generation(&v, &f, "I do not know", true);
    add_generation(&v, &f, "nor do I", true);
    add_generation(&v, &f, "it is 7 and then 8 and", false);
    add_generation(&v, &f, "9 of them, or else", false);
    assert_int_equal(viability_check(&v, 4, 9, &err), ERR_REFUSED);
    assert_non_null(strstr(err.msg, "does not generate answers"));
    viability_release(&v);
    fixture_close(&f);
}

#define TWO_ITEMS                                                                                  \
    "{\"query\":\"q\",\"choices\":[\"a\",\"b\",\"c\"],\"gold\":0}\n"                               \
    "{\"query\":\"r\",\"choices\":[\"a\",\"b\"],\"gold\":0}\n"                                     \
    "{\"query\":\"s\",\"choices\":[\"a\",\"b\"],\"gold\":1}\n"

static int read_key(struct second_key *key, const struct fixture *f, const char *text,
                    struct err *err)
{
    const struct item_source src = {.path = "key.jsonl", .split = "test"};
    scratch_put(".", "key.jsonl", text);
    return second_key_read(key, "redux", &f->set, &src, err);
}

static void test_second_key(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *why;
    } bad[] = {
        {"{\"item\":0,\"gold\":3}\n", "line 1: gold is not one of the item's 3 choices"},
        {"{\"item\":1,\"gold\":2}\n", "the item's 2 choices"},
        {"{\"item\":0,\"gold\":[0,1.5]}\n", "gold is not one"},
        {"{\"item\":0,\"gold\":\"A\"}\n", "gold is not one"},
        {"{\"item\":0}\n", "gold is missing"},
        {"{\"item\":3,\"gold\":0}\n", "there is no item 3"},
        {"{\"line\":4,\"gold\":0}\n", "there is no line 4"},
        {"{\"gold\":0}\n", "one of item and line"},
        {"{\"item\":0,\"line\":1,\"gold\":0}\n", "one of item and line"},
        {"{\"item\":0,\"gold\":0}\n{\"line\":1,\"gold\":0}\n",
         "line 2: the item has a line already"},
        {"{\"group\":\"anatomy\",\"item\":0,\"gold\":0}\n", "unknown group 'anatomy'"},
        {"{\"item\":0,\"golden\":0}\n", "'golden' is not one of"},
        {"nonsense\n", "line 1"},
    };
    struct fixture f;
    struct second_key key;
    struct err err = {0};
    fixture_open(&f, "choices", TWO_ITEMS);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("%s", bad[i].text);
        assert_int_equal(read_key(&key, &f, bad[i].text, &err), ERR_SYNTAX);
        if (strstr(err.msg, bad[i].why) == NULL)
            fail_msg("%s", err.msg);
        second_key_release(&key);
    }
    assert_int_equal(
        read_key(&key, &f, "{\"line\":1,\"gold\":[1,2]}\n\n{\"item\":2,\"gold\":null}\n", &err), 0);
    assert_int_equal(key.golds[0], 6);
    assert_false(second_key_has(&key, 1) || second_key_has(&key, 2) || second_key_has(NULL, 0));
    assert_true(second_key_is(&key, 0, 2) && !second_key_is(&key, 0, 0));
    second_key_release(&key);
    fixture_close(&f);
}

/* A folder as the task's own, with other answers. */
static void test_second_folder(void **state)
{
    (void)state;
    const struct item_source src = {.path = "redux", .split = "test"};
    struct fixture f;
    struct second_key key;
    struct err err = {0};
    fixture_open(&f, "choices", TWO_ITEMS);
    scratch_put(".", "redux/test.jsonl",
                "{\"query\":\"q\",\"choices\":[\"a\",\"b\",\"c\"],\"gold\":1}\n"
                "{\"query\":\"r\",\"choices\":[\"a\",\"b\"],\"gold\":0}\n"
                "{\"query\":\"s\",\"choices\":[\"a\",\"b\"],\"gold\":0}\n");
    if (second_key_read(&key, "redux", &f.set, &src, &err) != 0)
        fail_msg("%s", err.msg);
    assert_int_equal(key.golds[0], 2);
    assert_int_equal(key.golds[1], 1);
    assert_int_equal(key.golds[2], 1);
    second_key_release(&key);
    scratch_put(".", "redux/test.jsonl",
                "{\"query\":\"q\",\"choices\":[\"a\",\"b\",\"c\"],\"gold\":1}\n"
                "{\"query\":\"r\",\"choices\":[\"a\",\"x\"],\"gold\":0}\n"
                "{\"query\":\"s\",\"choices\":[\"a\",\"b\"],\"gold\":0}\n");
    assert_int_equal(second_key_read(&key, "redux", &f.set, &src, &err), ERR_SYNTAX);
    assert_non_null(strstr(err.msg, "line 2 asks something else"));
    second_key_release(&key);
    fixture_close(&f);
}

/* Of a task in groups: a key in part, a key over more than was chosen, a line of no group's. */
static void test_second_groups(void **state)
{
    (void)state;
    static const char *const chosen[] = {"anatomy", "virology"};
    static const char lines[] = "{\"group\":\"virology\",\"line\":4,\"gold\":3}\n"
                                "{\"group\":\"marketing\",\"line\":77,\"gold\":0}\n"
                                "{\"group\":\"virology\",\"line\":1,\"gold\":2}\n";
    static const char between[] = "{\"group\":\"virology\",\"line\":3,\"gold\":3}\n";
    static const char no_group[] = "{\"line\":1,\"gold\":2}\n";
    const struct item_source src = {.path = "m", .split = "test"};
    const struct item_source part = {.path = "part", .split = "test"};
    struct task_spec *spec = NULL;
    struct second_key key;
    struct item_set set;
    struct err err = {0};
    scratch_put(".", "m/test/anatomy_test.csv", "Q,1,2,3,4,A\n");
    scratch_put(".", "m/test/virology_test.csv", "R,1,2,3,4,A\nS,\"1\n1\",2,3,4,A\nT,1,2,3,4,A\n");
    scratch_put(".", "part/test/anatomy_test.csv", "Q,1,2,3,4,D\n");
    item_set_init(&set);
    assert_int_equal(task_builtin_read("mmlu", &spec, &err), 0);
    assert_int_equal(task_spec_choose_groups(spec, chosen, ARRAY_LEN(chosen), &err), 0);
    assert_int_equal(item_set_read(&set, spec, &src, &err), 0);
    if (second_key_parse(&key, "k", &set, lines, strlen(lines), &err) != 0)
        fail_msg("%s", err.msg);
    static const uint64_t golds[] = {0, 4, 0, 8};
    assert_memory_equal(key.golds, golds, sizeof(golds));
    second_key_release(&key);
    assert_int_equal(second_key_parse(&key, "k", &set, between, strlen(between), &err), ERR_SYNTAX);
    assert_string_equal(err.msg, "line 1: there is no line 3");
    second_key_release(&key);
    assert_int_equal(second_key_parse(&key, "k", &set, no_group, strlen(no_group), &err),
                     ERR_SYNTAX);
    assert_non_null(strstr(err.msg, "group is missing"));
    second_key_release(&key);
    if (second_key_read(&key, "k", &set, &part, &err) != 0)
        fail_msg("%s", err.msg);
    assert_int_equal(key.golds[0], 8);
    assert_int_equal(key.golds[1], 0);
    second_key_release(&key);
    item_set_release(&set);
    task_spec_free(spec);
}

#define TOKENIZER                                                                                  \
    "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"model\":{\"type\":"  \
    "\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"<\":2,\"/\":3,\"s\":4,\">\":5},\"merges\":[]},"          \
    "\"added_tokens\":[{\"id\":6,\"content\":\"</s>\",\"special\":true},{\"id\":7,\"content\":"    \
    "\"<pad>\",\"special\":true},{\"id\":8,\"content\":\"<|stop|>\",\"special\":true},{\"id\":9,"  \
    "\"content\":\"<b>\"}]}"

/* Special tokens are no text, but may end it; end-of-text spelled out ends it, too. */
static void test_special_tokens(void **state)
{
    (void)state;
    static const char task[] = "{\"task\":\"t\",\"kind\":\"generate\",\"metrics\":[\"exact_match\"]"
                               ",\"until\":[\"<|stop|>\","
                               "\"bb\"],\"forms\":[{\"context\":\"{q}\",\"target\":\"{a}\"}]}";
    static const struct {
        uint32_t ids[6];
        size_t n;
        const char *text;
        bool stopped;
    } outs[] = {
        {{0, 7, 1, 9}, 4, "ab<b>", false}, {{0, 8}, 2, "a", true},
        {{0, 1, 7, 1, 0}, 5, "a", true},   {{0, 2, 3, 4, 5, 0}, 6, "a", true},
        {{0, 2, 3, 4}, 4, "a</s", false},
    };
    struct task_spec *spec = NULL;
    struct tokenizer *tok = NULL;
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    scratch_put(".", "special/tokenizer.json", TOKENIZER);
    if (tokenizer_open("special", &tok, &err) != 0 ||
        task_spec_parse(task, strlen(task), "t", &spec, &err) != 0)
        fail_msg("%s", err.msg);
    const struct lm lm = {.tok = tok};
    for (size_t i = 0; i < ARRAY_LEN(outs); i++) {
        CHECK_ROW("%s", outs[i].text);
        struct token_list tokens = {0};
        bool stopped = false;
        for (size_t k = 0; k < outs[i].n; k++)
            token_list_add(&tokens, outs[i].ids[k]);
        assert_int_equal(generate_text(&lm, spec, &tokens, &text, &stopped, &err), 0);
        assert_string_equal(text.buf, outs[i].text);
        assert_int_equal(stopped, outs[i].stopped);
        token_list_release(&tokens);
    }
    strbuf_release(&text);
    task_spec_free(spec);
    tokenizer_free(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filters),        cmocka_unit_test(test_exact_match),
        cmocka_unit_test(test_gives_up),       cmocka_unit_test(test_words),
        cmocka_unit_test(test_texts),          cmocka_unit_test(test_degenerate),
        cmocka_unit_test(test_viability),      cmocka_unit_test(test_second_key),
        cmocka_unit_test(test_second_folder),  cmocka_unit_test(test_second_groups),
        cmocka_unit_test(test_special_tokens),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
