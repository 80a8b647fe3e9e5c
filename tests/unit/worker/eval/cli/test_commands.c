/* prereg-eval tasks and show, as a user runs them. */
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/machine/proc.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "worker/eval/task/spec.h"

#define PROGRAM  TEST_BIN_DIR "/prereg-eval"
#define ARGS_MAX 16

/* Runs it with the words of `arguments`; result is to be released. */
static void run(const char *arguments, struct proc_result *result)
{
    const char *argv[ARGS_MAX] = {PROGRAM};
    struct err err = {0};
    char *words = xstrdup(arguments);
    char *rest = NULL;
    size_t n = 1;
    for (char *w = strtok_r(words, " ", &rest); w != NULL; w = strtok_r(NULL, " ", &rest)) {
        assert_true(n + 1 < ARGS_MAX);
        argv[n++] = w;
    }
    const struct proc_spec spec = {.argv = argv, .timeout_ms = 30000, .max_out_bytes = 1u << 20};
    if (proc_run(&spec, result, &err) != 0)
        fail_msg("%s", err.msg);
    free(words);
}

static void test_tasks(void **state)
{
    (void)state;
    struct proc_result result = {0};
    run("tasks", &result);
    assert_int_equal(result.code, 0);
    const char *at = result.out.buf; /* by name, each at the start of a line */
    for (size_t i = 0; i < task_builtin_count(); i++) {
        char *head = xasprintf("%s%s  ", i == 0 ? "" : "\n", task_builtin_name(i));
        at = strstr(at, head);
        if (at == NULL)
            fail_msg("%s is not listed, or not in its place", task_builtin_name(i));
        free(head);
    }
    assert_non_null(strstr(result.out.buf, "test/<group>_test.csv or test/<group>.jsonl"));
    proc_result_release(&result);
}

/* What is printed is the file, and can be checked again. */
static void test_description(void **state)
{
    (void)state;
    struct proc_result result = {0};
    struct strbuf file = STRBUF_INIT;
    struct err err = {0};
    run("tasks gsm8k", &result);
    assert_int_equal(result.code, 0);
    assert_int_equal(file_read(TEST_SOURCE_DIR "/worker/eval/task/shipped/gsm8k.json",
                               SPEC_FILE_MAX, &file, &err),
                     0);
    assert_string_equal(result.out.buf, file.buf);
    scratch_put(".", "mine.json", result.out.buf);
    proc_result_release(&result);
    run("tasks --check mine.json", &result);
    assert_int_equal(result.code, 0);
    assert_non_null(strstr(result.out.buf, "exact_match:strict, exact_match:flexible"));
    proc_result_release(&result);
    strbuf_release(&file);
}

static void test_instruction_set(void **state)
{
    (void)state;
    struct proc_result result = {0};
    assert_int_equal(setenv("PREREG_CPU", "avx1024", 1), 0);
    run("tasks gsm8k", &result);
    assert_int_equal(result.code, 64);
    assert_non_null(
        strstr(result.err.buf, "PREREG_CPU=avx1024: expected baseline, avx2, avx512 or neon"));
    proc_result_release(&result);
    assert_int_equal(setenv("PREREG_CPU", "baseline", 1), 0);
    run("tasks gsm8k", &result);
    assert_int_equal(result.code, 0);
    proc_result_release(&result);
    assert_int_equal(setenv("PREREG_BFLOAT16", "yes", 1), 0);
    run("tasks gsm8k", &result);
    assert_int_equal(result.code, 64);
    assert_non_null(strstr(result.err.buf, "PREREG_BFLOAT16=yes: needs avx512, and the kernels are "
                                           "baseline"));
    proc_result_release(&result);
    assert_int_equal(unsetenv("PREREG_BFLOAT16"), 0);
    assert_int_equal(unsetenv("PREREG_CPU"), 0);
}

static void write_task(void)
{
    scratch_put(".", "t.json",
                "{\"task\":\"t\",\"kind\":\"choice\",\"metrics\":[\"acc\"],\"forms\":[{"
                "\"context\":\"{q}\",\"choices\":\"{c}\",\"gold\":\"{g}\"}]}");
    scratch_put(".", "t.jsonl",
                "{\"q\":\"a\",\"c\":[\"x\",\"yz\"],\"g\":0}\n"
                "{\"q\":\"\xc3\xa9? \",\"c\":[\"x\",\"yz\"],\"g\":1}\n");
}

static void test_show(void **state)
{
    (void)state;
    struct proc_result result = {0};
    write_task();
    run("show --task-file t.json --data t.jsonl --item 1 --tokenizer bytes", &result);
    assert_int_equal(result.code, 0);
    assert_string_equal(result.out.buf,
                        "t, version 1.0: item 1 of 2, line 2\n"
                        "gold     1\n"
                        "record   {\"q\":\"\xc3\xa9? \",\"c\":[\"x\",\"yz\"],\"g\":1}\n"
                        "==== prompt, 4 bytes\n"
                        "\xc3\xa9? \n"
                        "==== end of the prompt\n"
                        "continuation 0 \" x\"\n"
                        "continuation 1* \" yz\"\n"
                        "==== request 0: 6 tokens, scored from token 3\n"
                        "    195 \\xc3\n"
                        "    169 \\xa9\n"
                        "     63 \"?\"\n"
                        "  -- scored from here\n"
                        "     32 \" \"\n"
                        "     32 \" \"\n"
                        "    120 \"x\"\n"
                        "==== request 1: 7 tokens, scored from token 3\n"
                        "        the first 3 as in the request before\n"
                        "  -- scored from here\n"
                        "     32 \" \"\n"
                        "     32 \" \"\n"
                        "    121 \"y\"\n"
                        "    122 \"z\"\n");
    proc_result_release(&result);
}

/* An example, tokens and what is cut off, for programs. */
static void test_show_json(void **state)
{
    (void)state;
    struct proc_result result = {0};
    struct err err = {0};
    cJSON *line = NULL;
    write_task();
    run("show --task-file t.json --data t.jsonl --shots 1 --count 9 --tokenizer bytes --context 6 "
        "--json",
        &result);
    assert_int_equal(result.code, 0);
    const char *feed = strchr(result.out.buf, '\n');
    assert_non_null(feed);
    assert_string_equal(strchr(feed + 1, '\n'), "\n"); /* two lines are all there are */
    assert_int_equal(json_parse(result.out.buf, (size_t)(feed - result.out.buf), &line, &err), 0);
    const cJSON *texts = json_member(line, "texts");
    const cJSON *requests = json_member(line, "requests");
    assert_int_equal(cJSON_GetArraySize(texts), 2);
    assert_int_equal(cJSON_GetArraySize(requests), 2);
    const char *preamble = json_member(texts->child, "preamble")->valuestring;
    assert_string_equal(preamble, "\xc3\xa9?  yz\n\n");
    assert_string_equal(json_member(texts->child, "context")->valuestring, "a");
    assert_string_equal(json_member(texts->child, "continuation")->valuestring, " x");
    /* 9 + 1 + 2 bytes, of which the last 7 stay */
    assert_int_equal(cJSON_GetArraySize(json_member(requests->child, "tokens")), 7);
    assert_int_equal(json_member(requests->child, "first")->valueint, 5);
    assert_int_equal(json_member(requests->child, "cut")->valueint, 5);
    cJSON_Delete(line);
    proc_result_release(&result);
}

/* Of a folder that has some of MMLU's subjects. */
static void test_show_groups(void **state)
{
    (void)state;
    struct proc_result result = {0};
    scratch_put(".", "m/test/anatomy_test.csv", "Ribs?,1,2,3,4,A\n");
    scratch_put(".", "m/test/virology_test.csv", "Q,1,2,3,4,B\nFlu?,1,2,3,4,B\n");
    run("show mmlu --data m --groups anatomy,virology --group virology --item 1", &result);
    assert_int_equal(result.code, 0);
    assert_non_null(strstr(result.out.buf, "item 2 of 3, line 2\ngroup    virology (other)\n"));
    proc_result_release(&result);
    run("show mmlu --data m --groups virology", &result);
    assert_int_equal(result.code, 0);
    assert_non_null(strstr(result.out.buf, "item 0 of 2, line 1\ngroup    virology (other)\n"));
    proc_result_release(&result);
    run("show mmlu --data m", &result);
    assert_int_equal(result.code, 65);
    assert_non_null(strstr(result.err.buf, "55 of 57 groups of mmlu are missing"));
    proc_result_release(&result);
}

static const struct {
    const char *arguments;
    int code;
    const char *why;
} refused[] = {
    {"tasks helaswag", 64, "'helaswag' is not known; did you mean 'hellaswag'?"},
    {"tasks a b", 64, "tasks takes one name"},
    {"tasks --chek t.json", 64, "unknown option '--chek'"},
    {"tasks --check broken.json", 65, "broken.json: forms[0].gold: is required"},
    {"tasks --check absent.json", 65, "absent.json"},
    {"show", 64, "show takes the name of a task, or --task-file"},
    {"show hellaswag", 64, "show needs --data"},
    {"show helaswag --data t.jsonl", 64, "did you mean 'hellaswag'?"},
    {"show hellaswag --task-file t.json --data t.jsonl", 64, "show takes the name"},
    {"show --task-file t.json --data t.jsonl --item 2", 64, "--item 2: there are 2"},
    {"show --task-file t.json --data t.jsonl --item x", 64, "--item: "},
    {"show --task-file t.json --data t.jsonl --group g", 64, "--group: there is no 'g'"},
    {"show --task-file t.json --data t.jsonl --shots 2", 64, "3 examples wanted of 2"},
    {"show --task-file t.json --data t.jsonl --harness 0.3", 64, "harness"},
    {"show gsm8k --data t.jsonl", 65, "t.jsonl: line 1 (item 1): is not an item of gsm8k"},
    {"show --task-file broken.json --data t.jsonl", 64, "forms[0].gold: is required"},
};

static void test_refused(void **state)
{
    (void)state;
    write_task();
    scratch_put(".", "broken.json",
                "{\"task\":\"t\",\"kind\":\"choice\",\"metrics\":[\"acc\"],"
                "\"forms\":[{\"context\":\"{q}\",\"choices\":\"{c}\"}]}");
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        CHECK_ROW("%s", refused[i].arguments);
        struct proc_result result = {0};
        run(refused[i].arguments, &result);
        if (result.code != refused[i].code || strstr(result.err.buf, refused[i].why) == NULL)
            fail_msg("%s: exit %d, %s", refused[i].arguments, result.code, result.err.buf);
        assert_string_equal(result.out.buf, "");
        proc_result_release(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks),           cmocka_unit_test(test_description),
        cmocka_unit_test(test_instruction_set), cmocka_unit_test(test_show),
        cmocka_unit_test(test_show_json),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_show_groups),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
