/* From what a model says to CORE: which answer is chosen, the metrics' names and values, which
 * items are asked. The model is one whose answers can be worked out by hand. */
#include <math.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "worker/eval/score/benchmark.h"
#include "worker/eval/score/core_summary.h"
#include "worker/eval/score/scorer.h"
#include "worker/report/params.h"

static int make_files(void **state)
{
    int rc = scratch_enter(state);
    struct err err = {0};
    if (rc != 0)
        return rc;
    assert_int_equal(dir_make("core", 0755, &err), 0);
    assert_int_equal(dir_make("more", 0755, &err), 0);
    scratch_put(
        ".", "core/copa.jsonl",
        "{\"query\": \"It rained, therefore\", \"choices\": [\"a\", \"bb\"], \"gold\": 1}\n"
        "{\"query\": \"It shone, therefore\", \"choices\": [\"bb\", \"bbb\"], \"gold\": 1}\n");
    scratch_put(".", "core/jeopardy_all.jsonl",
                "{\"context\": \"z1\", \"continuation\": \"g\", \"category\": \"zoo\"}\n"
                "{\"context\": \"a1\", \"continuation\": \"gg\", \"category\": \"art\"}\n"
                "{\"context\": \"z2\", \"continuation\": \"x\", \"category\": \"zoo\"}\n"
                "{\"context\": \"z3\", \"continuation\": \"x\", \"category\": \"zoo\"}\n");
    scratch_put(".", "more/winograd_wsc.jsonl",
                "{\"context_options\": [\"The cat\", \"The dog\"], \"continuation\": \"ran.\", "
                "\"gold\": 0}\n");
    return 0;
}

/* Every token of an answer costs 1 where it begins with "a", 0.75 elsewhere; "g" is greedy. */
static int score(void *self, struct score_request *r, size_t n, bool (*asked)(void),
                 struct err *err)
{
    (void)self;
    (void)asked;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const uint32_t begins = r[i].tokens[r[i].first];
        r[i].sum = -(begins == 'a' ? 1.0 : 0.75) * (double)(r[i].n - r[i].first);
        r[i].greedy = begins == 'g';
    }
    return 0;
}

struct asked {
    struct worker_task task;
    struct eval_options options;
    struct param_faults faults;
    struct benchmark bench;
    struct judge judge;
    struct summary summary;
    struct tokenizer *tok;
};

static void open_task(struct asked *a, const char *params)
{
    struct err err = {0};
    cJSON *json = NULL;
    char *text =
        xasprintf("{\"protocol\":1,\"threads\":1,\"params\":%s,\"data\":{\"core\":{\"path\":"
                  "\"core\"},\"more\":{\"path\":\"more\"},\"model\":{\"path\":\"none\"}}}",
                  params);
    *a = (struct asked){.task = {0}};
    if (json_parse(text, strlen(text), &json, &err) != 0 ||
        task_from_json(json, &a->task, &err) != 0)
        fail_msg("%s", err.msg);
    free(text);
    eval_options_read(&a->task, &a->options, &a->faults);
}

static void close_task(struct asked *a)
{
    summary_release(&a->summary);
    judge_release(&a->judge);
    benchmark_release(&a->bench);
    eval_options_release(&a->options);
    param_faults_release(&a->faults);
    tokenizer_free(a->tok);
    task_release(&a->task);
}

static void ask(struct asked *a, const char *params)
{
    struct scorer scorer;
    struct err err = {0};
    size_t n = 0;
    open_task(a, params);
    if (a->faults.n > 0)
        fail_msg("%s: %s", a->faults.items[0].key, a->faults.items[0].why);
    if (benchmark_load(&a->bench, &a->options, &err) != 0)
        fail_msg("%s", err.msg);
    assert_int_equal(judge_init(&a->judge, &a->bench.set, NULL, &err), 0);
    assert_int_equal(tokenizer_open(TOKENIZER_BYTES, &a->tok, &err), 0);
    summary_init(&a->summary, &a->judge);
    const struct lm lm = {.tok = a->tok, .context = 64, .score = score};
    const struct scorer_setup setup = {.prompts = &a->bench.prompts,
                                       .judge = &a->judge,
                                       .lm = &lm,
                                       .rules = {.tok = a->tok, .max_length = 64}};
    assert_int_equal(scorer_init(&scorer, &setup, &err), 0);
    for (size_t done = 0; done < a->bench.n_selected; done += n) {
        assert_int_equal(
            scorer_ask(&scorer, a->bench.selected + done, a->bench.n_selected - done, &n, &err), 0);
        for (size_t i = 0; i < n; i++)
            if (scorer.outcomes[i].fault[0] == '\0')
                summary_add(&a->summary, a->bench.selected[done + i], &scorer.outcomes[i]);
    }
    const struct summary_rules rules = {.baselines = a->options.baselines};
    assert_int_equal(summary_finish(&a->summary, &rules, &err), 0);
    scorer_release(&scorer);
}

struct expected {
    const char *name;
    double value; /* NAN: none */
    size_t n;
    const char *why;
};

static void check(const struct asked *a, const struct expected *expected, size_t n)
{
    assert_int_equal(a->summary.n, n);
    for (size_t i = 0; i < n; i++) {
        const struct summary_entry *e = &a->summary.entries[i];
        assert_string_equal(e->name, expected[i].name);
        assert_int_equal(e->score.n, expected[i].n);
        if (expected[i].why != NULL)
            assert_string_equal(e->why, expected[i].why);
        else if (e->why != NULL || !(fabs(e->score.value - expected[i].value) < 1e-15))
            fail_msg("%s: %.17g is not %.17g", e->name, e->score.value, expected[i].value);
    }
}

/* copa: by the sum "a" would win the first item (-1 against -1.5), by the mean a token "bb" does;
 * the second is a tie, which the first choice wins. jeopardy: art 1 of 1, zoo 1 of 3. */
static void test_suite(void **state)
{
    (void)state;
    static const struct expected expected[] = {
        {"core", 0.0, 7, CORE_WHY_ABSENT},
        {"core_partial", (2.0 / 3.0 + 0.0 + 1.0) / 3.0, 7, NULL},
        {"acc:jeopardy", 2.0 / 3.0, 4, NULL},
        {"centered:jeopardy", 2.0 / 3.0, 4, NULL},
        {"acc:jeopardy/art", 1.0, 1, NULL},
        {"acc:jeopardy/zoo", 1.0 / 3.0, 3, NULL},
        {"acc:copa", 0.5, 2, NULL},
        {"centered:copa", 0.0, 2, NULL},
        {"acc:winograd", 1.0, 1, NULL},
        {"centered:winograd", 1.0, 1, NULL},
    };
    struct asked a;
    struct strbuf absent = STRBUF_INIT;
    ask(&a, "{\"task\":\"core\",\"more_data\":\"more\",\"shots\":0}");
    check(&a, expected, ARRAY_LEN(expected));
    assert_int_equal(core_summary_absent(a.options.spec, &a.bench.set, &absent), 3);
    assert_true(strncmp(absent.buf, "hellaswag_zeroshot, bigbench_qa_wikidata, ", 42) == 0);
    strbuf_release(&absent);
    close_task(&a);
}

static void test_one_task(void **state)
{
    (void)state;
    static const struct expected copa[] = {{"acc", 0.5, 2, NULL}, {"centered", 0.0, 2, NULL}};
    static const struct expected jeopardy[] = {{"acc", 2.0 / 3.0, 4, NULL},
                                               {"centered", 2.0 / 3.0, 4, NULL},
                                               {"acc:art", 1.0, 1, NULL},
                                               {"acc:zoo", 1.0 / 3.0, 3, NULL}};
    struct asked a;
    ask(&a, "{\"task\":\"core_copa\",\"data\":\"core\"}");
    check(&a, copa, ARRAY_LEN(copa));
    close_task(&a);
    ask(&a, "{\"task\":\"core_jeopardy\",\"data\":\"core\"}");
    check(&a, jeopardy, ARRAY_LEN(jeopardy));
    close_task(&a);
}

/* So many of each category, not of all together; the prompts stay those of the whole. */
static void test_limit(void **state)
{
    (void)state;
    static const size_t of_each[] = {0, 1};
    static const size_t two_of_each[] = {0, 1, 2};
    struct asked a;
    ask(&a, "{\"task\":\"core_jeopardy\",\"data\":\"core\",\"limit\":1}");
    assert_int_equal(a.bench.n_selected, 2);
    assert_memory_equal(a.bench.selected, of_each, sizeof(of_each));
    close_task(&a);
    ask(&a, "{\"task\":\"core_jeopardy\",\"data\":\"core\",\"limit\":2}");
    assert_int_equal(a.bench.n_selected, 3);
    assert_memory_equal(a.bench.selected, two_of_each, sizeof(two_of_each));
    close_task(&a);
    ask(&a, "{\"task\":\"core_jeopardy\",\"data\":\"core\",\"items\":{\"count\":2,\"seed\":0}}");
    assert_int_equal(a.bench.n_selected, 3);
    assert_int_equal(a.bench.selected[0], 0);
    assert_true(a.bench.selected[1] >= 1 && a.bench.selected[1] < a.bench.selected[2]);
    close_task(&a);
}

/* A member all of whose items are at fault has no accuracy, and then there is no mean. */
static void test_no_items(void **state)
{
    (void)state;
    struct asked a;
    scratch_put(".", "core/boolq.jsonl",
                "{\"query\": \"q\", \"choices\": [\"no\", \"\"], \"gold\": 0}\n");
    ask(&a, "{\"task\":\"core\",\"members\":[\"copa\",\"boolq\"]}");
    assert_string_equal(a.summary.entries[0].why, CORE_WHY_ABSENT);
    assert_string_equal(a.summary.entries[1].name, "core_partial");
    assert_string_equal(a.summary.entries[1].why, CORE_WHY_EMPTY);
    assert_int_equal(a.summary.entries[1].score.n, 2);
    close_task(&a);
    assert_int_equal(remove("core/boolq.jsonl"), 0);
}

static void test_faults(void **state)
{
    (void)state;
    static const struct {
        const char *params, *key, *why;
    } bad[] = {
        {"{\"task\":\"core\",\"members\":\"copa\"}", "members",
         "expected a list of at most 256 names"},
        {"{\"task\":\"core\",\"members\":[\"cope\"]}", "members",
         "core has no member 'cope'; did you mean 'copa'?"},
        {"{\"task\":\"core\",\"baselines\":\"v3\"}", "baselines", NULL},
        {"{\"task\":\"core\",\"more_data\":\"moore\"}", "more_data", NULL},
        {"{\"task\":\"core\",\"fewshot_data\":\"more\"}", "fewshot_data", NULL},
        {"{\"task\":\"core_copa\",\"data\":\"core\",\"split\":\"test\"}", "split", NULL},
        {"{\"task\":\"core_copa\",\"data\":\"core\",\"members\":[\"copa\"]}", "members", NULL},
        {"{\"task\":\"piqa\",\"data\":\"core\",\"baselines\":\"v1\"}", "baselines", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("bad[%zu]", i);
        struct asked a;
        open_task(&a, bad[i].params);
        if (a.faults.n != 1)
            fail_msg("%zu: %zu faults", i, a.faults.n);
        assert_string_equal(a.faults.items[0].key, bad[i].key);
        if (bad[i].why != NULL)
            assert_string_equal(a.faults.items[0].why, bad[i].why);
        close_task(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_suite),  cmocka_unit_test(test_one_task),
        cmocka_unit_test(test_limit),  cmocka_unit_test(test_no_items),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, make_files, scratch_leave);
}
