/* Items of the shipped tasks in their public columns: contexts, choices, records as samples show
 * them; the draws of examples; what differs between versions of the harness. */
#include "base/files/digest.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/eval/prompt/shipped.h"

#define OPTIONS_MAX 5

static const struct {
    const char *task;
    const char *line;
    const char *context; /* NULL: none */
    const char *options[OPTIONS_MAX];
    const char *continuation;
    size_t gold;
} cases[] = {
    {"arc_challenge",
     "{\"id\":\"1\",\"question\":\"Why?\",\"choices\":{\"text\":[\"w\",\"x\",\"y\"],"
     "\"label\":[\"1\",\"2\",\"3\"]},\"answerKey\":\"3\"}",
     "Question: Why?\nAnswer:",
     {"w", "x", "y"},
     NULL,
     2},
    {"arc_easy",
     "{\"id\":\"1\",\"question\":{\"stem\":\"Why?\",\"choices\":[{\"text\":\"w\",\"label\":\"A\"},"
     "{\"text\":\"x\",\"label\":\"B\"}]},\"answerKey\":\"B\"}",
     "Question: Why?\nAnswer:",
     {"w", "x"},
     NULL,
     1},
    {"piqa",
     "{\"goal\":\"To do \",\"sol1\":\" one\",\"sol2\":\"two\",\"label\":1}",
     "Question: To do \nAnswer:",
     {" one", "two"},
     NULL,
     1},
    {"boolq",
     "{\"question\":\"is it\",\"passage\":\"P.\",\"idx\":3,\"label\":1}",
     "P.\nQuestion: is it?\nAnswer:",
     {"no", "yes"},
     NULL,
     1},
    {"boolq",
     "{\"question\":\"is it\",\"title\":\"T\",\"answer\":false,\"passage\":\"P.\"}",
     "P.\nQuestion: is it?\nAnswer:",
     {"no", "yes"},
     NULL,
     0},
    {"boolq",
     "{\"query\":\"Passage: P.\\nQuestion: is it?\",\"choices\":[\"no\",\"yes\"],\"gold\":1}",
     "P.\nQuestion: is it?\nAnswer:",
     {"no", "yes"},
     NULL,
     1},
    {"openbookqa",
     "{\"id\":\"1\",\"question_stem\":\"S\",\"choices\":{\"text\":[\"a\",\"b\"],"
     "\"label\":[\"A\",\"B\"]},\"answerKey\":\" B\"}",
     "S",
     {"a", "b"},
     NULL,
     1},
    {"copa",
     "{\"premise\":\" It rained. \",\"choice1\":\"Wet.\",\"choice2\":\"\xc3\x89t\xc3\xa9.\","
     "\"question\":\"effect\",\"idx\":0,\"label\":1}",
     "It rained therefore",
     {" wet.", " \xc3\xa9t\xc3\xa9."},
     NULL,
     1},
    {"sciq",
     "{\"question\":\"What?\",\"distractor3\":\"c\",\"distractor1\":\"a\",\"distractor2\":\"b\","
     "\"correct_answer\":\"d\",\"support\":\"\\n S. \"}",
     "S. \nQuestion: What?\nAnswer:",
     {"a", "b", "c", "d"},
     NULL,
     3},
    {"commonsense_qa",
     "{\"id\":\"1\",\"question\":\" Q? \",\"question_concept\":\"q\",\"choices\":{\"label\":"
     "[\"A\",\"B\",\"C\",\"D\",\"E\"],\"text\":[\"1\",\"2\",\"3\",\"4\",\"5\"]},"
     "\"answerKey\":\"E\"}",
     "Question: Q?\nA. 1\nB. 2\nC. 3\nD. 4\nE. 5\nAnswer:",
     {"A", "B", "C", "D", "E"},
     NULL,
     4},
    {"lambada_openai", "{\"text\":\"a b  c\\nd end\"}", "a b  c\nd", {NULL}, " end", 0},
    {"lambada_openai", "{\"context\":\"a b\",\"continuation\":\"c\"}", "a b", {NULL}, " c", 0},
    {"wikitext", "{\"page\":\" = A = \\n b , c\"}", NULL, {NULL}, " = A =\nb, c", 0},
};

static void test_public_columns(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].task);
        struct item_set set;
        scratch_put(".", "items.jsonl", cases[i].line);
        shipped_load(&set, cases[i].task, "items.jsonl", "test");
        assert_int_equal(set.n, 1);
        const struct item *it = &set.items[0];
        assert_int_equal(it->gold, cases[i].gold);
        assert_int_equal(it->context == NULL, cases[i].context == NULL);
        if (it->context != NULL)
            assert_string_equal(it->context, cases[i].context);
        for (size_t k = 0; k < OPTIONS_MAX; k++) {
            assert_int_equal(k < it->n_options, cases[i].options[k] != NULL);
            if (k < it->n_options)
                assert_string_equal(it->options[k], cases[i].options[k]);
        }
        assert_int_equal(it->continuation == NULL, cases[i].continuation == NULL);
        if (it->continuation != NULL)
            assert_string_equal(it->continuation, cases[i].continuation);
        item_set_release(&set);
    }
}

/* Columns in their order, what the task adds behind them, names with _ in front left out. */
static void test_records(void **state)
{
    (void)state;
    struct item_set set;
    scratch_put(".", "val.jsonl",
                "{\"ind\":7,\"activity_label\":\"A\",\"ctx_a\":\"b\",\"ctx_b\":\"\","
                "\"endings\":[\"[x] c\",\"d\"],\"label\":\"1\",\"z\":null}");
    shipped_load(&set, "hellaswag", ".", "val");
    assert_string_equal(set.items[0].doc,
                        "{\"ind\":7,\"activity_label\":\"A\",\"ctx_a\":\"b\",\"ctx_b\":\"\","
                        "\"endings\":[\"[x] c\",\"d\"],\"label\":\"1\",\"z\":null,"
                        "\"query\":\"A: b\",\"choices\":[\" c\",\"d\"],\"gold\":1}");
    item_set_release(&set);
    scratch_put(".", "m/test/anatomy_test.csv", "\"Q, q\",1,2,3,4,D\n");
    shipped_load(&set, "mmlu", "m", "test");
    assert_string_equal(set.items[0].doc, "{\"question\":\"Q, q\",\"subject\":\"anatomy\","
                                          "\"choices\":[\"1\",\"2\",\"3\",\"4\"],\"answer\":3}");
    assert_string_equal(set.groups[0].name, "anatomy");
    assert_string_equal(set.groups[0].parent, "stem");
    item_set_release(&set);
}

/* The harness's doc_hash of {"q":"é","choices":["a","b"],"answer":1}. */
static void test_doc_layout(void **state)
{
    (void)state;
    const struct item it = {.doc = "{\"q\":\"\xc3\xa9\",\"choices\":[\"a\",\"b\"],\"answer\":1}"};
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    char hex[DIGEST_HEX_SIZE];
    assert_int_equal(item_add_doc_layout(&it, &text, &err), 0);
    const struct digest digest = digest_bytes(text.buf, text.len);
    digest_hex(&digest, hex);
    assert_string_equal(hex, "95395bbc21e6d6c62668472b4f76376760e80a8e90d2adc8c5830168245da758");
    strbuf_release(&text);
}

static void test_equal(void **state)
{
    (void)state;
    const struct item a = {.doc = "{\"a\":1,\"b\":[2]}"};
    const struct item b = {.doc = "{\"b\":[2],\"a\":1}"};
    const struct item c = {.doc = "{\"a\":1,\"b\":[3]}"};
    assert_true(item_equal(&a, &a));
    assert_true(item_equal(&a, &b)); /* as two dicts */
    assert_false(item_equal(&a, &c));
}

/* gsm8k's first three items draw these of 7,473. */
static void test_gsm8k_draws(void **state)
{
    (void)state;
    static const size_t picks[3][5] = {
        {6374, 3610, 957, 61, 742}, {7462, 6610, 4769, 286, 5501}, {5677, 687, 806, 6279, 2905}};
    struct item_set set;
    struct item_set pool;
    struct prompts prompts;
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    for (int i = 0; i < 7473; i++)
        strbuf_addf(&text, "{\"question\":\"%d\",\"answer\":\"#### %d\"}\n", i, i);
    scratch_put(".", "g/train.jsonl", text.buf);
    scratch_put(".", "g/test.jsonl",
                "{\"question\":\"x\",\"answer\":\"1\"}\n"
                "{\"question\":\"y\",\"answer\":\"1\"}\n"
                "{\"question\":\"z\",\"answer\":\"1\"}\n");
    shipped_load(&set, "gsm8k", "g", "test");
    shipped_load(&pool, "gsm8k", "g", "train");
    assert_int_equal(shipped_draw(&prompts, &set, &pool, -1, &err), 0);
    assert_int_equal(prompts.shots, 5);
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 5; k++)
            assert_int_equal(prompts.picks[i * 5 + k], picks[i][k]);
    prompts_release(&prompts);
    item_set_release(&set);
    item_set_release(&pool);
    strbuf_release(&text);
}

/* hellaswag draws k + 1 of its pool and drops the last, or the one that is the item itself. */
static void test_one_more(void **state)
{
    (void)state;
    struct item_set set;
    struct item_set pool;
    struct prompts prompts;
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    for (int i = 0; i < 20; i++)
        strbuf_addf(&text, "{\"query\":\"q%d\",\"choices\":[\"a\",\"b\"],\"gold\":0}\n", i);
    scratch_put(".", "h/train.jsonl", text.buf);
    scratch_put(".", "h/val.jsonl", "{\"query\":\"q3\",\"choices\":[\"a\",\"b\"],\"gold\":0}\n");
    shipped_load(&set, "hellaswag", "h", "val");
    shipped_load(&pool, "hellaswag", "h", "train");
    assert_int_equal(shipped_draw(&prompts, &set, &pool, 4, &err), 0);
    static const size_t picks[] = {14, 0, 2, 1}; /* of 14, 3, 0, 2, 1 without 3 */
    for (size_t k = 0; k < 4; k++)
        assert_int_equal(prompts.picks[k], picks[k]);
    prompts_release(&prompts);
    assert_int_equal(shipped_draw(&prompts, &set, &pool, 20, &err), ERR_INVALID);
    assert_string_equal(err.msg, "21 examples wanted of 20");
    prompts_release(&prompts);
    item_set_release(&set);
    item_set_release(&pool);
    strbuf_release(&text);
}

/* From v0.4.4 the description keeps its line feeds; from v0.4.10 an equal example stays where the
 * sampler does not draw one more. */
static void test_versions(void **state)
{
    (void)state;
    struct item_set set;
    struct item_set dev;
    struct prompts prompts;
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    scratch_put(".", "v/test/virology_test.csv", "Q,1,2,3,4,A\n");
    scratch_put(".", "v/dev/virology_dev.csv", "Q,1,2,3,4,A\nR,1,2,3,4,B\n");
    static const struct {
        bool drops_last_newline;
        int newlines;
        const char *end;
    } ends[] = {{true, 0, "virology.\n"},
                {false, 0, "virology.\n\n"},
                {true, 2, "virology.\n\n"},
                {false, 1, "virology.\n"}};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        CHECK_ROW("%s", ends[i].end);
        const struct item_source src = {.path = "v",
                                        .split = "test",
                                        .may_lack_groups = true,
                                        .drops_last_newline = ends[i].drops_last_newline,
                                        .description_newlines = ends[i].newlines};
        item_set_init(&set);
        assert_int_equal(item_set_read(&set, shipped_spec("mmlu"), &src, &err), 0);
        assert_string_equal(strstr(set.groups[0].description, "virology"), ends[i].end);
        item_set_release(&set);
    }
    shipped_load(&set, "mmlu", "v", "test");
    shipped_load(&dev, "mmlu", "v", "dev");
    struct prompt_rules rules = {.shots = 2};
    assert_int_equal(prompts_init(&prompts, &set, &dev, &rules, &err), 0);
    assert_int_equal(prompts.picks[0], 1);
    assert_int_equal(prompts.picks[1], PROMPT_NO_PICK);
    prompts_release(&prompts);
    rules.drops_equals_only_of_one_more = true;
    assert_int_equal(prompts_init(&prompts, &set, &dev, &rules, &err), 0);
    assert_int_equal(prompts.picks[0], 0);
    assert_int_equal(prompts.picks[1], 1);
    prompts_release(&prompts);
    item_set_release(&set);
    item_set_release(&dev);
    strbuf_release(&text);
}

static const struct {
    const char *task;
    const char *file; /* in the folder */
    const char *text;
    const char *why;
} bad[] = {
    {"mmlu", "b/test/anatomy_test.csv", "Q,1,2,3,A\n", "line 1 (item 1): 5 fields, not 6"},
    {"mmlu", "b/test/anatomy_test.csv", "Q,1,2,3,4,A\nQ,1,2,3,4,E\n",
     "line 2 (item 2): answer: index: is \"E\", not one of \"A\", \"B\", \"C\", \"D\""},
    {"mmlu", "b/test/anatomy_test.csv", "Q,1,2,3,4,A\nQ,\"1\n", "a quote is never closed"},
    {"mmlu", "b/test/anatomy_test.csv", "", "holds no items"},
    {"mmlu", "b/test/anatomie_test.csv", "Q,1,2,3,4,A\n",
     "mmlu has no group 'anatomie'; is 'anatomy' meant?"},
    {"gsm8k", "b/test.jsonl", "{\"question\":\"q\",\"answer\":\"1\"}\n{\"question\":\"q\",\"ans",
     "line 2 (item 2): the file ends in the middle of a record; is it whole?"},
    {"gsm8k", "b/test.jsonl", "{\"question\":\"q\",\"anser\":\"1\"}\n",
     "is not an item of gsm8k: no 'answer'; is 'anser' meant?"},
    {"copa", "b/val.jsonl",
     "{\"premise\":\"p.\",\"choice1\":\"a\",\"choice2\":\"\",\"question\":\"cause\",\"label\":0}\n",
     "choices: choice2: lower_first: the text is empty"},
    {"commonsense_qa", "b/val.jsonl",
     "{\"question\":\"q\",\"choices\":{\"text\":[\"1\",\"2\",\"3\",\"4\",\"5\"]},"
     "\"answerKey\":\"F\"}\n",
     "gold is 'F', which is none of the choices"},
    {"gsm8k", "b/train.jsonl", "{}", "b: no test.jsonl in it"},
};

static void test_bad_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("%s", bad[i].task);
        struct item_set set;
        struct err err = {0};
        char *path = xasprintf("%zu/%s", i, bad[i].file);
        char *folder = xasprintf("%zu/b", i);
        scratch_put(".", path, bad[i].text);
        const char *split =
            strcmp(bad[i].task, "mmlu") == 0 || strcmp(bad[i].task, "gsm8k") == 0 ? "test" : "val";
        assert_true(shipped_read(&set, bad[i].task, folder, split, &err) < 0);
        if (strstr(err.msg, bad[i].why) == NULL)
            fail_msg("'%s' does not say '%s'", err.msg, bad[i].why);
        item_set_release(&set);
        free(path);
        free(folder);
    }
}

/* A folder with some of MMLU's subjects is half a copy, unless these are what was asked for. */
static void test_missing_groups(void **state)
{
    (void)state;
    static const struct {
        const char *names[2];
        size_t n_groups;
        const char *why; /* NULL: it is read */
    } folders[] = {
        {{NULL},
         0,
         "g/test: 55 of 57 groups of mmlu are missing: abstract_algebra, astronomy, "
         "college_biology, ...; the parameter groups chooses some"},
        {{"anatomy"}, 1, NULL},
        {{"virology", "anatomy"}, 2, NULL},
        {{"anatomy", "marketing"}, 0, "g/test: 1 of 2 groups of mmlu are missing: marketing"},
        {{"humanities"},
         0,
         "g/test: 13 of 13 groups of mmlu are missing: formal_logic, "
         "high_school_european_history, high_school_us_history, ..."},
    };
    const struct item_source src = {.path = "g", .split = "test"};
    scratch_put(".", "g/test/anatomy_test.csv", "Q,1,2,3,4,A\n");
    scratch_put(".", "g/test/virology_test.csv", "Q,1,2,3,4,B\nR,1,2,3,4,B\n");
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        CHECK_ROW("%s", folders[i].names[0]);
        const char *const *names = folders[i].names;
        const size_t n = (size_t)(names[0] != NULL) + (names[1] != NULL);
        struct task_spec *spec = NULL;
        struct item_set set;
        struct err err = {0};
        item_set_init(&set);
        assert_int_equal(task_builtin_read("mmlu", &spec, &err), 0);
        if (n > 0)
            assert_int_equal(task_spec_choose_groups(spec, names, n, &err), 0);
        assert_int_equal(item_set_read(&set, spec, &src, &err), folders[i].why ? ERR_SYNTAX : 0);
        if (folders[i].why != NULL)
            assert_string_equal(err.msg, folders[i].why);
        else
            assert_int_equal(set.n_groups, folders[i].n_groups);
        item_set_release(&set);
        task_spec_free(spec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_public_columns), cmocka_unit_test(test_records),
        cmocka_unit_test(test_doc_layout),     cmocka_unit_test(test_equal),
        cmocka_unit_test(test_gsm8k_draws),    cmocka_unit_test(test_one_more),
        cmocka_unit_test(test_versions),       cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_missing_groups),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
