/* Task descriptions: the shipped ones, and what is said of bad ones. */
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "worker/eval/task/spec.h"

static struct task_spec *builtin(const char *name)
{
    struct task_spec *spec = NULL;
    struct err err = {0};
    if (task_builtin_read(name, &spec, &err) != 0)
        fail_msg("%s", err.msg);
    return spec;
}

/* Every shipped file reads, and is called as its file is. */
static void test_shipped(void **state)
{
    (void)state;
    assert_true(task_builtin_count() >= 16);
    for (size_t i = 0; i < task_builtin_count(); i++) {
        struct task_spec *spec = builtin(task_builtin_name(i));
        assert_string_equal(spec->name, task_builtin_name(i));
        if (i > 0)
            assert_true(strcmp(task_builtin_name(i - 1), task_builtin_name(i)) < 0);
        task_spec_free(spec);
    }
}

static const struct {
    const char *name;
    const char *version;
    enum task_kind kind;
    int shots;
    bool draws_one_more;
    const char *split;
    const char *metrics[3];
} shipped[] = {
    {"mmlu", "0.0", TASK_CHOICE, 0, false, "test", {"acc"}},
    {"hellaswag", "1.0", TASK_CHOICE, 0, true, "val", {"acc", "acc_norm"}},
    {"winogrande", "1.0", TASK_CONTEXT, 0, true, "dev", {"acc"}},
    {"gsm8k",
     "3.0",
     TASK_GENERATE,
     5,
     false,
     "test",
     {"exact_match:strict", "exact_match:flexible"}},
    {"arc_easy", "1.0", TASK_CHOICE, 0, false, "test", {"acc", "acc_norm"}},
    {"arc_challenge", "1.0", TASK_CHOICE, 0, false, "test", {"acc", "acc_norm"}},
    {"piqa", "1.0", TASK_CHOICE, 0, true, "val", {"acc", "acc_norm"}},
    {"boolq", "2.0", TASK_CHOICE, 0, true, "val", {"acc"}},
    {"openbookqa", "1.0", TASK_CHOICE, 0, false, "test", {"acc", "acc_norm"}},
    {"copa", "1.0", TASK_CHOICE, 0, true, "val", {"acc"}},
    {"sciq", "1.0", TASK_CHOICE, 0, false, "test", {"acc", "acc_norm"}},
    {"commonsense_qa", "Yaml", TASK_CHOICE, 0, true, "val", {"acc"}},
    {"lambada_openai", "1.0", TASK_LIKELIHOOD, 0, false, "test", {"perplexity", "acc"}},
    {"wikitext",
     "2.0",
     TASK_ROLLING,
     0,
     false,
     "test",
     {"word_perplexity", "byte_perplexity", "bits_per_byte"}},
};

static void test_as_the_harness_has_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shipped); i++) {
        CHECK_ROW("%s", shipped[i].name);
        struct task_spec *spec = builtin(shipped[i].name);
        assert_string_equal(spec->version, shipped[i].version);
        assert_int_equal(spec->kind, shipped[i].kind);
        assert_int_equal(spec->shots, shipped[i].shots);
        assert_int_equal(spec->draws_one_more, shipped[i].draws_one_more);
        assert_string_equal(spec->split, shipped[i].split);
        assert_string_equal(spec->delimiter, " ");
        assert_string_equal(spec->shot_delimiter, "\n\n");
        assert_int_equal(spec->seed, 1234);
        for (size_t m = 0; m < ARRAY_LEN(shipped[i].metrics); m++) {
            assert_int_equal(m < spec->n_metrics, shipped[i].metrics[m] != NULL);
            if (m < spec->n_metrics)
                assert_string_equal(spec->metrics[m].name, shipped[i].metrics[m]);
        }
        task_spec_free(spec);
    }
}

static void test_mmlu_parents(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t n;
    } parents[] = {{"stem", 19}, {"other", 13}, {"social_sciences", 12}, {"humanities", 13}};
    struct task_spec *spec = builtin("mmlu");
    assert_int_equal(spec->n_parents, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(spec->parents[i].name, parents[i].name);
        assert_int_equal(spec->parents[i].n_members, parents[i].n);
    }
    assert_int_equal(task_spec_parent_of(spec, "virology"), 1);
    assert_int_equal(task_spec_parent_of(spec, "alchemy"), SIZE_MAX);
    assert_true(task_spec_has_groups(spec));
    task_spec_free(spec);
}

/* What the stage leaves of MMLU, and what it may not ask for. */
static void test_choose_groups(void **state)
{
    (void)state;
    static const char *const some[] = {"virology", "stem"};
    static const struct {
        const char *task;
        const char *names[2];
        const char *why;
    } refused[] = {
        {"mmlu", {"anatomie"}, "mmlu has no group 'anatomie'; is 'anatomy' meant?"},
        {"mmlu", {"stm"}, "mmlu has no group 'stm'; is 'stem' meant?"},
        {"mmlu", {"anatomy", "stem"}, "'anatomy' is duplicated"},
        {"mmlu", {"virology", "virology"}, "'virology' is duplicated"},
        {"mmlu", {NULL}, "no group is named"},
        {"gsm8k", {"anatomy"}, "gsm8k has no groups"},
    };
    struct err err = {0};
    struct task_spec *spec = builtin("mmlu");
    assert_true(task_spec_takes_group(spec, "virology") && task_spec_takes_group(spec, "law"));
    assert_int_equal(task_spec_choose_groups(spec, some, ARRAY_LEN(some), &err), 0);
    assert_int_equal(spec->n_chosen, 20);
    assert_true(task_spec_takes_group(spec, "virology") && task_spec_takes_group(spec, "anatomy"));
    assert_false(task_spec_takes_group(spec, "marketing"));
    assert_int_equal(task_spec_check_group(spec, "marketing", &err), 0);
    assert_int_equal(task_spec_check_group(spec, "alchemy", &err), ERR_SYNTAX);
    task_spec_free(spec);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        CHECK_ROW("%s", refused[i].task);
        const char *const *names = refused[i].names;
        const size_t n = (size_t)(names[0] != NULL) + (names[1] != NULL);
        spec = builtin(refused[i].task);
        assert_int_equal(task_spec_choose_groups(spec, names, n, &err), ERR_USAGE);
        assert_string_equal(err.msg, refused[i].why);
        task_spec_free(spec);
    }
}

#define FORM    "\"forms\":[{\"context\":\"{q}\",\"choices\":[\"a\",\"b\"],\"gold\":\"{g}\"}]"
#define HEAD    "{\"task\":\"t\",\"kind\":\"choice\",\"metrics\":[\"acc\"],"
#define GENHEAD "{\"task\":\"t\",\"kind\":\"generate\",\"metrics\":[\"exact_match\"],"
#define GENFORM "\"forms\":[{\"context\":\"{q}\",\"target\":\"{a}\"}]"

static const struct {
    const char *text;
    const char *why; /* the message begins with it, behind the file's name */
} bad[] = {
    {"{\"task\":\"t\",\n \"kind\" \"choice\"}", "line 2, column"},
    {"[]", "a task description is a JSON object"},
    {HEAD FORM ",\"splitt\":\"x\"}", "splitt: unknown parameter; did you mean \"split\"?"},
    {"{\"kind\":\"choice\",\"metrics\":[\"acc\"]," FORM "}", "task: is required"},
    {"{\"task\":\"T 1\",\"kind\":\"choice\",\"metrics\":[\"acc\"]," FORM "}",
     "task: 'T 1' is not a name"},
    {"{\"task\":\"t\",\"kind\":\"chioce\",\"metrics\":[\"acc\"]," FORM "}",
     "kind: \"chioce\" is not one of choice, context"},
    {HEAD "\"forms\":[]}", "forms: expected a list of 1 to 8 tables"},
    {HEAD "\"forms\":[1]}", "forms: [0] is not a table"},
    {HEAD "\"forms\":[{\"context\":\"{q}\",\"choices\":[\"a\",\"b\"]}]}",
     "forms[0].gold: is required"},
    {HEAD "\"forms\":[{\"context\":\"{q|stirp}\",\"choices\":[\"a\",\"b\"],\"gold\":\"{g}\"}]}",
     "forms[0].context: column 4: no filter 'stirp'; did you mean 'strip'?"},
    {HEAD "\"forms\":[{\"context\":\"{q}\",\"choices\":[\"a\"],\"gold\":\"{g}\"}]}",
     "forms[0].choices: expected a template or a list of 2"},
    {HEAD "\"forms\":[{\"context\":\"{q}\",\"choices\":[\"a\",1],\"gold\":\"{g}\"}]}",
     "forms[0].choices: [1] is not a template"},
    {HEAD "\"forms\":[{\"add\":{\"x\":\"{\"},\"context\":\"{x}\",\"choices\":[\"a\",\"b\"],"
          "\"gold\":\"{g}\"}]}",
     "forms[0].add.x: column 2: expected a column's name"},
    {HEAD "\"forms\":[{\"context\":\"{q}\",\"choices\":[\"a\",\"b\"],\"gold\":\"{g}\","
          "\"target\":\"{t}\"}]}",
     "forms[0].target: unknown parameter"},
    {HEAD "\"forms\":[{\"context\":\"q\",\"choices\":[\"a\",\"b\"],\"gold\":\"0\"}]}",
     "forms[0].context: the form reads no column"},
    {"{\"task\":\"t\",\"kind\":\"choice\",\"metrics\":[\"accc\"]," FORM "}",
     "metrics: no metric 'accc'; did you mean 'acc'?"},
    {"{\"task\":\"t\",\"kind\":\"choice\",\"metrics\":[\"perplexity\"]," FORM "}",
     "metrics: 'perplexity' cannot be had of a task of kind choice"},
    {"{\"task\":\"t\",\"kind\":\"choice\",\"metrics\":[\"acc\",\"acc\"]," FORM "}",
     "metrics: 'acc' is duplicated"},
    {"{\"task\":\"t\",\"kind\":\"choice\",\"metrics\":[]," FORM "}", "metrics: is empty"},
    {HEAD FORM ",\"shots\":-1}", "shots: -1 is not in 0 .. 64"},
    {HEAD FORM ",\"sampler\":\"last\"}", "sampler: \"last\" is not one of random, first"},
    {HEAD FORM ",\"until\":[\"x\"]}", "until: unknown parameter"},
    {HEAD FORM ",\"description\":\"{\"}", "description: column 2"},
    {HEAD FORM ",\"files\":[\"a.txt\"]}", "files: 'a.txt' ends neither in .jsonl nor in .csv"},
    {HEAD FORM ",\"files\":[\"../a.jsonl\"]}", "files: '../a.jsonl' leaves the folder"},
    {HEAD FORM ",\"split\":\"../a\"}", "split: '../a' leaves the folder"},
    {HEAD FORM ",\"fewshot_split\":\"/a\"}", "fewshot_split: '/a' leaves the folder"},
    {HEAD FORM ",\"files\":[\"<group>.csv\",\"a.csv\"]}", "files: all have <group> in them"},
    {HEAD FORM ",\"files\":[\"<group>/a.csv\"]}", "files: '<group>/a.csv': <group> is part of"},
    {HEAD FORM ",\"columns\":[\"q\",\"gg\"]}",
     "columns: no form can be filled from them: there is no 'g'"},
    {HEAD FORM ",\"parents\":{\"a\":[\"x\"],\"b\":[\"x\"]}}",
     "parents.b: 'x' has a parent already"},
    {GENHEAD GENFORM ",\"filters\":[{\"name\":\"n\",\"pattern\":\"(\"}]}", "filters[0].pattern: "},
    {GENHEAD GENFORM ",\"filters\":[{\"pattern\":\"x\"}]}", "filters[0].name: is required"},
    {GENHEAD GENFORM ",\"ignores\":[\"[\"]}", "ignores: "},
    {GENHEAD GENFORM ",\"until\":[\"\"]}", "until: [0] is not a text, or an empty one"},
    {GENHEAD GENFORM ",\"max_tokens\":0}", "max_tokens: 0 is not in 1 .. 4096"},
};

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("%s", bad[i].text);
        struct task_spec *spec = NULL;
        struct err err = {0};
        scratch_put(".", "bad.json", bad[i].text);
        assert_int_equal(task_spec_read("bad.json", &spec, &err), ERR_SYNTAX);
        assert_null(spec);
        const size_t n = strlen("bad.json: ");
        if (strncmp(err.msg, "bad.json: ", n) != 0 ||
            strncmp(err.msg + n, bad[i].why, strlen(bad[i].why)) != 0)
            fail_msg("%s: '%s' does not say '%s'", bad[i].text, err.msg, bad[i].why);
    }
}

static void test_unknown_name(void **state)
{
    (void)state;
    struct task_spec *spec = NULL;
    struct err err = {0};
    assert_int_equal(task_builtin_read("helaswag", &spec, &err), ERR_USAGE);
    assert_string_equal(err.msg, "'helaswag' is not known; did you mean 'hellaswag'?");
    assert_int_equal(task_builtin_read("xyzzy", &spec, &err), ERR_USAGE);
    assert_null(spec);
}

/* The digest is the meaning's, not the layout's. */
static void test_digest(void **state)
{
    (void)state;
    struct task_spec *a = NULL;
    struct task_spec *b = NULL;
    struct task_spec *c = NULL;
    struct err err = {0};
    static const char one[] = HEAD FORM "}";
    static const char two[] =
        "{ \"metrics\" : [\"acc\"],\n\"kind\":\"choice\",\"task\":\"t\"," FORM "}";
    static const char three[] = HEAD FORM ",\"shots\":1}";
    assert_int_equal(task_spec_parse(one, strlen(one), "one", &a, &err), 0);
    assert_int_equal(task_spec_parse(two, strlen(two), "two", &b, &err), 0);
    assert_int_equal(task_spec_parse(three, strlen(three), "three", &c, &err), 0);
    assert_true(digest_equal(&a->digest, &b->digest));
    assert_false(digest_equal(&a->digest, &c->digest));
    task_spec_free(a);
    task_spec_free(b);
    task_spec_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped),       cmocka_unit_test(test_as_the_harness_has_them),
        cmocka_unit_test(test_mmlu_parents),  cmocka_unit_test(test_bad),
        cmocka_unit_test(test_unknown_name),  cmocka_unit_test(test_digest),
        cmocka_unit_test(test_choose_groups),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
