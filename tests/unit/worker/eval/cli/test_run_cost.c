/* The program itself: what it says beforehand, and by a try, that a run costs. */
#include <math.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/machine/proc.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/eval/cli/run_job.h"

#define N_SHORT 400
#define N_LONG  600

static double described_seconds(void)
{
    const char *argv[] = {TEST_BIN_DIR "/prereg-eval", "--describe", "task.json", NULL};
    const struct proc_spec spec = {.argv = argv, .cwd = "estimate", .max_out_bytes = 1u << 16};
    struct proc_result result;
    struct err err = {0};
    cJSON *answer = NULL;
    double seconds = -1.0;
    assert_int_equal(proc_run(&spec, &result, &err), 0);
    assert_int_equal(result.code, 0);
    assert_non_null(strstr(result.out.buf, "\"longest_request_tokens\""));
    assert_int_equal(json_parse(result.out.buf, result.out.len, &answer, &err), 0);
    assert_int_equal(json_get_number(answer, "seconds", &seconds, &err), 0);
    cJSON_Delete(answer);
    proc_result_release(&result);
    return seconds;
}

/* Of a model that a training will make: tokens, attention and rows of logits all count, each at its
 * rate, and these are measured once. */
/* The job's task, of a model that is not trained yet, with a file of rates; as in task.json. */
static cJSON *write_with_model(const struct job *job, const char *producers)
{
    struct err err = {0};
    cJSON *task = NULL;
    char *path = xasprintf("%s/task.json", job->folder);
    run_write_task(job);
    assert_int_equal(json_read_file(path, 1u << 16, &task, &err), 0);
    json_put(task, "producers", cJSON_Parse(producers));
    json_put_string(task, "rates", "rates.json");
    cJSON_DeleteItemFromObjectCaseSensitive(task, "inputs");
    json_put(task, "inputs", json_object());
    assert_int_equal(json_write_file(path, task, 0600, &err), 0);
    free(path);
    return task;
}

static void test_estimate(void **state)
{
    (void)state;
    const struct job job = {.folder = "estimate", .params = CHOICES};
    struct err err = {0};
    cJSON *rates = NULL;
    cJSON *task =
        write_with_model(&job, "{\"train\":{\"params\":{\"layers\":1,\"width\":16,\"heads\":2,"
                               "\"ffn\":32,\"vocab\":257,\"context\":64,"
                               "\"tokenizer\":\"bytes\",\"lr\":0.1}}}");
    const double measured = described_seconds();
    assert_true(measured > 0.0 && measured < 20.0);
    assert_int_equal(json_read_file("estimate/rates.json", 1u << 16, &rates, &err), 0);
    assert_int_equal(cJSON_GetArraySize(rates), 1);
    assert_non_null(strstr(rates->child->string, "score "));
    assert_int_equal(cJSON_GetArraySize(rates->child), 8);
    /* a second for each distinct token, key and row of logits; the last three are of generations */
    static const double least[8] = {N_ITEMS * 20, N_ITEMS * 100, N_ITEMS};
    for (int i = 0; i < 8; i++) {
        CHECK_ROW("rate %d", i);
        for (int k = 0; k < 8; k++)
            cJSON_SetNumberValue(cJSON_GetArrayItem(rates->child, k), k == i ? 1.0 : 0.0);
        assert_int_equal(json_write_file("estimate/rates.json", rates, 0600, &err), 0);
        const double seconds = described_seconds();
        if (i < 3)
            assert_true(seconds > least[i] && seconds < N_ITEMS * 4000);
        else
            assert_true(seconds < 20.0); /* what is saved, or nothing */
    }
    cJSON_Delete(rates);
    cJSON_Delete(task);
}

/* A model that would take gigabytes is not built to be timed, and the answer says so. */
static void test_estimate_of_large(void **state)
{
    (void)state;
    const struct job job = {.folder = "large", .params = CHOICES};
    const char *argv[] = {TEST_BIN_DIR "/prereg-eval", "--describe", "task.json", NULL};
    const struct proc_spec spec = {.argv = argv, .cwd = "large", .max_out_bytes = 1u << 16};
    struct proc_result result;
    struct err err = {0};
    cJSON *task = write_with_model(&job, "{\"train\":{\"params\":{\"layers\":2,\"width\":2048,"
                                         "\"heads\":2,\"ffn\":32768,\"vocab\":257,\"context\":64,"
                                         "\"tokenizer\":\"bytes\",\"lr\":0.1}}}");
    assert_int_equal(proc_run(&spec, &result, &err), 0);
    assert_int_equal(result.code, 0);
    assert_non_null(strstr(result.out.buf, "the time is an assumption, 5e+10 operations a second"));
    assert_int_equal(file_kind_at("large/rates.json"), FILE_ABSENT);
    proc_result_release(&result);
    cJSON_Delete(task);
}

/* Many short items come first. Each of the others is longer than the context, and what it shares
 * with its neighbours lies in what is cut off. */
static void put_skewed_items(void)
{
    struct strbuf items = STRBUF_INIT;
    for (unsigned i = 0; i < N_SHORT + N_LONG; i++) {
        strbuf_adds(&items, "{\"query\":\"");
        for (unsigned k = 0; i >= N_SHORT && k < 150; k++)
            strbuf_adds(&items, "example ");
        for (unsigned k = 0; k < (i < N_SHORT ? 1 : 12); k++)
            strbuf_addf(&items, "%08x ", (i * 31 + k) * 2654435761u);
        strbuf_addf(&items, "\",\"choices\":[\"a\",\"b\",\"c\",\"d\"],\"gold\":%u}\n", i % 4);
    }
    scratch_put(".", "data/skewed.jsonl", items.buf);
    strbuf_release(&items);
}

static double member(const cJSON *o, const char *name)
{
    struct err err = {0};
    double value = 0.0;
    assert_int_equal(json_get_number(o, name, &value, &err), 0);
    return value;
}

/* The distinct tokens of a run; of a try those that it makes of all items. */
static double distinct_tokens(const char *folder)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    cJSON *result = NULL;
    run_read_text(folder, "result.json", &text);
    assert_int_equal(json_parse(text.buf, text.len, &result, &err), 0);
    const cJSON *tried = json_member(result, "try");
    double tokens = member(json_member(result, "facts"), "distinct_tokens");
    if (tried != NULL)
        tokens *= member(tried, "of") / member(tried, "done");
    cJSON_Delete(result);
    strbuf_release(&text);
    return tokens;
}

/* A part of the items stands for all: in a try, and in the estimate of a large file. */
static void test_part_for_whole(void **state)
{
    (void)state;
    static const int tries[] = {7, 16, 100};
    static const char params[] = "{\"task\":\"choices\",\"data\":\"skewed\"}";
    const double second_a_token[8] = {1.0};
    struct err err = {0};
    cJSON *task = NULL, *rates = NULL;
    put_skewed_items();
    assert_int_equal(run_job(&(struct job){.folder = "skewed", .params = params}).code, 0);
    const double whole = distinct_tokens("skewed");
    for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
        CHECK_ROW("%d items", tries[i]);
        const struct job some = {.folder = "some", .params = params, .try_items = tries[i]};
        assert_int_equal(run_job(&some).code, 0);
        assert_true(fabs(distinct_tokens("some") / whole - 1.0) < 0.1);
    }
    run_write_task(&(struct job){.folder = "estimate", .params = params});
    assert_int_equal(json_read_file("estimate/task.json", 1u << 16, &task, &err), 0);
    json_put_string(task, "rates", "rates.json");
    assert_int_equal(json_write_file("estimate/task.json", task, 0600, &err), 0);
    (void)described_seconds();
    assert_int_equal(json_read_file("estimate/rates.json", 1u << 16, &rates, &err), 0);
    for (int k = 0; k < 8; k++) /* of the shape that was measured last */
        cJSON_SetNumberValue(cJSON_GetArrayItem(rates->child->prev, k), second_a_token[k]);
    assert_int_equal(json_write_file("estimate/rates.json", rates, 0600, &err), 0);
    assert_true(fabs(described_seconds() / whole - 1.0) < 0.1);
    cJSON_Delete(rates);
    cJSON_Delete(task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_estimate),
        cmocka_unit_test(test_estimate_of_large),
        cmocka_unit_test(test_part_for_whole),
    };
    return cmocka_run_group_tests(tests, run_set_up, scratch_leave);
}
