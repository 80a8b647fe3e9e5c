/* Items of every form, bad files, and the examples that stand before an item. */
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/eval/prompt/shipped.h"

struct form_case {
    const char *task;
    const char *line;
    const char *context; /* NULL: contexts are the options */
    const char *options[2];
    const char *continuation;
    size_t gold;
};

static const struct form_case forms[] = {
    {"choices",
     "{\"query\":\"q \",\"choices\":[\"a\",\"b\"],\"gold\":1}",
     "q ",
     {"a", "b"},
     NULL,
     1},
    {"arc_easy",
     "{\"query\":\"Question: q?\\n\",\"choices\":[\"a\",\"b\"],\"gold\":0}",
     "Question: q?\nAnswer:",
     {"a", "b"},
     NULL,
     0},
    {"copa",
     "{\"query\":\"So, therefore \",\"choices\":[\"a\",\"b\"],\"gold\":\"1\"}",
     "So therefore",
     {" a", " b"},
     NULL,
     1},
    {"schema",
     "{\"context_options\":[\"x a\",\"x b\"],\"continuation\":\"y\",\"gold\":1}",
     NULL,
     {"x a", "x b"},
     "y",
     1},
    {"winogrande",
     "{\"sentence\":\"Ann and Bo: _ was  late.\",\"option1\":\"Ann\",\"option2\":\"Bo\","
     "\"answer\":\"2\"}",
     NULL,
     {"Ann and Bo: Ann", "Ann and Bo: Bo"},
     "was  late.",
     1},
    {"hellaswag",
     "{\"activity_label\":\"Care\",\"ctx_a\":\"[header] Shave [title] Wash. [step] Go.\","
     "\"ctx_b\":\"tHEN Bo\",\"endings\":[\"[step] Do.  Then   stop.\",\" b \"],\"label\":\"0\"}",
     "Care: Shave. Wash. Go. Then bo",
     {" Do. Then  stop.", "b"},
     NULL,
     0},
    {"gsm8k",
     "{\"question\":\"1+1?\",\"answer\":\"2\\n#### 2\"}",
     "Question: 1+1?\nAnswer:",
     {NULL, NULL},
     "2\n#### 2",
     0},
};

static void test_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        CHECK_ROW("%s", forms[i].task);
        const struct form_case *c = &forms[i];
        struct item_set set;
        char *text = xasprintf("\n%s\n", c->line);
        scratch_put(".", "items.jsonl", text);
        shipped_load(&set, c->task, "items.jsonl", "test");
        assert_int_equal(set.n, 1);
        const struct item *it = &set.items[0];
        assert_int_equal(it->line, 2);
        assert_int_equal(it->gold, c->gold);
        assert_int_equal(it->n_options, c->options[0] == NULL ? 0 : 2);
        for (size_t k = 0; k < it->n_options; k++)
            assert_string_equal(it->options[k], c->options[k]);
        assert_int_equal(it->context == NULL, c->context == NULL);
        if (c->context != NULL)
            assert_string_equal(it->context, c->context);
        if (c->continuation != NULL)
            assert_string_equal(it->continuation, c->continuation);
        item_set_release(&set);
        free(text);
    }
}

static const struct {
    const char *task;
    const char *text;
    const char *why; /* part of the message */
} bad[] = {
    {"choices", "", "holds no items"},
    {"choices", "{\"query\":\"q\",\"choices\":[\"a\",\"b\"],\"gold\":1}\n{", "line 2 (item 2)"},
    {"choices", "{\"query\":\"q\",\"choices\":[\"a\",\"b\"],\"gold\":2}",
     "gold is 2, but there are 2"},
    {"choices", "{\"query\":\"q\",\"choices\":[\"a\",\"b\"],\"gold\":-1}", "gold is -1"},
    {"choices", "{\"query\":\"q\",\"choices\":[\"a\",\"b\"],\"gold\":0.5}",
     "is not a text, a whole number"},
    {"choices", "{\"query\":\"q\",\"choices\":[\"a\",7],\"gold\":0}",
     "(item 1): choices: [1] is not a string"},
    {"choices", "{\"query\":\"a\\u0000b\",\"choices\":[\"a\",\"b\"],\"gold\":0}",
     "line 1 (item 1)"},
    {"hellaswag", "{\"sentence\":\"_ a\",\"option1\":\"b\",\"option2\":\"c\",\"answer\":\"1\"}",
     "is not an item of hellaswag: no 'query'; it is an item of winogrande"},
    {"choices", "{\"query\":\"q\",\"choices\":[\"a\"],\"gold\":0}", "choices has 1 members"},
    {"choices", "{\"sentence\":\"a _\"}", "is not an item of choices"},
    {"choices", "[1]", "line 1"},
    {"choices", "{\"query\":\"\xff\"}", "line 1"},
    {"winogrande", "{\"sentence\":\"a\",\"option1\":\"b\",\"option2\":\"c\",\"answer\":\"1\"}",
     "sentence: before: has no _"},
    {"winogrande", "{\"sentence\":\"_\",\"option1\":\"b\",\"option2\":\"c\",\"answer\":\"\"}",
     "answer: index: is \"\""},
    {"gsm8k", "{\"question\":\"q\"}", "answer"},
};

static void test_bad_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("%s", bad[i].task);
        struct item_set set;
        struct err err = {0};
        scratch_put(".", "bad.jsonl", bad[i].text);
        int rc = shipped_read(&set, bad[i].task, "bad.jsonl", "test", &err);
        assert_int_equal(rc, ERR_SYNTAX);
        assert_non_null(strstr(err.msg, "bad.jsonl"));
        if (strstr(err.msg, bad[i].why) == NULL)
            fail_msg("'%s' does not say '%s'", err.msg, bad[i].why);
        item_set_release(&set);
    }
}

/* Sums in a task of one's own: "choices" and "gold" are the two holes. */
static const char sums[] = "{\"task\":\"sums\",\"kind\":\"choice\",\"metrics\":[\"acc\"],"
                           "\"forms\":[{\"context\":\"{q}\",\"choices\":%s,\"gold\":\"%s\"}]}";

static int read_sum(const char *choices, const char *gold, const char *answer, size_t *place,
                    struct err *err)
{
    struct task_spec *spec = NULL;
    struct item_set set;
    char *task = xasprintf(sums, choices, gold);
    char *line =
        xasprintf("{\"q\":\"2-2 =\",\"options\":[\"2\",\"0\",\"1\"],\"answer\":%s}\n", answer);
    item_set_init(&set);
    assert_int_equal(task_spec_parse(task, strlen(task), "sums.json", &spec, err), 0);
    int rc = item_set_parse_jsonl(&set, spec, line, strlen(line), err);
    *place = rc == 0 ? set.items[0].gold : SIZE_MAX;
    item_set_release(&set);
    task_spec_free(spec);
    free(line);
    free(task);
    return rc;
}

static void test_digits_that_are_a_choice(void **state)
{
    (void)state;
    static const struct {
        const char *choices;
        const char *gold;
        const char *answer;
        size_t place; /* SIZE_MAX: refused */
        const char *why[3];
    } cases[] = {
        {"\"{options}\"",
         "{answer}",
         "\"0\"",
         SIZE_MAX,
         {"gold '0' is choice 1 as a text and '2' as an index", "{answer|index(options)}",
          "{answer|integer}"}},
        /* no index, and still not taken as the text: the next record's may be one */
        {"\"{options}\"", "{answer|strip}", "\"2\"", SIZE_MAX, {"{answer|strip|integer}"}},
        {"\"{options|prefix(' ')}\"", "{answer}", "\"0\"", SIZE_MAX, {"{answer|index(options)}"}},
        {"[\"{options[0]}\",\"{options[1]}\"]", "{answer}", "\"0\"", SIZE_MAX, {"index(CHOICES)"}},
        {"\"{options}\"", "{answer|index(options)}", "\"0\"", 1, {NULL}},
        {"\"{options}\"", "{answer|integer}", "\"0\"", 0, {NULL}},
        {"\"{options}\"", "{answer}", "0", 0, {NULL}},
        {"\"{options}\"", "0", "\"x\"", 0, {NULL}},
        {"[\"{q}\",\"b\"]", "{answer}", "\"1\"", 1, {NULL}},
        {"[\"{q}\",\"b\"]", "{answer}", "\"b\"", 1, {NULL}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].choices);
        struct err err = {0};
        size_t place = 0;
        int rc = read_sum(cases[i].choices, cases[i].gold, cases[i].answer, &place, &err);
        assert_int_equal(rc, cases[i].place == SIZE_MAX ? ERR_SYNTAX : 0);
        assert_int_equal(place, cases[i].place);
        for (size_t k = 0; k < 3 && cases[i].why[k] != NULL; k++)
            if (strstr(err.msg, cases[i].why[k]) == NULL)
                fail_msg("'%s' does not say '%s'", err.msg, cases[i].why[k]);
    }
}

static void test_byte_order_mark(void **state)
{
    (void)state;
    static const struct {
        const char *task;
        const char *file;
        const char *text;
        const char *context;
    } cases[] = {
        {"choices", "mark.jsonl",
         "\xef\xbb\xbf{\"query\":\"q \",\"choices\":[\"a\",\"b\"],\"gold\":1}\n", "q "},
        {"mmlu", "mark/test/virology_test.csv", "\xef\xbb\xbfWho?,e,f,g,h,A\n",
         "Who?\nA. e\nB. f\nC. g\nD. h\nAnswer:"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].task);
        struct item_set set;
        struct err err = {0};
        scratch_put(".", cases[i].file, cases[i].text);
        if (shipped_read(&set, cases[i].task, i == 0 ? cases[i].file : "mark", "test", &err) != 0 &&
            strstr(err.msg, "groups of mmlu are missing") == NULL)
            fail_msg("%s", err.msg);
        assert_int_equal(set.n, 1);
        assert_string_equal(set.items[0].context, cases[i].context);
        item_set_release(&set);
    }
}

/* Data are pinned as one folder: no word of a task and no link leads to a file beside it. */
static void test_nothing_outside_the_folder(void **state)
{
    (void)state;
    static const char line[] = "{\"query\":\"q\",\"choices\":[\"a\",\"b\"],\"gold\":1}\n";
    static const char row[] = "Who?,a,b,c,d,C\n";
    static const struct {
        const char *task;
        const char *split;
        const char *why; /* NULL: read */
    } cases[] = {
        {"choices", "test", NULL},
        {"choices", "../outside", "'../outside.jsonl' leaves the folder pinned"},
        {"choices", "deep/../../outside", "leaves the folder pinned"},
        {"choices", "within", NULL}, /* a link to a file of the folder */
        {"choices", "linked", "pinned/linked.jsonl: a link that leads out of pinned"},
        {"choices", "deep/linked", "a link that leads out of pinned"},
        {"mmlu", "..", "leaves the folder pinned"},
        {"mmlu", "folder", "pinned/folder/virology_folder.csv: a link that leads out of pinned"},
        {"mmlu", "file", "pinned/file/virology_file.csv: a link that leads out of pinned"},
    };
    scratch_put(".", "outside.jsonl", line);
    scratch_put(".", "outside/virology_folder.csv", row);
    scratch_put(".", "pinned/test.jsonl", line);
    scratch_put(".", "pinned/file/x.txt", "");
    assert_int_equal(symlink("test.jsonl", "pinned/within.jsonl"), 0);
    assert_int_equal(symlink("../outside.jsonl", "pinned/linked.jsonl"), 0);
    assert_int_equal(symlink("..", "pinned/deep"), 0);
    assert_int_equal(symlink("outside.jsonl", "linked.jsonl"), 0);
    assert_int_equal(symlink("../outside", "pinned/folder"), 0);
    assert_int_equal(symlink("../../outside/virology_folder.csv", "pinned/file/virology_file.csv"),
                     0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].task);
        struct item_set set;
        struct err err = {0};
        int rc = shipped_read(&set, cases[i].task, "pinned", cases[i].split, &err);
        assert_int_equal(rc, cases[i].why == NULL ? 0 : ERR_SYNTAX);
        if (rc != 0 && strstr(err.msg, cases[i].why) == NULL)
            fail_msg("'%s' does not say '%s'", err.msg, cases[i].why);
        item_set_release(&set);
    }
}

static void test_mmlu(void **state)
{
    (void)state;
    scratch_put(".", "mmlu/test/world_religions_test.csv",
                "\" Who?\",a,b,c,d,C\nWhat?,e,f,g,h,A\n");
    scratch_put(".", "mmlu/test/anatomy_test.csv", "Where?,1,2,3,4,D\n");
    scratch_put(".", "mmlu/dev/anatomy_dev.csv", "X?,1,2,3,4,A\nY?,5,6,7,8,B\n");
    scratch_put(".", "mmlu/dev/world_religions_dev.csv",
                "V?,1,2,3,4,A\n Who?,a,b,c,d,C\nU?,1,2,3,4,A\n");
    struct item_set set;
    struct item_set dev;
    struct prompts prompts;
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    shipped_load(&set, "mmlu", "mmlu", "test");
    shipped_load(&dev, "mmlu", "mmlu", "dev");
    assert_int_equal(set.n, 3);
    assert_int_equal(set.n_groups, 2);
    assert_string_equal(set.items[1].context, "Who?\nA. a\nB. b\nC. c\nD. d\nAnswer:");
    assert_int_equal(set.items[1].gold, 2);
    assert_int_equal(shipped_draw(&prompts, &set, &dev, 2, &err), 0);
    shipped_preamble(&prompts, 0, &text);
    assert_string_equal(
        text.buf, "The following are multiple choice questions (with answers) about anatomy.\n"
                  "X?\nA. 1\nB. 2\nC. 3\nD. 4\nAnswer: A\n\n"
                  "Y?\nA. 5\nB. 6\nC. 7\nD. 8\nAnswer: B\n\n");
    strbuf_clear(&text); /* the item itself is among the examples: one is left */
    shipped_preamble(&prompts, 1, &text);
    assert_string_equal(
        text.buf,
        "The following are multiple choice questions (with answers) about world religions.\n"
        "V?\nA. 1\nB. 2\nC. 3\nD. 4\nAnswer: A\n\n");
    prompts_release(&prompts);
    assert_int_equal(shipped_draw(&prompts, &set, &dev, 3, &err), ERR_INVALID);
    prompts_release(&prompts);
    strbuf_release(&text);
    item_set_release(&set);
    item_set_release(&dev);
}

/* Drawn from the items themselves: one more is drawn, the item's equal goes, k stay. */
static void test_drawn_examples(void **state)
{
    (void)state;
    struct strbuf file = STRBUF_INIT;
    for (int i = 0; i < 20; i++)
        strbuf_addf(&file, "{\"query\":\"q%d\",\"choices\":[\"a\",\"b\"],\"gold\":%d}\n", i, i % 2);
    scratch_put(".", "pool.jsonl", file.buf);
    struct item_set set;
    struct prompts prompts;
    struct err err = {0};
    shipped_load(&set, "choices", "pool.jsonl", "test");
    assert_int_equal(shipped_draw(&prompts, &set, &set, 4, &err), 0);
    static const size_t first[] = {14, 3, 0, 2}; /* random.Random(1234).sample(range(20), 5) */
    for (size_t i = 0; i < 4; i++) /* item 0 is itself among the five: the fifth comes in */
        assert_int_equal(prompts.picks[i], i < 2 ? first[i] : i == 2 ? 2 : 1);
    struct strbuf text = STRBUF_INIT;
    shipped_preamble(&prompts, 0, &text);
    assert_string_equal(text.buf, "q14 a\n\nq3 b\n\nq2 a\n\nq1 b\n\n");
    for (size_t i = 0; i < set.n; i++)
        for (size_t k = 0; k < 4; k++)
            assert_int_not_equal(prompts.picks[i * 4 + k], i);
    prompts_release(&prompts);
    assert_int_equal(shipped_draw(&prompts, &set, &set, 20, &err), ERR_INVALID);
    prompts_release(&prompts);
    strbuf_release(&text);
    strbuf_release(&file);
    item_set_release(&set);
}

/* The public files, where they are. */
static void test_public_files(void **state)
{
    (void)state;
    static const struct {
        const char *task, *path, *split;
        size_t n, n_groups;
    } files[] = {
        {"mmlu", "mmlu", "test", 14042, 57},
        {"mmlu", "mmlu", "dev", 285, 57},
        {"hellaswag", "hellaswag/hellaswag_val.jsonl", "", 10042, 1},
        {"winogrande", "winogrande", "dev", 1267, 1},
        {"winogrande", "core/eval_data/language_understanding/winogrande.jsonl", "", 1267, 1},
        {"gsm8k", "gsm8k", "test", 1319, 1},
        {"arc_easy", "core/eval_data/world_knowledge/arc_easy.jsonl", "", 2376, 1},
        {"arc_challenge", "core/eval_data/world_knowledge/arc_challenge.jsonl", "", 1172, 1},
        {"copa", "core/eval_data/commonsense_reasoning/copa.jsonl", "", 100, 1},
        {"piqa", "core/eval_data/commonsense_reasoning/piqa.jsonl", "", 1838, 1},
        {"boolq", "core/eval_data/reading_comprehension/boolq.jsonl", "", 3270, 1},
        {"openbookqa", "core/eval_data/commonsense_reasoning/openbook_qa.jsonl", "", 500, 1},
    };
    const char *shared = getenv("PREREGD_SHARED");
    char *data = path_join(shared == NULL ? "/nowhere" : shared, "data");
    if (file_kind_at(data) != FILE_FOLDER) {
        free(data);
        skip();
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        CHECK_ROW("files[%zu]", i);
        struct item_set set;
        char *path = path_join(data, files[i].path);
        shipped_load(&set, files[i].task, path, files[i].split);
        assert_int_equal(set.n, files[i].n);
        assert_int_equal(set.n_groups, files[i].n_groups);
        item_set_release(&set);
        free(path);
    }
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_digits_that_are_a_choice),
        cmocka_unit_test(test_byte_order_mark),
        cmocka_unit_test(test_nothing_outside_the_folder),
        cmocka_unit_test(test_mmlu),
        cmocka_unit_test(test_drawn_examples),
        cmocka_unit_test(test_public_files),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
