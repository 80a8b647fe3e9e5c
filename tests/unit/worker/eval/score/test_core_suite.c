/* CORE's tasks and their suite: descriptions, records, groups and the texts sent to the model. */
#include "base/files/file.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "worker/eval/prompt/prompt.h"
#include "worker/eval/score/core_score.h"

#define HEAD "{\"task\":\"t\",\"style\":\"dclm\","
#define FORMS                                                                                      \
    "\"metrics\":[\"acc\"],\"forms\":[{\"context\":\"{context|strip}\",\"target\":\"{"             \
    "continuation}\"}]}"

static struct task_spec *builtin(const char *name)
{
    struct task_spec *spec = NULL;
    struct err err = {0};
    if (task_builtin_read(name, &spec, &err) != 0)
        fail_msg("%s", err.msg);
    return spec;
}

/* The 22 of DCLM's low_variance_datasets, with the baselines of both versions. */
static void test_members(void **state)
{
    (void)state;
    struct task_spec *core = builtin("core");
    size_t others = 0;
    assert_int_equal(core->n_members, CORE_MEMBERS);
    assert_false(core->needs_members);
    for (size_t i = 0; i < core->n_members; i++) {
        const struct task_spec *m = core->members[i];
        assert_int_equal(m->style, STYLE_DCLM);
        assert_int_equal(m->sampler, SAMPLER_DCLM);
        assert_int_equal(m->seed, 1234);
        assert_string_equal(m->shot_delimiter, "\n");
        others += m->baselines[BASELINE_V1] < m->baselines[BASELINE_V2] ||
                  m->baselines[BASELINE_V1] > m->baselines[BASELINE_V2];
    }
    assert_int_equal(others, 3);
    assert_string_equal(task_spec_member_name(core, 0), "hellaswag_zeroshot");
    task_spec_free(core);
}

static void test_choice_of_members(void **state)
{
    (void)state;
    static const struct {
        const char *names[3];
        size_t n;
        const char *message;
    } bad[] = {
        {{"piqa", "piqqa"}, 2, "core has no member 'piqqa'; did you mean 'piqa'?"},
        {{"core_piqa"}, 1, "core has no member 'core_piqa'"},
        {{"piqa", "copa", "piqa"}, 3, "'piqa' is duplicated"},
        {{NULL}, 0, "no member is named"},
    };
    static const char *const good[] = {"squad", "copa", "piqa"};
    struct err err = {0};
    struct task_spec *core = builtin("core");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("%s", bad[i].names[0]);
        assert_int_equal(task_spec_choose_members(core, bad[i].names, bad[i].n, &err), ERR_USAGE);
        assert_string_equal(err.msg, bad[i].message);
        assert_int_equal(core->n_members, CORE_MEMBERS);
    }
    assert_int_equal(task_spec_choose_members(core, good, ARRAY_LEN(good), &err), 0);
    assert_int_equal(core->n_members, 3);
    assert_string_equal(task_spec_member_name(core, 0), "copa"); /* the suite's order */
    assert_string_equal(task_spec_member_name(core, 1), "piqa");
    assert_string_equal(task_spec_member_name(core, 2), "squad");
    assert_true(core->needs_members);
    task_spec_free(core);
}

static void test_bad_descriptions(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {
        {HEAD "\"kind\":\"generate\"," FORMS,
         "t.json: style: 'dclm' has no tasks of kind generate"},
        {HEAD "\"kind\":\"likelihood\",\"baseline\":100," FORMS, "t.json: baseline: "},
        {"{\"task\":\"t\",\"kind\":\"likelihood\",\"baseline\":25," FORMS, "t.json: baseline: "},
        {"{\"task\":\"t\",\"members\":[]}", "t.json: members: is empty"},
        {"{\"task\":\"t\",\"members\":[\"core_pika\"]}",
         "t.json: members: 'core_pika' is not known; did you mean 'core_piqa'?"},
        {"{\"task\":\"t\",\"members\":[\"piqa\"]}",
         "t.json: members: 'piqa' is not a task of style dclm"},
        {"{\"task\":\"t\",\"members\":[\"core\"]}",
         "t.json: members: 'core' is not a task of style dclm"},
        {"{\"task\":\"t\",\"members\":[\"core_piqa\",\"core_piqa\"]}",
         "t.json: members: 'core_piqa' is duplicated"},
        {"{\"task\":\"t\",\"members\":[\"core_piqa\"],\"kind\":\"choice\"}", "t.json: kind: "},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("bad[%zu]", i);
        struct task_spec *spec = NULL;
        struct err err = {0};
        assert_int_equal(task_spec_parse(bad[i].text, strlen(bad[i].text), "t.json", &spec, &err),
                         ERR_SYNTAX);
        if (strncmp(err.msg, bad[i].message, strlen(bad[i].message)) != 0)
            fail_msg("%zu: %s", i, err.msg);
        assert_null(spec);
    }
}

static void write_files(void)
{
    struct err err = {0};
    assert_int_equal(dir_make("core", 0755, &err), 0);
    assert_int_equal(dir_make("more", 0755, &err), 0);
    scratch_put(
        ".", "core/copa.jsonl",
        "{\"query\": \" It rained, therefore \", \"choices\": [\"a\", \"b \"], \"gold\": 1}\n");
    scratch_put(".", "core/winograd_wsc.jsonl",
                "{\"context_options\": [\"The cat \", \"The dog\"], \"continuation\": \" ran. \", "
                "\"gold\": 0}\n");
    scratch_put(".", "core/jeopardy_all.jsonl",
                "{\"context\": \"z1\", \"continuation\": \"Z1\", \"category\": \"zoo\"}\n"
                "{\"context\": \"a1\", \"continuation\": \"A1\", \"category\": \"art\"}\n"
                "{\"context\": \"z2\", \"continuation\": \"Z2\", \"category\": \"zoo\"}\n"
                "{\"context\": \"z3\", \"continuation\": \"Z3\", \"category\": \"zoo\"}\n");
    scratch_put(
        ".", "more/hellaswag_val.jsonl",
        "{\"ind\": 0, \"activity_label\": \"Roof\", \"ctx_a\": \"A man sits.\", \"ctx_b\": "
        "\"he\", \"endings\": [\"is  up.\", \"[step] falls.\", \"c\", \"d\"], \"label\": 1}\n");
}

static void test_suite_items(void **state)
{
    (void)state;
    static const struct {
        const char *name, *parent;
        size_t first, n;
    } groups[] = {
        {"hellaswag_zeroshot", "hellaswag_zeroshot", 0, 1},
        {"jeopardy/art", "jeopardy", 1, 1},
        {"jeopardy/zoo", "jeopardy", 2, 3},
        {"copa", "copa", 5, 1},
        {"hellaswag", "hellaswag", 6, 1},
        {"winograd", "winograd", 7, 1},
    };
    static const unsigned lines[] = {1, 2, 1, 3, 4, 1, 1, 1};
    const struct item_source src = {.path = "core", .more = "more", .split = ""};
    struct task_spec *core = builtin("core");
    struct item_set set;
    struct err err = {0};
    item_set_init(&set);
    assert_int_equal(item_set_read(&set, core, &src, &err), 0);
    assert_int_equal(set.n_groups, ARRAY_LEN(groups));
    for (size_t g = 0; g < set.n_groups; g++) {
        assert_string_equal(set.groups[g].name, groups[g].name);
        assert_string_equal(set.groups[g].parent, groups[g].parent);
        assert_int_equal(set.groups[g].first, groups[g].first);
        assert_int_equal(set.groups[g].n, groups[g].n);
        for (size_t i = 0; i < groups[g].n; i++)
            assert_int_equal(set.items[groups[g].first + i].group, g);
    }
    assert_int_equal(set.n, ARRAY_LEN(lines));
    for (size_t i = 0; i < set.n; i++)
        assert_int_equal(set.items[i].line, lines[i]);
    assert_string_equal(set.items[0].context, "Roof: A man sits. He");
    assert_string_equal(set.items[0].options[0], "is up.");
    assert_string_equal(set.items[0].options[1], " falls.");
    item_set_release(&set);
    task_spec_free(core);
}

static void test_absent(void **state)
{
    (void)state;
    static const char *const wanted[] = {"copa", "squad"};
    struct item_source src = {.path = "core", .split = ""};
    struct task_spec *core = builtin("core");
    struct item_set set;
    struct err err = {0};
    item_set_init(&set);
    assert_int_equal(task_spec_choose_members(core, wanted, 2, &err), 0);
    assert_int_equal(item_set_read(&set, core, &src, &err), ERR_NOT_FOUND);
    assert_string_equal(err.msg,
                        "core_squad: core: no eval_data/reading_comprehension/squad.jsonl, "
                        "reading_comprehension/squad.jsonl, squad.jsonl in it");
    core->needs_members = false;
    src.path = "more";
    assert_int_equal(item_set_read(&set, core, &src, &err), ERR_NOT_FOUND);
    assert_string_equal(err.msg, "more: no file of any member of core");
    src.path = "core/copa.jsonl";
    assert_int_equal(item_set_read(&set, core, &src, &err), ERR_NOT_FOUND);
    assert_string_equal(err.msg, "core/copa.jsonl: not a folder with the files of core");
    item_set_release(&set);
    task_spec_free(core);
}

struct text_case {
    const char *task;
    int shots;
    size_t item, option;
    const char *preamble, *context, *continuation;
};

/* Of zoo's three records, two as examples: with the third's, whose draw is {0, 1, 2} less itself.
 */
static const struct text_case texts[] = {
    {"core_copa", -1, 0, 0, "", "It rained, therefore", "a"},
    {"core_copa", 10, 0, 1, "", "It rained, therefore", "b "},
    {"core_winograd", -1, 0, 0, "", "The cat ", "ran."},
    {"core_winograd", -1, 0, 1, "", "The dog", "ran."},
    {"core_jeopardy", 0, 1, 0, "", "z1\nAnswer:", "Z1"},
    {"core_jeopardy", 2, 0, 0, "", "a1\nAnswer:", "A1"}, /* alone in its category */
    {"core_jeopardy", 2, 1, 0, "z2\nAnswer: Z2\nz3\nAnswer: Z3", "\nz1\nAnswer:", "Z1"},
    {"core_jeopardy", 10, 3, 0, "z1\nAnswer: Z1\nz2\nAnswer: Z2", "\nz3\nAnswer:", "Z3"},
};

static void check_text(const struct task_spec *spec, const struct text_case *c)
{
    const struct item_source src = {.path = "core", .split = ""};
    const struct prompt_rules rules = {.shots = c->shots};
    struct item_set set;
    struct prompts prompts;
    struct request_text text;
    struct err err = {0};
    item_set_init(&set);
    request_text_init(&text);
    assert_int_equal(item_set_read(&set, spec, &src, &err), 0);
    assert_int_equal(prompts_init(&prompts, &set, &set, &rules, &err), 0);
    prompt_request(&prompts, c->item, c->option, &text);
    assert_string_equal(text.preamble.buf, c->preamble);
    assert_string_equal(text.context.buf, c->context);
    assert_string_equal(text.continuation.buf, c->continuation);
    request_text_release(&text);
    prompts_release(&prompts);
    item_set_release(&set);
}

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CHECK_ROW("%s", texts[i].task);
        struct task_spec *spec = builtin(texts[i].task);
        check_text(spec, &texts[i]);
        task_spec_free(spec);
    }
}

/* A schema after examples: the delimiter at the end of the context, without its blank; a
 * description is what the first example is parted from. */
static void test_schema_shots(void **state)
{
    (void)state;
    static const char description[] =
        "{\"task\":\"t\",\"style\":\"dclm\",\"kind\":\"context\",\"shots\":1,\"description\":"
        "\"Fill in.\","
        "\"delimiter\":\" -> "
        "\",\"metrics\":[\"acc\"],\"forms\":[{\"contexts\":\"{context_options}\","
        "\"target\":\"{continuation|strip}\",\"gold\":\"{gold}\"}]}";
    static const char records[] =
        "{\"context_options\": [\"p\", \"q \"], \"continuation\": \"r\", \"gold\": 1}\n"
        "{\"context_options\": [\"s\", \"t\"], \"continuation\": \"u\", \"gold\": 0}\n";
    const struct prompt_rules rules = {.shots = -1};
    struct task_spec *spec = NULL;
    struct item_set set;
    struct prompts prompts;
    struct request_text text;
    struct err err = {0};
    item_set_init(&set);
    request_text_init(&text);
    assert_int_equal(task_spec_parse(description, strlen(description), "t", &spec, &err), 0);
    assert_int_equal(item_set_parse_jsonl(&set, spec, records, strlen(records), &err), 0);
    assert_int_equal(prompts_init(&prompts, &set, &set, &rules, &err), 0);
    prompt_request(&prompts, 1, 1, &text);
    assert_string_equal(text.preamble.buf, "Fill in.\nq  -> r");
    assert_string_equal(text.context.buf, "\nt ->");
    assert_string_equal(text.continuation.buf, "u");
    request_text_release(&text);
    prompts_release(&prompts);
    item_set_release(&set);
    task_spec_free(spec);
}

static int set_up(void **state)
{
    int rc = scratch_enter(state);
    if (rc == 0)
        write_files();
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),          cmocka_unit_test(test_choice_of_members),
        cmocka_unit_test(test_bad_descriptions), cmocka_unit_test(test_suite_items),
        cmocka_unit_test(test_absent),           cmocka_unit_test(test_texts),
        cmocka_unit_test(test_schema_shots),
    };
    return cmocka_run_group_tests(tests, set_up, scratch_leave);
}
