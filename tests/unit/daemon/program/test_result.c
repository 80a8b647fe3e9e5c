/* Which result.json is believed. */
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/program/inputs.h"
#include "daemon/program/result.h"
#include "prereg/load/program_load.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

#define ID    "5f0e7c1a-0d5a-4a0e-9a39-3b8f6f3f4b10"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define OTHER "0000c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HEAD  "{\"protocol\":1,\"attempt\":\"" ID "\","

static const char plan[] =
    "[program]\nname = \"p\"\nschema = 1\nquestion = \"q\"\n"
    "[[factor]]\nname = \"arm\"\nlevels = [\"a\", \"b\"]\n"
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2]\nreplicate = true\n"
    "[data]\nitems = \"items.jsonl\"\n"
    "[stage.quiz]\ncommand = [\"./worker\"]\n"
    "[measure]\nquiz = { metric = \"quiz.acc\", items = 10, chance = 0.25, floor = 0.3 }\n"
    "[contrast]\narm = { between = { arm = [\"b\", \"a\"] }, over = \"counted\" }\n"
    "[counter]\nk = { contrast = \"arm\", clears = \"every_cell\", binds = true }\n"
    "[[input]]\nname = \"d\"\nlevels = [[\"up\", \"contrast.arm.mean > 0\"], [\"down\", "
    "\"otherwise\"]]\n"
    "[table]\ninputs = [\"d\"]\nrows = [[\"up\", \"O1\"], [\"down\", \"O2\"]]\n"
    "[outcome]\nO1 = { prior = 0.5, title = \"t\" }\nO2 = { prior = 0.4, title = \"u\" }\n"
    "[exclusion]\nbudget = 0.1\n";

struct fixture {
    char *folder;
    char *attempt;
    struct plan_program *program;
    struct lock *lock;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    struct diag diag;
    struct err err;
    f->folder = scratch_make();
    free(scratch_write(f->folder, "worker", "#!/bin/sh\n", 0700));
    free(scratch_write(f->folder, "items.jsonl", "", 0700));
    free(scratch_write(f->folder, "grid.toml", plan, 0700));
    char *path = path_join(f->folder, "grid.toml");
    diag_init(&diag, path);
    if (program_load(path, &f->program, &diag, &err) != 0) {
        diag_print(&diag, stderr);
        return -1;
    }
    diag_release(&diag);
    free(path);
    f->attempt = path_join(f->folder, "attempt");
    assert_int_equal(dir_make(f->attempt, 0700, &err), 0);
    free(scratch_write(f->attempt, "weights.bin", "", 0700));
    *state = f;
    return lock_build(f->program, NULL, NULL, &f->lock, &err);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    scratch_remove(f->folder);
    lock_free(f->lock);
    program_free(f->program);
    free(f->attempt);
    free(f);
    return 0;
}

static void verify(const struct fixture *f, struct result_check *c)
{
    struct result_source source = {
        .program = f->program, .lock = f->lock, .folder = f->attempt, .attempt = ID};
    result_verify(&source, c);
}

struct sample {
    const char *text;
    enum core_result_check verdict;
    const char *why; /* is in the reason */
};

static const struct sample samples[] = {
    {HEAD "\"metrics\":{\"acc\":{\"value\":0.5,\"n\":10}}}", RESULT_VALID, ""},
    {HEAD "\"metrics\":{\"acc\":0.5}}", RESULT_VALID, ""},
    {HEAD "\"metrics\":{\"acc\":{\"value\":null,\"why\":\"not_finite\"}}}", RESULT_VALID, ""},
    {HEAD "\"metrics\":{\"acc\":{\"value\":0.5}},\"read\":{\"items\":\"" EMPTY "\"}}", RESULT_VALID,
     ""},
    {HEAD "\"metrics\":{\"acc\":{\"value\":0.5}},\"artifacts\":[{\"path\":\"weights.bin\","
          "\"sha256\":\"" EMPTY "\",\"bytes\":0}],\"items\":\"weights.bin\"}",
     RESULT_VALID, ""},
    {"", RESULT_BAD, "result.json is not valid: line 1, column 1: "},
    {HEAD "\"metrics\":{\"acc\":{\"value\":0.5}}", RESULT_BAD, "result.json"}, /* torn */
    {HEAD "\"metrics\":{\"acc\":{\"value\":NaN}}}", RESULT_VALID, ""},
    {"[]", RESULT_BAD, "not an object"},
    {"{\"protocol\":2,\"attempt\":\"" ID "\",\"metrics\":{\"acc\":1}}", RESULT_BAD, "protocol"},
    {"{\"protocol\":1,\"attempt\":\"other\",\"metrics\":{\"acc\":1}}", RESULT_BAD,
     "another attempt"},
    {"{\"protocol\":1,\"attempt\":\"\",\"metrics\":{\"acc\":1}}", RESULT_BAD,
     "result.json has no attempt id"},
    {"{\"protocol\":1,\"metrics\":{\"acc\":1}}", RESULT_BAD, "attempt"},
    {HEAD "\"metrics\":{\"loss\":{\"value\":0.5}}}", RESULT_BAD, "\"acc\""},
    {HEAD "\"metrics\":{\"acc\":{\"value\":\"0.5\"}}}", RESULT_BAD, "\"acc\""},
    {HEAD "\"metrics\":{\"acc\":{}}}", RESULT_BAD, "\"acc\""},
    {HEAD "\"metrics\":{\"acc\":{\"value\":0.5,\"n\":-1}}}", RESULT_BAD, "\"acc\""},
    {HEAD "\"metrics\":[]}", RESULT_BAD, "metrics"},
    {HEAD "\"metrics\":{\"acc\":1},\"artifacts\":[{\"path\":\"weights.bin\",\"sha256\":\"" OTHER
          "\"}]}",
     RESULT_BAD, "weights.bin"},
    {HEAD "\"metrics\":{\"acc\":1},\"artifacts\":[{\"path\":\"weights.bin\",\"sha256\":\"" EMPTY
          "\",\"bytes\":5}]}",
     RESULT_BAD, "weights.bin"},
    {HEAD "\"metrics\":{\"acc\":1},\"artifacts\":[{\"path\":\"none.bin\",\"sha256\":\"" EMPTY
          "\"}]}",
     RESULT_BAD, "none.bin"},
    {HEAD "\"metrics\":{\"acc\":1},\"artifacts\":[{\"path\":\"../items.jsonl\",\"sha256\":\"" EMPTY
          "\"}]}",
     RESULT_BAD, "outside"},
    {HEAD "\"metrics\":{\"acc\":1},\"artifacts\":[{\"path\":\"/etc/passwd\",\"sha256\":\"" EMPTY
          "\"}]}",
     RESULT_BAD, "outside"},
    {HEAD "\"metrics\":{\"acc\":1},\"items\":\"items.jsonl\"}", RESULT_BAD, "items"},
    {HEAD "\"metrics\":{\"acc\":1},\"read\":{\"items\":\"" OTHER "\"}}", RESULT_DRIFT, "items"},
    {HEAD "\"metrics\":{\"acc\":1},\"read\":{\"unknown\":\"" EMPTY "\"}}", RESULT_DRIFT, "unknown"},
};

static void test_samples(void **state)
{
    const struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        CHECK_ROW("%s", samples[i].text);
        struct result_check c;
        free(scratch_write(f->attempt, LAYOUT_RESULT, samples[i].text, 0700));
        verify(f, &c);
        if (c.verdict != samples[i].verdict || strstr(c.why, samples[i].why) == NULL) {
            fail_msg("%s: %d, %s", samples[i].text, (int)c.verdict, c.why);
        }
        assert_int_equal(c.json != NULL, c.verdict == RESULT_VALID);
        cJSON_Delete(c.json);
    }
}

static void test_a_link_is_no_result(void **state)
{
    const struct fixture *f = *state;
    struct result_check c;
    free(scratch_write(f->folder, "elsewhere.json", samples[0].text, 0700));
    char *path = path_join(f->attempt, LAYOUT_RESULT);
    assert_int_equal(symlink("../elsewhere.json", path), 0);
    verify(f, &c);
    assert_int_equal(c.verdict, RESULT_BAD);
    free(path);
}

static void test_accepted_stays_as_it_was(void **state)
{
    const struct fixture *f = *state;
    struct result_check c;
    struct err err;
    cJSON *again = NULL;
    free(scratch_write(f->attempt, LAYOUT_RESULT, samples[0].text, 0700));
    verify(f, &c);
    char *path = path_join(f->attempt, LAYOUT_RESULT);
    assert_int_equal(accepted_read(path, &c.digest, &again, &err), 0);
    assert_true(cJSON_Compare(again, c.json, true));
    cJSON_Delete(again);
    free(scratch_write(f->attempt, LAYOUT_RESULT, samples[1].text, 0700));
    assert_int_equal(accepted_read(path, &c.digest, &again, &err), ERR_CORRUPT);
    assert_null(again);
    cJSON_Delete(c.json);
    free(path);
}

/* "inputs" names an artifact of the accepted result of a stage before, or is refused. */
static void test_inputs(void **state)
{
    static const char accepted[] =
        "{\"artifacts\":[{\"path\":\"weights.bin\",\"sha256\":\"" EMPTY "\"}]}\n";
    static const struct {
        const char *text;
        enum core_result_check verdict;
        const char *why;
    } cases[] = {
        {HEAD "\"metrics\":{\"acc\":1},\"inputs\":{\"train\":\"" EMPTY "\"}}", RESULT_VALID, ""},
        {HEAD "\"metrics\":{\"acc\":1},\"inputs\":{\"train\":\"" OTHER "\"}}", RESULT_DRIFT,
         "has no such artifact"},
        {HEAD "\"metrics\":{\"acc\":1},\"inputs\":{\"other\":\"" EMPTY "\"}}", RESULT_BAD,
         "does not come after"},
        {HEAD "\"metrics\":{\"acc\":1},\"inputs\":{\"train\":1}}", RESULT_BAD, "not a digest"},
        {HEAD "\"metrics\":{\"acc\":1},\"inputs\":[]}", RESULT_BAD, "not an object"},
    };
    static char name[] = "arm=a,seed=1/train";
    const struct fixture *f = *state;
    char *folder = path_join(f->folder, "train");
    struct err err;
    assert_int_equal(dir_make(folder, 0700, &err), 0);
    free(scratch_write(folder, LAYOUT_RESULT, accepted, 0700));
    struct accepted train = {.stage = "train",
                             .task = name,
                             .folder = folder,
                             .digest = digest_bytes(accepted, strlen(accepted))};
    const struct accepted_list list = {.items = &train, .n = 1};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct result_check c;
        const struct result_source source = {.program = f->program,
                                             .lock = f->lock,
                                             .inputs = &list,
                                             .folder = f->attempt,
                                             .attempt = ID};
        free(scratch_write(f->attempt, LAYOUT_RESULT, cases[i].text, 0700));
        result_verify(&source, &c);
        assert_int_equal(c.verdict, cases[i].verdict);
        assert_non_null(strstr(c.why, cases[i].why));
        cJSON_Delete(c.json);
    }
    free(folder);
}

/* Another name of a work has the work's result, and says so; no other task does. */
static void test_same_work(void **state)
{
    static const char work[] =
        "{\"protocol\":1,\"attempt\":\"w\",\"metrics\":{\"acc\":{\"value\":0.5,\"n\":10}}}\n";
    static char name[] = "arm=a,seed=1/quiz";
    const struct fixture *f = *state;
    char *folder = path_join(f->folder, "work");
    char hex[DIGEST_HEX_SIZE];
    struct err err;
    assert_int_equal(dir_make(folder, 0700, &err), 0);
    free(scratch_write(folder, LAYOUT_RESULT, work, 0700));
    struct accepted of = {.stage = "quiz",
                          .task = name,
                          .folder = folder,
                          .digest = digest_bytes(work, strlen(work))};
    const struct accepted_list names = {.items = &of, .n = 1, .has_work = true};
    const struct accepted_list own = {.items = &of};
    digest_hex(&of.digest, hex);
    const struct {
        const char *metrics;
        const char *attempt; /* that it names; NULL: none */
        const char *sha256;
        const struct accepted_list *inputs;
        const char *why; /* "": valid */
    } cases[] = {
        {"{\"acc\":{\"n\":10,\"value\":0.5}}", "w", hex, &names, ""},
        {"{\"acc\":{\"value\":0.6,\"n\":10}}", "w", hex, &names, "\"metrics\" is not that"},
        {"{\"acc\":{\"value\":0.5,\"n\":10}},\"facts\":{}", "w", hex, &names, "\"facts\""},
        {"{\"acc\":{\"value\":0.5,\"n\":10}}", "v", hex, &names, "of another result"},
        {"{\"acc\":{\"value\":0.5,\"n\":10}}", "w", OTHER, &names, "of another result"},
        {"{\"acc\":{\"value\":0.5,\"n\":10}}", NULL, NULL, &names, "does not say so"},
        {"{\"acc\":{\"value\":0.5,\"n\":10}}", "w", hex, &own, "which the plan does not"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%zu", i);
        struct result_check c;
        const struct result_source source = {.program = f->program,
                                             .lock = f->lock,
                                             .inputs = cases[i].inputs,
                                             .folder = f->attempt,
                                             .attempt = ID};
        char *same = cases[i].attempt == NULL
                         ? xstrdup("")
                         : xasprintf(",\"same_work\":{\"attempt\":\"%s\",\"sha256\":\"%s\"}",
                                     cases[i].attempt, cases[i].sha256);
        char *text = xasprintf(HEAD "\"metrics\":%s%s}", cases[i].metrics, same);
        free(scratch_write(f->attempt, LAYOUT_RESULT, text, 0700));
        result_verify(&source, &c);
        assert_int_equal(c.verdict, cases[i].why[0] == '\0' ? RESULT_VALID : RESULT_BAD);
        if (strstr(c.why, cases[i].why) == NULL) {
            fail_msg("expected \"%s\", found \"%s\"", cases[i].why, c.why);
        }
        cJSON_Delete(c.json);
        free(text);
        free(same);
    }
    /* a work that is gone proves nothing of its names */
    char *path = path_join(folder, LAYOUT_RESULT);
    struct result_check c;
    const struct result_source source = {.program = f->program,
                                         .lock = f->lock,
                                         .inputs = &names,
                                         .folder = f->attempt,
                                         .attempt = ID};
    assert_int_equal(unlink(path), 0);
    result_verify(&source, &c);
    assert_true(c.unread);
    free(path);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_samples, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_link_is_no_result, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_accepted_stays_as_it_was, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_inputs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_same_work, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
