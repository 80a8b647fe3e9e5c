/* The program itself: real models of random weights, killed, resumed, given bad things. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/file.h"
#include "base/json.h"
#include "base/proc.h"
#include "base/xalloc.h"
#include "tests/unit/worker_eval/scratch.h"
#include "worker/model/model.h"
#include "worker/model/store.h"

#define N_ITEMS 400

struct job {
    const char *folder; /* the attempt's */
    const char *params;
    const char *resume;     /* NULL, or an earlier attempt's folder */
    const char *model;      /* NULL: "model-a" */
    int64_t kill_after_ms;  /* 0: let it run */
    const char *term_after; /* NULL, or seconds until SIGTERM */
};

struct end {
    int code;
    int signal;
    char said[512]; /* on stderr */
};

static void make_model(const char *folder, uint64_t seed, bool broken, bool other_tokenizer)
{
    const struct model_config cfg = {.layers = 1,
                                     .width = 16,
                                     .heads = 2,
                                     .kv_heads = 2,
                                     .ffn = 32,
                                     .vocab = 257,
                                     .context = 64,
                                     .tie_embeddings = true,
                                     .rope_theta = 10000.0,
                                     .norm_eps = 1e-5};
    struct err err = {0};
    struct weights w = {0};
    struct tokenizer *tok = NULL;
    char *inner = path_join(folder, MODEL_FOLDER);
    assert_int_equal(dir_make(inner, 0777, &err), 0);
    assert_int_equal(weights_init(&w, &cfg, &err), 0);
    weights_randomise(&w, seed, 0.5);
    if (broken)
        w.params[0] = NAN;
    assert_int_equal(tokenizer_open(TOKENIZER_BYTES, &tok, &err), 0);
    struct store_info info = {.tokenizer_spec = xstrdup("bytes"),
                              .tokenizer = tokenizer_digest(tok)};
    if (other_tokenizer)
        info.tokenizer.bytes[0] ^= 1;
    assert_int_equal(store_save(inner, &w, &info, &err), 0);
    store_info_release(&info);
    tokenizer_free(tok);
    weights_release(&w);
    free(inner);
}

static int set_up(void **state)
{
    if (scratch_enter(state) != 0)
        return -1;
    make_model("model-a", 1, false, false);
    make_model("model-b", 2, false, false);
    make_model("model-nan", 1, true, false);
    make_model("model-tok", 1, false, true);
    struct strbuf items = STRBUF_INIT;
    for (int i = 0; i < N_ITEMS; i++)
        strbuf_addf(&items,
                    "{\"query\":\"item %d asks for a letter:\",\"choices\":[\"a%d\",\"b\",\"c c\"],"
                    "\"gold\":%d}\n",
                    i, i * 7 % 10, i % 3);
    scratch_write("data/choices.jsonl", items.buf);
    strbuf_release(&items);
    scratch_write("data/bad.jsonl", "{\"query\":\"q\",\"choices\":[\"a\",\"b\"],\"gold\":0}\n"
                                    "{\"query\":\"q\",\"choices\":[\"a\",\"b\"],\"gold\":5}\n");
    scratch_write("data/faulty.jsonl", "{\"query\":\"q\",\"choices\":[\"a\",\"b\"],\"gold\":0}\n"
                                       "{\"query\":\" \",\"choices\":[\"a\",\"b\"],\"gold\":1}\n");
    scratch_write("data/sums.jsonl", "{\"question\":\"1+1?\",\"answer\":\"#### 2\"}\n"
                                     "{\"question\":\"1+2?\",\"answer\":\"#### 3\"}\n");
    return 0;
}

static void write_task(const struct job *job)
{
    static const char *const data[] = {"choices", "bad", "faulty", "sums"};
    char *here = path_absolute(NULL, ".");
    struct strbuf task = STRBUF_INIT;
    strbuf_addf(&task,
                "{\"protocol\":1,\"attempt\":\"x\",\"threads\":1,\"params\":%s,\"inputs\":"
                "{\"train\":\"%s/%s\"},\"data\":{",
                job->params, here, job->model == NULL ? "model-a" : job->model);
    for (size_t i = 0; i < ARRAY_LEN(data); i++)
        strbuf_addf(&task, "%s\"%s\":{\"path\":\"%s/data/%s.jsonl\"}", i == 0 ? "" : ",", data[i],
                    here, data[i]);
    strbuf_adds(&task, "},\"resume\":[");
    if (job->resume != NULL)
        strbuf_addf(&task, "\"%s/%s\"", here, job->resume);
    strbuf_adds(&task, "]}");
    char *path = path_join(job->folder, "task.json");
    scratch_write(path, task.buf);
    free(path);
    free(here);
    strbuf_release(&task);
}

static struct end run(const struct job *job)
{
    static const char *const env[] = {"PREREG_TASK=task.json", "PREREG_EVENTS=events.jsonl",
                                      "PATH=/usr/bin:/bin", NULL};
    static const char program[] = TEST_BIN_DIR "/prereg-eval";
    const char *argv[] = {"timeout", "--preserve-status", "-s", "TERM", job->term_after, program,
                          NULL};
    struct proc_spec spec = {.argv = job->term_after == NULL ? &argv[5] : argv,
                             .env = env,
                             .cwd = job->folder,
                             .timeout_ms = job->kill_after_ms,
                             .max_out_bytes = 4096};
    struct proc_result result;
    struct err err = {0};
    struct end end = {0};
    write_task(job);
    if (proc_run(&spec, &result, &err) != 0 && err.code != ERR_TIMEOUT)
        fail_msg("%s", err.msg);
    assert_int_equal(result.out.len, 0); /* nothing on standard output, ever */
    end.code = result.code;
    end.signal = result.signal;
    (void)snprintf(end.said, sizeof(end.said), "%s", result.err.buf);
    proc_result_release(&result);
    return end;
}

static void read_text(const char *folder, const char *name, struct strbuf *out)
{
    struct err err = {0};
    char *path = path_join(folder, name);
    strbuf_clear(out);
    if (file_read(path, 1u << 24, out, &err) != 0)
        fail_msg("%s", err.msg);
    free(path);
}

static void assert_same_file(const char *a, const char *b, const char *name)
{
    struct strbuf x = STRBUF_INIT;
    struct strbuf y = STRBUF_INIT;
    read_text(a, name, &x);
    read_text(b, name, &y);
    assert_string_equal(x.buf, y.buf);
    strbuf_release(&x);
    strbuf_release(&y);
}

static cJSON *read_metric(const char *folder, const char *name)
{
    struct err err = {0};
    cJSON *result = NULL;
    char *path = path_join(folder, "result.json");
    if (json_read_file(path, 1u << 20, &result, &err) != 0)
        fail_msg("%s", err.msg);
    cJSON *metric = json_copy(json_member(json_member(result, "metrics"), name));
    cJSON_Delete(result);
    free(path);
    return metric;
}

static void assert_event(const char *folder, const char *part)
{
    struct strbuf events = STRBUF_INIT;
    read_text(folder, "events.jsonl", &events);
    if (strstr(events.buf, part) == NULL)
        fail_msg("no '%s' among the events", part);
    strbuf_release(&events);
}

#define CHOICES "{\"task\":\"choices\"}"

static void test_whole_run(void **state)
{
    (void)state;
    const struct job job = {.folder = "whole", .params = CHOICES};
    struct end end = run(&job);
    assert_int_equal(end.code, 0);
    static const char *const names[] = {"acc", "acc_norm"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        cJSON *metric = read_metric("whole", names[i]);
        double value = json_member(metric, "value")->valuedouble;
        double se = json_member(metric, "se")->valuedouble;
        assert_int_equal((int)json_member(metric, "n")->valuedouble, N_ITEMS);
        assert_true(value > 0.1 && value < 0.9); /* random weights, three choices */
        assert_true(fabs(se - sqrt(value * (1 - value) / (N_ITEMS - 1))) < 1e-12);
        cJSON_Delete(metric);
    }
    struct strbuf text = STRBUF_INIT;
    read_text("whole", "items.jsonl", &text);
    unsigned lines = 0;
    for (const char *at = text.buf; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_int_equal(lines, N_ITEMS + 1);
    read_text("whole", "events.jsonl", &text);
    assert_null(strstr(text.buf, "acc"));
    strbuf_release(&text);
}

/* Killed at many instants, always going on from the attempt before; the end is the same bytes. */
static void test_killed_and_resumed(void **state)
{
    (void)state;
    const struct job plain = {.folder = "plain", .params = CHOICES};
    assert_int_equal(run(&plain).code, 0);
    char *folder = NULL;
    char *before = NULL;
    int n_killed = 0;
    for (int i = 0; i < 60; i++) {
        free(before);
        before = folder;
        folder = xasprintf("killed-%d", i);
        const struct job job = {
            .folder = folder, .params = CHOICES, .resume = before, .kill_after_ms = 12 + 7 * i};
        struct end end = run(&job);
        if (end.signal == 0) {
            assert_int_equal(end.code, 0);
            break;
        }
        n_killed++;
    }
    assert_in_range(n_killed, 1, 59);
    assert_same_file("plain", folder, "items.jsonl");
    cJSON *a = read_metric("plain", "acc");
    cJSON *b = read_metric(folder, "acc");
    assert_true(cJSON_Compare(a, b, true));
    cJSON_Delete(a);
    cJSON_Delete(b);
    free(before);
    free(folder);
}

/* An earlier attempt's file cut anywhere, or changed, gives the same end. */
static void test_torn_items(void **state)
{
    (void)state;
    const struct job first = {.folder = "torn-0", .params = CHOICES};
    assert_int_equal(run(&first).code, 0);
    struct strbuf text = STRBUF_INIT;
    read_text("torn-0", "items.jsonl", &text);
    static const unsigned cuts[] = {1, 40, 500, 977};
    for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
        char *half = xstrndup(text.buf, text.len * cuts[i] / 1000);
        char *middle = strstr(half, "\"acc\":1");
        if (i == 3 && middle != NULL)
            middle[6] = '0'; /* a judgement that does not follow from the scores */
        scratch_write("torn-1/items.jsonl", half);
        const struct job next = {.folder = "torn-2", .params = CHOICES, .resume = "torn-1"};
        assert_int_equal(run(&next).code, 0);
        assert_same_file("torn-0", "torn-2", "items.jsonl");
        if (i > 0)
            assert_event("torn-2", "\"resumed\"");
        assert_int_equal(remove("torn-2/events.jsonl"), 0);
        free(half);
    }
    strbuf_release(&text);
}

/* An attempt that cannot write all it takes over leaves no items: the one after it would believe
 * the newest file, and lose what that one lacks. */
static void test_items_whole_or_not_at_all(void **state)
{
    (void)state;
    const struct job first = {.folder = "whole-0", .params = CHOICES};
    assert_int_equal(run(&first).code, 0);
    const struct job job = {.folder = "whole-1", .params = CHOICES, .resume = "whole-0"};
    write_task(&job);
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

static void test_asked_to_stop(void **state)
{
    (void)state;
    const struct job plain = {.folder = "calm", .params = CHOICES};
    const struct job job = {.folder = "term-1", .params = CHOICES, .term_after = "0.05"};
    const struct job next = {.folder = "term-2", .params = CHOICES, .resume = "term-1"};
    assert_int_equal(run(&plain).code, 0);
    struct end end = run(&job);
    if (end.code != 0) /* the machine may be quick */
        assert_int_equal(end.code, 75);
    assert_int_equal(run(&next).code, 0);
    assert_same_file("calm", "term-2", "items.jsonl");
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
    assert_int_equal(run(&a).code, 0);
    assert_int_equal(run(&b).code, 0);
    assert_event("key-2", "changed since: model");
    assert_int_equal(run(&c).code, 0);
    assert_event("key-3", "changed since: params");
    assert_int_equal(run(&fresh).code, 0);
    assert_same_file("key-2", "key-4", "items.jsonl");
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
    assert_int_equal(run(&all).code, 0);
    assert_int_equal(run(&some).code, 0);
    read_text("all", "items.jsonl", &whole);
    read_text("some", "items.jsonl", &part);
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
    {"no data", {.params = "{\"task\":\"mmlu\"}"}, 64, "mmlu"},
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
        struct job job = refusals[i].job;
        job.folder = "refused";
        struct end end = run(&job);
        if (end.code != refusals[i].code || strstr(end.said, refusals[i].said) == NULL)
            fail_msg("%s: exit %d, %s", refusals[i].name, end.code, end.said);
        assert_int_equal(file_kind_at("refused/result.json"), FILE_ABSENT);
    }
    assert_event("refused", "does not generate");
}

static void test_undetermined(void **state)
{
    (void)state;
    const struct job nan_job = {.folder = "nan", .params = CHOICES, .model = "model-nan"};
    assert_int_equal(run(&nan_job).code, 0);
    cJSON *metric = read_metric("nan", "acc");
    assert_true(cJSON_IsNull(json_member(metric, "value")));
    assert_string_equal(json_member(metric, "why")->valuestring, "not_finite");
    cJSON_Delete(metric);

    const struct job faulty = {.folder = "faulty",
                               .params = "{\"task\":\"choices\",\"data\":\"faulty\"}"};
    assert_int_equal(run(&faulty).code, 0);
    metric = read_metric("faulty", "acc");
    assert_int_equal((int)json_member(metric, "n")->valuedouble, 1);
    cJSON_Delete(metric);
    struct strbuf items = STRBUF_INIT;
    read_text("faulty", "items.jsonl", &items);
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
    assert_int_equal(run(&job).code, 0);
    cJSON *metric = read_metric("gen", "exact_match:strict");
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
        {"{\"task\":\"gsm8k\",\"data\":\"sums\",\"shots\":0}", "exact_match:flexible"},
        {"{\"task\":\"choices\",\"limitt\":7}", "\"key\":\"limitt\""},
        {"{\"task\":\"choices\",\"data\":\"bad\"}", "bad.jsonl: line 2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct job job = {.folder = "describe", .params = cases[i][0]};
        struct proc_result result;
        struct err err = {0};
        write_task(&job);
        assert_int_equal(proc_run(&spec, &result, &err), 0);
        assert_int_equal(result.code, 0);
        if (strstr(result.out.buf, cases[i][1]) == NULL)
            fail_msg("'%s' is not in %s", cases[i][1], result.out.buf);
        proc_result_release(&result);
    }
    assert_int_equal(file_kind_at("describe/items.jsonl"), FILE_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_run),
        cmocka_unit_test(test_killed_and_resumed),
        cmocka_unit_test(test_torn_items),
        cmocka_unit_test(test_asked_to_stop),
        cmocka_unit_test(test_other_model),
        cmocka_unit_test(test_subsets),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_undetermined),
        cmocka_unit_test(test_generation),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_items_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, set_up, scratch_leave);
}
