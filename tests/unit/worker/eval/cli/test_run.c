/* The program itself: killed, resumed, on a full disk, given bad things. */
#include <math.h>
#include <signal.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/machine/proc.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/eval/cli/run_job.h"

static void test_whole_run(void **state)
{
    (void)state;
    const struct job job = {.folder = "whole", .params = CHOICES};
    struct end end = run_job(&job);
    assert_int_equal(end.code, 0);
    static const char *const names[] = {"acc", "acc_norm"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CHECK_ROW("%s", names[i]);
        cJSON *metric = run_read_metric("whole", names[i]);
        double value = json_member(metric, "value")->valuedouble;
        double se = json_member(metric, "se")->valuedouble;
        assert_int_equal((int)json_member(metric, "n")->valuedouble, N_ITEMS);
        assert_true(value > 0.1 && value < 0.9); /* random weights, three choices */
        assert_true(fabs(se - sqrt(value * (1 - value) / (N_ITEMS - 1))) < 1e-12);
        cJSON_Delete(metric);
    }
    struct strbuf text = STRBUF_INIT;
    run_read_text("whole", "items.jsonl", &text);
    unsigned lines = 0;
    for (const char *at = text.buf; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_int_equal(lines, N_ITEMS + 1);
    run_read_text("whole", "events.jsonl", &text);
    assert_null(strstr(text.buf, "acc"));
    strbuf_release(&text);
}

/* Killed at many instants, always going on from the attempt before; the end is the same bytes. */
static void test_killed_and_resumed(void **state)
{
    (void)state;
    const struct job plain = {.folder = "plain", .params = CHOICES};
    assert_int_equal(run_job(&plain).code, 0);
    char *folder = NULL;
    char *before = NULL;
    int n_killed = 0;
    for (int i = 0; i < 60; i++) {
        free(before);
        before = folder;
        folder = xasprintf("killed-%d", i);
        const struct job job = {
            .folder = folder, .params = CHOICES, .resume = before, .kill_after_ms = 12 + 7 * i};
        struct end end = run_job(&job);
        if (end.signal == 0) {
            assert_int_equal(end.code, 0);
            break;
        }
        n_killed++;
    }
    assert_in_range(n_killed, 1, 59);
    run_assert_same_file("plain", folder, "items.jsonl");
    cJSON *a = run_read_metric("plain", "acc");
    cJSON *b = run_read_metric(folder, "acc");
    assert_true(cJSON_Compare(a, b, true));
    cJSON_Delete(a);
    cJSON_Delete(b);
    free(before);
    free(folder);
}

static void copy_sums(const char *from, const char *to)
{
    struct strbuf sums = STRBUF_INIT;
    char *path = path_join(to, "items.sums");
    run_read_text(from, "items.sums", &sums);
    scratch_put(".", path, sums.buf);
    free(path);
    strbuf_release(&sums);
}

/* An earlier attempt's file cut at any byte, in the middle of a line or of a write of many, gives
 * the same end. */
static void test_torn_items(void **state)
{
    (void)state;
    const struct job first = {.folder = "torn-0", .params = CHOICES};
    assert_int_equal(run_job(&first).code, 0);
    struct strbuf text = STRBUF_INIT;
    run_read_text("torn-0", "items.jsonl", &text);
    const size_t header = (size_t)(strchr(text.buf, '\n') - text.buf);
    struct strbuf sums = STRBUF_INIT;
    run_read_text("torn-0", "items.sums", &sums);
    const size_t batch = strtoul(strchr(sums.buf, '\n') + 1, NULL, 10); /* ends the first batch */
    assert_in_range(batch, header + 1, text.len);
    strbuf_release(&sums);
    for (size_t i = 0; i < 24; i++) {
        const size_t cut = i < 4 ? header - 1 + i : (i * 2654435761u) % text.len;
        char *half = xstrndup(text.buf, cut);
        scratch_put(".", "torn-1/items.jsonl", half);
        copy_sums("torn-0", "torn-1");
        const struct job next = {.folder = "torn-2", .params = CHOICES, .resume = "torn-1"};
        assert_int_equal(run_job(&next).code, 0);
        run_assert_same_file("torn-0", "torn-2", "items.jsonl");
        if (cut >= batch)
            run_assert_event("torn-2", "\"resumed\"");
        assert_int_equal(remove("torn-2/events.jsonl"), 0);
        free(half);
    }
    strbuf_release(&text);
}

/* A log-likelihood that was changed together with all that follows from it: only the digest tells.
 */
static void test_consistent_lie(void **state)
{
    (void)state;
    const struct job first = {.folder = "lie-0", .params = CHOICES};
    const struct job next = {.folder = "lie-2", .params = CHOICES, .resume = "lie-1"};
    assert_int_equal(run_job(&first).code, 0);
    struct strbuf text = STRBUF_INIT;
    run_read_text("lie-0", "items.jsonl", &text);
    char *cut = strstr(text.buf + text.len / 2, "\"cut\":0");
    assert_non_null(cut);
    cut[6] = '7'; /* follows from nothing in the line */
    scratch_put(".", "lie-1/items.jsonl", text.buf);
    copy_sums("lie-0", "lie-1");
    assert_int_equal(run_job(&next).code, 0);
    run_assert_event("lie-2", "changed after it was written");
    run_assert_same_file("lie-0", "lie-2", "items.jsonl");
    strbuf_release(&text);
}

/* A judgement that does not follow from the scores is not believed, nor is anything after it. */
static void test_false_items(void **state)
{
    (void)state;
    const struct job first = {.folder = "false-0", .params = CHOICES};
    const struct job next = {.folder = "false-2", .params = CHOICES, .resume = "false-1"};
    assert_int_equal(run_job(&first).code, 0);
    struct strbuf text = STRBUF_INIT;
    run_read_text("false-0", "items.jsonl", &text);
    char *lie = strstr(text.buf + text.len / 2, "\"acc\":");
    lie[6] = lie[6] == '0' ? '1' : '0';
    scratch_put(".", "false-1/items.jsonl", text.buf);
    copy_sums("false-0", "false-1");
    assert_int_equal(run_job(&next).code, 0);
    run_assert_event("false-2", "changed after it was written");
    run_assert_same_file("false-0", "false-2", "items.jsonl");
    strbuf_release(&text);
}

/* An attempt that cannot write all it takes over leaves no items: the one after it would believe
 * the newest file, and lose what that one lacks. */
static void test_items_whole_or_not_at_all(void **state)
{
    (void)state;
    const struct job first = {.folder = "whole-0", .params = CHOICES};
    assert_int_equal(run_job(&first).code, 0);
    const struct job job = {.folder = "whole-1", .params = CHOICES, .resume = "whole-0"};
    run_write_task(&job);
    static const char *const env[] = {"PREREG_TASK=task.json", "PATH=/usr/bin:/bin", NULL};
    const char *const argv[] = {
        "/bin/sh", "-c", "trap '' XFSZ; ulimit -f 8; exec " TEST_BIN_DIR "/prereg-eval", NULL};
    const struct proc_spec spec = {
        .argv = argv, .env = env, .cwd = job.folder, .timeout_ms = 20000, .max_out_bytes = 4096};
    struct proc_result result;
    struct err err = {0};
    assert_int_equal(proc_run(&spec, &result, &err), 0);
    if (result.code != 1 || strstr(result.err.buf, "File too large") == NULL)
        fail_msg("exit %d: %s", result.code, result.err.buf);
    proc_result_release(&result);
    assert_int_equal(file_kind_at("whole-1/items.jsonl"), FILE_ABSENT);
}

/* A disk that fills up while items are asked: one message, whole lines stay, the next goes on. */
static void test_full_disk(void **state)
{
    (void)state;
    const struct job plain = {.folder = "room", .params = CHOICES};
    const struct job job = {.folder = "full-1", .params = CHOICES};
    const struct job next = {.folder = "full-2", .params = CHOICES, .resume = "full-1"};
    assert_int_equal(run_job(&plain).code, 0);
    run_write_task(&job);
    static const char *const env[] = {"PREREG_TASK=task.json", "PATH=/usr/bin:/bin", NULL};
    const char *const argv[] = {
        "/bin/sh", "-c", "trap '' XFSZ; ulimit -f 64; exec " TEST_BIN_DIR "/prereg-eval", NULL};
    const struct proc_spec spec = {
        .argv = argv, .env = env, .cwd = job.folder, .timeout_ms = 20000, .max_out_bytes = 4096};
    struct proc_result result;
    struct err err = {0};
    assert_int_equal(proc_run(&spec, &result, &err), 0);
    if (result.code != 1 || strstr(result.err.buf, "items.jsonl: write: File too large") == NULL ||
        strchr(result.err.buf, '\n') != strrchr(result.err.buf, '\n'))
        fail_msg("exit %d: %s", result.code, result.err.buf);
    proc_result_release(&result);
    struct strbuf kept = STRBUF_INIT;
    run_read_text("full-1", "items.jsonl", &kept);
    assert_true(kept.len > 4096 && kept.buf[kept.len - 1] == '\n');
    strbuf_release(&kept);
    assert_int_equal(run_job(&next).code, 0);
    run_assert_event("full-2", "\"resumed\"");
    run_assert_same_file("room", "full-2", "items.jsonl");
}

static void test_asked_to_stop(void **state)
{
    (void)state;
    const struct job plain = {.folder = "calm", .params = CHOICES};
    const struct job next = {.folder = "term-2", .params = CHOICES, .resume = "term-1"};
    assert_int_equal(run_job(&plain).code, 0);
    struct end end = {.code = 128 + SIGTERM}; /* of the signal itself, before the program listens */
    for (double after = 0.05; end.code == 128 + SIGTERM && after < 10.0; after *= 2.0) {
        char seconds[16];
        (void)snprintf(seconds, sizeof(seconds), "%.3f", after);
        const struct job job = {.folder = "term-1", .params = CHOICES, .term_after = seconds};
        end = run_job(&job);
    }
    if (end.code != 0) /* the machine may be quick */
        assert_int_equal(end.code, 75);
    assert_int_equal(run_job(&next).code, 0);
    run_assert_same_file("calm", "term-2", "items.jsonl");
}

static void test_other_model(void **state)
{
    (void)state;
    const struct job a = {.folder = "key-1", .params = CHOICES};
    const struct job b = {
        .folder = "key-2", .params = CHOICES, .model = "model-b", .resume = "key-1"};
    const struct job c = {
        .folder = "key-3", .params = "{\"task\":\"choices\",\"shots\":1}", .resume = "key-1"};
    const struct job fresh = {.folder = "key-4", .params = CHOICES, .model = "model-b"};
    assert_int_equal(run_job(&a).code, 0);
    assert_int_equal(run_job(&b).code, 0);
    run_assert_event("key-2", "changed since: model");
    assert_int_equal(run_job(&c).code, 0);
    run_assert_event("key-3", "changed since: params");
    assert_int_equal(run_job(&fresh).code, 0);
    run_assert_same_file("key-2", "key-4", "items.jsonl");
}

/* By hand the same folder serves again: what other parameters found there is put aside. */
static void test_changed_in_place(void **state)
{
    (void)state;
    const struct job before = {.folder = "aside", .params = CHOICES};
    const struct job next = {
        .folder = "aside", .params = "{\"task\":\"choices\",\"shots\":1}", .resume = "aside"};
    struct strbuf first = STRBUF_INIT;
    struct strbuf kept = STRBUF_INIT;
    assert_int_equal(run_job(&before).code, 0);
    run_read_text("aside", "items.jsonl", &first);
    assert_int_equal(run_job(&next).code, 0);
    run_read_text("aside", "items.jsonl.before", &kept);
    assert_string_equal(kept.buf, first.buf);
    strbuf_clear(&kept);
    run_read_text("aside", "items.jsonl", &kept);
    assert_string_not_equal(kept.buf, first.buf);
    strbuf_release(&first);
    strbuf_release(&kept);
}

/* Nothing that is scored depends on the number of threads: items are taken over, and the result
 * says how many there were. */
static void test_other_threads(void **state)
{
    (void)state;
    const struct job a = {.folder = "one-thread", .params = CHOICES};
    const struct job b = {
        .folder = "three-threads", .params = CHOICES, .resume = "one-thread", .threads = 3};
    struct strbuf result = STRBUF_INIT;
    assert_int_equal(run_job(&a).code, 0);
    assert_int_equal(run_job(&b).code, 0);
    run_assert_event("three-threads", "\"resumed\"");
    run_assert_same_file("one-thread", "three-threads", "items.jsonl");
    run_read_text("three-threads", "result.json", &result);
    assert_non_null(strstr(result.buf, "\"threads\": 1,"));
    assert_non_null(strstr(result.buf, "\"blas\": \"none, kernels "));
    strbuf_release(&result);
}

/* An item's line does not depend on which others are asked. */
static void test_subsets(void **state)
{
    (void)state;
    const struct job all = {.folder = "all", .params = "{\"task\":\"choices\",\"shots\":2}"};
    const struct job some = {.folder = "some",
                             .params = "{\"task\":\"choices\",\"shots\":2,"
                                       "\"items\":{\"count\":20,\"seed\":3}}"};
    struct strbuf whole = STRBUF_INIT;
    struct strbuf part = STRBUF_INIT;
    assert_int_equal(run_job(&all).code, 0);
    assert_int_equal(run_job(&some).code, 0);
    run_read_text("all", "items.jsonl", &whole);
    run_read_text("some", "items.jsonl", &part);
    unsigned n = 0;
    const char *from = whole.buf;
    for (char *at = strchr(part.buf, '\n') + 1, *end; (end = strchr(at, '\n')) != NULL;
         at = end + 1) {
        *end = '\0';
        from = strstr(from, at); /* in their order */
        assert_non_null(from);
        n++;
    }
    assert_int_equal(n, 20);
    strbuf_release(&whole);
    strbuf_release(&part);
}

static const struct {
    const char *name;
    struct job job;
    int code;
    const char *said;
} refusals[] = {
    {"unknown key", {.params = "{\"task\":\"choices\",\"shot\":1}"}, 64, "shot"},
    {"unknown task", {.params = "{\"task\":\"helaswag\",\"data\":\"choices\"}"}, 64, "hellaswag"},
    {"no task", {.params = "{}"}, 64, "task"},
    {"no data",
     {.params = "{\"task\":\"core_piqa\"}"},
     64,
     "data: is not given, and the task has no data called 'core_piqa'"},
    {"other data", {.params = "{\"task\":\"mmlu\",\"data\":\"m\"}"}, 64, "no data \"m\""},
    {"too many items", {.params = "{\"task\":\"choices\",\"limit\":401}"}, 64, "401"},
    {"both subsets",
     {.params = "{\"task\":\"choices\",\"limit\":1,\"items\":{\"count\":1,\"seed\":1}}"},
     64,
     "limit"},
    {"bad line",
     {.params = "{\"task\":\"choices\",\"data\":\"bad\"}"},
     65,
     "bad.jsonl: line 2 (item 2)"},
    {"no model", {.params = CHOICES, .model = "nothing"}, 65, "nothing"},
    {"another tokenizer", {.params = CHOICES, .model = "model-tok"}, 65, "tokenizer"},
    {"no room", {.params = "{\"task\":\"gsm8k\",\"data\":\"sums\",\"shots\":0}"}, 69, "no room"},
    {"does not generate",
     {.params = "{\"task\":\"gsm8k\",\"data\":\"sums\",\"shots\":0,\"max_tokens\":12}"},
     69,
     "does not generate"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        CHECK_ROW("%s", refusals[i].name);
        struct job job = refusals[i].job;
        job.folder = "refused";
        struct end end = run_job(&job);
        if (end.code != refusals[i].code || strstr(end.said, refusals[i].said) == NULL)
            fail_msg("%s: exit %d, %s", refusals[i].name, end.code, end.said);
        assert_int_equal(file_kind_at("refused/result.json"), FILE_ABSENT);
    }
    run_assert_event("refused", "does not generate");
}

static void test_undetermined(void **state)
{
    (void)state;
    const struct job nan_job = {.folder = "nan", .params = CHOICES, .model = "model-nan"};
    assert_int_equal(run_job(&nan_job).code, 0);
    cJSON *metric = run_read_metric("nan", "acc");
    assert_true(cJSON_IsNull(json_member(metric, "value")));
    assert_string_equal(json_member(metric, "why")->valuestring, "not_finite");
    cJSON_Delete(metric);

    const struct job faulty = {.folder = "faulty",
                               .params = "{\"task\":\"choices\",\"data\":\"faulty\"}"};
    assert_int_equal(run_job(&faulty).code, 0);
    metric = run_read_metric("faulty", "acc");
    assert_int_equal((int)json_member(metric, "n")->valuedouble, 1);
    cJSON_Delete(metric);
    struct strbuf items = STRBUF_INIT;
    run_read_text("faulty", "items.jsonl", &items);
    assert_non_null(
        strstr(items.buf, "{\"item\":1,\"line\":2,\"fault\":\"option 0: the context is empty\"}"));
    strbuf_release(&items);
}

/* With the viability rule off, the same model is measured, and fails every item. */
static void test_generation(void **state)
{
    (void)state;
    const struct job job = {.folder = "gen",
                            .params = "{\"task\":\"gsm8k\",\"data\":\"sums\",\"shots\":1,"
                                      "\"max_tokens\":12,\"viability\":{\"items\":0}}"};
    assert_int_equal(run_job(&job).code, 0);
    cJSON *metric = run_read_metric("gen", "exact_match:strict");
    assert_int_equal((int)json_member(metric, "n")->valuedouble, 2);
    assert_true(json_member(metric, "value")->valuedouble == 0.0);
    cJSON_Delete(metric);
}

static void test_describe(void **state)
{
    (void)state;
    const char *argv[] = {TEST_BIN_DIR "/prereg-eval", "--describe", "task.json", NULL};
    const struct proc_spec spec = {.argv = argv, .cwd = "describe", .max_out_bytes = 1u << 16};
    static const char *const cases[][2] = {
        {CHOICES, "\"metrics\":[\"acc\",\"acc_norm\"]"},
        {"{\"task\":\"choices\",\"limit\":7}", "\"items\":7"},
        {"{\"task\":\"mmlu\",\"data\":\"subjects\"}", "54 of 57 groups of mmlu are missing"},
        {"{\"task\":\"mmlu\",\"data\":\"subjects\",\"groups\":[\"marketing\"]}",
         "[\"acc\",\"acc:other\",\"acc:marketing\"]"},
        {"{\"task\":\"gsm8k\",\"data\":\"sums\",\"shots\":0}", "exact_match:flexible"},
        {"{\"task\":\"choices\",\"limitt\":7}", "\"key\":\"limitt\""},
        {"{\"task\":\"choices\",\"data\":\"bad\"}", "bad.jsonl: line 2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        const struct job job = {.folder = "describe", .params = cases[i][0]};
        struct proc_result result;
        struct err err = {0};
        run_write_task(&job);
        assert_int_equal(proc_run(&spec, &result, &err), 0);
        assert_int_equal(result.code, 0);
        if (strstr(result.out.buf, cases[i][1]) == NULL)
            fail_msg("'%s' is not in %s", cases[i][1], result.out.buf);
        proc_result_release(&result);
    }
    assert_int_equal(file_kind_at("describe/items.jsonl"), FILE_ABSENT);
}

/* What was printed without the times, which hold measured ones. */
static char *without_seconds(const struct strbuf *out)
{
    static const char key[] = "\"seconds\":";
    struct strbuf text = STRBUF_INIT;
    const char *from = out->buf;
    for (const char *at; (at = strstr(from, key)) != NULL; from = at + strcspn(at, ","))
        strbuf_add(&text, from, (size_t)(at - from));
    strbuf_adds(&text, from);
    return strbuf_detach(&text);
}

/* Several tasks give the lines that each gives alone, also where they share items, where one is
 * faulty, and where another follows that has other items. */
static void test_describe_several(void **state)
{
    static const char *const params[] = {
        CHOICES,
        "{\"task\":\"choices\",\"model\":\"train\"}",
        "{\"task\":\"choices\",\"data\":\"bad\"}",
        "{\"task\":\"choices\",\"limit\":7}",
        "{\"task\":\"choices\",\"limit\":7,\"model\":\"train\",\"at\":0.5}",
        "{\"task\":\"choices\",\"limit\":8}",
        "{\"task\":\"choices\",\"second_key\":\"key\"}",
        "{\"task\":\"gsm8k\",\"data\":\"sums\",\"shots\":0}",
    };
    char *names[ARRAY_LEN(params)];
    const char *argv[ARRAY_LEN(params) + 3] = {TEST_BIN_DIR "/prereg-eval", "--describe"};
    const char *alone[] = {argv[0], argv[1], "task.json", NULL};
    struct proc_spec spec = {.argv = alone, .cwd = "several", .max_out_bytes = 1u << 16};
    struct strbuf expected = STRBUF_INIT;
    struct proc_result result;
    struct err err = {0};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        CHECK_ROW("%s", params[i]);
        const struct job job = {.folder = "several", .params = params[i]};
        run_write_task(&job);
        assert_int_equal(proc_run(&spec, &result, &err), 0);
        assert_int_equal(result.code, 0);
        strbuf_add(&expected, result.out.buf, result.out.len);
        proc_result_release(&result);
        names[i] = xasprintf("task-%zu.json", i);
        char *to = path_join("several", names[i]);
        assert_int_equal(rename("several/task.json", to), 0);
        free(to);
        argv[i + 2] = names[i];
    }
    spec.argv = argv;
    assert_int_equal(proc_run(&spec, &result, &err), 0);
    assert_int_equal(result.code, 0);
    char *alone_text = without_seconds(&expected), *text = without_seconds(&result.out);
    assert_string_equal(text, alone_text);
    free(alone_text), free(text);
    proc_result_release(&result);
    strbuf_release(&expected);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        free(names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_run),
        cmocka_unit_test(test_changed_in_place),
        cmocka_unit_test(test_killed_and_resumed),
        cmocka_unit_test(test_torn_items),
        cmocka_unit_test(test_false_items),
        cmocka_unit_test(test_consistent_lie),
        cmocka_unit_test(test_items_whole_or_not_at_all),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_asked_to_stop),
        cmocka_unit_test(test_other_model),
        cmocka_unit_test(test_other_threads),
        cmocka_unit_test(test_subsets),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_undetermined),
        cmocka_unit_test(test_generation),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_describe_several),
    };
    return cmocka_run_group_tests(tests, run_set_up, scratch_leave);
}
