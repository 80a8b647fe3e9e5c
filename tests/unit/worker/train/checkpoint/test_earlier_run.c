/*
 * A run in two pieces: one ends at horizon.stop, another continues it with init = { run = … }.
 * Weights, metrics, facts and curves from there on are those of a run that made all steps, and
 * whatever would make it another run is refused with its name.
 */
#include <signal.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/worker/train/fixture.h"

#define COMMON                                                                                     \
    "'layers':2,'width':32,'heads':2,'ffn':32,'context':64,'batch_tokens':512,'lr':0.003,"         \
    "'seed':3,'mix':{'a':0.7,'b':0.3},'target_loss':2.7,'eval_every':7,'val_tokens':1024,"
#define DENSE COMMON
#define MIXTURE                                                                                    \
    COMMON "'dense_layers':1,'experts':96,'top_k':2,'expert_ffn':4,'micro_batch':3,"               \
           "'balance_loss':0.01,'bias_update_rate':0.01,'balance_anneal':0.5,"                     \
           "'reset_dead_experts':2,"
#define HORIZON(rest) "'horizon':{'contract':'fixed','tokens':51200" rest "}"
#define STEPS         100

/* An attempt that has to end well. */
static const char *run_well(struct fixture *f, const char *text)
{
    cJSON *params = fixture_params(text);
    const char *folder = fixture_attempt(f, params, 1e6);
    struct attempt_end end = fixture_run(folder, 0, 0);

    if (end.code != 0)
        fail_msg("exit %d: %s", end.code, end.err.buf);
    attempt_end_release(&end);
    cJSON_Delete(params);
    fixture_forget_last(f);
    return folder;
}

/* result.json without what depends on time, or on where the run began. */
static struct strbuf outcome(const char *folder)
{
    struct strbuf text = fixture_outcome(folder), out = STRBUF_INIT;
    struct err err = {0};
    cJSON *result = NULL;

    assert_int_equal(json_parse(text.buf, text.len, &result, &err), 0);
    cJSON_DeleteItemFromObjectCaseSensitive(result, "read");
    assert_int_equal(json_canonical(result, &out, &err), 0);
    cJSON_Delete(result);
    strbuf_release(&text);
    return out;
}

/* The points of curves after step `after`, line by line. */
static struct strbuf points_after(const char *folder, int after)
{
    struct strbuf events = fixture_file(folder, "events.jsonl"), out = STRBUF_INIT;
    char *rest = events.buf;

    for (char *line = strtok_r(rest, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *step = strstr(line, "\"step\":");
        if (strstr(line, "\"type\":\"point\"") != NULL && step != NULL &&
            strtol(step + sizeof("\"step\":") - 1, NULL, 10) > after)
            strbuf_addf(&out, "%s\n", line);
    }
    strbuf_release(&events);
    return out;
}

static void assert_same_text(struct strbuf a, struct strbuf b)
{
    assert_true(a.len > 0);
    assert_string_equal(a.buf, b.buf);
    strbuf_release(&a);
    strbuf_release(&b);
}

static void assert_same_run(const char *whole, const char *continued, int from)
{
    struct strbuf a = fixture_file(whole, "model/model.bin");
    struct strbuf b = fixture_file(continued, "model/model.bin");

    assert_true(a.len == b.len && memcmp(a.buf, b.buf, a.len) == 0);
    strbuf_release(&a);
    strbuf_release(&b);
    assert_same_text(outcome(whole), outcome(continued));
    assert_same_text(points_after(whole, from), points_after(continued, from));
}

/* In two pieces and in three. */
static void check_pieces(struct fixture *f, const char *model)
{
    char *whole = xasprintf("{%s" HORIZON("") ",'marks':[0.1,0.5,1]}", model);
    char *first = xasprintf("{%s" HORIZON(",'stop':0.3") ",'marks':[0.1]}", model);
    char *second = xasprintf("{%s" HORIZON(",'stop':0.6") ",'marks':[0.5],"
                                                          "'init':{'run':'earlier'}}",
                             model);
    char *last =
        xasprintf("{%s" HORIZON("") ",'marks':[0.1,0.5,1],'init':{'run':'earlier'}}", model);
    const char *reference = run_well(f, whole);

    f->earlier = run_well(f, first);
    assert_same_run(reference, run_well(f, last), 30);
    f->earlier = run_well(f, second);
    char *lost = xasprintf("{%s" HORIZON("") ",'marks':[0.5,1],'init':{'run':'earlier'}}", model);
    char *same = xasprintf("{%s" HORIZON("") ",'marks':[0.5,1]}", model);
    assert_same_run(run_well(f, same), run_well(f, lost), 60);
    free(whole);
    free(first);
    free(second);
    free(last);
    free(lost);
    free(same);
}

static void test_dense(void **state)
{
    check_pieces(*state, DENSE);
}

static void test_mixture(void **state)
{
    check_pieces(*state, MIXTURE);
}

/* The second piece is killed on the way, and resumes from its own checkpoint. */
static void test_killed(void **state)
{
    struct fixture *f = *state;
    const char *whole = run_well(f, "{" DENSE HORIZON("") "}");
    f->earlier = run_well(f, "{" DENSE HORIZON(",'stop':0.3") "}");
    cJSON *params = fixture_params("{" DENSE HORIZON("") ",'init':{'run':'earlier'}}");
    const char *killed = fixture_attempt(f, params, 0.0);
    struct attempt_end end = fixture_run_until(killed, "\"type\":\"checkpoint\"", 2, SIGTERM);

    assert_int_equal(end.code, 75);
    attempt_end_release(&end);
    const char *resumed = fixture_attempt(f, params, 1e6);
    end = fixture_run(resumed, 0, 0);
    assert_int_equal(end.code, 0);
    attempt_end_release(&end);
    assert_int_equal(fixture_events_count(resumed, "\"resumed\""), 1);
    assert_same_run(whole, resumed, STEPS - 1);
    cJSON_Delete(params);
}

static void test_refusals(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *params, *why;
    } cases[] = {
        {"{" DENSE HORIZON("") ",'clip':2,'init':{'run':'earlier'}}",
         "params.clip: the earlier run has absent, this one 2"},
        {"{" DENSE "'horizon':{'contract':'fixed','tokens':61440},'init':{'run':'earlier'}}",
         "params.horizon: the earlier run has {\"contract\":\"fixed\",\"tokens\":51200}"},
        {"{" DENSE HORIZON(",'stop':0.3") ",'init':{'run':'earlier'}}",
         "the earlier run is at step 30, this one ends at step 30"},
        {"{" DENSE HORIZON("") ",'marks':[0.2],'init':{'run':'earlier'}}",
         "params.marks: 0.2 was not a mark of the earlier run"},
        {"{" DENSE HORIZON("") ",'init':{'run':'a'}}", "no run that can be continued"},
        {"{" DENSE HORIZON("") ",'init':{'run':'nowhere'}}", "not one of the program's data"},
        {"{" DENSE HORIZON("") ",'init':{'rum':'a'}}", "did you mean \"run\""},
        {"{" MIXTURE HORIZON(",'stop':0.95") "}", "with experts at most 0.9, or 1"},
        {"{" DENSE HORIZON(",'stop':0.5") ",'marks':[0.6]}", "0.6 is after horizon.stop = 0.5"},
        {"{" DENSE HORIZON(",'stop':0.004") "}", "less than one step"},
    };

    f->earlier = run_well(f, "{" DENSE HORIZON(",'stop':0.3") "}");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].why);
        cJSON *params = fixture_params(cases[i].params);
        struct attempt_end end = fixture_run(fixture_attempt(f, params, 1e6), 0, 0);
        assert_true(end.code == 64 || end.code == 65 || end.code == 1);
        if (strstr(end.err.buf, cases[i].why) == NULL)
            fail_msg("%s", end.err.buf);
        attempt_end_release(&end);
        cJSON_Delete(params);
    }
}

/* A file of it that was altered, and text that was not the earlier run's. */
static void test_other_bytes(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};

    f->earlier = run_well(f, "{" DENSE HORIZON(",'stop':0.3") "}");
    cJSON *params = fixture_params("{" DENSE HORIZON("") ",'init':{'run':'earlier'}}");
    char *run = path_join(f->earlier, "run"), *weights = path_join(run, "weights.bin");
    for (int i = 0; i < 2; i++) {
        struct strbuf body = fixture_file(run, "weights.bin");
        body.buf[body.len / 2] ^= 1;
        assert_int_equal(file_write_atomic(weights, body.buf, body.len, 0644, &err), 0);
        strbuf_release(&body);
        if (i == 1)
            assert_int_equal(
                file_write_atomic(f->corpus_b, "a b c d e f g h i j k l m n o p\n", 32, 0644, &err),
                0);
        struct attempt_end end = fixture_run(fixture_attempt(f, params, 1e6), 0, 0);
        assert_int_equal(end.code, 65);
        if (i == 0)
            assert_non_null(strstr(end.err.buf, "weights.bin is not what the manifest says"));
        attempt_end_release(&end);
    }
    free(run);
    free(weights);
    cJSON_Delete(params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(test_dense),    fixture_test(test_mixture),     fixture_test(test_killed),
        fixture_test(test_refusals), fixture_test(test_other_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
